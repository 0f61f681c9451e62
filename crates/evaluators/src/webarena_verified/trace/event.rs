//! One request and its response: an entry of a HAR.
//!
//! The benchmark reads a part of an entry only when it needs it, and raises if the part is malformed; parts that are
//! not needed may be missing. Entries that follow the format are read at once, the others part by part on demand.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::body::{self, Body};
use crate::text::{json, numbers, python, urls};
use crate::webarena_verified::failure::ReadingFailure;

/// Path endings of files that are neither pages nor data.
const ASSETS: [&str; 12] =
    [".css", ".js", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".woff", ".woff2", ".ttf", ".ico", ".webp"];

/// A request and its response.
#[derive(Debug, Clone)]
pub(crate) struct TraceEvent(TraceEntry);

#[derive(Debug, Clone)]
enum TraceEntry {
    Plain(Box<Plain>),
    /// An entry in which a part is missing or has another type.
    Odd(Value),
}

/// An entry that follows the format.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Plain {
    request: TraceRequest,
    response: TraceResponse,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TraceRequest {
    method: String,
    url: String,
    headers: Vec<TracePair>,
    #[serde(default)]
    body_size: Option<f64>,
    #[serde(default)]
    post_data: Option<Body>,
}

#[derive(Debug, Clone, Deserialize)]
struct TraceResponse {
    status: i64,
    #[serde(default)]
    cookies: Vec<TraceCookie>,
    /// Parsed on demand, because it is most of the file.
    #[serde(default)]
    content: Option<Box<RawValue>>,
}

#[derive(Debug, Clone, Deserialize)]
struct TracePair {
    name: String,
    value: String,
}

#[derive(Debug, Clone, Deserialize)]
struct TraceCookie {
    name: String,
    #[serde(default)]
    value: String,
}

impl From<Plain> for TraceEvent {
    fn from(plain: Plain) -> Self {
        Self(TraceEntry::Plain(Box::new(plain)))
    }
}

impl From<Value> for TraceEvent {
    fn from(entry: Value) -> Self {
        Self(
            Plain::deserialize(&entry)
                .map_or_else(|_| TraceEntry::Odd(entry), |plain| TraceEntry::Plain(Box::new(plain))),
        )
    }
}

/// Returns a part of an entry. Python raises if it is missing.
fn part<'a>(entry: &'a Value, path: [&str; 2]) -> Result<&'a Value, ReadingFailure> {
    let found = entry.get(path[0]).and_then(|part| part.get(path[1]));
    found.ok_or_else(|| ReadingFailure::raised(format!("an entry of the traffic has no {}.{}", path[0], path[1])))
}

/// Returns the value of a key in a part that has to be an object, if there is one.
fn of_object<'a>(entry: &'a Value, name: &str, key: &str) -> Result<Option<&'a Value>, ReadingFailure> {
    match entry.get(name) {
        Some(Value::Object(entries)) => Ok(entries.get(key)),
        _ => Err(ReadingFailure::raised(format!("an entry of the traffic has no {name}"))),
    }
}

fn text<'a>(value: &'a Value, what: &str) -> Result<&'a str, ReadingFailure> {
    value
        .as_str()
        .ok_or_else(|| ReadingFailure::raised(format!("{what} of an entry of the traffic is {value}, no text")))
}

/// Returns the items of a value over which Python iterates; an empty object has none.
fn items<'a>(value: &'a Value, what: &str) -> Result<&'a [Value], ReadingFailure> {
    match value {
        Value::Array(items) => Ok(items),
        Value::Object(entries) if entries.is_empty() => Ok(&[]),
        Value::String(text) if text.is_empty() => Ok(&[]),
        other => Err(ReadingFailure::raised(format!("{what} of an entry of the traffic is {other}, no list"))),
    }
}

impl TraceEvent {
    /// Whether the entry follows the format.
    pub(super) fn is_plain(&self) -> bool {
        matches!(self.0, TraceEntry::Plain(_))
    }

    pub(in super::super) fn url(&self) -> Result<&str, ReadingFailure> {
        match &self.0 {
            TraceEntry::Plain(plain) => Ok(&plain.request.url),
            TraceEntry::Odd(entry) => text(part(entry, ["request", "url"])?, "the URL"),
        }
    }

    pub(in super::super) fn method(&self) -> Result<&str, ReadingFailure> {
        match &self.0 {
            TraceEntry::Plain(plain) => Ok(&plain.request.method),
            TraceEntry::Odd(entry) => text(part(entry, ["request", "method"])?, "the method"),
        }
    }

    pub(in super::super) fn status(&self) -> Result<i64, ReadingFailure> {
        match &self.0 {
            TraceEntry::Plain(plain) => Ok(plain.response.status),
            TraceEntry::Odd(entry) => {
                let status = part(entry, ["response", "status"])?;
                whole(status)
                    .ok_or_else(|| ReadingFailure::raised(format!("the status {status} is not a whole number")))
            }
        }
    }

    /// Returns a header of the request: the last one of that name, in upper or lower case.
    pub(in super::super) fn header(&self, name: &str) -> Result<Option<Value>, ReadingFailure> {
        let name = name.to_lowercase();
        match &self.0 {
            TraceEntry::Plain(plain) => {
                let last = plain.request.headers.iter().rev().find(|header| header.name.to_lowercase() == name);
                Ok(last.map(|header| Value::from(header.value.as_str())))
            }
            TraceEntry::Odd(entry) => {
                let mut found = None;
                for (own, value) in odd_headers(entry)? {
                    if own == name {
                        found = Some(value.clone());
                    }
                }
                Ok(found)
            }
        }
    }

    /// Returns a header of the request in lower case; the last one of that name.
    fn lower_header(&self, name: &str) -> Result<Option<String>, ReadingFailure> {
        match &self.0 {
            TraceEntry::Plain(_) => Ok(self.header(name)?.and_then(|value| value.as_str().map(str::to_lowercase))),
            TraceEntry::Odd(entry) => {
                let mut found = None;
                // All headers are read, because Python raises on any malformed one.
                for (own, value) in odd_headers(entry)? {
                    let value = text(value, "a header")?;
                    if own == name {
                        found = Some(value.to_lowercase());
                    }
                }
                Ok(found)
            }
        }
    }

    /// Returns the page from which the request was made, in lower case, or `None` without a `Referer` header.
    pub(in super::super) fn referer(&self) -> Result<Option<String>, ReadingFailure> {
        Ok(self.lower_header("referer")?.filter(|from| !from.is_empty()))
    }

    /// Returns the value of a cookie that the response sets, unquoted.
    pub(in super::super) fn cookie(&self, name: &str) -> Result<Option<String>, ReadingFailure> {
        match &self.0 {
            TraceEntry::Plain(plain) => {
                let last = plain.response.cookies.iter().rev().find(|cookie| cookie.name == name);
                Ok(last.map(|cookie| urls::unquote(&cookie.value)))
            }
            TraceEntry::Odd(entry) => {
                let cookies = of_object(entry, "response", "cookies")?;
                let mut found = None;
                for cookie in cookies.map_or(Ok(&[][..]), |cookies| items(cookies, "the cookies"))? {
                    let own = cookie.get("name").ok_or_else(|| ReadingFailure::raised("a cookie has no name"))?;
                    let value = cookie.get("value").map_or(Ok(""), |value| text(value, "a cookie"))?;
                    if own.as_str() == Some(name) {
                        found = Some(urls::unquote(value));
                    }
                }
                Ok(found)
            }
        }
    }

    /// Returns the fields of the request's body.
    pub(in super::super) fn post_data(&self) -> Result<Option<Map<String, Value>>, ReadingFailure> {
        match &self.0 {
            TraceEntry::Plain(plain) => plain.request.post_data.as_ref().map_or(Ok(None), body::fields),
            TraceEntry::Odd(entry) => of_object(entry, "request", "postData")?.map_or(Ok(None), body::odd_fields),
        }
    }

    /// Returns the fields of the response's body.
    pub(in super::super) fn response_content(&self) -> Result<Option<Map<String, Value>>, ReadingFailure> {
        match &self.0 {
            TraceEntry::Plain(plain) => {
                let Some(content) = &plain.response.content else { return Ok(None) };
                match serde_json::from_str(content.get()) {
                    Ok(content) => body::fields(&content),
                    Err(_) => match json::parse(content.get())? {
                        Some(content) => body::odd_fields(&content),
                        None => Err(ReadingFailure::raised("the content of a response is not JSON")),
                    },
                }
            }
            TraceEntry::Odd(entry) => of_object(entry, "response", "content")?.map_or(Ok(None), body::odd_fields),
        }
    }

    /// Whether the request had a body that was not recorded. An empty body does not count, because an agent can send
    /// one.
    pub(in super::super) fn has_lost_body(&self) -> bool {
        let TraceEntry::Plain(plain) = &self.0 else { return false };
        let request = &plain.request;
        let has_length = || {
            let length = request.headers.iter().find(|header| header.name.eq_ignore_ascii_case("content-length"));
            length.is_some_and(|length| length.value.trim() != "0") || request.body_size.is_some_and(|size| size > 0.0)
        };
        match &request.post_data {
            Some(body) => body.text.is_empty() && (body.is_elsewhere() || has_length()),
            None => has_length(),
        }
    }

    /// Whether the request is for a picture, a font, a style sheet or a script.
    pub(super) fn is_asset(&self) -> Result<bool, ReadingFailure> {
        let split = urls::urlsplit(self.url()?)?;
        let path = split.path_and_parameters().0;
        Ok(ASSETS.iter().any(|end| path.ends_with(end)))
    }

    /// Whether the browser opened a page with this request.
    pub(in super::super) fn is_navigation(&self) -> Result<bool, ReadingFailure> {
        let is_get = match &self.0 {
            TraceEntry::Plain(plain) => plain.request.method == "GET",
            TraceEntry::Odd(entry) => part(entry, ["request", "method"])? == "GET",
        };
        if !is_get {
            return Ok(false);
        }
        let accept = self.lower_header("accept")?.unwrap_or_default();
        Ok(match self.lower_header("sec-fetch-user")? {
            Some(user) => {
                user == "?1"
                    && self.lower_header("sec-fetch-dest")?.as_deref() == Some("document")
                    && self.lower_header("sec-fetch-mode")?.as_deref() == Some("navigate")
                    && accept.contains("text/html")
            }
            None => accept.starts_with("text/html"),
        })
    }
}

/// Returns the headers of a malformed entry's request, with names in lower case.
fn odd_headers(entry: &Value) -> Result<Vec<(String, &Value)>, ReadingFailure> {
    let header = |item: &'_ Value| item.get("name").and_then(Value::as_str).map(str::to_lowercase);
    items(part(entry, ["request", "headers"])?, "the headers")?
        .iter()
        .map(|item| {
            let found = header(item).zip(item.get("value"));
            found.ok_or_else(|| ReadingFailure::raised(format!("{item} is not a header with a name and a value")))
        })
        .collect()
}

/// Converts a value to an integer as pydantic does: also a text, a float or a truth value that is one.
fn whole(value: &Value) -> Option<i64> {
    #[expect(clippy::cast_possible_truncation, reason = "saturates, and no status is that large")]
    let of_float = |float: f64| (float.fract() == 0.0).then_some(float as i64);
    match value {
        Value::Bool(value) => Some(i64::from(*value)),
        Value::Number(number) => number.as_i64().or_else(|| number.as_f64().and_then(of_float)),
        Value::String(text) => {
            let text = python::strip(text);
            let digits = text.split_once('.').filter(|(_, zeros)| zeros.bytes().all(|byte| byte == b'0'));
            numbers::int(digits.map_or(text, |(digits, _)| digits)).and_then(|number| i64::try_from(number).ok())
        }
        _ => None,
    }
}
