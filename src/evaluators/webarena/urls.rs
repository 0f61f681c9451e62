//! `url_match`: where the agent ended against reference URLs.
//!
//! Source: web-arena-x/webarena `evaluation_harness/evaluators.py`, class `URLEvaluator`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Context;
use super::task::{Eval, OR, TaskError};
use crate::evaluators::verdict::Check;

/// Judges where the agent ended.
///
/// # Errors
///
/// When the task names a rule that the benchmark does not have.
pub fn url_match(context: &Context, eval: &Eval) -> Result<Vec<Check>, TaskError> {
    let rule = eval.url_note.as_deref().unwrap_or("GOLD in PRED");
    if rule != "GOLD in PRED" {
        return Err(TaskError::new("url_note", "\"GOLD in PRED\"", &Value::from(rule)));
    }
    let (expected, found) = (Value::from(eval.reference_url.as_str()), Value::from(context.url.as_str()));
    Ok(vec![Check::of("url_match", rule, "url", expected, found, gold_in_pred(&eval.reference_url, &context.url))])
}

/// Rule "GOLD in PRED": host and path of some alternative lie within those of the URL, and for every parameter of any
/// alternative the URL has one of the alternatives' values. Scheme, `;parameters` and fragment do not count.
#[must_use]
pub fn gold_in_pred(reference: &str, url: &str) -> bool {
    let found = Parsed::of(&clean(url));
    let references: Vec<Parsed> = reference.split(OR).map(|reference| Parsed::of(&clean(reference))).collect();
    let is_base_found = references.iter().any(|reference| found.base.contains(&reference.base));
    // The alternatives' parameters are mixed: that is how the benchmark has it.
    let mut wanted: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, values) in references.iter().flat_map(|reference| &reference.query) {
        wanted.entry(name).or_default().extend(values.iter().map(String::as_str));
    }
    let has =
        |name: &str, value: &str| found.query.get(name).is_some_and(|values| values.iter().any(|found| found == value));
    is_base_found && wanted.iter().all(|(name, values)| values.iter().any(|value| has(name, value)))
}

/// `str(url).rstrip("/")`: all of them, and also at the end of a query.
fn clean(url: &str) -> String {
    url.trim_end_matches('/').to_owned()
}

/// A URL as `urllib.parse.urlparse` sees it, as far as the rule looks.
struct Parsed {
    /// Host, port and path, without `;parameters` of the last segment.
    base: String,
    query: BTreeMap<String, Vec<String>>,
}

impl Parsed {
    fn of(url: &str) -> Self {
        let split = split(url);
        let path = match split.path.rfind('/') {
            // Only the last segment may carry parameters.
            Some(slash) => match split.path[slash..].find(';') {
                Some(semicolon) => &split.path[..slash + semicolon],
                None => split.path,
            },
            None => split.path.split(';').next().unwrap_or_default(),
        };
        Self { base: format!("{}{path}", split.host), query: parse_qs(split.query) }
    }
}

/// The parts of a URL that `urllib.parse.urlsplit` gives.
pub(super) struct Split<'a> {
    pub(super) scheme: &'a str,
    pub(super) host: &'a str,
    pub(super) path: &'a str,
    pub(super) query: &'a str,
}

/// `urllib.parse.urlsplit`: splits, and checks nothing.
pub(super) fn split(url: &str) -> Split<'_> {
    let (mut scheme, mut rest) = ("", url);
    if let Some((before, after)) = url.split_once(':')
        && before.starts_with(|c: char| c.is_ascii_alphabetic())
        && before.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    {
        (scheme, rest) = (before, after);
    }
    let mut host = "";
    if let Some(after) = rest.strip_prefix("//") {
        let end = after.find(['/', '?', '#']).unwrap_or(after.len());
        (host, rest) = after.split_at(end);
    }
    let rest = rest.split('#').next().unwrap_or_default();
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    Split { scheme, host, path, query }
}

/// `urllib.parse.parse_qs`: blank values are dropped, the order of values is kept.
fn parse_qs(query: &str) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        if !value.is_empty() {
            found.entry(name.into_owned()).or_default().push(value.into_owned());
        }
    }
    found
}
