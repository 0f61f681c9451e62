//! The part of a task file that evaluators read.

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// A task's `eval`.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Eval {
    /// The evaluators, in order: `string_match`, `url_match`, `program_html`.
    #[serde(default)]
    pub eval_types: Vec<String>,
    /// What the answer has to be, by rule.
    #[serde(default, deserialize_with = "or_default")]
    pub reference_answers: Map<String, Value>,
    /// Where the agent has to end; alternatives are separated by ` |OR| `.
    #[serde(default, deserialize_with = "or_default")]
    pub reference_url: String,
    /// The rule for the URL.
    #[serde(default)]
    pub url_note: Option<String>,
    /// Why the task cannot be done, if it cannot.
    #[serde(default, deserialize_with = "or_default")]
    pub string_note: String,
    /// What pages have to show.
    #[serde(default, deserialize_with = "or_default")]
    pub program_html: Vec<Target>,
}

/// A page, a place on it, and what has to be there.
#[derive(Debug, Clone, Deserialize)]
pub struct Target {
    /// `last`, a URL, or `func:` and a helper that finds one.
    pub url: String,
    /// Nothing for the whole page, an expression in JavaScript, or `func:` and a helper.
    #[serde(default)]
    pub locator: String,
    /// Expressions to run before.
    #[serde(default, deserialize_with = "or_default")]
    pub prep_actions: Vec<String>,
    /// What has to be there, by rule.
    pub required_contents: Map<String, Value>,
}

fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(input: D) -> Result<T, D::Error> {
    Option::deserialize(input).map(Option::unwrap_or_default)
}

/// A task that says something which the benchmark's own code fails on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {found} is not {expected}")]
pub struct TaskError {
    place: String,
    expected: &'static str,
    found: String,
}

impl TaskError {
    pub(super) fn new(place: impl Into<String>, expected: &'static str, found: &Value) -> Self {
        Self { place: place.into(), expected, found: found.to_string() }
    }
}

/// A text, or the error that it is none.
pub(super) fn text_of<'a>(place: &str, value: &'a Value) -> Result<&'a str, TaskError> {
    value.as_str().ok_or_else(|| TaskError::new(place, "a text", value))
}
