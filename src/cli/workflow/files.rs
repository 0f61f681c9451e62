//! Workflow files, and the task files that they belong to.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Serialize;
use serde_json::Value;
use walkdir::WalkDir;

use crate::cli::failure::CommandFailure;
use arenad_evaluators::webcanvas::{self, WebCanvasTask};
use arenad_workflow::Workflow;

/// The name of a task file that is found without being named.
const TASKS: &str = "tasks.json";

/// A workflow and its place.
pub struct WorkflowFile {
    pub path: PathBuf,
    pub workflow: Workflow,
}

/// Reads the workflows of files and folders that are to be replayed, in the order of their paths.
pub fn read(paths: &[PathBuf]) -> Result<Vec<WorkflowFile>, CommandFailure> {
    let mut found: Vec<PathBuf> = Vec::new();
    for path in paths {
        if !path.is_dir() {
            found.push(path.clone());
            continue;
        }
        let before = found.len();
        for entry in WalkDir::new(path).sort_by_file_name() {
            let entry = entry.with_context(|| format!("read {}", path.display()))?;
            let is_workflow = entry.path().extension().is_some_and(|it| it == "json") && entry.file_name() != TASKS;
            if entry.file_type().is_file() && is_workflow {
                found.push(entry.into_path());
            }
        }
        if found.len() == before {
            return Err(CommandFailure::usage(format!("{} contains no workflow", path.display()))
                .hint("a workflow is a .json file; docs/guides/webcanvas.md describes it"));
        }
    }
    found.into_iter().map(read_to_replay).collect()
}

fn read_to_replay(path: PathBuf) -> Result<WorkflowFile, CommandFailure> {
    let file = read_one(path)?;
    match file.workflow.secret_step() {
        None => Ok(file),
        Some(step) => {
            let said =
                format!("{}: step {} types a password, which recordings do not keep", file.path.display(), step + 1);
            Err(CommandFailure::usage(said)
                .hint("record it with `--account SITE`, which signs in first, or write the text into the file"))
        }
    }
}

/// Reads the workflow of one file.
pub fn read_one(path: PathBuf) -> Result<WorkflowFile, CommandFailure> {
    let text = std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
    let workflow =
        Workflow::read(&text).map_err(|error| CommandFailure::usage(format!("{}: {error}", path.display())))?;
    Ok(WorkflowFile { path, workflow })
}

/// Replaces the content of a file that exists. A reader sees the former content or the new one.
pub fn write<T: Serialize>(path: &Path, content: &T) -> anyhow::Result<()> {
    let doing = || format!("write {}", path.display());
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder).with_context(doing)?;
    serde_json::to_writer_pretty(&mut file, content).with_context(doing)?;
    file.write_all(b"\n").with_context(doing)?;
    let mode = std::fs::metadata(path).with_context(doing)?.permissions();
    file.as_file().set_permissions(mode).with_context(doing)?;
    file.persist(path).with_context(doing)?;
    Ok(())
}

/// A task file whose entries can be replaced.
pub struct TaskFile {
    pub path: PathBuf,
    entries: Vec<Value>,
}

impl TaskFile {
    fn open(path: PathBuf) -> Result<Self, CommandFailure> {
        let text = std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        // Malformed tasks are reported before anything is replayed.
        webcanvas::read(&text).map_err(|error| CommandFailure::usage(format!("{}: {error}", path.display())))?;
        let entries = serde_json::from_str(&text).with_context(|| format!("read {}", path.display()))?;
        Ok(Self { path, entries })
    }

    fn position(&self, id: &str) -> Option<usize> {
        self.entries.iter().position(|entry| match &entry["index"] {
            Value::String(name) => name == id,
            Value::Number(number) => number.to_string() == id,
            _ => false,
        })
    }

    /// Returns the task with this `index`.
    pub fn task(&self, id: &str) -> Result<WebCanvasTask, CommandFailure> {
        let missing = || CommandFailure::usage(format!("{} has no task `{id}`", self.path.display()));
        let at = self.position(id).ok_or_else(missing)?;
        webcanvas::read_one(&self.entries[at], at)
            .map_err(|error| CommandFailure::usage(format!("{}: {error}", self.path.display())))
    }

    /// Returns the entry of a task.
    pub fn entry(&self, id: &str) -> Option<&Value> {
        self.position(id).map(|at| &self.entries[at])
    }

    /// Replaces the entry of a task in the file.
    pub fn replace(&mut self, id: &str, entry: Value) -> anyhow::Result<()> {
        if let Some(at) = self.position(id) {
            self.entries[at] = entry;
            write(&self.path, &self.entries)?;
        }
        Ok(())
    }
}

/// The task files of several workflows, each opened once.
pub struct TaskFiles<'a> {
    named: Option<&'a Path>,
    open: Vec<TaskFile>,
}

impl<'a> TaskFiles<'a> {
    /// Begins without an open file. `named` is the file of all workflows, if it is given.
    pub fn new(named: Option<&'a Path>) -> Self {
        Self { named, open: Vec::new() }
    }

    /// Returns the task file of a workflow; `None` for a workflow without a task.
    pub fn of(&mut self, file: &WorkflowFile) -> Result<Option<&mut TaskFile>, CommandFailure> {
        if file.workflow.task.is_empty() {
            return Ok(None);
        }
        let beside = file.path.ancestors().skip(1).take(2).map(|folder| folder.join(TASKS)).find(|path| path.exists());
        let path = self.named.map(Path::to_owned).or(beside).ok_or_else(|| {
            CommandFailure::usage(format!(
                "{} belongs to task `{}`, and its task file is unknown",
                file.path.display(),
                file.workflow.task
            ))
            .hint("name it with --tasks, or put it beside the workflow as tasks.json")
        })?;
        let at = match self.open.iter().position(|open| open.path == path) {
            Some(at) => at,
            None => {
                self.open.push(TaskFile::open(path)?);
                self.open.len() - 1
            }
        };
        Ok(self.open.get_mut(at))
    }
}
