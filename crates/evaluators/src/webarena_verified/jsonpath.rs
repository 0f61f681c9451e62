//! Names of fields that locate a value: JSONPath, or a pattern for the name.
//!
//! Only task files contain such paths, so the benchmark's own paths have to be supported: names, indices, and one kind
//! of filter. Source: jsonpath-ng 1.7, `core/utils/jsonpath_utils.py`.

use serde_json::{Map, Value};

use super::failure::ReadingFailure;
use super::reading::{ReadingOptions, is_pattern};
use crate::text::patterns::{Mode, PatternError};
use crate::text::{json, numbers};

/// Whether the name of a field is a path or a pattern.
pub(super) fn is_path(name: &str) -> bool {
    name.starts_with('$') || is_pattern(name)
}

/// One step of a path.
#[derive(Debug, Clone, PartialEq)]
enum JsonPathStep {
    Name(String),
    Index(usize),
    /// The items in which the named field equals a whole number.
    Where(String, i128),
}

/// Returns the value at a path: `null` if there is none, a list if there are several.
///
/// # Errors
///
/// Returns an error if the path has a form that the benchmark does not use, or if the benchmark's code raises.
pub(super) fn find(
    data: &Map<String, Value>,
    path: &str,
    reading: &ReadingOptions<'_>,
) -> Result<Value, ReadingFailure> {
    let pattern = if path.starts_with("$.^") && path.ends_with('$') { &path[2..] } else { path };
    if is_pattern(pattern) {
        return by_pattern(data, pattern, reading);
    }
    let steps = steps(path).ok_or_else(|| {
        ReadingFailure::unsupported(format!("the JSONPath {path:?} has parts that no task had so far"))
    })?;
    let mut found = walk(Value::Object(data.clone()), &steps)?;
    if found.is_empty() {
        found = walk(unpacked(&Value::Object(data.clone()))?, &steps)?;
    }
    let is_single = found.len() == 1 && !path.contains("?(");
    match found.pop() {
        None if reading.is_strict() => Err(ReadingFailure::raised(format!("the JSONPath {path:?} finds nothing"))),
        None => Ok(Value::Null),
        Some(value) if is_single => Ok(value),
        Some(last) => {
            found.push(last);
            Ok(Value::Array(found))
        }
    }
}

fn by_pattern(data: &Map<String, Value>, pattern: &str, reading: &ReadingOptions<'_>) -> Result<Value, ReadingFailure> {
    let mut found = Vec::new();
    for (name, value) in data {
        match reading.patterns.is_match(pattern, Mode::Match, name) {
            Ok(true) => found.push(value.clone()),
            Ok(false) => {}
            Err(PatternError::Invalid(_)) if !reading.is_strict() => return Ok(Value::Null),
            Err(error) => return Err(error.into()),
        }
    }
    match (found.len(), found.pop()) {
        (1, Some(single)) => Ok(single),
        _ if reading.is_strict() => {
            Err(ReadingFailure::raised(format!("the pattern {pattern:?} does not fit one name alone")))
        }
        (_, None) => Ok(Value::Null),
        (_, Some(last)) => {
            found.push(last);
            Ok(Value::Array(found))
        }
    }
}

/// Parses a path into steps. Returns `None` if it contains unsupported steps.
fn steps(path: &str) -> Option<Vec<JsonPathStep>> {
    let mut rest = path.strip_prefix('$')?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[']).unwrap_or(after.len());
            let name = &after[..end];
            if name.is_empty() || !name.chars().all(|c| c.is_alphanumeric() || c == '_') {
                return None;
            }
            steps.push(JsonPathStep::Name(name.to_owned()));
            rest = &after[end..];
        } else {
            let after = rest.strip_prefix('[')?;
            let (inner, after) = after.split_once(']')?;
            steps.push(bracket(inner.trim())?);
            rest = after;
        }
    }
    Some(steps)
}

fn bracket(inner: &str) -> Option<JsonPathStep> {
    let quoted = |quote: char| inner.strip_prefix(quote).and_then(|inner| inner.strip_suffix(quote));
    if let Some(name) = quoted('\'').or_else(|| quoted('"')) {
        return Some(JsonPathStep::Name(name.to_owned()));
    }
    if let Some(filter) = inner.strip_prefix("?(").and_then(|inner| inner.strip_suffix(')')) {
        let (field, number) = filter.split_once("==")?;
        let field = field.trim().strip_prefix("@.")?;
        return Some(JsonPathStep::Where(field.to_owned(), number.trim().parse().ok()?));
    }
    inner.parse().ok().map(JsonPathStep::Index)
}

fn walk(data: Value, steps: &[JsonPathStep]) -> Result<Vec<Value>, ReadingFailure> {
    let mut found = vec![data];
    for step in steps {
        let mut next = Vec::new();
        for value in found {
            take(value, step, &mut next)?;
        }
        found = next;
    }
    Ok(found)
}

fn take(value: Value, step: &JsonPathStep, found: &mut Vec<Value>) -> Result<(), ReadingFailure> {
    match (step, value) {
        (JsonPathStep::Name(name), Value::Object(mut entries)) => found.extend(entries.remove(name)),
        (JsonPathStep::Name(_), _) => {}
        (JsonPathStep::Index(index), Value::Array(mut items)) if items.len() > *index => {
            found.push(items.swap_remove(*index))
        }
        // The index of a text selects a character.
        (JsonPathStep::Index(index), Value::String(text)) => {
            found.extend(text.chars().nth(*index).map(|c| Value::from(c.to_string())));
        }
        (JsonPathStep::Index(_), other) if crate::text::python::is_falsy(&other) || other.is_array() => {}
        (JsonPathStep::Index(index), Value::Object(entries)) if entries.len() <= *index => {}
        (JsonPathStep::Index(_), other) => {
            return Err(ReadingFailure::raised(format!("{other} has no items by number")));
        }
        (JsonPathStep::Where(field, number), Value::Array(items)) => keep(items, field, *number, found)?,
        (JsonPathStep::Where(field, number), Value::Object(entries)) => {
            keep(entries.into_iter().map(|(_, value)| value).collect(), field, *number, found)?;
        }
        (JsonPathStep::Where(..), _) => {}
    }
    Ok(())
}

/// Keeps the items whose field `int()` converts to the number.
fn keep(items: Vec<Value>, field: &str, number: i128, found: &mut Vec<Value>) -> Result<(), ReadingFailure> {
    for item in items {
        let is_number = match item.get(field) {
            None => false,
            Some(Value::String(text)) => numbers::int(text) == Some(number),
            Some(Value::Bool(value)) => i128::from(*value) == number,
            #[expect(clippy::cast_precision_loss, reason = "no number of a filter is that large")]
            Some(Value::Number(value)) => value.as_f64().is_some_and(|value| value.trunc() == number as f64),
            Some(other) => return Err(ReadingFailure::raised(format!("{other} is not a number"))),
        };
        if is_number {
            found.push(item);
        }
    }
    Ok(())
}

/// Replaces texts that contain JSON by their values, in objects at any depth.
fn unpacked(value: &Value) -> Result<Value, ReadingFailure> {
    Ok(match value {
        _ if json::beyond(value).is_some() => value.clone(),
        Value::Object(entries) => {
            let mut unpacked_entries = Map::new();
            for (name, value) in entries {
                let value = match value {
                    Value::String(text) => json::parse(text)?.unwrap_or_else(|| value.clone()),
                    other => unpacked(other)?,
                };
                unpacked_entries.insert(name.clone(), value);
            }
            Value::Object(unpacked_entries)
        }
        Value::Array(items) => Value::Array(items.iter().map(unpacked).collect::<Result<_, _>>()?),
        other => other.clone(),
    })
}
