//! `url_match`: the agent's last URL against reference URLs.
//!
//! Source: web-arena-x/webarena `evaluation_harness/evaluators.py`, class `URLEvaluator`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::EpisodeContext;
use super::task::{Eval, OR, TaskError};
use crate::text::urls::{UrlError, parse_qsl, urlsplit};
use arenad_verdict::Check;

/// Judges the agent's last URL.
///
/// # Errors
///
/// Returns an error if the task names a rule that the benchmark does not have, or a reference that is not a URL.
pub(crate) fn url_match(context: &EpisodeContext, eval: &Eval) -> Result<Vec<Check>, TaskError> {
    let rule = eval.url_note.as_deref().unwrap_or("GOLD in PRED");
    if rule != "GOLD in PRED" {
        return Err(TaskError::new("url_note", "\"GOLD in PRED\"", &Value::from(rule)));
    }
    let expected = Value::from(eval.reference_url.as_str());
    let wrong = |_| TaskError::new("reference_url", "URLs", &expected);
    let references = references(&eval.reference_url).map_err(wrong)?;
    let found = ParsedUrl::of(&clean(&context.url));
    let fits = found.as_ref().is_ok_and(|found| is_gold_in(&references, found));
    let check = Check::of("url_match", rule, "url", expected, Value::from(context.url.as_str()), fits);
    let reason = found.err().map(|error| format!("the benchmark's code raises an error: {error}"));
    Ok(vec![Check { reason, ..check }])
}

/// Rule "GOLD in PRED". Host and path of at least one alternative are part of host and path of the URL. For every
/// parameter of any alternative, the URL has one of the alternatives' values. Scheme, `;parameters` and fragment do not
/// count. Text that is not a URL never fits.
#[must_use]
pub fn gold_in_pred(reference: &str, url: &str) -> bool {
    match (references(reference), ParsedUrl::of(&clean(url))) {
        (Ok(references), Ok(found)) => is_gold_in(&references, &found),
        _ => false,
    }
}

fn references(reference: &str) -> Result<Vec<ParsedUrl>, UrlError> {
    reference.split(OR).map(|reference| ParsedUrl::of(&clean(reference))).collect()
}

fn is_gold_in(references: &[ParsedUrl], found: &ParsedUrl) -> bool {
    let is_base_found = references.iter().any(|reference| found.base.contains(&reference.base));
    // The benchmark, too, merges the parameters of all alternatives.
    let mut wanted: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, values) in references.iter().flat_map(|reference| &reference.query) {
        wanted.entry(name).or_default().extend(values.iter().map(String::as_str));
    }
    let has =
        |name: &str, value: &str| found.query.get(name).is_some_and(|values| values.iter().any(|found| found == value));
    is_base_found && wanted.iter().all(|(name, values)| values.iter().any(|value| has(name, value)))
}

/// `str(url).rstrip("/")`: removes all slashes at the end, also behind a query.
fn clean(url: &str) -> String {
    url.trim_end_matches('/').to_owned()
}

/// The parts of a URL that the rule compares, as `urllib.parse.urlparse` splits it.
struct ParsedUrl {
    /// Host, port and path, without the `;parameters` of the last segment.
    base: String,
    query: BTreeMap<String, Vec<String>>,
}

impl ParsedUrl {
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
