//! Task files and their key nodes.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::matching::Method;

/// A file or a task that WebCanvas' own code does not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("WebCanvas task {task}: `{place}` is missing or malformed; expected {expected}")]
pub struct WebCanvasFileError {
    /// Number or name of the task, or its position in the file.
    pub task: String,
    /// The field at fault.
    pub place: String,
    /// Description of the expected content.
    pub expected: String,
}

/// A task with its key nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct WebCanvasTask {
    /// The `index` of the file: a number or a name.
    pub id: String,
    /// The instruction of the task.
    pub intent: String,
    /// The number of steps of the recording.
    pub reference_length: f64,
    /// The key nodes, in the order of the recording. Nodes of kinds that the benchmark does not know are left out, as in
    /// its own code.
    pub nodes: Vec<KeyNode>,
    /// Names of the match functions that were left out.
    pub left_out: Vec<String>,
}

/// A state that the agent has to reach.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyNode {
    /// The name of the match function, such as `url_included_match`.
    pub function: String,
    /// The reference, or the rule for a judge.
    pub reference: String,
    /// The part of a step that is compared.
    pub target: Target,
    /// Where the annotator was; the benchmark's code does not use it.
    pub recorded_url: Option<String>,
}

/// The part of a step that a key node is compared with.
#[derive(Debug, Clone, PartialEq)]
pub enum Target {
    /// The page's address, or one of its parameters.
    Url {
        /// The name of the parameter; empty for the whole address.
        key: String,
    },
    /// The element of the agent's action.
    Path {
        /// How the reference is written.
        method: Method,
        /// The site of the key node.
        netloc: String,
    },
    /// The value of the agent's action.
    Value {
        /// The element that the value has to belong to.
        path: Option<String>,
        /// The site of the key node.
        netloc: String,
    },
    /// A text that the agent stores.
    Cache,
    /// The answer that the agent gives.
    Answer,
}

/// The way in which a node is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NodeRule {
    /// Equal texts, or the same element.
    Exact,
    /// The reference is a part.
    Included,
    /// A judge decides by a rule in words.
    Semantic,
    /// The benchmark has no such function, so that the node can never be reached.
    Unknown,
}

impl KeyNode {
    /// Returns the way in which the node is compared.
    #[must_use]
    pub fn rule(&self) -> NodeRule {
        let (exact, included, semantic) = match self.target {
            Target::Url { .. } => ("url_exactly_match", "url_included_match", "url_semantic_match"),
            // Inclusion is read but never compared.
            Target::Path { .. } => ("element_path_exactly_match", "", ""),
            Target::Value { .. } => {
                ("element_value_exactly_match", "element_value_included_match", "element_value_semantic_match")
            }
            Target::Cache => ("cache_data_exact_match", "cache_data_included_match", "cache_data_semantic_match"),
            Target::Answer => {
                ("final_answer_exact_match", "final_answer_included_match", "final_answer_semantic_match")
            }
        };
        match self.function.as_str() {
            name if name == exact => NodeRule::Exact,
            name if name == included => NodeRule::Included,
            name if name == semantic => NodeRule::Semantic,
            _ => NodeRule::Unknown,
        }
    }
}

/// Whether the benchmark's code knows a match function. It leaves key nodes with other functions out.
#[must_use]
pub fn is_known(function: &str) -> bool {
    ["url", "element_path", "element_value", "final_answer", "cache_data"].iter().any(|kind| function.contains(kind))
}

/// Reads a task file: a list of tasks.
///
/// # Errors
///
/// Returns an error that names the first task at fault.
pub fn read(text: &str) -> Result<Vec<WebCanvasTask>, WebCanvasFileError> {
    let wrong = |expected: String| WebCanvasFileError { task: "list".into(), place: "the file".into(), expected };
    let value: Value = serde_json::from_str(text).map_err(|error| wrong(format!("JSON ({error})")))?;
    let Value::Array(tasks) = value else { return Err(wrong("a list of tasks".into())) };
    tasks.iter().enumerate().map(|(at, task)| read_one(task, at)).collect()
}

/// Reads one task. `at` is its position, by which errors name a task without a name.
///
/// # Errors
///
/// Returns an error that names the field at fault.
pub fn read_one(task: &Value, at: usize) -> Result<WebCanvasTask, WebCanvasFileError> {
    let id = match &task["index"] {
        Value::String(name) => name.clone(),
        Value::Number(number) => number.to_string(),
        _ => {
            let (place, expected) = ("index".into(), "a number or a name".into());
            return Err(WebCanvasFileError { task: format!("at position {at}"), place, expected });
        }
    };
    let wrong = |place: &str, expected: &str| WebCanvasFileError {
        task: id.clone(),
        place: place.to_owned(),
        expected: expected.to_owned(),
    };
    let intent = task["task"].as_str().ok_or_else(|| wrong("task", "an instruction"))?.to_owned();
    let reference_length =
        task["reference_task_length"].as_f64().ok_or_else(|| wrong("reference_task_length", "a number"))?;
    let entries = task["evaluation"].as_array().ok_or_else(|| wrong("evaluation", "a list of key nodes"))?;
    let (mut nodes, mut left_out) = (Vec::new(), Vec::new());
    for (at, entry) in entries.iter().enumerate() {
        let place = |field: &str| format!("evaluation[{at}].{field}");
        let function = entry["match_function_name"]
            .as_str()
            .ok_or_else(|| wrong(&place("match_function_name"), "the name of a match function"))?;
        if !is_known(function) {
            left_out.push(function.to_owned());
            continue;
        }
        let content = &entry["content"];
        let text = |field: &str| {
            content[field]
                .as_str()
                .map(str::to_owned)
                .ok_or_else(|| wrong(&place(&format!("content.{field}")), "a text"))
        };
        let target = if function.contains("url") {
            Target::Url {
                key: match content.get("key") {
                    Some(Value::String(key)) => key.clone(),
                    // Python takes these for no key.
                    Some(Value::Null | Value::Bool(false)) => String::new(),
                    _ => return Err(wrong(&place("content.key"), "a text")),
                },
            }
        } else if function.contains("element_path") {
            let method = entry["method"].as_str().ok_or_else(|| wrong(&place("method"), "`selector` or `xpath`"))?;
            Target::Path { method: Method::named(method), netloc: text("netloc")? }
        } else if function.contains("element_value") {
            Target::Value {
                // A path without a text leads to no element.
                path: content.get("path").map(|path| path.as_str().unwrap_or_default().to_owned()),
                netloc: text("netloc")?,
            }
        } else if function.contains("final_answer") {
            Target::Answer
        } else {
            Target::Cache
        };
        let recorded_url = content["url"].as_str().map(str::to_owned);
        nodes.push(KeyNode {
            function: function.to_owned(),
            reference: text("reference_answer")?,
            target,
            recorded_url,
        });
    }
    Ok(WebCanvasTask { id, intent, reference_length, nodes, left_out })
}
