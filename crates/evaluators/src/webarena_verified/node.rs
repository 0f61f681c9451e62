//! Structured values whose leaves are read by type or kept unchanged.

use serde_json::{Map, Value};

use super::failure::ReadingFailure;
use super::reading::{ReadingOptions, ValueOrigin};
use super::values::{TypedValue, ValueKind};
use crate::text::json;

/// A value, or a structure of values.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ValueNode {
    /// No value: JSON's `null`, or an empty value.
    None,
    /// A text, number or truth value that has not been read by a type, or does not fit it.
    Raw(Value),
    /// A value that has been read by its type.
    Typed(TypedValue),
    /// Several values, each read separately.
    Tuple(Vec<ValueNode>),
    /// Several values as they arrived.
    List(Vec<ValueNode>),
    /// Values by name, in order.
    Object(Vec<(String, ValueNode)>),
}

impl ValueNode {
    /// Wraps a value without reading it.
    #[must_use]
    pub(crate) fn raw(value: &Value) -> Self {
        match value {
            Value::Null => Self::None,
            number if json::beyond(number).is_some() => Self::Raw(number.clone()),
            Value::Array(items) => Self::List(items.iter().map(Self::raw).collect()),
            Value::Object(entries) => {
                Self::Object(entries.iter().map(|(key, value)| (key.clone(), Self::raw(value))).collect())
            }
            scalar => Self::Raw(scalar.clone()),
        }
    }

    /// Returns the value of a key.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Object(entries) => entries.iter().find(|(name, _)| name == key).map(|(_, node)| node),
            _ => None,
        }
    }

    /// Returns the node as JSON, for a report.
    #[must_use]
    pub(crate) fn to_json(&self) -> Value {
        match self {
            Self::None => Value::Null,
            Self::Raw(value) => json::shown(value),
            Self::Typed(typed) => typed.to_json(),
            Self::Tuple(items) | Self::List(items) => items.iter().map(Self::to_json).collect(),
            Self::Object(entries) => {
                Value::Object(entries.iter().map(|(key, node)| (key.clone(), node.to_json())).collect::<Map<_, _>>())
            }
        }
    }

    /// Whether an actual single value equals `self`, the expected one. `reading` must be the options with which `self`
    /// was read.
    ///
    /// # Errors
    ///
    /// Returns an error if the benchmark's code raises, or if its result is unknown.
    pub(super) fn is_same(&self, actual: &Self, reading: &ReadingOptions<'_>) -> Result<bool, ReadingFailure> {
        match (self, actual) {
            (Self::Typed(expected), Self::Typed(actual)) => expected.equals(actual, reading),
            (Self::Typed(expected), Self::Raw(Value::String(text))) => match expected.kind() {
                ValueKind::Text => {
                    let reading = ReadingOptions { side: ValueOrigin::Actual, sites: None, ..*reading };
                    expected.equals(&TypedValue::text(text, &reading)?, &reading)
                }
                ValueKind::Url => Ok(expected.urls().any(|url| url.to_string() == *text)),
                _ => Ok(false),
            },
            (Self::Raw(Value::String(_)), Self::Typed(_)) => actual.is_same(self, reading),
            (Self::Raw(expected), Self::Raw(actual)) => Ok(is_equal(expected, actual)),
            _ => Ok(false),
        }
    }
}

/// `==` of Python's texts, numbers and truth values; truth values are numbers.
fn is_equal(one: &Value, other: &Value) -> bool {
    let number = |value: &Value| match value {
        Value::Bool(value) => Some(f64::from(u8::from(*value))),
        Value::Number(number) => number.as_f64(),
        _ => None,
    };
    match (number(one), number(other)) {
        // Above 2^53 only integers can be told apart.
        (Some(_), Some(_)) if one.is_i64() && other.is_i64() => one == other,
        (Some(one), Some(other)) => one == other,
        _ => one == other,
    }
}
