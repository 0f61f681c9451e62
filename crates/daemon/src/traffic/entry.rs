//! Converting one exchange to an entry of a HAR.
//!
//! Source: <http://www.softwareishard.com/blog/har-12-spec/>. The format uses -1 for unknown values, such as the sizes
//! of heads.

use std::borrow::Cow;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{
    CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HeaderMap, LOCATION, SET_COOKIE, TRANSFER_ENCODING,
};
use serde_json::{Map, Value, json};

use super::{decoding, secrets};
use arenad_gateway::{Exchange, Loss, RecordedBody};

/// A body in the form in which it is shown.
enum BodyContent<'a> {
    None,
    Read(Cow<'a, [u8]>),
    /// The body was not kept; `is_text` tells whether it would have been readable.
    Lost {
        because: String,
        is_text: bool,
    },
}

/// Converts an exchange to a HAR entry. `site` is `None` for a host outside of the arena, and `room` the number of bytes
/// that all bodies together may still decompress to.
pub(super) fn of(site: Option<&str>, exchange: &Exchange, room: &mut u64) -> Value {
    let request = &exchange.request;
    let waited = exchange.answer.as_ref().map(|answer| answer.waited);
    let took = exchange.took.or(waited);
    let receive = exchange.took.zip(waited).map(|(took, waited)| took.saturating_sub(waited));
    let url = secrets::out_of_url(&request.url);
    let queries = url.split_once('?').map(|(_, query)| query).unwrap_or_default();
    let queries = form_urlencoded::parse(queries.as_bytes());
    let queries: Vec<Value> = queries.map(|(name, value)| json!({ "name": name, "value": value })).collect();
    let sent = read(&exchange.sent, Some(&request.headers), room);
    let received = read(&exchange.received, exchange.answer.as_ref().map(|answer| &answer.headers), room);
    // The parts of an exchange that have not arrived yet count as lost.
    let is_under_way = exchange.took.is_none();
    let is_coming = is_under_way && matches!(sent, BodyContent::None) && announces_body(&request.headers);
    let is_lost = |body: &BodyContent<'_>| matches!(body, BodyContent::Lost { is_text: true, .. });
    let lost = [("body", is_coming || is_lost(&sent)), ("answer", is_under_way || is_lost(&received))];
    let lost: Vec<&str> = lost.into_iter().filter(|(_, is_lost)| *is_lost).map(|(part, _)| part).collect();
    let mut shown = json!({
        "startedDateTime": request.at.to_string(),
        "time": took.map_or(-1.0, milliseconds),
        "request": {
            "method": request.method.as_str(),
            "url": url,
            "httpVersion": "HTTP/1.1",
            "cookies": cookies(&request.headers),
            "headers": headers(&request.headers),
            "queryString": queries,
            "headersSize": -1,
            "bodySize": size(&exchange.sent),
        },
        "response": response(exchange, received),
        "cache": {},
        "timings": {
            "send": 0, "wait": waited.map_or(-1.0, milliseconds), "receive": receive.map_or(-1.0, milliseconds),
        },
        "_site": site,
        "_lost": lost,
    });
    if let Some(data) = post_data(&request.headers, sent) {
        shown["request"]["postData"] = data;
    }
    shown
}

fn read<'a>(body: &'a RecordedBody, headers: Option<&HeaderMap>, room: &mut u64) -> BodyContent<'a> {
    match body {
        RecordedBody::None => BodyContent::None,
        RecordedBody::Lost { why, size } => {
            let reason = match why {
                Loss::TooLong => "it is longer than 1 MiB",
                Loss::NoText => "its type is of no text",
                Loss::CutOff => "it ended early",
                Loss::MadeRoom => "later requests needed the room",
            };
            let because = format!("not kept: {reason} ({size} bytes passed)");
            BodyContent::Lost { because, is_text: *why != Loss::NoText }
        }
        RecordedBody::Whole(bytes) => match decoding::decoded(bytes, headers.map(coding).unwrap_or_default(), room) {
            Ok(bytes) => BodyContent::Read(bytes),
            Err(error) => BodyContent::Lost { because: error.to_string(), is_text: true },
        },
    }
}

fn response(exchange: &Exchange, received: BodyContent<'_>) -> Value {
    let Some(answer) = &exchange.answer else {
        // Browsers show requests without a response in this form.
        return json!({
            "status": 0, "statusText": "", "httpVersion": "HTTP/1.1", "cookies": [], "headers": [], "redirectURL": "",
            "content": { "size": 0, "mimeType": "x-unknown" }, "headersSize": -1, "bodySize": -1,
            "comment": "no answer has come",
        });
    };
    let text = |name| answer.headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    json!({
        "status": answer.status.as_u16(),
        "statusText": answer.status.canonical_reason().unwrap_or_default(),
        "httpVersion": "HTTP/1.1",
        "cookies": set_cookies(&answer.headers),
        "headers": headers(&answer.headers),
        "content": content(exchange, &answer.headers, received),
        "redirectURL": text(LOCATION).map(|url| secrets::out_of_url(&url).into_owned()).unwrap_or_default(),
        "headersSize": -1,
        "bodySize": size(&exchange.received),
    })
}

/// Returns the body that was sent; `None` if there was none.
fn post_data(headers: &HeaderMap, sent: BodyContent<'_>) -> Option<Value> {
    let kind = media_type(headers);
    match sent {
        BodyContent::None => None,
        BodyContent::Lost { because, .. } => Some(json!({ "mimeType": kind, "params": [], "comment": because })),
        BodyContent::Read(bytes) => {
            // The format has no encoding for binary data here, and forms that contain files also have readable fields.
            let text = secrets::out_of_body(&String::from_utf8_lossy(&bytes), &kind).into_owned();
            Some(json!({ "mimeType": kind, "params": [], "text": text }))
        }
    }
}

fn content(exchange: &Exchange, headers: &HeaderMap, received: BodyContent<'_>) -> Value {
    let kind = media_type(headers);
    let bytes = match received {
        BodyContent::None => return json!({ "size": 0, "mimeType": kind }),
        BodyContent::Lost { because, .. } => {
            return json!({ "size": size(&exchange.received), "mimeType": kind, "comment": because });
        }
        BodyContent::Read(bytes) => bytes,
    };
    if secrets::is_all_secret(&exchange.request.url) {
        return json!({ "size": bytes.len(), "mimeType": kind, "text": secrets::MARK });
    }
    match String::from_utf8(bytes.into_owned()) {
        Ok(text) => json!({ "size": text.len(), "mimeType": kind, "text": secrets::out_of_body(&text, &kind) }),
        Err(error) => {
            let bytes = error.into_bytes();
            // Text in other encodings is redacted like UTF-8; only a body without secrets is kept unchanged.
            if let Cow::Owned(text) = secrets::out_of_body(&String::from_utf8_lossy(&bytes), &kind) {
                return json!({ "size": bytes.len(), "mimeType": kind, "text": text });
            }
            json!({ "size": bytes.len(), "mimeType": kind, "text": STANDARD.encode(&bytes), "encoding": "base64" })
        }
    }
}

fn headers(headers: &HeaderMap) -> Vec<Value> {
    let shown = headers.iter().map(|(name, value)| {
        let value = String::from_utf8_lossy(value.as_bytes());
        json!({ "name": name.as_str(), "value": secrets::out_of_header(name.as_str(), &value) })
    });
    shown.collect()
}

/// Returns the cookies of a request, with their values redacted.
fn cookies(headers: &HeaderMap) -> Vec<Value> {
    let pairs = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = pairs.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.map(|(name, _)| json!({ "name": name, "value": secrets::MARK })).collect()
}

/// Returns the cookies that a response sets, with the values of those that are not secret.
fn set_cookies(headers: &HeaderMap) -> Vec<Value> {
    let set = headers.get_all(SET_COOKIE).iter().filter_map(|value| value.to_str().ok());
    let shown = set.filter_map(|cookie| {
        let cookie = secrets::out_of_set_cookie(cookie);
        let mut parts = cookie.split(';').map(str::trim);
        let (name, value) = parts.next()?.split_once('=')?;
        let mut shown = Map::from_iter([("name".to_owned(), json!(name)), ("value".to_owned(), json!(value))]);
        for part in parts {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            match key.to_ascii_lowercase().as_str() {
                "path" => shown.insert("path".to_owned(), json!(value)),
                "domain" => shown.insert("domain".to_owned(), json!(value)),
                "httponly" => shown.insert("httpOnly".to_owned(), json!(true)),
                "secure" => shown.insert("secure".to_owned(), json!(true)),
                _ => None,
            };
        }
        Some(Value::Object(shown))
    });
    shown.collect()
}

/// Returns whether a request's head announces a body.
fn announces_body(headers: &HeaderMap) -> bool {
    headers.contains_key(TRANSFER_ENCODING) || headers.get(CONTENT_LENGTH).is_some_and(|length| length != "0")
}

fn media_type(headers: &HeaderMap) -> String {
    let kind = headers.get(CONTENT_TYPE).map(|kind| String::from_utf8_lossy(kind.as_bytes()).into_owned());
    kind.unwrap_or_else(|| "x-unknown".to_owned())
}

fn coding(headers: &HeaderMap) -> &str {
    headers.get(CONTENT_ENCODING).and_then(|coding| coding.to_str().ok()).unwrap_or_default()
}

fn size(body: &RecordedBody) -> u64 {
    match body {
        RecordedBody::None => 0,
        RecordedBody::Whole(bytes) => bytes.len() as u64,
        RecordedBody::Lost { size, .. } => *size,
    }
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
