//! The measures over steps. Source: `evaluate_dataset` of `ActionEvaluatorMultiChoice`.

use std::collections::BTreeMap;

use serde::Serialize;

use super::text::{F1Version, calculate_f1, postprocess_action, target_action};
use crate::text::raised::Raised;

/// A candidate element of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The `backend_node_id` of the element.
    pub id: String,
    /// The place that the candidate generator gave it, from 0; `None` without a generator, which counts as the first.
    pub rank: Option<u64>,
    /// Whether acting on it is right.
    pub is_positive: bool,
}

/// A step of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedStep {
    /// Identifier of the task.
    pub task: String,
    /// Identifier of the action.
    pub action: String,
    /// Name of the website.
    pub website: String,
    /// `CLICK`, `TYPE` or `SELECT`.
    pub operation: String,
    /// The value that was typed or selected.
    pub value: String,
    /// The candidates, in the order of the document.
    pub candidates: Vec<Candidate>,
}

impl RecordedStep {
    fn within(&self, top_k: u64) -> impl Iterator<Item = &Candidate> {
        self.candidates.iter().filter(move |candidate| candidate.rank.unwrap_or_default() < top_k)
    }

    /// Returns whether a right candidate is among the best ones.
    #[must_use]
    pub fn has_positive(&self, top_k: u64) -> bool {
        self.within(top_k).any(|candidate| candidate.is_positive)
    }

    /// The operation and value that a prediction is compared with.
    #[must_use]
    pub fn target(&self) -> String {
        target_action(&self.operation, &self.value)
    }
}

/// The choice of a model for a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prediction {
    /// The `backend_node_id` of the chosen element; `None` for none of them.
    pub element: Option<String>,
    /// The operation and its value, such as `TYPE new york`.
    pub action: String,
}

impl Prediction {
    /// Builds a prediction from an operation and a value, as a reply in the published format would carry them.
    #[must_use]
    pub fn of(element: Option<&str>, operation: &str, value: Option<&str>) -> Self {
        let value = value.map(|value| format!("\nValue: {value}")).unwrap_or_default();
        let reply = postprocess_action(&format!("B.\nAction: {operation}{value}"));
        Self { element: element.map(str::to_owned), action: reply.map(|reply| reply.action).unwrap_or_default() }
    }
}

/// The score of a step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StepScore {
    /// 1 if the element is right.
    pub element: f64,
    /// F1 of the operation with its value.
    pub f1: f64,
    /// 1 if both are right.
    pub step: f64,
    /// Whether the published loop reaches the end of this step; it leaves steps without a right candidate early.
    #[serde(skip)]
    is_counted: bool,
}

/// Judges a step. Without a choice, with one candidate in all, and without a right candidate, every measure is 0.
#[must_use]
pub fn score_step(step: &RecordedStep, prediction: Option<&Prediction>, top_k: u64) -> StepScore {
    let is_counted = step.has_positive(top_k);
    let nothing = StepScore { element: 0.0, f1: 0.0, step: 0.0, is_counted };
    let choices = step.within(top_k).count();
    let chosen = prediction.and_then(|prediction| Some((prediction.element.as_ref()?, &prediction.action)));
    let (Some((id, action)), true) = (chosen, is_counted && choices > 1) else { return nothing };
    // The model is offered the candidates only, so it cannot choose another element.
    let Some(candidate) = step.within(top_k).find(|candidate| candidate.id == *id) else { return nothing };
    let is_positive = step.within(top_k).any(|other| other.id == candidate.id && other.is_positive);
    let element = if is_positive { 1.0 } else { 0.0 };
    let f1 = calculate_f1(action, &step.target(), F1Version::MultipleChoice);
    let step = if element >= 1.0 && f1 >= 1.0 { 1.0 } else { 0.0 };
    StepScore { element, f1, step, is_counted }
}

/// The measures of a run. The macro ones are named as in the published files, which spell them `marco`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunScores {
    /// Share of steps with the right element.
    pub element_acc: f64,
    /// Mean F1 of the operations.
    pub action_f1: f64,
    /// Share of steps that are right.
    pub step_acc: f64,
    /// Mean over tasks of the element accuracy.
    pub marco_element_acc: f64,
    /// Mean over tasks of the F1.
    pub marco_action_f1: f64,
    /// Mean over tasks of the step success, which the paper reports.
    pub marco_step_acc: f64,
    /// Share of tasks by their number of wrong steps: `0` is the task success.
    pub error_ratio: BTreeMap<String, f64>,
    /// By website, the mean over tasks of the step success, and the number of tasks.
    pub acc_per_website: BTreeMap<String, (f64, usize)>,
}

/// Which steps the macro measures are over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MacroSteps {
    /// Those before the last step with a right candidate, that step included, as in the published code: it computes the
    /// macro measures within its loop, after the early end of steps without one.
    UpToLastCounted,
    /// All steps of the run.
    All,
}

/// `evaluate_dataset` on scored steps.
///
/// # Errors
///
/// Returns an error if no step has a right candidate, as Python raises, or without steps.
pub fn summarize(steps: &[(&RecordedStep, StepScore)], over: MacroSteps) -> Result<RunScores, Raised> {
    let length = match over {
        MacroSteps::All => steps.len(),
        MacroSteps::UpToLastCounted => steps.iter().rposition(|(_, score)| score.is_counted).map_or(0, |last| last + 1),
    };
    if length == 0 {
        return Err(Raised::new("UnboundLocalError", "no step has a right candidate".to_owned()));
    }
    let mut tasks: Vec<(&str, &str, Vec<StepScore>)> = Vec::new();
    for (step, score) in &steps[..length] {
        match tasks.iter_mut().find(|(task, _, _)| *task == step.task) {
            Some((_, _, scores)) => scores.push(*score),
            None => tasks.push((&step.task, &step.website, vec![*score])),
        }
    }
    // A task's website is that of its last step.
    for (task, website, _) in &mut tasks {
        if let Some((step, _)) = steps[..length].iter().rev().find(|(step, _)| step.task == *task) {
            *website = &step.website;
        }
    }
    let micro = |of: fn(&StepScore) -> f64| mean(steps.iter().map(|(_, score)| of(score)));
    let over_tasks = |of: fn(&StepScore) -> f64| mean(tasks.iter().map(|(_, _, scores)| mean(scores.iter().map(of))));
    let (mut error_ratio, mut websites): (BTreeMap<String, f64>, BTreeMap<String, Vec<f64>>) = Default::default();
    #[expect(clippy::cast_precision_loss, reason = "a run has few tasks")]
    let share = 1.0 / tasks.len() as f64;
    for (_, website, scores) in &tasks {
        let wrong = scores.iter().filter(|score| score.step == 0.0).count();
        let name = if wrong <= 3 { wrong.to_string() } else { ">3".to_owned() };
        *error_ratio.entry(name).or_default() += share;
        websites.entry((*website).to_owned()).or_default().push(mean(scores.iter().map(|score| score.step)));
    }
    Ok(RunScores {
        element_acc: micro(|score| score.element),
        action_f1: micro(|score| score.f1),
        step_acc: micro(|score| score.step),
        marco_element_acc: over_tasks(|score| score.element),
        marco_action_f1: over_tasks(|score| score.f1),
        marco_step_acc: over_tasks(|score| score.step),
        error_ratio,
        acc_per_website: websites
            .into_iter()
            .map(|(website, scores)| (website, (mean(scores.iter().copied()), scores.len())))
            .collect(),
    })
}

/// The mean; 0 of nothing.
fn mean(numbers: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = numbers.fold((0.0, 0.0), |(sum, count), number| (sum + number, count + 1.0));
    if count > 0.0 { sum / count } else { 0.0 }
}

/// The share of steps with a right candidate among the best ones, by their number, and with the best one right.
#[must_use]
pub fn recall_caps(steps: &[&RecordedStep]) -> BTreeMap<String, f64> {
    let share = |k: u64| mean(steps.iter().map(|step| f64::from(u8::from(step.has_positive(k)))));
    let caps = [5, 10, 20, 50].map(|k| (format!("recall@{k}"), share(k)));
    caps.into_iter().chain([("acc".to_owned(), share(1))]).collect()
}
