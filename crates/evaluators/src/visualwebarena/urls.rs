//! `url_match`: the agent's last URL against reference URLs.
//!
//! Source: web-arena-x/visualwebarena `evaluation_harness/evaluators.py`, class `URLExactEvaluator`.

use serde_json::Value;

use crate::webarena::{EpisodeContext, Eval, OR, TaskError};
use arenad_verdict::Check;

/// Judges the agent's last URL.
pub(super) fn url_match(context: &EpisodeContext, eval: &Eval) -> Result<Vec<Check>, TaskError> {
    let rule = eval.url_note.as_deref().unwrap_or("EXACT");
    let fits = match rule {
        "EXACT" => exact(&eval.reference_url, &context.url),
        "GOLD in PRED" => gold_in_pred(&eval.reference_url, &context.url),
        _ => return Err(TaskError::new("url_note", "\"EXACT\" or \"GOLD in PRED\"", &rule.into())),
    };
    let (expected, found) = (Value::from(eval.reference_url.as_str()), Value::from(context.url.as_str()));
    Ok(vec![Check::of("url_match", rule, "url", expected, found, fits)])
}

/// Rule `EXACT`: the URL equals one of the alternatives.
#[must_use]
pub fn exact(reference: &str, url: &str) -> bool {
    reference.split(OR).any(|reference| clean(reference) == clean(url))
}

/// Rule `GOLD in PRED`: the URL contains one of the alternatives.
#[must_use]
pub fn gold_in_pred(reference: &str, url: &str) -> bool {
    let url = clean(url);
    reference.split(OR).any(|reference| url.contains(&clean(reference)))
}

/// Replaces every `localhost` by `127.0.0.1`, at any place, and removes one slash at the end.
fn clean(url: &str) -> String {
    let url = url.replace("localhost", "127.0.0.1");
    url.strip_suffix('/').unwrap_or(&url).to_owned()
}
