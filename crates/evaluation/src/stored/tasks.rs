//! The tasks of these benchmarks, from their own files.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use arenad_evaluators::turkingbench::{Batch, Instance};
use arenad_evaluators::{mind2web, turkingbench, webcanvas};
use arenad_verdict::Benchmark;
use serde::Serialize;
use serde_json::Value;
use walkdir::WalkDir;

use super::folders::{BATCH, TEMPLATE};

/// The reason why tasks cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum StoredTasksError {
    /// A file or folder cannot be read.
    #[error("read {path}")]
    Read {
        /// Path of the file or folder.
        path: PathBuf,
        /// Error of the operating system.
        #[source]
        cause: io::Error,
    },
    /// There are no tasks.
    #[error("{path} has no tasks of {benchmark}: expected {expected}")]
    Empty {
        /// Path that was searched.
        path: PathBuf,
        /// Benchmark whose tasks were searched for.
        benchmark: Benchmark,
        /// Description of the expected content.
        expected: &'static str,
    },
    /// A file does not have the form of the benchmark.
    #[error("{path}: {what}")]
    Form {
        /// Path of the file.
        path: PathBuf,
        /// Description of the defect.
        what: String,
    },
    /// There is no such task.
    #[error("{benchmark} has no task {id}: {known}")]
    Unknown {
        /// Benchmark whose task was asked for.
        benchmark: Benchmark,
        /// Identifier that was asked for.
        id: String,
        /// Description of the identifiers that exist.
        known: String,
    },
}

/// A task in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TaskLine {
    /// Identifier of the task.
    pub id: String,
    /// Number of its parts, such as `5 key nodes`.
    pub size: String,
    /// The instruction, if the benchmark has any.
    pub intent: String,
}

/// A defect of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TaskProblem {
    /// Identifier of the task.
    pub task: String,
    /// A word for the kind of defect.
    pub kind: String,
    /// Description of the defect and its place.
    pub problem: String,
}

/// The tasks of a benchmark.
#[derive(Debug)]
pub struct StoredTasks {
    benchmark: Benchmark,
    path: PathBuf,
    /// Tasks of WebCanvas and Mind2Web by identifier, in the order of the files.
    listed: Vec<(String, Value)>,
    /// Tasks of TurkingBench by the name of their folder: the template and the batch.
    forms: BTreeMap<String, (String, Batch)>,
    /// Tasks of TurkingBench that cannot be read.
    broken: Vec<TaskProblem>,
}

impl StoredTasks {
    /// Reads the tasks of a benchmark. `path` is a file of tasks, the benchmark's repository or data folder, or a folder
    /// that contains the latter under the benchmark's name.
    ///
    /// # Errors
    ///
    /// Returns an error if there are no tasks, or a file is malformed.
    pub fn open(benchmark: Benchmark, path: &Path) -> Result<Self, StoredTasksError> {
        let inner = path.join(benchmark.name());
        let path = if inner.is_dir() { inner } else { path.to_owned() };
        let mut tasks = Self { benchmark, path, listed: Vec::new(), forms: BTreeMap::new(), broken: Vec::new() };
        match benchmark {
            Benchmark::WebCanvas => tasks.read_lists(&["data/example", "."], "index")?,
            Benchmark::TurkingBench => tasks.read_forms()?,
            _ => tasks.read_lists(&["data", "."], "annotation_id")?,
        }
        if tasks.listed.is_empty() && tasks.forms.is_empty() {
            let expected = match benchmark {
                Benchmark::WebCanvas => "JSON files with lists of tasks, such as mind2web-live_test_20241024.json",
                Benchmark::TurkingBench => "folders with template.html and batch.csv in tasks/",
                _ => "JSON files with lists of tasks in train/, test_task/, test_website/ or test_domain/",
            };
            return Err(StoredTasksError::Empty { path: tasks.path, benchmark, expected });
        }
        Ok(tasks)
    }

    fn read_lists(&mut self, folders: &[&str], id: &str) -> Result<(), StoredTasksError> {
        let folder = folders.iter().map(|folder| self.path.join(folder)).find(|folder| folder.is_dir());
        let root = folder.unwrap_or_else(|| self.path.clone());
        for entry in WalkDir::new(&root).max_depth(3).sort_by_file_name().into_iter().flatten() {
            let path = entry.path();
            if !entry.file_type().is_file() || path.extension().is_none_or(|suffix| suffix != "json") {
                continue;
            }
            let text = read(path)?;
            let form = |what: String| StoredTasksError::Form { path: path.to_owned(), what };
            let parsed = match self.benchmark {
                Benchmark::Mind2Web => mind2web::slim(&text),
                _ => serde_json::from_str(&text),
            };
            let Value::Array(entries) = parsed.map_err(|error| form(error.to_string()))? else { continue };
            for entry in entries {
                let own = match &entry[id] {
                    Value::String(own) => own.clone(),
                    Value::Number(own) => own.to_string(),
                    _ => break,
                };
                // Files of WebCanvas may number their tasks alike; the name of the file then tells them apart.
                let own = match self.listed.iter().any(|(known, _)| *known == own) {
                    true => format!("{}/{own}", path.file_stem().unwrap_or_default().to_string_lossy()),
                    false => own,
                };
                self.listed.push((own, entry));
            }
        }
        Ok(())
    }

    fn read_forms(&mut self) -> Result<(), StoredTasksError> {
        let inner = self.path.join("tasks");
        let root = if inner.is_dir() { inner } else { self.path.clone() };
        for entry in WalkDir::new(&root).max_depth(1).sort_by_file_name().into_iter().flatten() {
            let (template, batch) = (entry.path().join(TEMPLATE), entry.path().join(BATCH));
            if !template.is_file() || !batch.is_file() {
                continue;
            }
            let name = entry.file_name().to_string_lossy().into_owned();
            let template = read(&template)?;
            match Batch::read(&read(&batch)?) {
                Ok(batch) => {
                    self.forms.insert(name, (template, batch));
                }
                Err(error) => {
                    self.broken.push(TaskProblem { task: name, kind: "batch".to_owned(), problem: error.to_string() });
                }
            }
        }
        Ok(())
    }

    /// Returns a task in the form of evidence. Instances of TurkingBench are named `TASK/NUMBER`, from 0.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such task.
    pub fn find(&self, id: &str) -> Result<Value, StoredTasksError> {
        let unknown = |known: String| StoredTasksError::Unknown { benchmark: self.benchmark, id: id.to_owned(), known };
        if self.benchmark != Benchmark::TurkingBench {
            let found = self.listed.iter().find(|(own, _)| own == id);
            let ends = [self.listed.first(), self.listed.last()].into_iter().flatten().map(|(id, _)| id.as_str());
            return found.map(|(_, task)| task.clone()).ok_or_else(|| {
                unknown(format!("it has {} tasks, {}", self.listed.len(), ends.collect::<Vec<_>>().join(" to ")))
            });
        }
        let (task, number) = id.rsplit_once('/').unwrap_or((id, ""));
        let (template, batch) = self
            .forms
            .get(task)
            .ok_or_else(|| unknown(format!("it has {} tasks, none of this name", self.forms.len())))?;
        let number = number.parse::<usize>().ok().filter(|number| *number < batch.instances()).ok_or_else(|| {
            unknown(format!("the task has the instances {task}/0 to {task}/{}", batch.instances().saturating_sub(1)))
        })?;
        let instance = Instance::load(task, template, batch, number).map_err(|error| {
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
            StoredTasksError::Form { path: self.path.join("tasks").join(task), what: format!("{error}{cause}") }
        })?;
        Ok(instance.value())
    }

    /// Returns the instance of a task of TurkingBench that has some input.
    #[must_use]
    pub fn instance_of(&self, task: &str, input: &[(String, String)]) -> Option<usize> {
        let (_, batch) = self.forms.get(task)?;
        let is_same = |own: &[(String, String)]| {
            own.iter().all(|(name, value)| input.iter().any(|(other, given)| other == name && given == value))
        };
        (0..batch.instances()).find(|number| is_same(&batch.input(*number)))
    }

    /// Lists the tasks; for TurkingBench the tasks, not their instances.
    #[must_use]
    pub fn lines(&self) -> Vec<TaskLine> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let count = |value: &Value, what: &str| format!("{} {what}", value.as_array().map_or(0, Vec::len));
        let forms = self.forms.iter().map(|(name, (_, batch))| TaskLine {
            id: name.clone(),
            size: format!("{} instances, {} fields", batch.instances(), batch.fields().count()),
            intent: String::new(),
        });
        let listed = self.listed.iter().map(|(id, task)| match self.benchmark {
            Benchmark::WebCanvas => {
                TaskLine { id: id.clone(), size: count(&task["evaluation"], "key nodes"), intent: text(&task["task"]) }
            }
            _ => TaskLine {
                id: id.clone(),
                size: count(&task["actions"], "steps"),
                intent: text(&task["confirmed_task"]),
            },
        });
        listed.chain(forms).collect()
    }

    /// Returns the defects of all tasks.
    #[must_use]
    pub fn lint(&self) -> Vec<TaskProblem> {
        let problem = |task: &str, kind: &str, problem: String| TaskProblem {
            task: task.to_owned(),
            kind: kind.to_owned(),
            problem,
        };
        let mut out = self.broken.clone();
        for (id, task) in &self.listed {
            match self.benchmark {
                Benchmark::WebCanvas => match webcanvas::read_one(task, 0) {
                    Ok(task) => out.extend(webcanvas::lint(&task).into_iter().map(|finding| {
                        problem(id, finding.kind, format!("node {}: {}", finding.node, finding.problem))
                    })),
                    Err(error) => out.push(problem(id, "form", error.to_string())),
                },
                _ => match mind2web::read_one(task) {
                    Ok(task) => {
                        out.extend(task.steps.iter().enumerate().filter(|(_, step)| !step.has_positive(u64::MAX)).map(
                            |(at, _)| {
                                problem(id, "no_element", format!("step {}: the data have no right element", at + 1))
                            },
                        ))
                    }
                    Err(error) => out.push(problem(id, "form", error.to_string())),
                },
            }
        }
        for (name, (template, batch)) in &self.forms {
            out.extend(form_problems(name, template, batch));
        }
        out
    }
}

fn form_problems(name: &str, template: &str, batch: &Batch) -> Vec<TaskProblem> {
    let mut out = Vec::new();
    let mut add = |kind: &str, problem: String| {
        out.push(TaskProblem { task: name.to_owned(), kind: kind.to_owned(), problem });
    };
    if let Err(error) = turkingbench::process_template(template) {
        add("template", error.to_string());
    }
    let columns: Vec<String> = batch.input(0).into_iter().map(|(column, _)| column).collect();
    for placeholder in turkingbench::placeholders(template) {
        if !columns.contains(&placeholder) {
            add("column", format!("the placeholder `{placeholder}` has no column, and Turkle refuses the batch"));
        }
    }
    let Ok(first) = Instance::load(name, template, batch, 0) else {
        add("labels", "the first instance has an empty input cell, which equals nothing".to_owned());
        return out;
    };
    let gone = first.fields.iter().filter(|(_, kind)| kind.is_none()).count();
    if gone > 0 {
        add(
            "scripts",
            format!("{gone} of {} fields are made by scripts and are not in the template", first.fields.len()),
        );
    }
    out
}

fn read(path: &Path) -> Result<String, StoredTasksError> {
    let bytes = std::fs::read(path).map_err(|cause| StoredTasksError::Read { path: path.to_owned(), cause })?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
