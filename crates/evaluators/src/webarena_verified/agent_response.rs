//! `AgentResponseEvaluator`: compares the actions and the data that the agent reports with the expected ones.

use std::sync::LazyLock;

use fancy_regex::Regex;
use serde_json::{Map, Value};

use super::compare::{ComparisonRules, ValueMismatch};
use super::failure::ReadingFailure;
use super::node::ValueNode;
use super::reading::{ReadingOptions, ValueOrigin};
use super::schema;
use super::submission::SubmittedAnswer;
use super::task::AgentResponse;
use super::values::TypedValue;
use crate::text::python::is_falsy;
use crate::text::{json, python};
use arenad_verdict::Profile;

/// The two sides of a comparison, and its differences.
pub(super) struct ResponseComparison {
    pub(super) expected: ValueNode,
    pub(super) actual: ValueNode,
    pub(super) differences: Vec<ValueMismatch>,
}

/// Compares an answer with the expected one. `reading` determines how the task's own values are read.
pub(super) fn judge(
    config: &AgentResponse,
    answer: &SubmittedAnswer,
    is_retrieval: bool,
    reading: &ReadingOptions<'_>,
) -> Result<ResponseComparison, ReadingFailure> {
    let of_agent = ReadingOptions { side: ValueOrigin::Actual, ..*reading };
    let expected = expected(config, reading)?;
    let expected_data = expected.get("retrieved_data").cloned().unwrap_or(ValueNode::None);
    let actual = match document(answer)? {
        value if json::beyond(&value).is_some() => ValueNode::raw(&value),
        Value::Object(answer) => given(&answer, config, is_retrieval, &of_agent)?,
        other => ValueNode::raw(&other),
    };
    let comparison =
        ComparisonRules { reading, is_ordered: false, may_have_more_keys: false, ignored_key: Some("retrieved_data") };
    let mut differences = comparison.differences(&actual, &expected, "agent_response")?;
    let actual_data = actual.get("retrieved_data").cloned().unwrap_or(ValueNode::None);
    let is_object = matches!(&actual, ValueNode::Object(entries) if !entries.is_empty());
    if is_object && is_retrieval {
        differences.extend(compare_data(&expected_data, &actual_data, config.ordered, reading)?);
    }
    Ok(ResponseComparison { expected, actual, differences })
}

/// Reads the expected answer of the task.
pub(super) fn expected(config: &AgentResponse, reading: &ReadingOptions<'_>) -> Result<ValueNode, ReadingFailure> {
    let bare = ReadingOptions { sites: None, rendered: None, ..*reading };
    Ok(ValueNode::Object(vec![
        ("task_type".to_owned(), ValueNode::Typed(TypedValue::text(&config.expected.task_type, &bare)?)),
        ("status".to_owned(), ValueNode::Typed(TypedValue::text(&config.expected.status, &bare)?)),
        ("retrieved_data".to_owned(), data(config.expected.retrieved_data.as_ref(), config, reading)?),
    ]))
}

/// Compares retrieved data with the expected data by a schema, as the `retrieved_data` of an answer.
///
/// # Errors
///
/// Returns an error if the benchmark's code raises, or if its result is unknown.
pub fn retrieved_data(
    results_schema: &Value,
    expected: &Value,
    actual: &Value,
    ordered: bool,
    reading: &ReadingOptions<'_>,
) -> Result<Vec<ValueMismatch>, ReadingFailure> {
    let of_agent = ReadingOptions { side: ValueOrigin::Actual, ..*reading };
    let expected = results(expected, results_schema, reading)?;
    let actual = results(actual, results_schema, &of_agent)?;
    compare_data(&expected, &actual, ordered, reading)
}

fn compare_data(
    expected: &ValueNode,
    actual: &ValueNode,
    is_ordered: bool,
    reading: &ReadingOptions<'_>,
) -> Result<Vec<ValueMismatch>, ReadingFailure> {
    let one = |name: &str, message: String| Ok(vec![ValueMismatch { name: format!("retrieved_data_{name}"), message }]);
    match (expected, actual) {
        (ValueNode::None, ValueNode::None) => Ok(Vec::new()),
        (ValueNode::None, actual) => one("unexpected", format!("expected no data, got {}", actual.to_json())),
        (expected, ValueNode::None) => one("missing_or_null", format!("expected {}, got none", expected.to_json())),
        (expected, actual) => {
            let comparison = ComparisonRules { reading, is_ordered, may_have_more_keys: false, ignored_key: None };
            comparison.differences(actual, expected, "retrieved_data")
        }
    }
}

/// Returns the JSON of the answer: the content of a code fence, or the whole text. Text that is not JSON stays a text.
fn document(answer: &SubmittedAnswer) -> Result<Value, ReadingFailure> {
    static FENCE: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"(?s)```(?:json)?\s*\n?(.*?)\n?```").expect("a pattern of ours"));
    let value = match answer {
        SubmittedAnswer::Document(value) => value.clone(),
        SubmittedAnswer::Text(text) => {
            let fenced = FENCE.captures(text).ok().flatten();
            let inner = fenced.as_ref().and_then(|found| found.get(1)).map_or(text.as_str(), |group| group.as_str());
            let inner = python::strip(inner);
            json::parse(inner)?.unwrap_or_else(|| Value::from(inner))
        }
    };
    Ok(if is_falsy(&value) { Value::Null } else { value })
}

/// Reads the parts of an answer that the task mentions.
fn given(
    answer: &Map<String, Value>,
    config: &AgentResponse,
    is_retrieval: bool,
    reading: &ReadingOptions<'_>,
) -> Result<ValueNode, ReadingFailure> {
    let mut parts = Vec::new();
    let task_type = answer.get("task_type").or_else(|| answer.get("performed_operation"));
    for (name, value) in [("task_type", task_type), ("status", answer.get("status"))] {
        let Some(value) = value else { continue };
        let text = value.as_str().ok_or_else(|| ReadingFailure::raised(format!("{name} is {value}, no text")))?;
        let text = python::strip(text);
        let bare = ReadingOptions { sites: None, ..*reading };
        let node = if text.is_empty() { ValueNode::None } else { ValueNode::Typed(TypedValue::text(text, &bare)?) };
        parts.push((name.to_owned(), node));
    }
    // If the task does not mention data, the benchmark reports it as missing from every answer, so none passes.
    if config.expected.retrieved_data.is_some() || reading.profile == Profile::Strict {
        let value = answer.get("retrieved_data").filter(|_| is_retrieval);
        parts.push(("retrieved_data".to_owned(), data(value, config, reading)?));
    }
    Ok(ValueNode::Object(parts))
}

fn data(
    value: Option<&Value>,
    config: &AgentResponse,
    reading: &ReadingOptions<'_>,
) -> Result<ValueNode, ReadingFailure> {
    value.map_or(Ok(ValueNode::None), |value| results(value, &config.results_schema, reading))
}

/// Reads retrieved data. An empty value that is not a number becomes `None`; a single value becomes a list of one item.
fn results(value: &Value, schema: &Value, reading: &ReadingOptions<'_>) -> Result<ValueNode, ReadingFailure> {
    // In compat NaN is truthy, as is any number but zero.
    let is_beyond = |value: &Value| json::beyond(value).is_some();
    let has_beyond = is_beyond(value) || value.as_array().is_some_and(|items| items.iter().any(is_beyond));
    if has_beyond && reading.profile == Profile::Strict && reading.side == ValueOrigin::Actual {
        return Err(ReadingFailure::raised("the answer has a number that JSON does not have".to_owned()));
    }
    match value {
        Value::Null => Ok(ValueNode::None),
        Value::String(_) | Value::Array(_) | Value::Object(_) if is_falsy(value) => Ok(ValueNode::None),
        Value::Array(items) => schema::results(items, schema, reading),
        single => schema::results(std::slice::from_ref(single), schema, reading),
    }
}

/// Returns the answer as JSON, for a report.
pub(super) fn shown(answer: &SubmittedAnswer) -> Value {
    match answer {
        SubmittedAnswer::Document(value) => json::shown(value),
        SubmittedAnswer::Text(text) => Value::from(text.as_str()),
    }
}
