//! Lookup and reading of task files. Each file is read once.

use std::fs;
use std::path::{Path, PathBuf};

use crate::locate::{self, ENVIRONMENTS};
use crate::parse::parse;
use crate::problems::Problems;
use crate::{DefinitionError, SourceFile};
use arenad_model::ids::EnvironmentName;

/// Name of the folder of an environment's tasks, below `environments/<name>/`.
const TASKS: &str = "tasks";

/// Maximum number of task files in a folder.
const FILES_MAX: usize = 200;

/// Reads the task files of an environment, in the order of their names. The list is empty if the environment has no
/// tasks.
///
/// Errors: a file cannot be read, is too large, or is not UTF-8 text.
pub fn read_tasks(root: &Path, environment: &EnvironmentName) -> Result<Vec<SourceFile>, DefinitionError> {
    let folder = root.join(ENVIRONMENTS).join(environment.as_str()).join(TASKS);
    if folder.is_dir() { read_folder(root, &folder) } else { Ok(Vec::new()) }
}

/// Reads the YAML files of a folder, in the order of their names.
///
/// Errors: the folder or a file cannot be read, or a file is too large or is not UTF-8 text.
pub fn read_folder(root: &Path, folder: &Path) -> Result<Vec<SourceFile>, DefinitionError> {
    let unreadable = |cause| DefinitionError::Unreadable { path: folder.to_path_buf(), cause };
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let is_yaml = path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
        if is_yaml && path.is_file() {
            paths.push(path);
        }
    }
    if paths.len() > FILES_MAX {
        let message = format!("{} task files, which is more than {FILES_MAX}", paths.len());
        return Err(unreadable(std::io::Error::other(message)));
    }
    paths.sort();
    paths.iter().map(|path| read_file(root, path)).collect()
}

/// Reads a task file. Diagnostics show its path relative to the root folder, if the file is below it.
///
/// Errors: the file cannot be read, is too large, or is not UTF-8 text.
pub fn read_file(root: &Path, path: &Path) -> Result<SourceFile, DefinitionError> {
    let real = path.canonicalize().map_err(|cause| DefinitionError::Unreadable { path: path.to_path_buf(), cause })?;
    let shown = real.strip_prefix(root).map_or_else(|_| real.clone(), Path::to_path_buf);
    let problems = Problems::default();
    let read = locate::read_source(root, &shown, &problems)?;
    match (read, problems.into_result()) {
        (Some(source), _) => Ok(source),
        (None, Err(diagnostics)) => Err(DefinitionError::Invalid(diagnostics)),
        // Reached only if a refusal was not reported.
        (None, Ok(())) => {
            Err(DefinitionError::Unreadable { path: PathBuf::from(path), cause: std::io::Error::other("unknown") })
        }
    }
}

/// Returns the environment that a task file names, if the file can be parsed that far.
pub fn environment_of(source: &SourceFile) -> Option<String> {
    let tree = parse(source, &Problems::default())?;
    Some(tree.entry("environment")?.value.scalar()?.text.clone())
}
