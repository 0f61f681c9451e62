//! `program_html`: what pages show.
//!
//! Source: web-arena-x/webarena `evaluation_harness/evaluators.py`, class `HTMLContentEvaluator`.

use serde_json::Value;

use super::calls;
use super::strings::{clean_answer, exact_match};
use super::task::{Eval, Target, TaskError, text_of};
use super::{Context, Told};
use crate::evaluators::question::{Answer, Call, Place, Question};
use crate::evaluators::text::python;
use crate::evaluators::verdict::{Check, Verdict};

/// What has to be known of the pages.
///
/// # Errors
///
/// When a target has a locator on which the benchmark's own code fails.
pub(super) fn questions(context: &Context, eval: &Eval) -> Result<Vec<Question>, TaskError> {
    eval.program_html.iter().map(|target| question(context, target)).collect()
}

/// Judges what was found on the pages.
pub(super) fn program_html(context: &Context, eval: &Eval, told: &Told) -> Result<Vec<Check>, TaskError> {
    let mut checks = Vec::new();
    for target in &eval.program_html {
        let answer = told.ask(&question(context, target)?);
        checks.extend(judge(target, &answer)?);
    }
    Ok(checks)
}

fn question(context: &Context, target: &Target) -> Result<Question, TaskError> {
    let place = place(context, &target.url)?;
    let locator = target.locator.trim();
    if locator.is_empty() {
        return Ok(Question::Content { place });
    }
    if let Some(call) = locator.strip_prefix("func:") {
        return Ok(Question::Helper { place, call: calls::parse(call, &context.url)? });
    }
    if locator.starts_with("document.") || locator.starts_with("[...document.") {
        return Ok(Question::Script { place, prepare: target.prep_actions.clone(), expression: locator.to_owned() });
    }
    Err(TaskError::new("locator", "empty, an expression that begins with document., or func:", &locator.into()))
}

fn place(context: &Context, url: &str) -> Result<Place, TaskError> {
    if url == "last" {
        return Ok(Place::Last);
    }
    let Some(call) = url.strip_prefix("func:") else {
        return Ok(Place::Url(url.to_owned()));
    };
    let call = calls::parse(call, &context.url)?;
    // This one needs no look at the site.
    match &call {
        Call { name, arguments } if name == "reddit_get_post_url" => {
            let [url] = &arguments[..] else {
                return Err(TaskError::new("url", "reddit_get_post_url with one URL", &url.into()));
            };
            Ok(Place::Url(calls::reddit_get_post_url(url)))
        }
        _ => Ok(Place::Found(call)),
    }
}

fn judge(target: &Target, answer: &Answer) -> Result<Vec<Check>, TaskError> {
    let found = match answer {
        // The text of what Python's str() makes of the value, with HTML's entities replaced.
        Answer::Value(value) => Ok(htmlize::unescape(python::to_str(value)).into_owned()),
        Answer::Threw(_) => Ok(String::new()),
        Answer::Unavailable(reason) => Err((Verdict::Inconclusive, reason)),
        Answer::Unsupported(reason) => Err((Verdict::Unsupported, reason)),
    };
    let check = |rule: &str, expected: &Value, fits: &dyn Fn(&str) -> bool| {
        let place =
            if target.locator.is_empty() { target.url.clone() } else { format!("{} {}", target.url, target.locator) };
        match &found {
            Ok(text) => Check::of("program_html", rule, &place, expected.clone(), excerpt(text), fits(text)),
            Err((verdict, reason)) => Check {
                verdict: *verdict,
                found: None,
                reason: Some((*reason).clone()),
                ..Check::of("program_html", rule, &place, expected.clone(), Value::Null, false)
            },
        }
    };
    let wanted = &target.required_contents;
    if let Some(expected) = wanted.get("exact_match") {
        let reference = text_of("required_contents.exact_match", expected)?;
        return Ok(vec![check("exact_match", expected, &|text| exact_match(reference, text))]);
    }
    if let Some(expected) = wanted.get("must_include") {
        let wrong = || TaskError::new("required_contents.must_include", "a list of texts", expected);
        return expected
            .as_array()
            .ok_or_else(wrong)?
            .iter()
            .map(|item| {
                let alternatives = text_of("required_contents.must_include", item)?;
                Ok(check("must_include", item, &|text| includes(text, alternatives)))
            })
            .collect();
    }
    Err(TaskError::new("required_contents", "exact_match or must_include", &Value::Object(wanted.clone())))
}

/// Whether any of the alternatives is part of the text.
fn includes(text: &str, alternatives: &str) -> bool {
    let text = clean_answer(text);
    alternatives.split(" |OR| ").any(|alternative| text.contains(&clean_answer(alternative)))
}

/// How much of a page is kept as evidence, in characters.
const EXCERPT: usize = 2000;

fn excerpt(text: &str) -> Value {
    match text.char_indices().nth(EXCERPT) {
        Some((end, _)) => Value::from(format!("{}…", &text[..end])),
        None => Value::from(text),
    }
}
