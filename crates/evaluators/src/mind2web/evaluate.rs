//! Judges the predictions for one task.

use std::borrow::Cow;
use std::collections::BTreeMap;

use arenad_verdict::{Check, Profile, Report, Verdict};
use serde_json::{Value, json};

use super::steps::{Prediction, RecordedStep, StepScore, score_step};
use super::task::Mind2WebTask;
use crate::text::python;

/// Judges a task: each step is a check, and the task passes if all steps do. The score is the share of right steps.
#[must_use]
pub fn evaluate(
    task: &Mind2WebTask,
    predictions: &BTreeMap<String, Prediction>,
    top_k: u64,
    profile: Profile,
) -> Report {
    let mut checks = Vec::new();
    for (at, step) in task.steps.iter().enumerate() {
        let prediction = predictions.get(&step.action);
        let score = score_step(step, prediction, top_k);
        checks.push(match profile {
            Profile::Compat => compat(step, at, prediction, score, top_k),
            Profile::Strict => strict(step, at, prediction, top_k),
        });
    }
    let passed = checks.iter().filter(|check| check.verdict == Verdict::Passed).count();
    let decided = checks.iter().filter(|check| matches!(check.verdict, Verdict::Passed | Verdict::Failed)).count();
    let mut report = Report::of(profile, checks);
    if report.score.is_some() && decided > 0 {
        #[expect(clippy::cast_precision_loss, reason = "a task has few steps")]
        let share = passed as f64 / decided as f64;
        report.score = Some(share);
    }
    report
}

fn compat(step: &RecordedStep, at: usize, prediction: Option<&Prediction>, score: StepScore, top_k: u64) -> Check {
    let reason = if score.step >= 1.0 {
        None
    } else if !step.has_positive(top_k) {
        Some(format!("no right element is among the first {top_k} candidates, which fails the step"))
    } else if prediction.and_then(|prediction| prediction.element.as_ref()).is_none() {
        Some("no element was chosen".to_owned())
    } else {
        Some(format!("element {}, F1 of the operation {:.4}", score.element, score.f1))
    };
    check(step, at, prediction, if score.step >= 1.0 { Verdict::Passed } else { Verdict::Failed }, reason)
}

/// By the strict rules, a step without a right element is not the agent's fault, the words of a value have to be in
/// order, a click needs no value, and an element that is the only candidate can be chosen.
fn strict(step: &RecordedStep, at: usize, prediction: Option<&Prediction>, top_k: u64) -> Check {
    if !step.candidates.iter().any(|candidate| candidate.is_positive) {
        let reason = "the data have no right element for this step";
        return check(step, at, prediction, Verdict::Unsupported, Some(reason.to_owned()));
    }
    if !step.has_positive(top_k) {
        let reason = format!("no right element is among the first {top_k} candidates");
        return check(step, at, prediction, Verdict::Failed, Some(reason));
    }
    let Some((element, action)) =
        prediction.and_then(|prediction| Some((prediction.element.as_deref()?, prediction.action.as_str())))
    else {
        return check(step, at, prediction, Verdict::Failed, Some("no element was chosen".to_owned()));
    };
    let is_right = |candidate: &super::Candidate| candidate.id == element && candidate.is_positive;
    if !step.candidates.iter().any(is_right) {
        return check(step, at, prediction, Verdict::Failed, Some("another element was chosen".to_owned()));
    }
    let words = |text: &str| python::split(text).map(str::to_owned).collect::<Vec<_>>();
    let (own, expected) = (words(action), words(&step.target()));
    let is_same = if expected.first().is_some_and(|word| word == "CLICK") {
        own.first() == expected.first()
    } else {
        own == expected
    };
    let reason = (!is_same).then(|| "another operation or value".to_owned());
    check(step, at, prediction, if is_same { Verdict::Passed } else { Verdict::Failed }, reason)
}

fn check(
    step: &RecordedStep,
    at: usize,
    prediction: Option<&Prediction>,
    verdict: Verdict,
    reason: Option<String>,
) -> Check {
    let right: Vec<&str> = step
        .candidates
        .iter()
        .filter(|candidate| candidate.is_positive)
        .map(|candidate| candidate.id.as_str())
        .collect();
    let found = prediction.map(|prediction| json!({ "element": prediction.element, "action": prediction.action }));
    Check {
        name: None,
        evaluator: Cow::Borrowed("step"),
        rule: step.operation.clone(),
        place: format!("step {}", at + 1),
        expected: json!({ "elements": right, "action": step.target() }),
        found: Some(found.unwrap_or(Value::Null)),
        verdict,
        reason,
        duration_ms: None,
        parts: Vec::new(),
    }
}
