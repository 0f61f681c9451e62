//! Which kinds of values a JSON Schema takes.

use serde_json::Value as Json;

use super::tree::{Node, Scalar, Typed, Value};

/// The kind of a value, as JSON Schema's `type` calls it.
pub(crate) fn kind_of(node: &Node) -> &'static str {
    match &node.value {
        Value::Sequence(_) => "array",
        Value::Mapping(_) => "object",
        Value::Scalar(scalar) => scalar_kind(scalar),
    }
}

/// The kind of a scalar, as JSON Schema's `type` calls it.
pub(crate) fn scalar_kind(scalar: &Scalar) -> &'static str {
    match scalar.typed() {
        Typed::Null => "null",
        Typed::Bool(_) => "boolean",
        Typed::Integer(_) => "integer",
        Typed::Float(_) => "number",
        Typed::NotFinite => "not finite",
        Typed::Text => "string",
    }
}

/// Whether a schema without alternatives takes values of a kind.
pub(crate) fn accepts(schema: &Json, kind: &str) -> bool {
    let is = |wanted: &Json| wanted == kind || (wanted == "number" && kind == "integer");
    match schema.get("type") {
        Some(Json::Array(kinds)) => kinds.iter().any(is),
        Some(wanted) => is(wanted),
        // Enumerations of constants carry their type in each constant; a schema without type takes everything.
        None if schema.get("oneOf").is_some() => kind == "string",
        None => kind != "not finite",
    }
}
