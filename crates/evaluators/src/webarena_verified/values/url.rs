//! `url`: the normal form of URLs, with patterns for the path and for values of the query.
//!
//! Sources: `data_types/url.py`; url-normalize 2.2; `core/utils/url_utils.py`.

mod cleaning;

use std::fmt;

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::{Map, Value, json as object};

use super::{Normal, TypedValue, ValueKind};
use crate::text::json;
use crate::text::patterns::{Mode, PatternError};
use crate::text::python;
use crate::text::urls::{self, Split};
use crate::webarena_verified::failure::ReadingFailure;
use crate::webarena_verified::node::ValueNode;
use crate::webarena_verified::reading::{ReadingOptions, is_pattern};
use crate::webarena_verified::schema;
use arenad_verdict::Profile;

/// A URL; `base` is the URL without its query.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct Url {
    base: String,
    query: Vec<(String, ValueNode)>,
    is_pattern: bool,
}

impl Url {
    pub(super) fn to_json(&self) -> Value {
        let query: Map<_, _> = self.query.iter().map(|(key, node)| (key.clone(), node.to_json())).collect();
        object!({ "base_url": self.base, "query_params": query, "is_regex": self.is_pattern })
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut pairs = Vec::new();
        let mut query: Vec<&(String, ValueNode)> = self.query.iter().collect();
        query.sort_by_key(|(key, _)| key);
        for (key, values) in query {
            if let ValueNode::Tuple(values) | ValueNode::List(values) = values {
                pairs.extend(values.iter().map(|value| format!("{key}={}", python::to_str(&value.to_json()))));
            }
        }
        match urls::urlsplit(&self.base) {
            Ok(split) => {
                let path = split.path_and_parameters().0.to_owned();
                f.write_str(&Split { path, query: pairs.join("&"), ..split.clone() }.join())
            }
            Err(_) => f.write_str(&self.base),
        }
    }
}

/// Reads a URL, or a pattern for URLs.
pub(super) fn normalise(value: &Value, reading: &ReadingOptions<'_>) -> Result<Url, ReadingFailure> {
    let text = value.as_str().map(python::strip).filter(|text| !text.is_empty());
    let text = text.ok_or_else(|| ReadingFailure::raised(format!("{value} is not a URL")))?;
    if reading.is_pattern(text) {
        let query = match reading.url.query {
            Some(query) => wanted_query(query, reading)?,
            None => Vec::new(),
        };
        return Ok(Url { base: text.trim_end_matches('/').to_owned(), query, is_pattern: true });
    }
    let mut text = text.trim_end_matches('/').to_owned();
    if text.starts_with("__") {
        text = reading.render(&text)?;
    }
    if json::has_half_pair(&text) {
        return Err(ReadingFailure::raised(format!("{text:?} has half a surrogate pair, which Python cannot quote")));
    }
    if let Some(base) = ssh(&text)? {
        return Ok(Url { base, query: Vec::new(), is_pattern: false });
    }
    let cleaned = reading.derender(&cleaning::clean(&text)?)?;
    let split = urls::urlsplit(&cleaned)?;
    let (path, parameters) = split.path_and_parameters();
    let mut path = if parameters.is_empty() { path.to_owned() } else { format!("{path};{parameters}") };
    let query = match reading.url.query {
        Some(query) => wanted_query(query, reading)?,
        None => {
            let mut queries = Vec::new();
            if reading.url.decode_base64_query {
                (path, queries) = extract_base64_query(&path);
            }
            if !split.query.is_empty() {
                queries.push(python::strip(&split.query).to_owned());
            }
            own_query(&queries.join("&"), reading)?
        }
    };
    let netloc = without_default_port(&split);
    let base = Split { netloc, path, query: String::new(), ..split }.join();
    Ok(Url { base, query, is_pattern: false })
}

fn without_default_port(split: &Split) -> String {
    let netloc = split.netloc.to_lowercase();
    let port = match split.scheme.as_str() {
        "http" => ":80",
        "https" => ":443",
        _ => return netloc,
    };
    match netloc.strip_suffix(port) {
        Some(host) => host.rsplit('@').next().unwrap_or_default().trim_matches(['[', ']']).to_owned(),
        None => netloc,
    }
}

/// Converts `git@host:path` and `ssh://…` to the short form without the host. Returns `None` for any other URL.
fn ssh(url: &str) -> Result<Option<String>, ReadingFailure> {
    let lower = url.to_lowercase();
    let (user, path) = if lower.starts_with("ssh://") {
        let split = urls::urlsplit(url)?;
        let user = match split.netloc.split_once('@') {
            Some((user, _)) => user.to_lowercase(),
            None => "git".to_owned(),
        };
        (user, split.path_and_parameters().0.to_owned())
    } else if lower.starts_with("git@") && url.contains(':') && !url.contains("://") {
        let (_, rest) = url.split_once('@').unwrap_or_default();
        let (_, path) = rest.split_once(':').unwrap_or_default();
        ("git".to_owned(), path.to_owned())
    } else {
        return Ok(None);
    };
    Ok(Some(format!("{user}@__SSH_HOST__:{}", path.trim_start_matches('/').to_lowercase())))
}

/// Removes the segments of a path that are queries in Base64. Returns the remaining path and the queries.
#[must_use]
pub(crate) fn extract_base64_query(path: &str) -> (String, Vec<String>) {
    if path.is_empty() {
        return (String::new(), Vec::new());
    }
    let mut queries = Vec::new();
    let mut kept = Vec::new();
    for segment in path.split('/').filter(|segment| !segment.is_empty()) {
        match decoded_query(segment) {
            Some(query) => queries.push(query),
            None => kept.push(segment),
        }
    }
    let lead = if path.starts_with('/') { "/" } else { "" };
    let mut cleaned = format!("{lead}{}", kept.join("/"));
    if !kept.is_empty() && path.ends_with('/') {
        cleaned.push('/');
    }
    (cleaned, queries)
}

/// Decodes the query in a segment. A query is a text with an equals sign.
fn decoded_query(segment: &str) -> Option<String> {
    const URL_SAFE: GeneralPurpose = GeneralPurpose::new(
        &alphabet::URL_SAFE,
        GeneralPurposeConfig::new()
            .with_decode_allow_trailing_bits(true)
            .with_decode_padding_mode(DecodePaddingMode::RequireNone),
    );
    let data = segment.strip_suffix("==").or_else(|| segment.strip_suffix('=')).unwrap_or(segment);
    if data.len() < 4 || !data.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-') {
        return None;
    }
    let text = String::from_utf8(URL_SAFE.decode(data).ok()?).ok()?;
    if !text.contains('=') {
        return None;
    }
    let query = urls::unquote(&text);
    let query = python::strip(&query);
    (!query.is_empty()).then(|| query.trim_start_matches(['?', '&']).to_owned())
}

/// `normalize_query(query)`: the values by name, sorted and decoded once more.
#[must_use]
pub(crate) fn normalize_query(query: &str) -> Map<String, Value> {
    let mut parsed: Vec<(String, Vec<String>)> = Vec::new();
    for (name, value) in urls::parse_qsl(query) {
        match parsed.iter_mut().find(|(known, _)| *known == name) {
            Some((_, values)) => values.push(value),
            None => parsed.push((name, vec![value])),
        }
    }
    let sorted = |values: Vec<String>| {
        let mut values: Vec<String> = values.iter().map(|value| urls::unquote(value)).collect();
        values.sort();
        Value::from(values)
    };
    parsed.into_iter().map(|(name, values)| (urls::unquote(&name), sorted(values))).collect()
}

fn own_query(query: &str, reading: &ReadingOptions<'_>) -> Result<Vec<(String, ValueNode)>, ReadingFailure> {
    wanted_query(&Value::Object(normalize_query(query)), reading)
}

/// Removes the ignored parameters of a query, converts the values to lower case, sorts them, and reads them by the
/// schema if there is one.
fn wanted_query(query: &Value, reading: &ReadingOptions<'_>) -> Result<Vec<(String, ValueNode)>, ReadingFailure> {
    let Value::Object(entries) = query else {
        return Err(ReadingFailure::raised(format!("{query} is not a query")));
    };
    let mut kept = Map::new();
    for (name, values) in entries {
        if !is_ignored(name, reading)? {
            kept.insert(name.clone(), lower_sorted(values)?);
        }
    }
    let node = match reading.url.query_schema {
        Some(schema) => schema::read(&Value::Object(kept), schema, &ReadingOptions { sites: None, ..*reading })?,
        None => ValueNode::Object(
            kept.iter()
                .map(|(name, values)| {
                    (
                        name.clone(),
                        ValueNode::Tuple(values.as_array().into_iter().flatten().map(ValueNode::raw).collect()),
                    )
                })
                .collect(),
        ),
    };
    match node {
        ValueNode::None => Ok(Vec::new()),
        ValueNode::Object(entries) => Ok(entries),
        other => Err(ReadingFailure::raised(format!("{} is not a query", other.to_json()))),
    }
}

fn lower_sorted(values: &Value) -> Result<Value, ReadingFailure> {
    let texts: Option<Vec<String>> = match values {
        Value::Array(values) => values.iter().map(|value| value.as_str().map(str::to_lowercase)).collect(),
        // Python iterates over the letters of a text.
        Value::String(text) => Some(text.chars().map(|c| c.to_lowercase().collect()).collect()),
        _ => None,
    };
    let texts = texts.ok_or_else(|| ReadingFailure::unsupported(format!("{values} are not texts of a query")))?;
    let mut texts: Vec<String> = texts.iter().map(|text| python::strip(text).to_owned()).collect();
    texts.sort();
    Ok(Value::from(texts))
}

fn is_ignored(name: &str, reading: &ReadingOptions<'_>) -> Result<bool, ReadingFailure> {
    if reading.url.ignored.iter().any(|ignored| ignored == name) {
        return Ok(true);
    }
    for pattern in reading.url.ignored_patterns {
        match reading.patterns.is_match(pattern, Mode::SearchIgnoringCase, name) {
            Ok(true) => return Ok(true),
            // An invalid pattern is ignored.
            Ok(false) | Err(PatternError::Invalid(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(false)
}

/// Whether path and query of any expected alternative equal those of any actual one.
pub(super) fn equal(
    expected: &TypedValue,
    actual: &TypedValue,
    reading: &ReadingOptions<'_>,
) -> Result<bool, ReadingFailure> {
    for expected in expected.urls() {
        for actual in actual.urls() {
            if is_same_path(expected, actual, reading)? && is_same_query(expected, actual, reading)? {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Wraps a text that is not a URL. The benchmark compares such a text with URLs.
pub(in super::super) fn as_it_is(text: &str) -> TypedValue {
    let url = Url { base: text.trim_end_matches('/').to_owned(), query: Vec::new(), is_pattern: false };
    TypedValue { kind: ValueKind::Url, alternatives: vec![Normal::Url(url)] }
}

/// Compares the paths alone, to find events.
pub(in super::super) fn have_same_path(
    expected: &TypedValue,
    actual: &TypedValue,
    reading: &ReadingOptions<'_>,
) -> Result<bool, ReadingFailure> {
    for expected in expected.urls() {
        for actual in actual.urls() {
            if is_same_path(expected, actual, reading)? {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

fn is_same_path(expected: &Url, actual: &Url, reading: &ReadingOptions<'_>) -> Result<bool, ReadingFailure> {
    if expected.is_pattern && matches_path(expected, actual, reading)? {
        return Ok(true);
    }
    if actual.is_pattern && reading.profile == Profile::Compat && matches_path(actual, expected, reading)? {
        return Ok(true);
    }
    let bare = |url: &Url| url.base.to_lowercase().trim_end_matches('/').to_owned();
    Ok(!expected.is_pattern && !actual.is_pattern && bare(expected) == bare(actual))
}

/// Matches a path. A placeholder at the start of the pattern or of the URL is first replaced by the site's address.
fn matches_path(pattern: &Url, other: &Url, reading: &ReadingOptions<'_>) -> Result<bool, ReadingFailure> {
    let rendered = |text: &str| if text.starts_with("__") { reading.render(text) } else { Ok(text.to_owned()) };
    let base = &pattern.base;
    let pattern = if is_pattern(base) { format!("^{}$", rendered(&base[1..base.len() - 1])?) } else { rendered(base)? };
    Ok(reading.patterns.is_match(&pattern, Mode::Match, &rendered(&other.base)?)?)
}

/// Whether the first values of all parameters of both URLs are equal. A missing parameter is empty.
fn is_same_query(expected: &Url, actual: &Url, reading: &ReadingOptions<'_>) -> Result<bool, ReadingFailure> {
    let empty = ValueNode::Raw(Value::from(""));
    let value = |url: &Url, key: &str| match url.query.iter().find(|(name, _)| name == key).map(|(_, node)| node) {
        None | Some(ValueNode::None) => Ok(empty.clone()),
        Some(ValueNode::Tuple(values) | ValueNode::List(values)) => Ok(match values.first() {
            None | Some(ValueNode::None) => empty.clone(),
            Some(first) => first.clone(),
        }),
        Some(other) => Err(ReadingFailure::raised(format!("the parameter {key:?} is {}, no list", other.to_json()))),
    };
    let keys = expected
        .query
        .iter()
        .chain(actual.query.iter().filter(|(key, _)| !expected.query.iter().any(|(known, _)| known == key)));
    for (key, _) in keys {
        let (expected, actual) = (value(expected, key)?, value(actual, key)?);
        let pattern = match &expected {
            ValueNode::Typed(typed) if typed.is_pattern() => Some(typed.first().to_text()),
            ValueNode::Raw(Value::String(text)) if is_pattern(text) => Some(text.clone()),
            _ => None,
        };
        let is_same = match pattern {
            Some(pattern) => reading.patterns.is_match(&pattern, Mode::Match, &text_of(&actual))?,
            None => {
                let is_empty = |node: &ValueNode| node.is_same(&empty, reading);
                (is_empty(&expected)? && is_empty(&actual)?) || expected.is_same(&actual, reading)?
            }
        };
        if !is_same {
            return Ok(false);
        }
    }
    Ok(true)
}

fn text_of(node: &ValueNode) -> String {
    match node {
        ValueNode::Typed(typed) => typed.first().to_text(),
        other => python::to_str(&other.to_json()),
    }
}
