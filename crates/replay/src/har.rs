//! Reads HAR files, as browsers, Playwright and arenad write them.
//!
//! The file is read entry by entry, so its size does not matter. Bodies are decoded in a HAR: `Content-Encoding` describes
//! how they were sent, and is removed. Playwright can keep bodies beside the file (`_file`).
//!
//! Source: <http://www.softwareishard.com/blog/har-12-spec/>; `_file`: Playwright's `har.ts`.

use std::fmt;
use std::io::{self, BufReader, Read};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::ReplayError;
use super::builder::ReplayBuilder;
use super::exchange::{HeaderField, ReadExchange, shortened, value};

#[derive(Deserialize)]
struct HarEntry {
    #[serde(rename = "startedDateTime")]
    at: Option<String>,
    request: HarRequest,
    response: HarResponse,
    #[serde(default, rename = "_lost")]
    lost: Vec<String>,
}

#[derive(Deserialize)]
struct HarRequest {
    method: String,
    url: String,
    #[serde(default)]
    headers: Vec<HarField>,
    #[serde(rename = "postData")]
    sent: Option<HarSent>,
}

#[derive(Deserialize)]
struct HarField {
    name: String,
    #[serde(default)]
    value: String,
}

#[derive(Deserialize)]
struct HarSent {
    #[serde(default, rename = "mimeType")]
    kind: String,
    text: Option<String>,
    #[serde(default)]
    params: Vec<HarParameter>,
    #[serde(rename = "_file")]
    file: Option<String>,
}

#[derive(Deserialize)]
struct HarParameter {
    name: String,
    value: Option<String>,
}

#[derive(Deserialize)]
struct HarResponse {
    status: i64,
    #[serde(default)]
    headers: Vec<HarField>,
    #[serde(default)]
    content: HarContent,
    #[serde(default, rename = "redirectURL")]
    redirect: String,
}

#[derive(Default, Deserialize)]
struct HarContent {
    #[serde(default)]
    size: i64,
    text: Option<String>,
    encoding: Option<String>,
    comment: Option<String>,
    #[serde(rename = "_file")]
    file: Option<String>,
}

/// Reads a HAR. `beside` returns the content of a file beside it.
pub(crate) fn read(
    builder: &mut ReplayBuilder,
    name: &str,
    content: impl Read,
    mut beside: impl FnMut(&str) -> io::Result<Option<Vec<u8>>>,
) -> Result<(), ReplayError> {
    let mut failure = None;
    let mut content = BufReader::new(content);
    if let Err(error) = skip_mark(&mut content) {
        return Err(ReplayError::broken(name, error.to_string()));
    }
    let mut json = serde_json::Deserializer::from_reader(content);
    let mut take = |number: usize, raw: &RawValue| {
        let place = format!("entry {number}");
        let added = match serde_json::from_str::<HarEntry>(raw.get()) {
            Ok(entry) => match exchange(entry, &place, &mut beside) {
                Ok(exchange) => builder.add(exchange),
                Err(what) => {
                    builder.problem(&place, what);
                    Ok(())
                }
            },
            Err(error) => {
                builder.problem(&place, format!("the entry is not valid ({error})"));
                Ok(())
            }
        };
        added.map_err(|error| failure = Some(error)).is_ok()
    };
    let read = Har { take: &mut take }.deserialize(&mut json).and_then(|()| json.end());
    match (failure, read) {
        (Some(failure), _) => Err(failure),
        (None, Ok(())) => Ok(()),
        (None, Err(error)) => Err(ReplayError::broken(name, error.to_string())),
    }
}

/// Skips the mark that some programs write before UTF-8.
fn skip_mark(content: &mut BufReader<impl Read>) -> io::Result<()> {
    use std::io::BufRead as _;
    if content.fill_buf()?.starts_with(b"\xef\xbb\xbf") {
        content.consume(3);
    }
    Ok(())
}

/// Returns the exchange of an entry, or the reason why it cannot be replayed.
fn exchange(
    entry: HarEntry,
    place: &str,
    beside: &mut impl FnMut(&str) -> io::Result<Option<Vec<u8>>>,
) -> Result<ReadExchange, String> {
    let HarEntry { at, request, response, lost } = entry;
    let short = shortened(&request.url);
    let mut attached = |file: &str| match beside(file) {
        Ok(Some(bytes)) => Ok(bytes),
        Ok(None) => Err(format!("the body of {short} is in the file {file}, which is missing")),
        Err(error) => Err(format!("read the body of {short} in {file}: {error}")),
    };
    let sent = match request.sent {
        None => None,
        Some(HarSent { file: Some(file), .. }) => Some(attached(&file)?),
        Some(HarSent { text: Some(text), .. }) => Some(text.into_bytes()),
        Some(HarSent { kind, params, .. }) if kind.starts_with("application/x-www-form-urlencoded") => {
            let pairs = params.iter().map(|field| (&field.name, field.value.as_deref().unwrap_or_default()));
            Some(form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish().into_bytes())
        }
        Some(_) => None,
    };
    let mut headers = fields(response.headers);
    if value(&headers, "location").is_none() && !response.redirect.is_empty() {
        headers.push(HeaderField("location".to_owned(), response.redirect));
    }
    let status = u16::try_from(response.status).unwrap_or_default();
    let HarContent { size, text, encoding, comment, file } = response.content;
    let is_text = text.is_some() && encoding.is_none();
    let body = match (text, encoding.as_deref(), file) {
        (_, _, Some(file)) => attached(&file)?,
        (Some(text), None | Some(""), None) => text.into_bytes(),
        (Some(text), Some("base64"), None) => {
            STANDARD.decode(text.trim()).map_err(|error| format!("the body of {short} is not base64 ({error})"))?
        }
        (Some(_), Some(other), None) => return Err(format!("the body of {short} has the unknown encoding {other}")),
        (None, ..) => Vec::new(),
    };
    let has_content = !(300..400).contains(&status) && status != 204 && request.method != "HEAD";
    let stated = value(&headers, "content-length").and_then(|length| length.trim().parse::<u64>().ok());
    let is_missing = lost.iter().any(|part| part == "answer") || size > 0 || (size < 0 && stated.unwrap_or(1) > 0);
    if body.is_empty() && has_content && is_missing && status >= 200 {
        let reason = comment.map(|comment| format!(" ({})", shortened(&comment))).unwrap_or_default();
        return Err(format!("the recording lacks the body of {short}{reason}"));
    }
    // The browser has answered from its cache, whose content the recording may have.
    let status = match status {
        304 if !body.is_empty() => 200,
        304 => {
            return Err(format!("{short} was answered from the browser's cache, and the recording lacks the content"));
        }
        status => status,
    };
    let mut exchange = ReadExchange {
        place: place.to_owned(),
        method: request.method,
        url: request.url,
        request_headers: fields(request.headers),
        sent,
        status,
        headers,
        body,
        at,
    };
    exchange.forget_coding();
    if is_text && !exchange.body.is_ascii() {
        exchange.declare_utf8();
    }
    Ok(exchange)
}

fn fields(fields: Vec<HarField>) -> Vec<HeaderField> {
    fields.into_iter().map(|field| HeaderField(field.name, field.value)).collect()
}

/// Takes an entry with its number, from 1, and returns whether to go on.
type TakeEntry<'a> = &'a mut dyn FnMut(usize, &RawValue) -> bool;

/// The object of the file.
struct Har<'a> {
    take: TakeEntry<'a>,
}

impl<'de> DeserializeSeed<'de> for Har<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Har<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with the field `log`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut has_log = false;
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "log" => {
                    map.next_value_seed(Log { take: &mut *self.take })?;
                    has_log = true;
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        if has_log { Ok(()) } else { Err(A::Error::custom("the field `log` is missing")) }
    }
}

/// The object in the field `log`.
struct Log<'a> {
    take: TakeEntry<'a>,
}

impl<'de> DeserializeSeed<'de> for Log<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Log<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with the field `entries`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut has_entries = false;
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "entries" => {
                    map.next_value_seed(Entries { take: &mut *self.take })?;
                    has_entries = true;
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        if has_entries { Ok(()) } else { Err(A::Error::custom("the field `log.entries` is missing")) }
    }
}

/// The list of entries, each of which is taken as it is read.
struct Entries<'a> {
    take: TakeEntry<'a>,
}

impl<'de> DeserializeSeed<'de> for Entries<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Entries<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of entries")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let mut number = 0;
        while let Some(raw) = list.next_element::<Box<RawValue>>()? {
            number += 1;
            if !(self.take)(number, &raw) {
                return Err(A::Error::custom("the entries are not read any further"));
            }
        }
        Ok(())
    }
}
