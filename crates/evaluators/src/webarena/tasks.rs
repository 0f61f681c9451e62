//! Reading of task files: `config_files/test.raw.json`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::task::Eval;

/// A published task whose placeholders have been replaced by the URLs of the sites.
#[derive(Debug, Clone, Deserialize)]
pub struct WebArenaTask {
    /// The number of the task, unique within its file.
    pub task_id: u32,
    /// The names of the sites that it needs.
    pub sites: Vec<String>,
    /// The URLs on which the agent starts, separated by ` |AND| `.
    pub start_url: String,
    /// The instruction that the agent receives.
    pub intent: String,
    /// The evaluators and the expected values.
    pub eval: Eval,
}

/// The reason why a task file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum WebArenaFileError {
    /// The file is not a list of tasks.
    #[error("the file is not a list of tasks")]
    Form(#[source] serde_json::Error),
    /// One task does not have the form of WebArena's tasks.
    #[error("task {number}")]
    Task {
        /// The number of the task, or its index in the file if it has no number.
        number: u64,
        /// The error of the JSON parser.
        #[source]
        cause: serde_json::Error,
    },
    /// A placeholder has no URL.
    #[error("task {number} speaks of {placeholder}, and no URL is known for it")]
    Placeholder {
        /// The number of the task.
        number: u64,
        /// The placeholder, such as `__GITLAB__`.
        placeholder: String,
    },
}

/// The placeholders that the benchmark itself replaces during the evaluation.
const OWN: [&str; 2] = ["__last_url__", "__page__"];

/// Reads a task file. `urls` maps each placeholder to a URL, for instance `__SHOPPING__` to `http://localhost:7770`.
///
/// # Errors
///
/// Returns an error if a task does not have the form of WebArena's tasks, or mentions a site without a URL.
pub fn read(text: &str, urls: &BTreeMap<String, String>) -> Result<Vec<WebArenaTask>, WebArenaFileError> {
    let raw: Vec<Value> = serde_json::from_str(text).map_err(WebArenaFileError::Form)?;
    raw.into_iter().enumerate().map(|(index, task)| task_of(index, task, urls)).collect()
}

fn task_of(index: usize, mut task: Value, urls: &BTreeMap<String, String>) -> Result<WebArenaTask, WebArenaFileError> {
    let number = number(&task).unwrap_or(index as u64);
    render(&mut task, urls).map_err(|left| WebArenaFileError::Placeholder { number, placeholder: left.to_string() })?;
    self::task(&task).map_err(|error| match error {
        WebArenaFileError::Task { cause, .. } => WebArenaFileError::Task { number, cause },
        other => other,
    })
}

/// Replaces the placeholders in one task of a file by the URLs of the sites.
///
/// # Errors
///
/// Returns an error if the task mentions a site without a URL.
pub fn fill(task: &mut Value, urls: &BTreeMap<String, String>) -> Result<(), WebArenaFileError> {
    let number = number(task).unwrap_or_default();
    render(task, urls).map_err(|left| WebArenaFileError::Placeholder { number, placeholder: left.to_string() })
}

/// Reads one task whose placeholders have been replaced.
///
/// # Errors
///
/// Returns an error if it does not have the form of WebArena's tasks.
pub fn task(filled: &Value) -> Result<WebArenaTask, WebArenaFileError> {
    let failed = |cause| WebArenaFileError::Task { number: number(filled).unwrap_or_default(), cause };
    let mut task = WebArenaTask::deserialize(filled).map_err(failed)?;
    task.eval.origins = task.start_url.split(" |AND| ").map(str::to_owned).collect();
    Ok(task)
}

fn number(task: &Value) -> Option<u64> {
    task["task_id"].as_u64()
}

arenad_model::text_error! {
    /// The placeholder of a site without a URL.
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

/// Returns the first placeholder of a site in a text: capital letters between two pairs of underscores.
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
