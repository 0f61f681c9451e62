//! `url_match`: where the agent ended against reference URLs.
//!
//! Source: web-arena-x/webarena `evaluation_harness/evaluators.py`, class `URLEvaluator`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Context;
use super::task::{Eval, OR, TaskError};
use crate::text::urls::{UrlError, parse_qsl, urlsplit};
use arenad_verdict::Check;

/// Judges where the agent ended.
///
/// # Errors
///
/// When the task names a rule that the benchmark does not have, or a reference that is no URL.
pub fn url_match(context: &Context, eval: &Eval) -> Result<Vec<Check>, TaskError> {
    let rule = eval.url_note.as_deref().unwrap_or("GOLD in PRED");
    if rule != "GOLD in PRED" {
        return Err(TaskError::new("url_note", "\"GOLD in PRED\"", &Value::from(rule)));
    }
    let expected = Value::from(eval.reference_url.as_str());
    let wrong = |_| TaskError::new("reference_url", "URLs", &expected);
    let references = references(&eval.reference_url).map_err(wrong)?;
    let found = Parsed::of(&clean(&context.url));
    let fits = found.as_ref().is_ok_and(|found| is_gold_in(&references, found));
    let check = Check::of("url_match", rule, "url", expected, Value::from(context.url.as_str()), fits);
    let reason = found.err().map(|error| format!("the benchmark's code raises an error: {error}"));
    Ok(vec![Check { reason, ..check }])
}

/// Rule "GOLD in PRED": host and path of some alternative lie within those of the URL, and for every parameter of any
/// alternative the URL has one of the alternatives' values. Scheme, `;parameters` and fragment do not count. What is no URL
/// fits nothing.
#[must_use]
pub fn gold_in_pred(reference: &str, url: &str) -> bool {
    match (references(reference), Parsed::of(&clean(url))) {
        (Ok(references), Ok(found)) => is_gold_in(&references, &found),
        _ => false,
    }
}

fn references(reference: &str) -> Result<Vec<Parsed>, UrlError> {
    reference.split(OR).map(|reference| Parsed::of(&clean(reference))).collect()
}

fn is_gold_in(references: &[Parsed], found: &Parsed) -> bool {
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
    fn of(url: &str) -> Result<Self, UrlError> {
        let split = urlsplit(url)?;
        let base = format!("{}{}", split.netloc, split.path_and_parameters().0);
        let mut query: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, value) in parse_qsl(&split.query) {
            if !value.is_empty() {
                query.entry(name).or_default().push(value);
            }
        }
        Ok(Self { base, query })
    }
}
