//! The parts of a request that differ at each visit: timestamps, nonces, cache busters.
//!
//! A request that was not recorded exactly is compared without the parameters that have such names, and then with
//! timestamps, UUIDs and random fractions masked wherever they occur in values and paths. Forms and JSON objects in bodies
//! are compared in the same ways.

use std::collections::BTreeSet;

use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use url::Url;

use super::exchange::{HeaderField, value};

/// Parameters whose values differ at each visit, in lower case.
const MOVING: [&str; 38] = [
    "_",
    "__requestverificationtoken",
    "_csrf",
    "_dc",
    "_nonce",
    "_t",
    "_token",
    "_ts",
    "authenticity_token",
    "cachebust",
    "cachebuster",
    "cache_bust",
    "cache_buster",
    "cache-buster",
    "cb",
    "csrf",
    "csrf_token",
    "csrfmiddlewaretoken",
    "csrftoken",
    "form_build_id",
    "form_key",
    "nocache",
    "no_cache",
    "nonce",
    "ord",
    "rand",
    "random",
    "requestid",
    "request_id",
    "rnd",
    "sessionid",
    "session_id",
    "sid",
    "timestamp",
    "ts",
    "xsrf_token",
    "zx",
    "_wpnonce",
];

/// The replacement of a masked value.
const MASK: &str = "\u{0}";

/// The hashes by which the body of a request is compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BodyKeys {
    /// Of the body, without the boundary of its parts.
    pub exact: String,
    /// Of the body without what differs at each visit.
    pub moved: String,
}

/// The rules of one replay.
#[derive(Debug)]
pub(crate) struct MovingRules {
    names: BTreeSet<String>,
    values: Regex,
}

impl MovingRules {
    /// Returns the rules with further names of parameters.
    pub(crate) fn new(further: &[String]) -> Self {
        let further = further.iter().map(|name| name.to_lowercase());
        let names = MOVING.iter().map(|name| (*name).to_owned()).chain(further).collect();
        // Seconds, milliseconds or microseconds since 2011; UUIDs; what `Math.random()` returns.
        let values = r"(?x)
            \b1[3-9]\d{8}(?:\d{3}|\d{6})?\b | _1[3-9]\d{11}\b
            | \b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b
            | \b0?\.\d{6,}\b";
        // The pattern is constant, and a test compiles it.
        let values = Regex::new(values).unwrap_or_else(|error| unreachable!("{error}"));
        Self { names, values }
    }

    fn is_moving(&self, name: &str) -> bool {
        self.names.contains(&name.to_lowercase())
    }

    fn masked(&self, text: &str) -> String {
        self.values.replace_all(text, MASK).into_owned()
    }

    fn pairs(&self, encoded: &[u8], are_masked: bool) -> Vec<(String, String)> {
        let pairs = form_urlencoded::parse(encoded).filter(|(name, _)| !self.is_moving(name));
        let mut pairs: Vec<(String, String)> = pairs
            .map(|(name, value)| match are_masked {
                true => (self.masked(&name), self.masked(&value)),
                false => (name.into_owned(), value.into_owned()),
            })
            .collect();
        pairs.sort();
        pairs
    }

    /// Returns the URL without parameters that differ at each visit, and with the others in order.
    pub(crate) fn without_parameters(&self, url: &Url) -> String {
        self.key(url, false)
    }

    /// Returns the URL as [`Self::without_parameters`] does, with timestamps and the like masked.
    pub(crate) fn with_masks(&self, url: &Url) -> String {
        self.key(url, true)
    }

    fn key(&self, url: &Url, are_masked: bool) -> String {
        let pairs = self.pairs(url.query().unwrap_or_default().as_bytes(), are_masked);
        let path = if are_masked { self.masked(url.path()) } else { url.path().to_owned() };
        let query: String = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
        format!("{}{path}?{query}", url.origin().ascii_serialization())
    }

    /// Returns the number of parameters that two URLs have in common.
    pub(crate) fn common_parameters(one: &Url, other: &Url) -> usize {
        let other: BTreeSet<(String, String)> = other.query_pairs().into_owned().collect();
        one.query_pairs().into_owned().filter(|pair| other.contains(pair)).count()
    }

    /// Returns the keys of the body of a request.
    pub(crate) fn body_keys(&self, body: &[u8], headers: &[HeaderField]) -> BodyKeys {
        let kind = value(headers, "content-type").unwrap_or_default();
        let plain = match boundary(kind) {
            Some(boundary) => without(body, boundary.as_bytes()),
            None => body.to_vec(),
        };
        let moved = self.moved_body(&plain, kind).unwrap_or_else(|| plain.clone());
        BodyKeys { exact: hash(&plain), moved: hash(&moved) }
    }

    fn moved_body(&self, body: &[u8], kind: &str) -> Option<Vec<u8>> {
        let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        if kind == "application/x-www-form-urlencoded" {
            return serde_json::to_vec(&self.pairs(body, true)).ok();
        }
        let text = std::str::from_utf8(body).ok()?;
        if (kind.ends_with("json") || kind == "text/plain")
            && let Ok(mut json) = serde_json::from_str::<Value>(text)
        {
            self.mask_json(&mut json);
            return serde_json::to_vec(&json).ok();
        }
        Some(self.masked(text).into_bytes())
    }

    fn mask_json(&self, json: &mut Value) {
        match json {
            Value::Object(fields) => {
                fields.retain(|name, _| !self.is_moving(name));
                fields.sort_keys();
                fields.values_mut().for_each(|value| self.mask_json(value));
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.mask_json(item)),
            Value::String(text) => *text = self.masked(text),
            Value::Number(number) => {
                let (text, masked) = (number.to_string(), self.masked(&number.to_string()));
                if text != masked {
                    *json = Value::String(masked);
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }
}

/// Returns the boundary of a multipart body.
fn boundary(kind: &str) -> Option<&str> {
    let (_, rest) = kind.split_once("multipart/")?;
    let (_, rest) = rest.split_once("boundary=")?;
    let found = rest.split(';').next()?.trim().trim_matches('"');
    (!found.is_empty()).then_some(found)
}

fn without(text: &[u8], part: &[u8]) -> Vec<u8> {
    let mut rest = text;
    let mut kept = Vec::with_capacity(text.len());
    while let Some(at) = rest.windows(part.len()).position(|window| window == part) {
        kept.extend_from_slice(&rest[..at]);
        rest = &rest[at + part.len()..];
    }
    kept.extend_from_slice(rest);
    kept
}

fn hash(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).expect("a URL")
    }

    #[test]
    fn what_differs_at_each_visit_does_not_count() {
        let rules = MovingRules::new(&["Visit".to_owned()]);
        let same = |one: &str, other: &str| rules.with_masks(&url(one)) == rules.with_masks(&url(other));
        assert!(same("https://a.test/x?q=1&_=1700000000000", "https://a.test/x?_=1712345678901&q=1"));
        assert!(same("https://a.test/x?visit=7", "https://a.test/x?visit=8"));
        assert!(same("https://a.test/1700000000/x.js", "https://a.test/1712345678/x.js"));
        assert!(same("https://a.test/x?r=0.123456789", "https://a.test/x?r=0.987654321"));
        assert!(same("https://a.test/x?jq=j3_1700000000000", "https://a.test/x?jq=j3_1712345678901"));
        assert!(!same("https://a.test/x?q=1", "https://a.test/x?q=2"));
        assert!(!same("https://a.test/x?id=1234567890", "https://a.test/x?id=1234567891"), "an id is not a timestamp");
        assert!(!same("https://a.test/x", "http://a.test/x"));
        assert_eq!(rules.without_parameters(&url("https://a.test/x?b=2&a=1&ts=3")), "https://a.test/x?a=1&b=2");
    }

    #[test]
    fn bodies_are_compared_by_their_form() {
        let rules = MovingRules::new(&[]);
        let keys = |kind: &str, body: &str| {
            rules.body_keys(body.as_bytes(), &[HeaderField("Content-Type".to_owned(), kind.to_owned())])
        };
        let form = "application/x-www-form-urlencoded";
        let (one, other) = (keys(form, "a=1&csrf_token=x"), keys(form, "csrf_token=y&a=1"));
        assert!(one.exact != other.exact && one.moved == other.moved);
        assert_ne!(one.moved, keys(form, "a=2&csrf_token=x").moved);
        let json = "application/json; charset=utf-8";
        assert_eq!(
            keys(json, r#"{"a": 1700000000000, "b": [1], "nonce": "x"}"#).moved,
            keys(json, r#"{"b":[1],"a":1712345678901}"#).moved
        );
        assert_ne!(keys(json, r#"{"a": 1}"#).moved, keys(json, r#"{"a": 2}"#).moved);
        let part = |boundary: &str| {
            keys(&format!("multipart/form-data; boundary={boundary}"), &format!("--{boundary}\r\nx\r\n--{boundary}--"))
        };
        assert_eq!(part("----A1").exact, part("----B22").exact, "a boundary is chosen for each request");
    }
}
