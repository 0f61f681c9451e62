//! Values read by a JSON schema, which determines the type of each.
//!
//! Source: `webarena_verified/core/evaluation/value_normalizer.py`.

use serde_json::{Map, Value};

use super::failure::ReadingFailure;
use super::node::ValueNode;
use super::reading::ReadingOptions;
use super::values::{TypedValue, ValueKind};
use crate::text::json;
use crate::text::python::is_falsy;

/// The item type of a schema.
enum SchemaItem<'a> {
    /// A type of the benchmark, by its name.
    Named(&'a str),
    /// An object with this schema.
    Object(&'a Value),
}

/// Reads a value of any shape.
///
/// # Errors
///
/// Returns an error if the schema is invalid, if an expected value does not fit it, or if the benchmark's result is
/// unknown.
pub(crate) fn read(value: &Value, schema: &Value, reading: &ReadingOptions<'_>) -> Result<ValueNode, ReadingFailure> {
    if is_falsy(value) {
        return Ok(ValueNode::None);
    }
    let default = match value {
        Value::Object(_) if json::beyond(value).is_none() => serde_json::json!({ "type": "object" }),
        Value::Array(_) => serde_json::json!({ "type": "array" }),
        _ => serde_json::json!({}),
    };
    let (wanted, is_array) = wanted(if is_falsy(schema) { &default } else { schema })?;
    match wanted {
        SchemaItem::Object(schema) => object_or_array(value, schema, reading),
        SchemaItem::Named(_) if is_array && !value.is_array() => {
            or_raw(Err(ReadingFailure::raised(format!("{value} is not a list"))), value, reading)
        }
        wanted if is_array => array(value, &wanted, reading),
        SchemaItem::Named(name) => single(value, name, reading),
    }
}

/// Reads one value of a type.
pub(super) fn single(value: &Value, name: &str, reading: &ReadingOptions<'_>) -> Result<ValueNode, ReadingFailure> {
    let kind = kind(name)?;
    or_raw(TypedValue::read(kind, value, reading).map(ValueNode::Typed), value, reading)
}

/// Reads an agent's list of results.
///
/// # Errors
///
/// Returns an error if the schema is not for a list, if an expected value does not fit it, or if the benchmark's result
/// is unknown.
pub(super) fn results(
    values: &[Value],
    schema: &Value,
    reading: &ReadingOptions<'_>,
) -> Result<ValueNode, ReadingFailure> {
    let name = schema.get("type").and_then(Value::as_str).unwrap_or("array");
    if name != "array" {
        return Err(ReadingFailure::raised(format!("the schema is for {name:?}, not for a list")));
    }
    let empty = Value::Object(Map::new());
    let items = schema.get("items").unwrap_or(&empty);
    let is_object = items.get("type").and_then(Value::as_str) == Some("object");
    let read = |value: &Value| {
        if is_object {
            return object_or_array(value, items, reading);
        }
        let format = items.get("format").filter(|format| !is_falsy(format));
        let name = format.or(items.get("type")).and_then(Value::as_str).unwrap_or("string");
        single(value, name, reading)
    };
    values.iter().map(read).collect::<Result<_, _>>().map(ValueNode::Tuple)
}

fn kind(name: &str) -> Result<ValueKind, ReadingFailure> {
    ValueKind::named(name).ok_or_else(|| ReadingFailure::raised(format!("unknown type {name:?}")))
}

/// Keeps an actual value unchanged if it does not fit its type.
fn or_raw(
    read: Result<ValueNode, ReadingFailure>,
    value: &Value,
    reading: &ReadingOptions<'_>,
) -> Result<ValueNode, ReadingFailure> {
    match read {
        Err(ReadingFailure::Raised(_)) if !reading.is_strict() => Ok(ValueNode::raw(value)),
        other => other,
    }
}

/// Returns the item type of a schema, and whether the schema is for a list.
fn wanted(schema: &Value) -> Result<(SchemaItem<'_>, bool), ReadingFailure> {
    if !schema.is_object() {
        return Err(ReadingFailure::raised(format!("{schema} is not a schema")));
    }
    let text = |key: &str| schema.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    match text("type") {
        Some("array") => match schema.get("items") {
            Some(items) => Ok((wanted(items)?.0, true)),
            None => Ok((SchemaItem::Named("string"), true)),
        },
        Some("object") => Ok((SchemaItem::Object(schema), false)),
        other => Ok((SchemaItem::Named(text("format").or(other).unwrap_or("string")), false)),
    }
}

fn array(value: &Value, wanted: &SchemaItem<'_>, reading: &ReadingOptions<'_>) -> Result<ValueNode, ReadingFailure> {
    let parsed = match value {
        Value::String(text) => json::parse(text)?.filter(Value::is_array),
        _ => None,
    };
    let value = parsed.as_ref().unwrap_or(value);
    let Value::Array(items) = value else {
        return or_raw(Err(ReadingFailure::raised(format!("{value} is not a list"))), value, reading);
    };
    match wanted {
        SchemaItem::Object(schema) => object_or_array(value, schema, reading),
        SchemaItem::Named(name) => {
            let kind = kind(name)?;
            let read = |item| or_raw(TypedValue::read(kind, item, reading).map(ValueNode::Typed), item, reading);
            items.iter().map(read).collect::<Result<_, _>>().map(ValueNode::Tuple)
        }
    }
}

fn object_or_array(value: &Value, schema: &Value, reading: &ReadingOptions<'_>) -> Result<ValueNode, ReadingFailure> {
    match value {
        Value::Array(items) => {
            items.iter().map(|item| object(item, schema, reading)).collect::<Result<_, _>>().map(ValueNode::Tuple)
        }
        single => object(single, schema, reading),
    }
}

fn object(value: &Value, schema: &Value, reading: &ReadingOptions<'_>) -> Result<ValueNode, ReadingFailure> {
    let parsed = match value {
        Value::String(text) => json::parse(text)?.filter(Value::is_object),
        _ => None,
    };
    let value = parsed.as_ref().unwrap_or(value);
    let entries = match value {
        Value::Object(entries) if json::beyond(value).is_none() => Some(entries),
        _ => None,
    };
    let Some(entries) = entries else {
        return or_raw(Err(ReadingFailure::raised(format!("{value} is not an object"))), value, reading);
    };
    let read = |(name, value): (&String, &Value)| Ok((name.clone(), property(name, value, schema, reading)?));
    entries.iter().map(read).collect::<Result<_, _>>().map(ValueNode::Object)
}

fn property(
    name: &str,
    value: &Value,
    schema: &Value,
    reading: &ReadingOptions<'_>,
) -> Result<ValueNode, ReadingFailure> {
    if value.is_null() {
        return Ok(ValueNode::None);
    }
    let schema =
        schema.get("properties").and_then(|properties| properties.get(name)).filter(|schema| !schema.is_null());
    let text = || TypedValue::read(ValueKind::Text, value, reading).map(ValueNode::Typed);
    let read = match schema.map(wanted).transpose()? {
        None => text(),
        Some((wanted, true)) => array(value, &wanted, reading),
        Some((SchemaItem::Object(schema), false)) => object(value, schema, reading),
        Some((SchemaItem::Named(name), false)) => match ValueKind::named(name) {
            Some(kind) => TypedValue::read(kind, value, reading).map(ValueNode::Typed),
            None => text(),
        },
    };
    or_raw(read, value, reading)
}
