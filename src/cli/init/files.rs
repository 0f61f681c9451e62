//! Writes the files of a new environment to disk.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_yaml::{Mapping, Value};
use walkdir::WalkDir;

use super::propose::Proposal;
use super::services::{ComposeSource, text_of};
use crate::cli::exit_code;
use crate::cli::failure::CommandFailure;

/// The maximum size of a build context that is copied, in bytes.
const COPY_MAX: u64 = 256 << 20;

/// The helper scripts that are embedded in the program.
const HELPERS: [(&str, &str); 4] = [
    ("supervise", include_str!("../../../compose/helpers/supervise")),
    ("stop", include_str!("../../../compose/helpers/stop")),
    ("start", include_str!("../../../compose/helpers/start")),
    ("README.md", include_str!("../../../compose/helpers/README.md")),
];

/// The paths of an environment's files.
pub(super) struct EnvironmentPaths {
    root: PathBuf,
    name: String,
}

impl EnvironmentPaths {
    pub(super) fn new(root: &Path, name: &str) -> Self {
        Self { root: root.to_owned(), name: name.to_owned() }
    }

    /// Returns the path of the environment file.
    pub(super) fn environment(&self) -> PathBuf {
        self.root.join("environments").join(format!("{}.yaml", self.name))
    }

    /// Returns the path of the Compose file.
    pub(super) fn compose(&self) -> PathBuf {
        self.root.join("compose").join(format!("{}.yaml", self.name))
    }

    /// Returns the folder of the files that the Compose file refers to.
    pub(super) fn folder(&self) -> PathBuf {
        self.root.join("compose").join(&self.name)
    }

    /// Refuses to overwrite existing files.
    pub(super) fn refuse_existing(&self, with_compose: bool) -> Result<(), CommandFailure> {
        let all = [Some(self.environment()), with_compose.then(|| self.compose())];
        match all.into_iter().flatten().find(|path| path.exists()) {
            Some(path) => {
                let failure =
                    CommandFailure::new(exit_code::USAGE, anyhow::anyhow!("{} already exists", path.display()));
                Err(failure.hint("choose another name, or pass --force to overwrite it"))
            }
            None => Ok(()),
        }
    }

    /// Writes a file, and returns its path.
    pub(super) fn write(&self, path: &Path, text: &str) -> Result<PathBuf, CommandFailure> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(|| format!("create the folder {}", folder.display()))?;
        }
        fs::write(path, text).with_context(|| format!("write {}", path.display()))?;
        Ok(path.to_owned())
    }
}

/// Writes the helpers into the folder of the Compose file's own files.
pub(super) fn write_helpers(place: &EnvironmentPaths) -> Result<Vec<PathBuf>, CommandFailure> {
    let folder = place.folder().join("helpers");
    for (name, text) in HELPERS {
        let path = place.write(&folder.join(name), text)?;
        let mode = if name.contains('.') { 0o644 } else { 0o755 };
        fs::set_permissions(&path, fs::Permissions::from_mode(mode))
            .with_context(|| format!("make {} executable", path.display()))?;
    }
    Ok(vec![folder])
}

/// Copies of build contexts and mounted files, which must be below `compose/`: the original path of each, and the new
/// one, relative to the Compose file.
#[derive(Debug, Default)]
pub(super) struct CopiedPaths {
    paths: BTreeMap<String, String>,
    written: Vec<PathBuf>,
}

impl CopiedPaths {
    /// Copies the files that the Compose file names by relative paths, unless they are already below `compose/`.
    pub(super) fn make(
        place: &EnvironmentPaths,
        source: &ComposeSource,
        proposal: &Proposal,
        force: bool,
    ) -> Result<Self, CommandFailure> {
        let mut copied = Self::default();
        let Some(folder) = source.folder() else { return Ok(copied) };
        let is_in_place = folder == place.root.join("compose");
        let Some(services) = source.root.get("services").and_then(Value::as_mapping) else { return Ok(copied) };
        for part in &proposal.services {
            let Some(service) = services.get(part.service.name.as_str()).and_then(Value::as_mapping) else { continue };
            for given in named(service) {
                if is_in_place || copied.paths.contains_key(&given) {
                    continue;
                }
                let from = folder.join(&given);
                let Ok(real) = from.canonicalize() else { continue };
                let last = real.file_name().unwrap_or_default().to_string_lossy().into_owned();
                // The folder of the Compose file itself gets the fixed name `build`.
                let name = if real == folder { "build".to_owned() } else { last };
                let to = place.folder().join(&name);
                if to.exists() && !force {
                    let failure = CommandFailure::usage(format!("{} already exists", to.display()));
                    return Err(failure.hint("remove it, or pass --force to overwrite it"));
                }
                copy(&real, &to)?;
                copied.written.push(to);
                copied.paths.insert(given, format!("{}/{name}", place.name));
            }
        }
        Ok(copied)
    }

    /// Returns the paths of the copies.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        self.written.clone()
    }

    /// Replaces the original paths in a service by those of the copies.
    pub(super) fn apply(&self, service: &mut Mapping) {
        let moved = |text: &str| self.paths.get(text).cloned();
        match service.get_mut("build") {
            Some(build @ Value::String(_)) => {
                if let Some(to) = text_of(build).and_then(|text| moved(&text)) {
                    *build = Value::String(to);
                }
            }
            Some(Value::Mapping(build)) => {
                if let Some(to) = build.get("context").and_then(text_of).and_then(|text| moved(&text)) {
                    build.insert("context".into(), Value::String(to));
                }
            }
            _ => {}
        }
        for volume in service.get_mut("volumes").and_then(Value::as_sequence_mut).into_iter().flatten() {
            let Some(text) = text_of(volume) else { continue };
            if let Some((from, rest)) = text.split_once(':')
                && let Some(to) = moved(from)
            {
                *volume = Value::String(format!("./{to}:{rest}"));
            }
        }
    }
}

/// Returns the relative paths that a service names: its build context, and mounted files.
fn named(service: &Mapping) -> Vec<String> {
    let context = match service.get("build") {
        Some(Value::Mapping(build)) => build.get("context").and_then(text_of),
        Some(other) => text_of(other),
        None => None,
    };
    let volumes = service.get("volumes").and_then(Value::as_sequence).cloned().unwrap_or_default();
    let mounted = volumes.iter().filter_map(text_of).filter_map(|text| {
        let from = text.split(':').next()?.to_owned();
        (text.contains(':') && from.starts_with('.')).then_some(from)
    });
    context.into_iter().chain(mounted).collect()
}

fn copy(from: &Path, to: &Path) -> Result<(), CommandFailure> {
    let mut size = 0;
    for entry in WalkDir::new(from).follow_links(false) {
        let entry = entry.with_context(|| format!("read {}", from.display()))?;
        let relative = entry.path().strip_prefix(from).unwrap_or(entry.path());
        if relative.components().any(|part| part.as_os_str() == ".git") {
            continue;
        }
        let target = if relative.as_os_str().is_empty() { to.to_owned() } else { to.join(relative) };
        let doing = || format!("copy {} to {}", entry.path().display(), target.display());
        if entry.file_type().is_dir() {
            fs::create_dir_all(&target).with_context(doing)?;
        } else if entry.file_type().is_symlink() {
            let link = fs::read_link(entry.path()).with_context(doing)?;
            match fs::remove_file(&target) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error).with_context(doing)?,
                _ => std::os::unix::fs::symlink(link, &target).with_context(doing)?,
            }
        } else if entry.file_type().is_file() {
            size += entry.metadata().map(|found| found.len()).unwrap_or_default();
            if size > COPY_MAX {
                let failure =
                    CommandFailure::usage(format!("{} is larger than {} MiB", from.display(), COPY_MAX >> 20));
                return Err(
                    failure.hint("move the Compose file and its build contexts below compose/, and pass it from there")
                );
            }
            if let Some(folder) = target.parent() {
                fs::create_dir_all(folder).with_context(doing)?;
            }
            fs::copy(entry.path(), &target).with_context(doing)?;
        }
    }
    Ok(())
}
