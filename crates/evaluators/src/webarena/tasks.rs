//! Task files: `config_files/test.raw.json`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::task::Eval;

/// A task as the benchmark publishes it, its placeholders replaced by the sites' URLs.
#[derive(Debug, Clone, Deserialize)]
pub struct Task {
    /// The task's number.
    pub task_id: u32,
    /// The sites that it needs.
    pub sites: Vec<String>,
    /// Where the agent starts; several are separated by ` |AND| `.
    pub start_url: String,
    /// What the agent is told.
    pub intent: String,
    /// How it is judged.
    pub eval: Eval,
}

/// Why a task file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TaskFileError {
    /// The file is no list of tasks.
    #[error("the file is no list of tasks")]
    Form(#[source] serde_json::Error),
    /// One task is not as WebArena's are.
    #[error("task {number}")]
    Task {
        /// The task's number, or its place in the file.
        number: u64,
        /// What is wrong.
        #[source]
        cause: serde_json::Error,
    },
    /// A placeholder for which there is no URL.
    #[error("task {number} speaks of {placeholder}, and no URL is known for it")]
    Placeholder {
        /// The task's number.
        number: u64,
        /// The placeholder, such as `__GITLAB__`.
        placeholder: String,
    },
}

/// What the benchmark itself puts in while it evaluates.
const OWN: [&str; 2] = ["__last_url__", "__page__"];

/// Reads a task file. `urls` has a URL for each placeholder, such as `http://localhost:7770` for `__SHOPPING__`.
///
/// # Errors
///
/// When a task is not as WebArena's are, or speaks of a site without a URL.
pub fn read(text: &str, urls: &BTreeMap<String, String>) -> Result<Vec<Task>, TaskFileError> {
    let raw: Vec<Value> = serde_json::from_str(text).map_err(TaskFileError::Form)?;
    raw.into_iter().enumerate().map(|(index, task)| task_of(index, task, urls)).collect()
}

fn task_of(index: usize, mut task: Value, urls: &BTreeMap<String, String>) -> Result<Task, TaskFileError> {
    let number = number(&task).unwrap_or(index as u64);
    render(&mut task, urls).map_err(|left| TaskFileError::Placeholder { number, placeholder: left.to_string() })?;
    self::task(&task).map_err(|error| match error {
        TaskFileError::Task { cause, .. } => TaskFileError::Task { number, cause },
        other => other,
    })
}

/// Puts the sites' URLs in place of their placeholders in one task of a file.
///
/// # Errors
///
/// When it speaks of a site without a URL.
pub fn fill(task: &mut Value, urls: &BTreeMap<String, String>) -> Result<(), TaskFileError> {
    let number = number(task).unwrap_or_default();
    render(task, urls).map_err(|left| TaskFileError::Placeholder { number, placeholder: left.to_string() })
}

/// Reads one task whose placeholders have been replaced.
///
/// # Errors
///
/// When it is not as WebArena's are.
pub fn task(filled: &Value) -> Result<Task, TaskFileError> {
    let failed = |cause| TaskFileError::Task { number: number(filled).unwrap_or_default(), cause };
    let mut task = Task::deserialize(filled).map_err(failed)?;
    task.eval.origins = task.start_url.split(" |AND| ").map(str::to_owned).collect();
    Ok(task)
}

fn number(task: &Value) -> Option<u64> {
    task["task_id"].as_u64()
}

arenad_model::text_error! {
    /// A placeholder of a site that has no URL.
    struct Unfilled;
}

/// Replaces the placeholders in all texts of a value.
fn render(value: &mut Value, urls: &BTreeMap<String, String>) -> Result<(), Unfilled> {
    match value {
        Value::String(text) if text.contains("__") => {
            for (placeholder, url) in urls {
                *text = text.replace(placeholder, url);
            }
            placeholder(text).map_or(Ok(()), |left| Err(left.into()))
        }
        Value::Array(items) => items.iter_mut().try_for_each(|item| render(item, urls)),
        Value::Object(entries) => entries.iter_mut().try_for_each(|(_, item)| render(item, urls)),
        _ => Ok(()),
    }
}

/// The first placeholder of a site in a text: capital letters between two pairs of underscores.
fn placeholder(text: &str) -> Option<&str> {
    let mut rest = text;
    while let Some(start) = rest.find("__") {
        let name = &rest[start + 2..];
        let length = name.find(|c: char| !c.is_ascii_uppercase() && c != '_').unwrap_or(name.len());
        let whole = &rest[start..start + 2 + length];
        if whole.len() > 4 && whole.ends_with("__") && !OWN.contains(&whole) {
            return Some(whole);
        }
        rest = &rest[start + 2..];
    }
    None
}
