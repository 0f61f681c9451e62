//! Reads the services of a Compose file, as far as a proposal needs them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_yaml::{Mapping, Value};

use super::databases::ObservedDatabase;
use super::dockerfile::{self, DockerfileCommand};
use crate::cli::failure::CommandFailure;

/// A Compose file, as parsed YAML.
#[derive(Debug, Clone)]
pub(super) struct ComposeSource {
    /// The path of the file; `None` for the template.
    pub(super) file: Option<PathBuf>,
    /// The top-level mapping of the file.
    pub(super) root: Mapping,
}

/// The Compose file that is written if none is given.
const TEMPLATE: &str = "
services:
  web:
    build: { context: @NAME@/web }
    ports: ['8080:8000']
    environment: { DATABASE_URL: 'postgresql://web:web@db/web' }
    depends_on: [db]
    mem_limit: 256m
  db:
    image: postgres:16
    environment: { POSTGRES_USER: web, POSTGRES_PASSWORD: web, POSTGRES_DB: web }
    volumes: ['data:/var/lib/postgresql/data']
    mem_limit: 256m
volumes: { data: null }
";

impl ComposeSource {
    /// Reads and parses a Compose file.
    pub(super) fn read(file: &Path) -> Result<Self, CommandFailure> {
        let file = file.canonicalize().with_context(|| format!("find {}", file.display()))?;
        let text = std::fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
        let root = serde_yaml::from_str(&text)
            .map_err(|error| CommandFailure::usage(format!("{} is not a Compose file: {error}", file.display())))?;
        Ok(Self { file: Some(file), root })
    }

    /// Returns a template with an application and its database, for the user to complete.
    pub(super) fn template(name: &str) -> Self {
        let root = serde_yaml::from_str(&TEMPLATE.replace("@NAME@", name)).unwrap_or_default();
        Self { file: None, root }
    }

    /// Returns the folder that relative paths in the file refer to.
    pub(super) fn folder(&self) -> Option<&Path> {
        self.file.as_deref().and_then(Path::parent)
    }
}

/// One service of the Compose file.
#[derive(Debug, Clone, Default)]
pub(super) struct ComposeService {
    pub(super) name: String,
    pub(super) image: String,
    /// The folder that the service's image is built from.
    pub(super) context: Option<PathBuf>,
    pub(super) environment: BTreeMap<String, String>,
    /// The published ports: the host's, if it is given, and the container's.
    pub(super) ports: Vec<(Option<u16>, u16)>,
    /// The mount paths of named volumes.
    pub(super) volumes: Vec<String>,
    pub(super) depends_on: Vec<String>,
    pub(super) entrypoint: Option<Vec<String>>,
    pub(super) command: Option<Vec<String>>,
    pub(super) has_init: bool,
    /// The command of the image, if it is known.
    pub(super) of_image: Option<DockerfileCommand>,
    /// The observations of a running container.
    pub(super) seen: Option<ObservedContainer>,
}

/// The observations of a running container.
#[derive(Debug, Clone, Default)]
pub(super) struct ObservedContainer {
    /// The paths outside of mounts that differ from the image.
    pub(super) changed: Vec<String>,
    /// The command lines of its processes.
    pub(super) processes: Vec<String>,
    /// The TCP ports that it listens on.
    pub(super) listens: Vec<u16>,
    /// The page at `/` of the first port that returned one.
    pub(super) page: Option<ServicePage>,
    /// The databases of a server, if it listed them.
    pub(super) databases: Vec<ObservedDatabase>,
}

/// A page that a service returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServicePage {
    pub(super) status: u16,
    pub(super) title: Option<String>,
}

/// Returns the services of a Compose file, in its order.
pub(super) fn of(source: &ComposeSource) -> Result<Vec<ComposeService>, CommandFailure> {
    let services = source.root.get("services").and_then(Value::as_mapping);
    let services = services.ok_or_else(|| CommandFailure::usage("the Compose file has no services"))?;
    Ok(services.iter().filter_map(|(name, value)| Some(service(source, name.as_str()?, value.as_mapping()?))).collect())
}

fn service(source: &ComposeSource, name: &str, value: &Mapping) -> ComposeService {
    let text = |key: &str| value.get(key).and_then(text_of);
    let context = match value.get("build") {
        Some(Value::String(context)) => Some(context.clone()),
        Some(Value::Mapping(build)) => build.get("context").and_then(text_of),
        _ => None,
    };
    let build = value.get("build").and_then(Value::as_mapping);
    let dockerfile = build.and_then(|build| build.get("dockerfile")?.as_str());
    let target = build.and_then(|build| build.get("target")?.as_str());
    let context = context.and_then(|context| Some(source.folder()?.join(context)));
    let of_image = context.as_deref().and_then(|context| {
        dockerfile::read(&std::fs::read_to_string(context.join(dockerfile.unwrap_or("Dockerfile"))).ok()?, target)
    });
    ComposeService {
        name: name.to_owned(),
        image: text("image").unwrap_or_default(),
        environment: environment(value.get("environment")),
        ports: list(value.get("ports")).iter().filter_map(port).collect(),
        volumes: list(value.get("volumes")).iter().filter_map(volume).collect(),
        depends_on: names(value.get("depends_on")),
        entrypoint: value.get("entrypoint").map(command),
        command: value.get("command").map(command),
        has_init: value.get("init").and_then(Value::as_bool).unwrap_or_default(),
        context,
        of_image,
        seen: None,
    }
}

/// Returns a scalar as text.
pub(super) fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}

fn list(value: Option<&Value>) -> Vec<Value> {
    value.and_then(Value::as_sequence).cloned().unwrap_or_default()
}

fn names(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::Mapping(map)) => map.keys().filter_map(text_of).collect(),
        other => list(other).iter().filter_map(text_of).collect(),
    }
}

fn environment(value: Option<&Value>) -> BTreeMap<String, String> {
    match value {
        Some(Value::Mapping(map)) => {
            map.iter().filter_map(|(name, value)| Some((text_of(name)?, text_of(value).unwrap_or_default()))).collect()
        }
        other => {
            let pairs = list(other);
            let pairs = pairs.iter().filter_map(text_of).filter_map(|pair| {
                let (name, value) = pair.split_once('=')?;
                Some((name.to_owned(), value.to_owned()))
            });
            pairs.collect()
        }
    }
}

/// Parses a port: `8080:80`, `127.0.0.1:8080:80/tcp`, `80`, or the long form.
fn port(value: &Value) -> Option<(Option<u16>, u16)> {
    if let Some(long) = value.as_mapping() {
        let number = |key: &str| long.get(key).and_then(text_of).and_then(|text| text.parse().ok());
        return Some((number("published"), number("target")?));
    }
    let text = text_of(value)?;
    let text = text.split('/').next().unwrap_or_default();
    let mut parts = text.rsplit(':');
    let target = parts.next()?.parse().ok()?;
    Some((parts.next().and_then(|published| published.parse().ok()), target))
}

/// Returns the mount path of a named volume.
fn volume(value: &Value) -> Option<String> {
    if let Some(long) = value.as_mapping() {
        let is_volume = long.get("type").and_then(Value::as_str).is_none_or(|kind| kind == "volume");
        return is_volume.then(|| long.get("target").and_then(text_of)).flatten();
    }
    let text = text_of(value)?;
    let mut parts = text.split(':');
    let (first, second, mode) = (parts.next()?, parts.next(), parts.next());
    let is_path = |text: &str| text.starts_with(['.', '/', '~']);
    match second {
        None => Some(first.to_owned()),
        Some(_) if is_path(first) || mode.is_some_and(|mode| mode.split(',').any(|word| word == "ro")) => None,
        Some(target) => Some(target.trim_end_matches('/').to_owned()),
    }
}

/// Returns a command as a list; the text form is split in the manner of a shell, which keeps quoted words together.
fn command(value: &Value) -> Vec<String> {
    match value {
        Value::Sequence(words) => words.iter().filter_map(text_of).collect(),
        other => split(&text_of(other).unwrap_or_default()),
    }
}

fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let (mut word, mut quote, mut is_begun) = (String::new(), None, false);
    for letter in text.chars() {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (None, '\'' | '"') => (quote, is_begun) = (Some(letter), true),
            (None, letter) if letter.is_whitespace() => {
                if is_begun {
                    words.push(std::mem::take(&mut word));
                }
                is_begun = false;
            }
            (_, letter) => {
                word.push(letter);
                is_begun = true;
            }
        }
    }
    if is_begun {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_long_forms_are_understood() {
        let root: Mapping = serde_yaml::from_str(
            "services:
  web:
    image: x
    ports: ['127.0.0.1:8080:80/tcp', { target: 90, published: 9090 }, 70]
    volumes: ['data:/data/', './conf:/etc/conf:ro', 'shared:/shared:ro', /anonymous]
    environment: [A=1, B=x=y]
    command: serve --name 'two words'
    depends_on: { db: { condition: service_healthy } }
",
        )
        .expect("YAML");
        let found = of(&ComposeSource { file: None, root }).expect("services");
        let web = &found[0];
        assert_eq!(web.ports, [(Some(8080), 80), (Some(9090), 90), (None, 70)]);
        assert_eq!(web.volumes, ["/data", "/anonymous"]);
        assert_eq!(web.environment["B"], "x=y");
        assert_eq!(web.command.as_deref(), Some(&["serve", "--name", "two words"].map(str::to_owned)[..]));
        assert_eq!(web.depends_on, ["db"]);
    }

    #[test]
    fn the_template_is_a_site_of_two_services() {
        assert_eq!(of(&ComposeSource::template("lab")).expect("services").len(), 2);
    }
}
