//! The strict comparison of a key node, without the loopholes of the published code: see `docs/guides/webcanvas.md`.

use arenad_verdict::question::{Answer, KnownAnswers};

use super::matching::{self, Method, Page, PathMatch, Rule};
use super::progress::{Compared, Observation, Open, question, undecided};
use super::task::{KeyNode, NodeRule, Target};
use crate::text::urls::urlsplit;

/// `page` is the parsed `html` of the step.
pub(super) fn compare(node: &KeyNode, step: &Observation, page: Option<&Page<'_>>, told: &KnownAnswers) -> Compared {
    let rule = node.rule();
    let plain = if rule == NodeRule::Included { Rule::Included } else { Rule::Exact };
    // Everything includes an empty text.
    if rule == NodeRule::Unknown || node.reference.is_empty() {
        return Compared::of(false, None);
    }
    match &node.target {
        Target::Url { key } => match matching::url_part(&step.url, key, plain) {
            None => Compared::of(false, None),
            Some(part) if rule == NodeRule::Semantic => judged(node, &part, told),
            Some(part) => Compared::of(plain.holds(&part, &node.reference), Some(&part)),
        },
        Target::Path { method, netloc } => {
            let Some(selector) = step.selector.as_deref() else { return Compared::of(false, None) };
            if !is_on_site(node, netloc, &step.url) {
                return Compared::of(false, Some(selector));
            }
            at(page, *method, selector, &node.reference, selector)
        }
        Target::Value { path, netloc } => {
            let (Some(selector), Some(value)) = (&step.selector, &step.element_value) else {
                return Compared::of(false, None);
            };
            let is_judged = rule == NodeRule::Semantic;
            let fits = if is_judged { !value.is_empty() } else { plain.holds(value, &node.reference) };
            if !fits || !is_on_site(node, netloc, &step.url) {
                return Compared::of(false, Some(value));
            }
            if let Some(path) = path {
                let place = at(page, Method::Selector, selector, path, value);
                if place.score != Ok(1.0) {
                    return place;
                }
            }
            if is_judged { judged(node, value, told) } else { Compared::of(true, Some(value)) }
        }
        Target::Cache | Target::Answer => match step.text_content.as_deref() {
            None | Some("") => Compared::of(false, None),
            Some(text) if rule == NodeRule::Semantic => judged(node, text, told),
            Some(text) => Compared::of(matching::text_matches(text, &node.reference, plain), Some(text)),
        },
    }
}

/// Whether the action was at the element of a path.
fn at(page: Option<&Page<'_>>, method: Method, found: &str, reference: &str, shown: &str) -> Compared {
    let Some(page) = page else { return Compared { score: Err(Open::Html), ..Compared::of(false, Some(shown)) } };
    let fits = match method {
        Method::Selector => matching::is_same_control(page, found, reference),
        method => {
            let found = Some(found);
            let paths = PathMatch { page, method, found, reference, found_netloc: "", reference_netloc: "" };
            matching::path_matches(paths).unwrap_or(false)
        }
    };
    Compared::of(fits, Some(shown))
}

/// Whether the page is on the site of a node. The published code compares one word of the host, which is `m` on every
/// mobile site; the recorded address tells them apart.
fn is_on_site(node: &KeyNode, netloc: &str, url: &str) -> bool {
    let host = |url: &str| {
        let netloc = urlsplit(url).ok()?.netloc;
        let host = netloc.rsplit('@').next()?.split(':').next()?.to_ascii_lowercase();
        (!host.is_empty()).then_some(host)
    };
    let domain = |host: String| host.rsplit('.').take(2).map(str::to_owned).collect::<Vec<_>>();
    let is_same_word = matching::get_netloc(url).is_ok_and(|site| site == netloc);
    match node.recorded_url.as_deref().and_then(host) {
        Some(recorded) => is_same_word && host(url).map(domain) == Some(domain(recorded)),
        None => is_same_word,
    }
}

/// A node is reached only if the judge has no reservation.
fn judged(node: &KeyNode, found: &str, told: &KnownAnswers) -> Compared {
    let question = question(node, found, true);
    let score = match told.ask(&question) {
        Answer::Value(value) => Ok(if value.as_f64() == Some(1.0) { 1.0 } else { 0.0 }),
        other => Err(undecided(question, &other)),
    };
    Compared { score, found: Some(found.to_owned()) }
}
