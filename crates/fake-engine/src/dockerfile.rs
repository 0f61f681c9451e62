//! Image builds, with the subset of Dockerfile instructions that simulated sites use.

use std::collections::BTreeMap;

use super::errors::refused;
use super::files::{FileNode, FileTree, Layer, View, normal, read_tar};
use super::program::{CommandOutcome, ContainerLog, ContainerView};
use super::world::{EngineWorld, StoredImage};
use arenad_engine::EngineError;

/// The owned description of a build.
pub(super) struct Build {
    pub(super) tag: String,
    pub(super) context: bytes::Bytes,
    pub(super) dockerfile: String,
    pub(super) args: BTreeMap<String, String>,
    pub(super) target: Option<String>,
    pub(super) labels: BTreeMap<String, String>,
}

/// Returns the instructions of a Dockerfile: each consists of its name in upper case and the rest of the line.
fn instructions(text: &str) -> Vec<(String, String)> {
    let joined = text.replace("\\\n", " ");
    let lines = joined.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            (word.to_uppercase(), rest.trim().to_owned())
        })
        .collect()
}

/// Parses `["a", "b"]`. Other text is a command for the shell if `shell` is set; otherwise it is split into words.
fn words(rest: &str, shell: bool) -> Vec<String> {
    match serde_json::from_str::<Vec<String>>(rest) {
        Ok(words) => words,
        Err(_) if shell => vec!["sh".to_owned(), "-c".to_owned(), rest.to_owned()],
        Err(_) => rest.split_whitespace().map(str::to_owned).collect(),
    }
}

fn pairs(rest: &str) -> Vec<(String, String)> {
    let unquoted = |text: &str| text.trim_matches('"').to_owned();
    let pair = |word: &str| word.split_once('=').map(|(key, value)| (unquoted(key), unquoted(value)));
    rest.split_whitespace().filter_map(pair).collect()
}

impl EngineWorld {
    /// Builds an image.
    ///
    /// Errors: the message of the builder, or that of the request.
    pub(super) fn build(
        &mut self,
        doing: &str,
        build: &Build,
        progress: &mut Vec<String>,
    ) -> Result<String, EngineError> {
        let files = match read_tar(&build.context) {
            Ok(files) => files.into_iter().map(|(path, node)| (normal(&path), node)).collect::<FileTree>(),
            Err(error) => return Err(refused(doing, 500, format!("Error processing tar file: {error}"))),
        };
        let text = match files.get(&normal(&build.dockerfile)).map(|node| &node.content) {
            Some(super::files::NodeContent::File(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
            _ => {
                let message = format!("Cannot locate specified Dockerfile: {}", build.dockerfile);
                return Err(refused(doing, 500, message));
            }
        };
        let failed = |message: String| EngineError::Build { doing: doing.to_owned(), message };
        let mut stages: BTreeMap<String, StoredImage> = BTreeMap::new();
        let mut args = build.args.clone();
        let mut current: Option<(Option<String>, StoredImage)> = None;
        for (number, (word, rest)) in instructions(&text).into_iter().enumerate() {
            let rest = args.iter().fold(rest, |text, (key, value)| {
                text.replace(&format!("${{{key}}}"), value).replace(&format!("${key}"), value)
            });
            progress.push(format!("Step {} : {word} {rest}", number + 1));
            if word == "ARG" {
                let (key, value) = rest.split_once('=').unwrap_or((&rest, ""));
                args.entry(key.to_owned()).or_insert_with(|| value.to_owned());
                continue;
            }
            if word == "FROM" {
                if let Some((Some(name), image)) = current.take() {
                    let is_wanted = build.target.as_ref() == Some(&name);
                    stages.insert(name, image.clone());
                    if is_wanted {
                        current = Some((None, image));
                        break;
                    }
                }
                let mut parts = rest.split_whitespace();
                let base = parts.next().unwrap_or_default().to_owned();
                let name = parts.nth(1).map(str::to_owned);
                current = Some((name, self.base(doing, &base, &stages)?));
                continue;
            }
            let Some((_, image)) = &mut current else {
                return Err(failed("no build stage in current context".to_owned()));
            };
            match word.as_str() {
                "LABEL" => image.labels.extend(pairs(&rest)),
                "ENV" => image.environment.extend(pairs(&rest)),
                "VOLUME" => {
                    image.volumes.extend(words(&rest, false));
                    image.volumes.sort_unstable();
                    image.volumes.dedup();
                }
                "CMD" | "ENTRYPOINT" => image.command = words(&rest, true),
                "COPY" | "ADD" => {
                    *image =
                        image.with_layer(copied(&rest, &files, &stages).map_err(|error| failed(error.to_string()))?)
                }
                "RUN" => {
                    let command = words(&rest, true);
                    let (outcome, layer) = self.run_step(image, &command);
                    progress.extend(outcome.stdout.lines().chain(outcome.stderr.lines()).map(str::to_owned));
                    if outcome.code != 0 {
                        let message =
                            format!("The command '{}' returned a non-zero code: {}", command.join(" "), outcome.code);
                        return Err(failed(message));
                    }
                    *image = image.with_layer(layer);
                }
                _ => {}
            }
        }
        let Some((_, mut image)) = current else {
            return Err(failed("the Dockerfile (Dockerfile) cannot be empty".to_owned()));
        };
        image.labels.extend(build.labels.clone());
        let id = self.keep_image(image);
        self.name_image(&build.tag, &id);
        Ok(id)
    }

    fn base(
        &mut self,
        doing: &str,
        base: &str,
        stages: &BTreeMap<String, StoredImage>,
    ) -> Result<StoredImage, EngineError> {
        if base == "scratch" {
            return Ok(StoredImage::of_layers(Vec::new()));
        }
        if let Some(stage) = stages.get(base) {
            return Ok(stage.clone());
        }
        if self.image_id(base).is_none()
            && let Err(error) = self.pull(doing, base)
        {
            let message = match error {
                EngineError::NotFound { message, .. } => message,
                other => other.to_string(),
            };
            return Err(EngineError::Build { doing: doing.to_owned(), message });
        }
        match self.find_image(base) {
            Some((id, image)) => Ok(StoredImage { parent: Some(id), container: None, ..image }),
            None => Err(EngineError::Build { doing: doing.to_owned(), message: format!("No such image: {base}") }),
        }
    }

    /// Runs a command on an image's files, and returns its result and its changes.
    fn run_step(&mut self, image: &StoredImage, command: &[String]) -> (CommandOutcome, Layer) {
        let mut program = match self.programs.get(&image.program) {
            Some(make) => make(),
            None => super::idle::maker()(),
        };
        let (mut layer, mut mounts, mut volumes, mut log) =
            (Layer::new(), BTreeMap::new(), BTreeMap::new(), ContainerLog::default());
        let files = View {
            image: &image.files,
            layer: &mut layer,
            mounts: &mut mounts,
            volumes: &mut volumes,
            disk_full: self.disk_full,
            read_only: false,
        };
        let mut inside = ContainerView {
            files,
            log: &mut log,
            at: self.now,
            uptime: std::time::Duration::ZERO,
            command,
            environment: &image.environment,
            input: bytes::Bytes::new(),
        };
        let outcome = program.run(command, None, &mut inside);
        (outcome, layer)
    }
}

arenad_model::text_error! {
    /// A builder's error message about a `COPY` that cannot be executed.
    struct CopyError;
}

/// Returns the files and folders that a `COPY` adds, from the context or from an earlier stage.
fn copied(rest: &str, context: &FileTree, stages: &BTreeMap<String, StoredImage>) -> Result<Layer, CopyError> {
    let mut parts = words(rest, false);
    let stage = parts.iter().find_map(|part| part.strip_prefix("--from=")).map(str::to_owned);
    parts.retain(|part| !part.starts_with("--"));
    let from = match &stage {
        Some(name) => &*stages.get(name).ok_or_else(|| format!("invalid from flag value {name}"))?.files,
        None => context,
    };
    let Some((target, sources)) = parts.split_last() else { return Ok(Layer::new()) };
    let mut found = FileTree::new();
    for source in sources {
        let source = normal(source);
        let is_folder = source.is_empty() || from.get(&source).is_some_and(FileNode::is_folder);
        let name = source.rsplit('/').next().unwrap_or_default();
        let target = match target.ends_with('/') && !is_folder {
            true => normal(&format!("{target}/{name}")),
            false => normal(target),
        };
        let mut is_there = false;
        for (path, node) in from {
            if let Some(rest) = super::files::below_of(path, &source) {
                is_there = true;
                let path = format!("{target}{rest}");
                if !path.is_empty() {
                    super::files::put(&mut found, &path, node.clone());
                }
            }
        }
        if !is_there {
            return Err(format!(
                "COPY failed: file not found in build context or excluded by .dockerignore: stat {source}"
            )
            .into());
        }
    }
    Ok(found.into_iter().map(|(path, node)| (path, Some(node))).collect())
}
