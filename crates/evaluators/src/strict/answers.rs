//! `string_match`: the agent's answer.

use serde_json::Value;

use super::hedges::Claim;
use super::leniency::Leniency;
use super::said::Said;
use super::{BenchmarkDialect, numbers, void, words};
use crate::webarena::{EpisodeContext, Eval, OR, TaskError, strings, text_of, texts_of};
use arenad_verdict::question::{KnownAnswers, Question, Sameness, TextComparison, Wording};
use arenad_verdict::{Check, Verdict};

/// Returns the questions that only a judge can decide.
pub(super) fn questions(context: &EpisodeContext, eval: &Eval) -> Result<Vec<Question>, TaskError> {
    let Some(expected) = eval.reference_answers.get("fuzzy_match") else { return Ok(Vec::new()) };
    let asked = match Fuzzy::of(context, eval, expected)? {
        Fuzzy::Reason => vec![reason(context, eval)],
        Fuzzy::Answers(references) => references
            .into_iter()
            .filter(|reference| settled(context, reference).is_none())
            .map(|reference| meaning(&context.intent, reference, &context.answer))
            .collect(),
        Fuzzy::GaveUp(_) => Vec::new(),
    };
    Ok(asked)
}

/// Judges an answer: every entry of `reference_answers` has to be known and has to hold.
pub(super) fn string_match(
    context: &EpisodeContext,
    eval: &Eval,
    told: &KnownAnswers,
    dialect: &BenchmarkDialect,
) -> Result<Vec<Check>, TaskError> {
    let answer = context.answer.as_str();
    let said = Said::of(answer, &context.intent);
    let check = |rule: &str, expected: Value, fits| {
        Check::of("string_match", rule, "answer", expected, Value::from(answer), fits)
    };
    let mut checks = Vec::new();
    for (rule, expected) in &eval.reference_answers {
        let place = format!("reference_answers.{rule}");
        match rule.as_str() {
            "exact_match" => {
                let reference = text_of(&place, expected)?;
                checks.push(required(rule, reference, |reference| {
                    let leniency = said.is(reference);
                    let made = check(rule, reference.into(), leniency.is_some());
                    accepted(made, leniency.filter(|_| !(dialect.is)(reference, answer)))
                }));
            }
            "must_include" => {
                let references = texts_of(&place, expected)?;
                let is_alone = references.len() == 1;
                let claim = Claim::new(answer, &context.intent, references.iter().map(|any| any.split(OR).collect()));
                let fits = |any: &str| any.split(OR).any(|reference| said.says(reference).is_some());
                let hedge = references.iter().all(|any| fits(any)).then(|| claim.hedge()).flatten();
                let published = |reference: &str| (dialect.includes)(reference, answer, is_alone);
                checks.extend(references.iter().map(|references| {
                    required(rule, references, |any| match &hedge {
                        Some(hedge) => Check { reason: Some(hedge.clone()), ..check(rule, any.into(), false) },
                        None => {
                            let fit = best_of(any.split(OR).filter_map(|one| Some((said.says(one)?, published(one)))));
                            accepted(check(rule, any.into(), fit.is_some()), fit.flatten())
                        }
                    })
                }));
            }
            "must_exclude" => checks.extend(texts_of(&place, expected)?.into_iter().map(|references| {
                // An empty answer does not show that the agent excluded anything.
                let fits = !answer.trim().is_empty() && !words::says_any(answer, references);
                required(rule, references, |any| check(rule, any.into(), fits))
            })),
            "one_of" => {
                let references = texts_of(&place, expected)?;
                let alternatives: Vec<&str> = references.iter().flat_map(|reference| reference.split(OR)).collect();
                let says = |reference: &&str| {
                    Some((said.says(reference)?, words::fold(answer).contains(&words::fold(reference))))
                };
                let fit = best_of(alternatives.iter().filter_map(says));
                let claim = Claim::new(answer, &context.intent, [alternatives].into_iter());
                checks.push(match fit.and_then(|_| claim.hedge()) {
                    Some(hedge) => Check { reason: Some(hedge), ..check(rule, expected.clone(), false) },
                    None => accepted(check(rule, expected.clone(), fit.is_some()), fit.flatten()),
                });
            }
            "required_values" => checks.extend(
                texts_of(&place, expected)?.into_iter().map(|bounds| bounded(rule, bounds, number(answer), &check)),
            ),
            "fuzzy_match" => checks.extend(fuzzy(context, eval, told, expected)?),
            _ => checks.push(void("string_match", rule, expected, "unknown rule")),
        }
    }
    Ok(checks)
}

/// Returns the least leniency that accepts an alternative, or `Some(None)` if the published rule accepts one. `fits`
/// contains the alternatives that fit, each with its leniency and whether the published rule accepts it. Returns `None`
/// if it is empty.
fn best_of(fits: impl Iterator<Item = (Leniency, bool)>) -> Option<Option<Leniency>> {
    fits.map(|(leniency, is_published)| (!is_published).then_some(leniency)).min()
}

/// Makes the leniency the reason of a check that has passed.
fn accepted(check: Check, leniency: Option<Leniency>) -> Check {
    match leniency {
        Some(leniency) if check.verdict == Verdict::Passed => Check { reason: Some(leniency.reason()), ..check },
        _ => check,
    }
}

/// Makes a check of a reference. An empty reference is unsupported, because every text contains it.
pub(super) fn required(rule: &str, reference: &str, check: impl FnOnce(&str) -> Check) -> Check {
    if reference.split(OR).any(|reference| reference.trim().is_empty()) {
        return void("string_match", rule, &reference.into(), "an empty reference is part of every text");
    }
    check(reference)
}

/// Makes a check of inequalities, of which the value has to satisfy at least one. A missing value satisfies none.
pub(super) fn bounded(
    rule: &str,
    inequalities: &str,
    value: Option<f64>,
    check: &impl Fn(&str, Value, bool) -> Check,
) -> Check {
    let satisfied = |inequality| numbers::satisfies(value.unwrap_or(f64::NAN), inequality);
    match inequalities.split(OR).map(satisfied).collect::<Option<Vec<bool>>>() {
        Some(fits) => check(rule, inequalities.into(), fits.contains(&true)),
        None => void("required_values", rule, &inequalities.into(), "invalid inequality"),
    }
}

/// Returns the number in a text, or `None` if it contains none or several.
pub(super) fn number(text: &str) -> Option<f64> {
    match &numbers::amounts(&words::fold(text))[..] {
        [amount] => Some(amount.value()),
        _ => None,
    }
}

/// The requirement of `fuzzy_match`.
enum Fuzzy<'a> {
    /// The task is impossible, and the agent has to state the actual reason.
    Reason,
    /// The task is impossible, and no judge is needed. The value is whether the answer passes.
    GaveUp(bool),
    /// Texts with all of which the answer has to agree in meaning.
    Answers(Vec<&'a str>),
}

impl<'a> Fuzzy<'a> {
    fn of(context: &EpisodeContext, eval: &Eval, expected: &'a Value) -> Result<Self, TaskError> {
        if expected != "N/A" {
            return texts_of("reference_answers.fuzzy_match", expected).map(Self::Answers);
        }
        let gave_up = words::same("N/A", &context.answer);
        let has_reason = !eval.string_note.trim().is_empty();
        Ok(match (has_reason, gave_up || context.answer.trim().is_empty()) {
            (true, false) => Self::Reason,
            // An agent that always answers "N/A" must not pass where the reason is known.
            (true, true) => Self::GaveUp(false),
            (false, _) => Self::GaveUp(gave_up),
        })
    }
}

fn fuzzy(
    context: &EpisodeContext,
    eval: &Eval,
    told: &KnownAnswers,
    expected: &Value,
) -> Result<Vec<Check>, TaskError> {
    let rule = "fuzzy_match";
    let check = |expected: Value, fits| {
        Check::of("string_match", rule, "answer", expected, context.answer.as_str().into(), fits)
    };
    Ok(match Fuzzy::of(context, eval, expected)? {
        Fuzzy::GaveUp(fits) => {
            let why = (!fits).then(|| "it does not say why the task cannot be done".to_owned());
            vec![Check { reason: why, ..check(expected.clone(), fits) }]
        }
        Fuzzy::Reason => {
            let said = told.ask(&reason(context, eval));
            vec![strings::judged(context, rule, &eval.string_note.as_str().into(), &said)]
        }
        Fuzzy::Answers(references) => references
            .into_iter()
            .map(|reference| match settled(context, reference) {
                Some(fits) => check(reference.into(), fits),
                None => {
                    let said = told.ask(&meaning(&context.intent, reference, &context.answer));
                    strings::judged(context, rule, &reference.into(), &said)
                }
            })
            .collect(),
    })
}

/// Decides without a judge if possible: an empty answer fails, and an answer equal to the reference passes.
fn settled(context: &EpisodeContext, reference: &str) -> Option<bool> {
    if context.answer.trim().is_empty() {
        return Some(false);
    }
    Said::of(&context.answer, &context.intent).is(reference).map(|_| true)
}

fn reason(context: &EpisodeContext, eval: &Eval) -> Question {
    let EpisodeContext { intent, answer, .. } = context;
    ask(Sameness::Reason, intent, &eval.string_note, answer)
}

/// Returns the question whether an answer means the same as a reference.
pub(super) fn meaning(intent: &str, reference: &str, answer: &str) -> Question {
    ask(Sameness::Answer, intent, reference, answer)
}

fn ask(kind: Sameness, intent: &str, reference: &str, answer: &str) -> Question {
    Question::Judge(TextComparison {
        kind,
        wording: Wording::Strict,
        intent: intent.to_owned(),
        reference: reference.to_owned(),
        answer: answer.trim().to_owned(),
    })
}

/// Returns the best of several checks, for alternatives of which one is enough.
pub(super) fn best(checks: Vec<Check>) -> Option<Check> {
    let rank = |check: &Check| match check.verdict {
        Verdict::Passed => 0,
        Verdict::NeedsJudge => 1,
        Verdict::Inconclusive => 2,
        Verdict::Unsupported => 3,
        Verdict::Failed => 4,
    };
    checks.into_iter().min_by_key(rank)
}
