//! `boolean` and `null`.

use std::sync::LazyLock;

use fancy_regex::Regex;
use serde_json::Value;

use super::{Normal, refuse_empty};
use crate::text::python::is_falsy;
use crate::text::{json, python};
use crate::webarena_verified::failure::ReadingFailure;

/// Reads a `boolean`: a truth value, a number, or one of the words for them.
pub(super) fn normalise(value: &Value) -> Result<Normal, ReadingFailure> {
    refuse_empty(value)?;
    let truth = match value {
        Value::Bool(truth) => Some(*truth),
        Value::Number(_) => Some(!is_falsy(value)),
        value if json::beyond(value).is_some() => Some(true),
        Value::String(text) => match python::strip(text) {
            "true" | "yes" | "y" | "1" | "t" | "on" => Some(true),
            "false" | "no" | "n" | "0" | "f" | "off" => Some(false),
            _ => None,
        },
        _ => None,
    };
    truth.map(Normal::Boolean).ok_or_else(|| ReadingFailure::raised(format!("{value} is not a truth value")))
}

/// Reads a `null`: an empty value, or one of the words for it. Zero is a number.
pub(super) fn empty(value: &Value) -> Result<Normal, ReadingFailure> {
    static SLASH: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\s*/\s*").expect("a pattern of ours"));
    let is_empty = match value {
        Value::Number(_) | Value::Bool(_) => false,
        Value::String(text) => {
            let text = python::strip(text).to_lowercase();
            let text = SLASH.replace_all(&text, "/");
            ["", "n/a", "na", "nan", "null", "none"].contains(&text.as_ref())
        }
        other => is_falsy(other),
    };
    if is_empty { Ok(Normal::Nothing) } else { Err(ReadingFailure::raised(format!("{value} is not nothing"))) }
}
