//! The part of a task file that the evaluators read. WebArena's and VisualWebArena's have the same form.

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// The `eval` of a task.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Eval {
    /// Names of the evaluators, in order: `string_match`, `url_match`, `program_html`, and VisualWebArena's
    /// `page_image_query`.
    #[serde(default)]
    pub eval_types: Vec<String>,
    /// The expected answers, by rule.
    #[serde(default, deserialize_with = "or_default")]
    pub reference_answers: Map<String, Value>,
    /// The URL on which the agent has to end; alternatives are separated by ` |OR| `.
    #[serde(default, deserialize_with = "or_default")]
    pub reference_url: String,
    /// The rule for the URL, such as `GOLD in PRED`.
    #[serde(default)]
    pub url_note: Option<String>,
    /// The reason why the task is impossible; empty if it is possible.
    #[serde(default, deserialize_with = "or_default")]
    pub string_note: String,
    /// The expected content of pages.
    #[serde(default, deserialize_with = "or_default")]
    pub program_html: Vec<PageTarget>,
    /// The expected content of pictures; VisualWebArena only.
    #[serde(default, deserialize_with = "or_default")]
    pub page_image_query: Vec<PictureQuery>,
    /// The URLs where the agent starts. They complete a reference URL without a host. They are not part of `eval` in
    /// the file, and the published rules ignore them.
    #[serde(skip)]
    pub origins: Vec<String>,
}

/// A page, a place on it, and the expected content of that place.
#[derive(Debug, Clone, Deserialize)]
pub struct PageTarget {
    /// `last`, a URL, or `func:` and a helper that returns a URL.
    pub url: String,
    /// An expression in JavaScript, or `func:` and a helper; empty for the whole page.
    #[serde(default)]
    pub locator: String,
    /// Expressions to run before the locator.
    #[serde(default, deserialize_with = "or_default")]
    pub prep_actions: Vec<String>,
    /// The expected content, by rule.
    pub required_contents: Map<String, Value>,
}

/// Pictures of a page and their expected content.
#[derive(Debug, Clone, Deserialize)]
pub struct PictureQuery {
    /// `last`, a URL, or `func:` and a helper that returns a URL.
    pub eval_image_url: String,
    /// A CSS selector that begins with a dot; empty for all pictures of the page.
    pub eval_image_class: String,
    /// Questions, each with the answer that at least one of the pictures has to give.
    #[serde(default)]
    pub eval_vqa: Vec<VisualQuestion>,
    /// Pictures to compare with, separated by ` |OR| `. At least one picture of the page has to be similar to one of
    /// them.
    #[serde(default)]
    pub eval_fuzzy_image_match: Option<String>,
    /// The least similarity, at most 1; the benchmark's 0.8 if absent.
    #[serde(default)]
    pub ssim_threshold: Option<f64>,
}

/// A question about a picture.
#[derive(Debug, Clone, Deserialize)]
pub struct VisualQuestion {
    /// The question as it is put to the model.
    pub question: String,
    /// The text that the reply has to contain.
    pub answer: String,
}

fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(input: D) -> Result<T, D::Error> {
    Option::deserialize(input).map(Option::unwrap_or_default)
}

/// A value in a task on which the benchmark's own code fails.
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

/// Returns the text of a value, or an error if it is not a text.
pub(crate) fn text_of<'a>(place: &str, value: &'a Value) -> Result<&'a str, TaskError> {
    value.as_str().ok_or_else(|| TaskError::new(place, "a text", value))
}

/// Returns the texts of a list, or an error if the value is not a list of texts.
pub(crate) fn texts_of<'a>(place: &str, value: &'a Value) -> Result<Vec<&'a str>, TaskError> {
    let list = value.as_array().ok_or_else(|| TaskError::new(place, "a list of texts", value))?;
    list.iter().map(|item| text_of(place, item)).collect()
}

/// The separator between alternatives.
pub(crate) const OR: &str = " |OR| ";
