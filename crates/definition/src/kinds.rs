//! The kinds of values that a JSON Schema accepts.

use serde_json::Value as Json;

use super::tree::{DocumentNode, DocumentValue, Scalar, TypedScalar};

/// Returns the kind of a value in the terms of JSON Schema's `type`.
pub(crate) fn kind_of(node: &DocumentNode) -> &'static str {
    match &node.value {
        DocumentValue::Sequence(_) => "array",
        DocumentValue::Mapping(_) => "object",
        DocumentValue::Scalar(scalar) => scalar_kind(scalar),
    }
}

/// Returns the kind of a scalar in the terms of JSON Schema's `type`.
pub(crate) fn scalar_kind(scalar: &Scalar) -> &'static str {
    match scalar.typed() {
        TypedScalar::Null => "null",
        TypedScalar::Bool(_) => "boolean",
        TypedScalar::Integer(_) => "integer",
        TypedScalar::Float(_) => "number",
        TypedScalar::NotFinite => "not finite",
        TypedScalar::Text => "string",
    }
}

/// Returns whether a schema without alternatives accepts values of a kind.
pub(crate) fn accepts(schema: &Json, kind: &str) -> bool {
    let is = |wanted: &Json| wanted == kind || (wanted == "number" && kind == "integer");
    match schema.get("type") {
        Some(Json::Array(kinds)) => kinds.iter().any(is),
        Some(wanted) => is(wanted),
        // Enumerations of constants carry their type in each constant. A schema without a type accepts every value.
        None if schema.get("oneOf").is_some() => kind == "string",
        None => kind != "not finite",
    }
}
