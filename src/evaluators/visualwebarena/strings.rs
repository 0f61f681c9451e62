//! `string_match`: the agent's answer against reference answers.
//!
//! Source: web-arena-x/visualwebarena `evaluation_harness/evaluators.py`, class `StringEvaluator`.

use serde_json::Value;

use super::numbers;
use crate::evaluators::question::{Comparison, Question, Sameness, Told, Wording};
use crate::evaluators::text::{python, word_tokenize};
use crate::evaluators::verdict::{Check, Verdict};
use crate::evaluators::webarena::{Context, Eval, OR, TaskError, strings as webarena, text_of, texts_of};

/// Without one pair of quotes around it, in lower case. White space stays, other than in WebArena.
#[must_use]
pub fn clean_answer(answer: &str) -> String {
    python::unquote(answer).to_lowercase()
}

/// Whether answer and reference are the same when cleaned.
#[must_use]
pub fn exact_match(reference: &str, answer: &str) -> bool {
    clean_answer(answer) == clean_answer(reference)
}

/// Whether the cleaned answer contains the cleaned reference: as a word, if the reference is one.
#[must_use]
pub fn must_include(reference: &str, answer: &str) -> bool {
    let (reference, answer) = (clean_answer(reference), clean_answer(answer));
    if word_tokenize(&reference).len() == 1 {
        word_tokenize(&answer).contains(&reference)
    } else {
        answer.contains(&reference)
    }
}

/// Whether any of the references that ` |OR| ` separates is included.
#[must_use]
pub fn must_include_any(references: &str, answer: &str) -> bool {
    references.split(OR).any(|reference| must_include(reference, answer))
}

/// What a judge has to be asked.
pub(super) fn questions(context: &Context, eval: &Eval) -> Result<Vec<Question>, TaskError> {
    let answer = clean_answer(&context.answer);
    let asked = webarena::asked(eval, exact_match("N/A", &answer))?;
    Ok(asked.into_iter().map(|(kind, reference)| comparison(kind, &context.intent, reference, &answer)).collect())
}

/// What a judge is asked in this benchmark's words.
pub(super) fn comparison(kind: Sameness, intent: &str, reference: &str, answer: &str) -> Question {
    Question::Judge(Comparison {
        kind,
        wording: Wording::VisualWebArena,
        intent: intent.to_owned(),
        reference: reference.to_owned(),
        answer: answer.to_owned(),
    })
}

/// The answer as the rules see it: `required_values` makes a number of it for whatever comes after.
enum Heard {
    Text(String),
    Number(f64),
    /// It was to be a number, and is none.
    Nothing,
}

impl Heard {
    /// Python's `str()` of what is a text or a number.
    fn text(&self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.clone()),
            Self::Number(number) => Some(number.to_string()),
            Self::Nothing => None,
        }
    }
}

/// Judges an answer. The entries of `reference_answers` all have to hold; unknown ones do not count.
///
/// # Errors
///
/// When an entry has a shape on which the benchmark's own code fails.
pub fn string_match(context: &Context, eval: &Eval, told: &Told) -> Result<Vec<Check>, TaskError> {
    let mut checks = Vec::new();
    let mut heard = Heard::Text(clean_answer(&context.answer));
    for (rule, expected) in &eval.reference_answers {
        let place = format!("reference_answers.{rule}");
        if rule == "required_values" {
            let inequalities = texts_of(&place, expected)?;
            // An answer that is a number already makes the benchmark's code fail here; no object has a key twice.
            let Heard::Text(text) = &heard else { continue };
            heard = numbers::whole(text).map_or(Heard::Nothing, Heard::Number);
            let Heard::Number(number) = heard else {
                checks.push(check(context, rule, expected, false));
                continue;
            };
            for inequality in inequalities {
                checks.push(check(context, rule, &inequality.into(), numbers::satisfies(number, inequality)?));
            }
            continue;
        }
        if !["exact_match", "must_include", "must_exclude", "one_of", "fuzzy_match"].contains(&rule.as_str()) {
            continue;
        }
        let text = match (&heard, rule.as_str()) {
            (Heard::Text(text), _) => text.clone(),
            (Heard::Number(_), "exact_match") => heard.text().unwrap_or_default(),
            _ => {
                let reason = "after required_values the benchmark's code has no text any more, and fails on this rule";
                let place = "answer";
                checks.push(Check::open("string_match", rule, place, expected.clone(), Verdict::Unsupported, reason));
                continue;
            }
        };
        match rule.as_str() {
            "exact_match" => {
                checks.push(check(context, rule, expected, exact_match(text_of(&place, expected)?, &text)));
            }
            "must_include" => {
                for references in texts_of(&place, expected)? {
                    checks.push(check(context, rule, &references.into(), must_include_any(references, &text)));
                }
            }
            "must_exclude" => {
                for reference in texts_of(&place, expected)? {
                    checks.push(check(context, rule, &reference.into(), !must_include(reference, &text)));
                }
            }
            "one_of" => {
                let references = texts_of(&place, expected)?;
                let fits = references.iter().any(|reference| text.contains(&clean_answer(reference)));
                checks.push(check(context, rule, expected, fits));
            }
            _ => fuzzy(context, eval, told, &text, expected, &mut checks)?,
        }
    }
    Ok(checks)
}

/// `fuzzy_match`: as in WebArena, in this benchmark's words.
fn fuzzy(
    context: &Context,
    eval: &Eval,
    told: &Told,
    answer: &str,
    expected: &Value,
    checks: &mut Vec<Check>,
) -> Result<(), TaskError> {
    let ask = |kind, reference: &str| told.ask(&comparison(kind, &context.intent, reference, answer));
    if expected == "N/A" {
        let gave_up = exact_match("N/A", answer);
        if gave_up && checks.iter().all(|check| check.verdict == Verdict::Passed) {
            checks.push(check(context, "fuzzy_match", expected, true));
            return Ok(());
        }
        // The judge's verdict takes the place of the score so far.
        checks.clear();
        let said = ask(Sameness::Reason, &eval.string_note);
        checks.push(webarena::judged(context, "fuzzy_match", expected, &said));
        return Ok(());
    }
    for reference in texts_of("reference_answers.fuzzy_match", expected)? {
        let said = ask(Sameness::Answer, reference);
        checks.push(webarena::judged(context, "fuzzy_match", &reference.into(), &said));
    }
    Ok(())
}

fn check(context: &Context, rule: &str, expected: &Value, fits: bool) -> Check {
    Check::of("string_match", rule, "answer", expected.clone(), Value::from(context.answer.as_str()), fits)
}
