//! Judges a stored trajectory under a profile.

use std::borrow::Cow;

use arenad_verdict::question::{KnownAnswers, Question, open};
use arenad_verdict::{Check, Profile, Report, Verdict, excerpt};
use serde::Serialize;
use serde_json::{Value, json};

use super::progress::{Open, Progress};
use super::scores::{ALPHA, alignment_score, finish_task_score, task_length_score};
use super::task::{KeyNode, NodeRule, WebCanvasTask};
use super::trajectory::Trajectory;

/// The measures of one task.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measures {
    /// Sum of the scores of the key nodes.
    pub reached: f64,
    /// Number of key nodes.
    pub nodes: usize,
    /// Number of steps that were compared.
    pub steps: usize,
    /// `finished`, `llm_finished` or `step_limit`, by the published rules.
    pub status: &'static str,
    /// After each step, `reached / all`.
    pub scores: Vec<String>,
    /// Steps for each point; absent without a point.
    pub efficiency: Option<f64>,
    /// 1 if the agent took less than 1.2 times as many steps as the recording, else their ratio.
    pub task_length_score: Option<f64>,
    /// 1 if every node is reached.
    pub finish_task_score: f64,
    /// The human alignment score of the paper.
    pub alignment: Option<f64>,
    /// Cost of the agent's tokens in US dollars.
    pub cost_usd: f64,
}

/// The steps as a profile sees them. The published code looks at the state before each action; strict looks at the state
/// after the last one as well.
fn walk<'a>(
    task: &'a WebCanvasTask,
    trajectory: &Trajectory,
    told: &KnownAnswers,
    profile: Profile,
) -> (Progress<'a>, Vec<String>, Vec<String>) {
    let is_strict = profile == Profile::Strict;
    let mut progress = if is_strict { Progress::strict(&task.nodes) } else { Progress::new(&task.nodes) };
    let (mut scores, mut raised) = (Vec::new(), Vec::new());
    for (at, step) in trajectory.steps.iter().enumerate() {
        // The agent stops as soon as every node is reached.
        if at > 0 && progress.is_finished() {
            break;
        }
        if let Err(error) = progress.see(step, told) {
            raised.push(format!("step {}: {error}", at + 1));
        }
        scores.push(format!("{} / {}", progress.total(), task.nodes.len()));
    }
    if let (true, Some(last)) = (is_strict && !progress.is_finished(), &trajectory.after) {
        // The strict rules raise nothing.
        let _ = progress.see(last, told);
        if let Some(score) = scores.last_mut() {
            *score = format!("{} / {}", progress.total(), task.nodes.len());
        }
    }
    (progress, scores, raised)
}

/// Returns the questions for a judge that are still open.
#[must_use]
pub fn questions(
    task: &WebCanvasTask,
    trajectory: &Trajectory,
    told: &KnownAnswers,
    profile: Profile,
) -> Vec<Question> {
    let (progress, _, _) = walk(task, trajectory, told, profile);
    let asked = (0..task.nodes.len()).filter_map(|node| match progress.open(node) {
        Some(Open::Judge(_, question, _)) => Some((**question).clone()),
        _ => None,
    });
    open(asked.collect(), told)
}

/// Judges a trajectory: each key node is a check, and the task passes if all are reached. The score is the share of the
/// nodes that are reached.
#[must_use]
pub fn evaluate(task: &WebCanvasTask, trajectory: &Trajectory, told: &KnownAnswers, profile: Profile) -> Report {
    let (progress, _, raised) = walk(task, trajectory, told, profile);
    let mut checks: Vec<Check> =
        task.nodes.iter().enumerate().map(|(at, node)| check(node, at, &progress, &raised, profile)).collect();
    if profile == Profile::Strict {
        for function in &task.left_out {
            let reason = "the benchmark does not know this match function and leaves the node out";
            checks.push(Check::open("key_node", function, "", Value::Null, Verdict::Unsupported, reason));
        }
        if checks.is_empty() {
            let reason = "the task has no key node, so that it cannot be failed";
            checks.push(Check::open("key_node", "all", "", Value::Null, Verdict::Unsupported, reason));
        }
    }
    let mut report = Report::of(profile, checks);
    if report.score.is_some() && !task.nodes.is_empty() {
        #[expect(clippy::cast_precision_loss, reason = "a task has few nodes")]
        let nodes = task.nodes.len() as f64;
        report.score = Some(progress.total() / nodes);
    }
    report
}

/// Returns the measures of a task under a profile.
#[must_use]
pub fn measures(task: &WebCanvasTask, trajectory: &Trajectory, told: &KnownAnswers, profile: Profile) -> Measures {
    let (progress, scores, _) = walk(task, trajectory, told, profile);
    let (reached, steps) = (progress.total(), scores.len());
    #[expect(clippy::cast_precision_loss, reason = "a task has few steps and nodes")]
    let (count, nodes) = (steps as f64, task.nodes.len() as f64);
    let status = match (progress.is_finished(), trajectory.declared_done) {
        (true, _) => "finished",
        (false, true) => "llm_finished",
        (false, false) => "step_limit",
    };
    Measures {
        reached,
        nodes: task.nodes.len(),
        steps,
        status,
        scores,
        efficiency: (reached > 0.0).then(|| count / reached),
        task_length_score: task_length_score(task.reference_length, count, ALPHA).ok(),
        finish_task_score: finish_task_score(nodes, reached),
        alignment: (nodes > 0.0).then(|| alignment_score(reached, nodes, trajectory.declared_done)),
        cost_usd: trajectory.cost_usd,
    }
}

fn check(node: &KeyNode, at: usize, progress: &Progress<'_>, raised: &[String], profile: Profile) -> Check {
    let place = match progress.reached_at(at) {
        Some(step) => format!("node {}, step {}", at + 1, step + 1),
        None => format!("node {}", at + 1),
    };
    let score = progress.scores()[at];
    let found = progress.found(at).map(excerpt);
    let (verdict, reason) = match progress.open(at) {
        _ if score >= 1.0 => (Verdict::Passed, None),
        Some(Open::Judge(verdict, _, reason)) => (*verdict, Some(reason.clone())),
        Some(Open::Html) => (Verdict::Inconclusive, Some("the trajectory lacks the HTML of the page".to_owned())),
        None if profile == Profile::Strict && node.rule() == NodeRule::Unknown => (
            Verdict::Unsupported,
            Some("the benchmark has no such match, so that the node cannot be reached".to_owned()),
        ),
        None if profile == Profile::Strict && node.reference.is_empty() => {
            (Verdict::Unsupported, Some("an empty reference is part of everything".to_owned()))
        }
        None if score > 0.0 => (Verdict::Failed, Some(format!("the judge gave {score}"))),
        None => (Verdict::Failed, raised.first().cloned()),
    };
    Check {
        name: None,
        evaluator: Cow::Borrowed("key_node"),
        rule: node.function.clone(),
        place,
        expected: json!(node.reference),
        found,
        verdict,
        reason,
        duration_ms: None,
        parts: Vec::new(),
    }
}
