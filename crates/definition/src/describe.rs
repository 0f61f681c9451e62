//! Descriptions in words of the values that a JSON Schema accepts.

use serde_json::Value as Json;

use super::problems::quoted_list;

/// Describes the values that a schema accepts.
pub(crate) fn describe(definitions: &Json, schema: &Json) -> String {
    let resolved = match schema.get("$ref").and_then(Json::as_str).and_then(|r| r.strip_prefix("#/$defs/")) {
        Some(name) => definitions.get(name).unwrap_or(schema),
        None => schema,
    };
    if let Some(title) = schema.get("title").or_else(|| resolved.get("title")).and_then(Json::as_str) {
        return title.to_owned();
    }
    if let Some(allowed) = allowed_values(resolved) {
        return format!("one of {}", quoted_list(allowed.iter().filter_map(Json::as_str)));
    }
    if let Some(forms) = resolved.get("anyOf").and_then(Json::as_array) {
        let words: Vec<String> = forms.iter().map(|form| describe(definitions, form)).collect();
        return words.join(", or ");
    }
    match resolved.get("type") {
        Some(Json::Array(kinds)) => {
            let words: Vec<&str> = kinds.iter().filter_map(Json::as_str).map(kind_in_words).collect();
            words.join(" or ")
        }
        Some(Json::String(kind)) if kind == "object" => describe_mapping(resolved),
        Some(Json::String(kind)) if kind == "array" => {
            match resolved.get("items").map(|items| describe(definitions, items)) {
                Some(item) if item == "text" => "a list of texts".to_owned(),
                Some(item) => format!("a list, each entry {item}"),
                None => "a list".to_owned(),
            }
        }
        Some(Json::String(kind)) => kind_in_words(kind).to_owned(),
        _ => "a value".to_owned(),
    }
}

/// Describes the values that a schema accepts, with the range of its numbers.
pub(crate) fn describe_range(definitions: &Json, whole: &Json, form: &Json) -> String {
    if whole.get("title").is_some() {
        return describe(definitions, whole);
    }
    let bound = |key: &str| form.get(key).and_then(Json::as_f64);
    let kind = describe(definitions, form);
    match (bound("minimum"), bound("maximum")) {
        (Some(least), Some(most)) => format!("{kind} from {least} to {most}"),
        (Some(least), None) => format!("{kind} of at least {least}"),
        (None, Some(most)) => format!("{kind} of at most {most}"),
        (None, None) => kind,
    }
}

fn describe_mapping(schema: &Json) -> String {
    match schema.get("properties").and_then(Json::as_object) {
        Some(keys) if keys.len() <= 12 => format!("a mapping with {}", quoted_list(keys.keys().map(String::as_str))),
        _ => "a mapping".to_owned(),
    }
}

fn kind_in_words(kind: &str) -> &str {
    match kind {
        "string" => "text",
        "integer" => "a whole number",
        "number" => "a number",
        "boolean" => "`true` or `false`",
        "null" => "nothing",
        "array" => "a list",
        "object" => "a mapping",
        other => other,
    }
}

/// Returns the values of an enumeration, which schemars generates as `enum` or as `oneOf` of constants.
pub(crate) fn allowed_values(schema: &Json) -> Option<Vec<Json>> {
    if let Some(values) = schema.get("enum").and_then(Json::as_array) {
        return Some(values.clone());
    }
    constants(schema.get("oneOf")?)
}

pub(crate) fn constants(forms: &Json) -> Option<Vec<Json>> {
    forms.as_array()?.iter().map(|form| form.get("const").cloned()).collect()
}
