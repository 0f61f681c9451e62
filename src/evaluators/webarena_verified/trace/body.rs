//! Bodies by their media type: forms, JSON objects, and multipart forms.
//!
//! Source: `webarena_verified/core/utils/network_event_utils.py`.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::evaluators::text::{python, urls};
use crate::evaluators::webarena_verified::json;
use crate::evaluators::webarena_verified::trouble::Trouble;

/// A body as a HAR has it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Body {
    #[serde(default)]
    mime_type: String,
    #[serde(default)]
    pub(super) text: String,
}

/// The fields of a body: of a form the first value of each, of JSON if it is an object. Nothing for any other.
pub(super) fn fields(body: &Body) -> Result<Option<Map<String, Value>>, Trouble> {
    let is = |kind: &str| body.mime_type.contains(kind);
    if body.text.is_empty() {
        return Ok(None);
    }
    if is("application/x-www-form-urlencoded") {
        let mut fields = Map::new();
        for (name, value) in urls::parse_qsl(&body.text) {
            fields.entry(name).or_insert(Value::from(value));
        }
        return Ok(Some(fields));
    }
    if is("application/json")
        && let Some(Value::Object(fields)) = json::parse(&body.text)?
    {
        return Ok(Some(fields));
    }
    if is("multipart/form-data")
        && let Some((_, after)) = body.mime_type.split_once("boundary=")
    {
        let boundary = after.split(|c: char| c == ';' || c.is_whitespace()).next().unwrap_or_default();
        if !boundary.is_empty() {
            return Ok(Some(multipart(&body.text, boundary)));
        }
    }
    Ok(None)
}

fn multipart(text: &str, boundary: &str) -> Map<String, Value> {
    let mut fields = Map::new();
    for part in text.split(&format!("--{boundary}")).map(python::strip).filter(|part| !part.is_empty() && *part != "--")
    {
        let Some((headers, body)) = part.split_once("\r\n\r\n").or_else(|| part.split_once("\n\n")) else {
            continue;
        };
        let is_disposition = |line: &&str| line.to_lowercase().starts_with("content-disposition:");
        if let Some(name) = headers.split("\r\n").find(is_disposition).and_then(name_of) {
            fields.insert(name.to_owned(), Value::from(body.trim_end_matches(['\r', '\n'])));
        }
    }
    fields
}

/// `name="…"`: the first that is not empty.
fn name_of(line: &str) -> Option<&str> {
    line.match_indices("name=\"").find_map(|(at, found)| {
        let after = &line[at + found.len()..];
        after.split_once('"').map(|(name, _)| name).filter(|name| !name.is_empty())
    })
}
