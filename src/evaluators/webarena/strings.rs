//! `string_match`: the agent's answer against reference answers.
//!
//! Source: web-arena-x/webarena `evaluation_harness/evaluators.py`, class `StringEvaluator`.

use serde_json::Value;

use super::task::{Eval, TaskError, text_of};
use super::{Context, Told};
use crate::evaluators::question::{Answer, Comparison, Question, Sameness};
use crate::evaluators::text::{python, word_tokenize};
use crate::evaluators::verdict::{Check, Verdict};

/// Without white space around it and one pair of quotes, in lower case.
#[must_use]
pub fn clean_answer(answer: &str) -> String {
    let answer = python::strip(answer);
    let unquoted = |quote: char| answer.strip_prefix(quote).map(|rest| rest.strip_suffix(quote).unwrap_or_default());
    // One quote alone is its own pair: Python's slice of it is empty.
    let both = |quote: char| answer.starts_with(quote) && answer.ends_with(quote);
    let inner = if both('\'') {
        unquoted('\'')
    } else if both('"') {
        unquoted('"')
    } else {
        None
    };
    inner.unwrap_or(answer).to_lowercase()
}

/// Whether answer and reference are the same when cleaned.
#[must_use]
pub fn exact_match(reference: &str, answer: &str) -> bool {
    clean_answer(answer) == clean_answer(reference)
}

/// Whether the cleaned answer contains the cleaned reference. With `tokenize`, a reference of one character must be a word
/// of the answer, lest `0` is found in `10`.
#[must_use]
pub fn must_include(reference: &str, answer: &str, tokenize: bool) -> bool {
    let reference = clean_answer(reference);
    let answer = clean_answer(answer);
    let is_one_word = tokenize && reference.chars().count() == 1 && word_tokenize(&reference).len() == 1;
    if is_one_word { word_tokenize(&answer).contains(&reference) } else { answer.contains(&reference) }
}

/// What a judge has to be asked.
pub(super) fn questions(context: &Context, eval: &Eval) -> Result<Vec<Question>, TaskError> {
    match eval.reference_answers.get("fuzzy_match") {
        Some(Value::String(reference)) if reference == "N/A" => {
            let is_settled = exact_match("N/A", &context.answer);
            let question = Question::Judge(comparison(context, Sameness::Reason, &eval.string_note));
            Ok(if is_settled { Vec::new() } else { vec![question] })
        }
        Some(Value::Array(references)) => references
            .iter()
            .map(|reference| {
                let text = text_of("reference_answers.fuzzy_match", reference)?;
                Ok(Question::Judge(comparison(context, Sameness::Answer, text)))
            })
            .collect(),
        _ => Ok(Vec::new()),
    }
}

/// Judges an answer. The entries of `reference_answers` all have to hold; unknown ones do not count.
///
/// # Errors
///
/// When an entry has a shape on which the benchmark's own code fails.
pub fn string_match(context: &Context, eval: &Eval, told: &Told) -> Result<Vec<Check>, TaskError> {
    let mut checks = Vec::new();
    for (rule, expected) in &eval.reference_answers {
        match (rule.as_str(), expected) {
            ("exact_match", Value::String(reference)) => {
                checks.push(check(context, rule, expected, exact_match(reference, &context.answer)));
            }
            ("must_include", Value::Array(references)) => {
                // One reference alone is looked for as a word.
                let tokenize = references.len() == 1;
                for reference in references {
                    let text = text_of("reference_answers.must_include", reference)?;
                    checks.push(check(context, rule, reference, must_include(text, &context.answer, tokenize)));
                }
            }
            ("fuzzy_match", Value::String(reference)) if reference == "N/A" => {
                checks.push(not_achievable(context, eval, told));
            }
            ("fuzzy_match", Value::Array(references)) => {
                for reference in references {
                    let text = text_of("reference_answers.fuzzy_match", reference)?;
                    let comparison = comparison(context, Sameness::Answer, text);
                    checks.push(judged(context, rule, reference, &told.ask(&Question::Judge(comparison))));
                }
            }
            ("exact_match" | "must_include" | "fuzzy_match", other) => {
                return Err(TaskError::new(format!("reference_answers.{rule}"), "a text or a list of texts", other));
            }
            _ => {}
        }
    }
    Ok(checks)
}

/// The answer "N/A" does; otherwise the reason given must be the actual one.
fn not_achievable(context: &Context, eval: &Eval, told: &Told) -> Check {
    let expected = Value::from("N/A");
    if exact_match("N/A", &context.answer) {
        return check(context, "fuzzy_match", &expected, true);
    }
    let comparison = comparison(context, Sameness::Reason, &eval.string_note);
    judged(context, "fuzzy_match", &expected, &told.ask(&Question::Judge(comparison)))
}

fn comparison(context: &Context, kind: Sameness, reference: &str) -> Comparison {
    Comparison {
        kind,
        intent: context.intent.clone(),
        reference: reference.to_owned(),
        answer: clean_answer(&context.answer),
    }
}

fn check(context: &Context, rule: &str, expected: &Value, fits: bool) -> Check {
    Check::of("string_match", rule, "answer", expected.clone(), Value::from(context.answer.as_str()), fits)
}

fn judged(context: &Context, rule: &str, expected: &Value, answer: &Answer) -> Check {
    let open = |verdict, reason: &str| Check {
        verdict,
        reason: Some(reason.to_owned()),
        ..check(context, rule, expected, false)
    };
    match answer {
        Answer::Value(Value::Bool(same)) => check(context, rule, expected, *same),
        Answer::Value(other) => open(Verdict::Inconclusive, &format!("the judge said {other}")),
        Answer::Unavailable(reason) => open(Verdict::NeedsJudge, reason),
        Answer::Threw(reason) => open(Verdict::Inconclusive, reason),
        Answer::Unsupported(reason) => open(Verdict::Unsupported, reason),
    }
}
