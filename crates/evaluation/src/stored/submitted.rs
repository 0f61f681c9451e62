//! Answers that workers have submitted to Turkle, as its database has them.

use serde_json::{Map, Value, json};

use super::results::StoredResult;
use super::tasks::StoredTasks;

/// The statement that reads the submitted assignments. Its rows go to [`submitted`].
///
/// Shape: the name of the batch, the input and the answers as JSON texts, and the numbers of HIT and assignment. Order: that
/// of the submissions, because the last one of a HIT counts.
pub const SUBMITTED: &str = "\
    SELECT turkle_batch.name, turkle_task.input_csv_fields, turkle_taskassignment.answers, turkle_task.id, \
    turkle_taskassignment.id FROM turkle_taskassignment \
    JOIN turkle_task ON turkle_task.id = turkle_taskassignment.task_id \
    JOIN turkle_batch ON turkle_batch.id = turkle_task.batch_id \
    WHERE turkle_taskassignment.completed \
    ORDER BY turkle_taskassignment.updated_at, turkle_taskassignment.id";

/// The rows are not those of [`SUBMITTED`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("row {row} of the submitted answers is malformed: expected {expected}")]
pub struct SubmittedError {
    /// Number of the row, from 1.
    row: usize,
    /// Description of the expected content.
    expected: &'static str,
}

/// Returns the submitted answers to the benchmark's tasks, the last one for each HIT, in the order of the submissions.
/// Batches that are not the benchmark's are left out. `value` is a table in the form of locators, or null.
///
/// # Errors
///
/// Returns an error if a row is malformed.
pub fn submitted(value: &Value, tasks: &StoredTasks) -> Result<Vec<StoredResult>, SubmittedError> {
    let mut found: Vec<StoredResult> = Vec::new();
    for (at, row) in value["rows"].as_array().into_iter().flatten().enumerate() {
        let wrong = |expected| SubmittedError { row: at + 1, expected };
        let cell = |column: usize| &row[column]["value"];
        let batch = cell(0).as_str().ok_or_else(|| wrong("the name of a batch"))?;
        let input = object(cell(1)).ok_or_else(|| wrong("the input as JSON"))?;
        let answers = object(cell(2)).ok_or_else(|| wrong("the answers as JSON"))?;
        let input: Vec<(String, String)> =
            input.into_iter().map(|(name, value)| (name, value.as_str().unwrap_or_default().to_owned())).collect();
        let Some(instance) = tasks.instance_of(batch, &input) else { continue };
        let answers: Map<String, Value> = answers.into_iter().map(|(name, value)| (name, page_value(value))).collect();
        let id = format!("{batch}/{instance}");
        found.retain(|known| known.id != id);
        found.push(StoredResult {
            path: format!("hit-{}-assignment-{}", cell(3), cell(4)),
            id,
            answer: json!({ "submitted": answers }).to_string(),
            recorded: None,
        });
    }
    Ok(found)
}

/// Reads a cell that holds a JSON object, as text or parsed.
fn object(cell: &Value) -> Option<Map<String, Value>> {
    match cell {
        Value::Object(entries) => Some(entries.clone()),
        Value::String(text) => serde_json::from_str(text).ok(),
        _ => None,
    }
}

/// Returns a value as the page had it: forms send the ends of lines as CR and LF, and pages have LF alone.
fn page_value(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(text.replace("\r\n", "\n")),
        Value::Array(values) => values.into_iter().map(page_value).collect(),
        other => other,
    }
}
