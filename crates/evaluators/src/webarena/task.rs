//! The part of a task file that evaluators read. WebArena's and VisualWebArena's have the same form.

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// A task's `eval`.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Eval {
    /// The evaluators, in order: `string_match`, `url_match`, `program_html`, and VisualWebArena's `page_image_query`.
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
    /// What pictures have to show; VisualWebArena's alone.
    #[serde(default, deserialize_with = "or_default")]
    pub page_image_query: Vec<PictureQuery>,
    /// The URLs where the agent starts: where a reference URL without a host is meant to be. Not part of `eval` in the file;
    /// the published rules do not look at it.
    #[serde(skip)]
    pub origins: Vec<String>,
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

/// Pictures of a page, and what they have to show.
#[derive(Debug, Clone, Deserialize)]
pub struct PictureQuery {
    /// `last`, a URL, or `func:` and a helper that finds one.
    pub eval_image_url: String,
    /// Nothing for every picture of the page, or a CSS selector that begins with a dot.
    pub eval_image_class: String,
    /// Questions, each of which one of the pictures has to answer so.
    #[serde(default)]
    pub eval_vqa: Vec<VisualQuestion>,
    /// Pictures, to one of which one of the page's has to be similar; separated by ` |OR| `.
    #[serde(default)]
    pub eval_fuzzy_image_match: Option<String>,
    /// How similar; the benchmark's 0.8 if nothing is said.
    #[serde(default)]
    pub ssim_threshold: Option<f64>,
}

/// A question about a picture.
#[derive(Debug, Clone, Deserialize)]
pub struct VisualQuestion {
    /// The question.
    pub question: String,
    /// What the reply has to contain.
    pub answer: String,
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
    pub(crate) fn new(place: impl Into<String>, expected: &'static str, found: &Value) -> Self {
        Self { place: place.into(), expected, found: found.to_string() }
    }
}

/// A text, or the error that it is none.
pub(crate) fn text_of<'a>(place: &str, value: &'a Value) -> Result<&'a str, TaskError> {
    value.as_str().ok_or_else(|| TaskError::new(place, "a text", value))
}

/// A list of texts, or the error that it is none.
pub(crate) fn texts_of<'a>(place: &str, value: &'a Value) -> Result<Vec<&'a str>, TaskError> {
    let list = value.as_array().ok_or_else(|| TaskError::new(place, "a list of texts", value))?;
    list.iter().map(|item| text_of(place, item)).collect()
}

/// What separates alternatives.
pub(crate) const OR: &str = " |OR| ";
