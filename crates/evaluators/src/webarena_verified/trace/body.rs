//! Bodies by media type: forms, JSON objects, and multipart forms.
//!
//! Source: `webarena_verified/core/utils/network_event_utils.py`.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::text::python::is_falsy;
use crate::text::{json, python, urls};
use crate::webarena_verified::failure::ReadingFailure;

/// A body in a HAR.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Body {
    #[serde(default)]
    mime_type: String,
    #[serde(default)]
    pub(super) text: String,
    /// Playwright's reference to a body that it stores in another file.
    #[serde(default, rename = "_sha1")]
    digest: Option<Value>,
    #[serde(default, rename = "_file")]
    file: Option<Value>,
}

impl Body {
    /// Whether the body is stored in another file.
    pub(super) fn is_elsewhere(&self) -> bool {
        self.digest.is_some() || self.file.is_some()
    }
}

/// Reads the fields of a body that does not follow the HAR format.
pub(super) fn odd_fields(body: &Value) -> Result<Option<Map<String, Value>>, ReadingFailure> {
    if is_falsy(body) {
        return Ok(None);
    }
    let wrong = |what: &str| ReadingFailure::raised(format!("{what} of a body is of another type"));
    let Value::Object(parts) = body else { return Err(wrong("the whole")) };
    let text = match parts.get("text") {
        None => return Ok(None),
        Some(text) if is_falsy(text) => return Ok(None),
        Some(text) => text,
    };
    let mime_type = match parts.get("mimeType") {
        None => "",
        Some(Value::String(mime_type)) => mime_type,
        Some(_) => return Err(wrong("the media type")),
    };
    let is_read = ["application/x-www-form-urlencoded", "application/json", "multipart/form-data"]
        .iter()
        .any(|kind| mime_type.contains(kind));
    match text {
        Value::String(text) => fields_of(mime_type, text),
        _ if is_read => Err(wrong("the text")),
        _ => Ok(None),
    }
}

/// Returns the fields of a body: the first value of each field of a form, the entries of a JSON object, or `None` for
/// any other body.
pub(super) fn fields(body: &Body) -> Result<Option<Map<String, Value>>, ReadingFailure> {
    fields_of(&body.mime_type, &body.text)
}

fn fields_of(mime_type: &str, text: &str) -> Result<Option<Map<String, Value>>, ReadingFailure> {
    let is = |kind: &str| mime_type.contains(kind);
    if text.is_empty() {
        return Ok(None);
    }
    if is("application/x-www-form-urlencoded") {
        let mut fields = Map::new();
        for (name, value) in urls::parse_qsl(text) {
            fields.entry(name).or_insert(Value::from(value));
        }
        return Ok(Some(fields));
    }
    if is("application/json")
        && let Some(Value::Object(fields)) = json::parse(text)?
    {
        return Ok(Some(fields));
    }
    if is("multipart/form-data")
        && let Some((_, after)) = mime_type.split_once("boundary=")
    {
        let boundary = after.split(|c: char| c == ';' || c.is_whitespace()).next().unwrap_or_default();
        if !boundary.is_empty() {
            return Ok(Some(multipart(text, boundary)));
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

/// Returns the first `name="…"` that is not empty.
fn name_of(line: &str) -> Option<&str> {
    line.match_indices("name=\"").find_map(|(at, found)| {
        let after = &line[at + found.len()..];
        after.split_once('"').map(|(name, _)| name).filter(|name| !name.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(mime_type: &str, text: &str) -> Option<Value> {
        let body = Body { mime_type: mime_type.to_owned(), text: text.to_owned(), digest: None, file: None };
        fields(&body).expect("a body").map(Value::Object)
    }

    #[test]
    fn forms_keep_the_first_value_of_each_field() {
        let form = "application/x-www-form-urlencoded; charset=UTF-8";
        assert_eq!(read(form, "a=1&a=2&b=&c=x+y%21"), Some(json!({ "a": "1", "b": "", "c": "x y!" })));
        assert_eq!(read(form, ""), None);
    }

    #[test]
    fn of_json_only_objects_have_fields() {
        assert_eq!(read("application/json", "{\"a\": [1]}"), Some(json!({ "a": [1] })));
        assert_eq!(read("application/json", "[1]"), None);
        assert_eq!(read("text/plain", "a=1"), None);
    }

    #[test]
    fn parts_have_names_and_may_lack_all_else() {
        let text = "--b1\r\nContent-Disposition: form-data; name=\"title\"\r\n\r\nA mug\r\n\
            --b1\r\ncontent-disposition: form-data; name=\"\"; name=\"file\"; filename=\"x\"\r\nContent-Type: text/plain\r\n\r\nline 1\r\nline 2\r\n\
            --b1\r\nContent-Type: text/plain\r\n\r\nnameless\r\n--b1--\r\n";
        let found = read("multipart/form-data; boundary=b1; charset=x", text);
        assert_eq!(found, Some(json!({ "title": "A mug", "file": "line 1\r\nline 2" })));
        assert_eq!(read("multipart/form-data; boundary=", text), None);
    }
}
