//! `program_html`: the visible content of pages and the values of scripts.

use serde_json::{Map, Value};

use super::answers::{best, bounded, meaning, number, required};
use super::{void, words};
use crate::text::python;
use crate::webarena::pages::{TargetLocator, locator, place, whereabouts};
use crate::webarena::{EpisodeContext, Eval, HelperSignature, OR, PageTarget, TaskError, strings, text_of, texts_of};
use arenad_verdict::question::{Answer, KnownAnswers, PagePlace, Question};
use arenad_verdict::{Check, excerpt, unseen};

/// The content of a page that people can find: its text, the targets of its links, its pictures, and the content of its
/// fields. Scripts and hidden text do not count.
const SHOWN: &str = "[document.body.innerText, \
    ...[...document.querySelectorAll('a[href], img[src], input, textarea, select')]\
    .filter(e => !e.checkVisibility || e.checkVisibility())\
    .map(e => e.href || e.src || e.value)].join('\\n')";

/// Returns the questions about the pages, and the questions for a judge about the pages that are known.
pub(super) fn questions(
    context: &EpisodeContext,
    eval: &Eval,
    told: &KnownAnswers,
    helpers: &[HelperSignature],
) -> Result<Vec<Question>, TaskError> {
    let mut questions = Vec::new();
    for target in &eval.program_html {
        let question = question(context, target, helpers)?;
        if let (Some(references), Some(text)) = (fuzzy(target)?, found(&told.ask(&question)).and_then(shown)) {
            let open = references.split(OR).filter(|reference| !words::same(reference, &text));
            questions.extend(open.map(|reference| meaning(&context.intent, reference, &text)));
        }
        questions.push(question);
    }
    Ok(questions)
}

/// Judges the answers about the pages.
pub(super) fn program_html(
    context: &EpisodeContext,
    eval: &Eval,
    told: &KnownAnswers,
    helpers: &[HelperSignature],
) -> Result<Vec<Check>, TaskError> {
    let mut checks = Vec::new();
    for target in &eval.program_html {
        let answer = told.ask(&question(context, target, helpers)?);
        let made = if let Some((verdict, reason)) = unseen(&answer) {
            let place = whereabouts(target);
            let open = |(rule, expected): (&String, &Value)| {
                Check::open("program_html", rule, &place, expected.clone(), verdict, reason)
            };
            target.required_contents.iter().map(open).collect()
        } else {
            judge(context, target, found(&answer), told)?
        };
        if made.is_empty() {
            let expected = Value::Object(Map::new());
            checks.push(void("program_html", "required_contents", &expected, "the target requires nothing"));
        }
        checks.extend(made);
    }
    Ok(checks)
}

fn question(context: &EpisodeContext, target: &PageTarget, helpers: &[HelperSignature]) -> Result<Question, TaskError> {
    let place = place(context, &target.url, helpers)?;
    let script = |place: PagePlace, expression: &str| {
        let prepare = target.prep_actions.clone();
        Question::Script { place, prepare, expression: expression.to_owned() }
    };
    Ok(match locator(context, target, helpers)? {
        TargetLocator::Page => script(place, SHOWN),
        TargetLocator::Script(expression) | TargetLocator::Lambda(expression) => script(place, expression),
        TargetLocator::Helper(call, _) => Question::Helper { place, call },
    })
}

/// Returns the value, or `None` if the locator failed or found nothing.
fn found(answer: &Answer) -> Option<&Value> {
    match answer {
        Answer::Value(Value::Null) => None,
        Answer::Value(value) => Some(value),
        _ => None,
    }
}

/// Returns a value as text, or `None` if the text is blank.
fn shown(value: &Value) -> Option<String> {
    let text = python::to_str(value);
    if text.trim().is_empty() { None } else { Some(text) }
}

fn fuzzy(target: &PageTarget) -> Result<Option<&str>, TaskError> {
    let wanted = target.required_contents.get("fuzzy_match");
    wanted.map(|value| text_of("required_contents.fuzzy_match", value)).transpose()
}

/// Judges one value by all requirements of the target.
fn judge(
    context: &EpisodeContext,
    target: &PageTarget,
    value: Option<&Value>,
    told: &KnownAnswers,
) -> Result<Vec<Check>, TaskError> {
    let place = whereabouts(target);
    let text = value.and_then(shown);
    let evidence = text.as_deref().map_or(Value::Null, excerpt);
    let check =
        |rule: &str, expected: Value, fits| Check::of("program_html", rule, &place, expected, evidence.clone(), fits);
    let mut checks = Vec::new();
    for (rule, expected) in &target.required_contents {
        let name = format!("required_contents.{rule}");
        match rule.as_str() {
            "exact_match" => {
                let reference = text_of(&name, expected)?;
                // An empty reference is allowed here: it means a field that exists and is empty.
                let fits = value.is_some_and(|value| words::same(reference, &python::to_str(value)));
                checks.push(check(rule, expected.clone(), fits));
            }
            "must_include" => checks.extend(texts_of(&name, expected)?.into_iter().map(|references| {
                let fits = text.as_deref().is_some_and(|text| words::says_any(text, references));
                required(rule, references, |any| check(rule, any.into(), fits))
            })),
            // A missing value does not show that its content was excluded.
            "must_exclude" => checks.extend(texts_of(&name, expected)?.into_iter().map(|references| {
                let fits = text.as_deref().is_some_and(|text| !words::says_any(text, references));
                required(rule, references, |any| check(rule, any.into(), fits))
            })),
            "required_values" => checks.extend(
                texts_of(&name, expected)?
                    .into_iter()
                    .map(|bounds| bounded(rule, bounds, value.and_then(|value| measured(value, bounds)), &check)),
            ),
            "fuzzy_match" => checks.extend(compared(context, target, text.as_deref(), told)?.map(|said| Check {
                found: said.found.map(|_| evidence.clone()),
                evaluator: "program_html".into(),
                place: place.clone(),
                ..said
            })),
            _ => checks.push(void("program_html", rule, expected, "unknown rule")),
        }
    }
    Ok(checks)
}

/// Returns the number that a value is or contains. A helper also returns 0 if it finds nothing, so 0 counts only if the
/// task asks for exactly 0.
fn measured(value: &Value, bounds: &str) -> Option<f64> {
    let number = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => number(text),
        _ => None,
    };
    number.filter(|number| *number != 0.0 || bounds.contains("=="))
}

/// Checks whether the text means the same as one of the references.
fn compared(
    context: &EpisodeContext,
    target: &PageTarget,
    text: Option<&str>,
    told: &KnownAnswers,
) -> Result<Option<Check>, TaskError> {
    let references = fuzzy(target)?.unwrap_or_default();
    let checks = references.split(OR).map(|reference| {
        let expected = Value::from(references);
        let check = |fits| Check::of("program_html", "fuzzy_match", "", expected.clone(), Value::Null, fits);
        match text {
            None => check(false),
            Some(text) if words::same(reference, text) => check(true),
            Some(text) => {
                let said = told.ask(&meaning(&context.intent, reference, text));
                strings::judged(context, "fuzzy_match", &expected, &said)
            }
        }
    });
    Ok(best(checks.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arenad_verdict::Verdict;

    #[test]
    fn one_alternative_is_enough() {
        let of = |verdict| Check { verdict, ..Check::of("program_html", "", "", Value::Null, Value::Null, false) };
        let all = [Verdict::Failed, Verdict::NeedsJudge, Verdict::Passed].map(of).to_vec();
        assert_eq!(best(all).map(|check| check.verdict), Some(Verdict::Passed));
    }
}
