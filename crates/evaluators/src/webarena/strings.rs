//! `string_match`: the agent's answer against reference answers.
//!
//! Source: web-arena-x/webarena `evaluation_harness/evaluators.py`, class `StringEvaluator`.

use serde_json::Value;

use super::EpisodeContext;
use super::task::{Eval, TaskError, text_of};
use crate::text::{Nltk, python, word_tokenize};
use arenad_verdict::question::{Answer, KnownAnswers, Question, Sameness, TextComparison, Wording};
use arenad_verdict::{Check, Verdict, unseen};

/// NLTK's version when the tasks were published; the package pins none.
const NLTK: Nltk = Nltk::V3_8_1;

/// Removes white space at both ends and one pair of quotes, and converts to lower case.
#[must_use]
pub fn clean_answer(answer: &str) -> String {
    python::unquote(python::strip(answer)).to_lowercase()
}

/// Whether the answer equals the reference after both have been cleaned.
#[must_use]
pub fn exact_match(reference: &str, answer: &str) -> bool {
    clean_answer(answer) == clean_answer(reference)
}

/// Whether the cleaned answer contains the cleaned reference. With `tokenize`, a reference of one character must be a
/// word of the answer, so that `0` is not found in `10`.
#[must_use]
pub fn must_include(reference: &str, answer: &str, tokenize: bool) -> bool {
    let reference = clean_answer(reference);
    let answer = clean_answer(answer);
    let is_one_word = tokenize && reference.chars().count() == 1 && word_tokenize(&reference, NLTK).len() == 1;
    if is_one_word { word_tokenize(&answer, NLTK).contains(&reference) } else { answer.contains(&reference) }
}

/// Returns the questions for a judge.
pub(crate) fn questions(context: &EpisodeContext, eval: &Eval) -> Result<Vec<Question>, TaskError> {
    let asked = asked(eval, exact_match("N/A", &clean_answer(&context.answer)))?;
    Ok(asked.into_iter().map(|(kind, reference)| Question::Judge(comparison(context, kind, reference))).collect())
}

/// Returns the references that only a judge can compare. VisualWebArena uses them, too.
pub(crate) fn asked(eval: &Eval, gave_up: bool) -> Result<Vec<(Sameness, &str)>, TaskError> {
    match eval.reference_answers.get("fuzzy_match") {
        Some(Value::String(reference)) if reference == "N/A" => {
            let before = eval.reference_answers.keys().next().is_some_and(|first| first != "fuzzy_match");
            // An earlier entry may have failed; then the judge is asked even if the agent gave up.
            let is_settled = !before && gave_up;
            Ok(if is_settled { Vec::new() } else { vec![(Sameness::Reason, eval.string_note.as_str())] })
        }
        Some(Value::Array(references)) => references
            .iter()
            .map(|reference| Ok((Sameness::Answer, text_of("reference_answers.fuzzy_match", reference)?)))
            .collect(),
        _ => Ok(Vec::new()),
    }
}

/// Judges an answer. All entries of `reference_answers` have to hold; unknown entries are ignored.
///
/// # Errors
///
/// Returns an error if an entry has a shape on which the benchmark's own code fails.
pub(crate) fn string_match(
    context: &EpisodeContext,
    eval: &Eval,
    told: &KnownAnswers,
) -> Result<Vec<Check>, TaskError> {
    let mut checks = Vec::new();
    // The rules clean the answer again and so remove a second pair of quotes.
    let answer = &clean_answer(&context.answer);
    for (rule, expected) in &eval.reference_answers {
        match (rule.as_str(), expected) {
            ("exact_match", Value::String(reference)) => {
                checks.push(check(context, rule, expected, exact_match(reference, answer)));
            }
            ("must_include", Value::Array(references)) => {
                // A single reference is searched for as a word.
                let tokenize = references.len() == 1;
                for reference in references {
                    let text = text_of("reference_answers.must_include", reference)?;
                    checks.push(check(context, rule, reference, must_include(text, answer, tokenize)));
                }
            }
            ("fuzzy_match", Value::String(reference)) if reference == "N/A" => {
                not_achievable(context, eval, told, &mut checks);
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

/// The answer "N/A" passes if all earlier checks passed. Otherwise the agent's reason must be the actual one, and the
/// earlier checks do not count: the benchmark's code overwrites the score with the judge's verdict.
fn not_achievable(context: &EpisodeContext, eval: &Eval, told: &KnownAnswers, checks: &mut Vec<Check>) {
    let expected = Value::from("N/A");
    let gave_up = exact_match("N/A", &clean_answer(&context.answer));
    if gave_up && checks.iter().all(|check| check.verdict == Verdict::Passed) {
        checks.push(check(context, "fuzzy_match", &expected, true));
        return;
    }
    let comparison = comparison(context, Sameness::Reason, &eval.string_note);
    checks.clear();
    checks.push(judged(context, "fuzzy_match", &expected, &told.ask(&Question::Judge(comparison))));
}

fn comparison(context: &EpisodeContext, kind: Sameness, reference: &str) -> TextComparison {
    TextComparison {
        kind,
        wording: Wording::WebArena,
        intent: context.intent.clone(),
        reference: reference.to_owned(),
        answer: clean_answer(&context.answer),
    }
}

fn check(context: &EpisodeContext, rule: &str, expected: &Value, fits: bool) -> Check {
    Check::of("string_match", rule, "answer", expected.clone(), Value::from(context.answer.as_str()), fits)
}

/// Returns the check that follows from a judge's answer.
pub(crate) fn judged(context: &EpisodeContext, rule: &str, expected: &Value, answer: &Answer) -> Check {
    if let Answer::Value(Value::Bool(same)) = answer {
        return check(context, rule, expected, *same);
    }
    let (verdict, reason) = match (unseen(answer), answer) {
        (Some((verdict, reason)), _) => (verdict, reason.to_owned()),
        (None, Answer::Threw(reason)) => (Verdict::Inconclusive, reason.clone()),
        (None, other) => (Verdict::Inconclusive, format!("the judge said {other:?}")),
    };
    Check { verdict, reason: Some(reason), ..check(context, rule, expected, false) }
}
