//! The measures over steps and tasks. Source: `evaluate/task_score.py` and `experiment_results.py`; the alignment score
//! is the paper's alone.

use serde::Serialize;

use super::Raised;
use crate::text::numbers::float;

/// The factor by which an agent may take more steps than the recording.
pub const ALPHA: f64 = 1.2;

/// `task_length_score`: 1 below `alpha` times the reference, else their ratio.
///
/// # Errors
///
/// Returns an error if both lengths are 0, as Python raises.
pub fn task_length_score(reference: f64, current: f64, alpha: f64) -> Result<f64, Raised> {
    let allowed = reference * alpha;
    if current < allowed {
        return Ok(1.0);
    }
    if current == 0.0 { Err(Raised::new("ZeroDivisionError", "no step".to_owned())) } else { Ok(allowed / current) }
}

/// `finish_task_score`: 1 if the sum of the scores is the number of nodes.
#[must_use]
#[expect(clippy::float_cmp, reason = "the published code compares with ==")]
pub fn finish_task_score(nodes: f64, total: f64) -> f64 {
    if nodes == total { 1.0 } else { 0.0 }
}

/// The human alignment score of the paper.
#[must_use]
pub fn alignment_score(reached: f64, nodes: f64, declared: bool) -> f64 {
    match (reached >= nodes, declared) {
        (true, true) => 1.0,
        (true, false) => 0.95,
        (false, true) => reached / nodes,
        (false, false) => 0.8 * reached / nodes,
    }
}

/// One task of a run, as its result file records it.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskScores {
    /// The `status`, of which `finished` counts.
    pub status: String,
    /// After each step, the score in the form `reached / all`.
    pub scores: Vec<String>,
}

/// The measures of a run; the names are those of `result.json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunScores {
    /// Number of tasks in the run.
    pub task_counts: usize,
    /// Mean over tasks of the share of nodes that were reached.
    pub average_step_score_rate: f64,
    /// Mean over tasks of the steps for each point; 0 for a task without points.
    pub average_efficiency_score: f64,
    /// Cost for each point; absent without a cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd_efficiency_score: Option<f64>,
    /// Share of all nodes that were reached, the paper's completion rate.
    pub key_node_completion_rate: f64,
    /// Share of tasks with the status `finished`.
    pub task_success_rate: f64,
    /// Share of tasks that lack exactly one node.
    pub task_near_success_rate: f64,
}

/// `evaluate` of `experiment_results.py`.
///
/// # Errors
///
/// Returns an error if the published code raises: without tasks or steps, and for tasks without nodes.
pub fn summarize(tasks: &[TaskScores], cost: f64) -> Result<RunScores, Raised> {
    let nothing = |what: &str| Raised::new("KeyError", what.to_owned());
    if tasks.is_empty() {
        return Err(nothing("there is no task"));
    }
    let (mut rates, mut efficiencies, mut reached, mut all) = (0.0, 0.0, 0.0, 0.0);
    let (mut finished, mut near) = (0.0, 0.0);
    for task in tasks {
        let mut last = None;
        for score in &task.scores {
            let (points, nodes) = parts(score)?;
            if nodes == 0.0 {
                return Err(Raised::new("ZeroDivisionError", "a task without key nodes".to_owned()));
            }
            last = Some((points, nodes));
        }
        let (points, nodes) = last.ok_or_else(|| nothing("a task without steps"))?;
        rates += points / nodes;
        #[expect(clippy::cast_precision_loss, reason = "a run has few steps")]
        let steps = task.scores.len() as f64;
        efficiencies += if points == 0.0 { 0.0 } else { steps / points };
        reached += points;
        all += nodes;
        finished += f64::from(u8::from(task.status == "finished"));
        #[expect(clippy::float_cmp, reason = "the published code compares with ==")]
        let lacks_one = nodes - points == 1.0;
        near += f64::from(u8::from(lacks_one));
    }
    #[expect(clippy::cast_precision_loss, reason = "a run has few tasks")]
    let count = tasks.len() as f64;
    Ok(RunScores {
        task_counts: tasks.len(),
        average_step_score_rate: rates / count,
        average_efficiency_score: efficiencies / count,
        usd_efficiency_score: (cost != 0.0).then(|| cost / reached),
        key_node_completion_rate: reached / all,
        task_success_rate: finished / count,
        task_near_success_rate: near / count,
    })
}

/// Reads `reached / all`.
fn parts(score: &str) -> Result<(f64, f64), Raised> {
    let number = |text: &str| float(text).ok_or_else(|| Raised::new("ValueError", format!("`{text}` is not a number")));
    match score.split('/').collect::<Vec<_>>().as_slice() {
        [points, nodes] => Ok((number(points)?, number(nodes)?)),
        _ => Err(Raised::new("ValueError", format!("`{score}` is not `reached / all`"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_that_declares_itself_done_aligns_better() {
        assert_eq!([alignment_score(4.0, 4.0, true), alignment_score(4.0, 4.0, false)], [1.0, 0.95]);
        assert_eq!([alignment_score(2.0, 4.0, true), alignment_score(2.0, 4.0, false)], [0.5, 0.4]);
    }

    #[test]
    fn a_hopeless_task_improves_the_efficiency() {
        let task = |scores: &[&str]| TaskScores {
            status: "step_limit".to_owned(),
            scores: scores.iter().map(|score| (*score).to_owned()).collect(),
        };
        let good = task(&["1 / 2", "2 / 2"]);
        let both = summarize(&[good.clone(), task(&["0 / 2"])], 0.0).expect("two tasks");
        assert_eq!([both.average_efficiency_score, both.task_success_rate], [0.5, 0.0]);
        assert_eq!(summarize(&[good], 3.0).expect("a task").usd_efficiency_score, Some(1.5));
        assert!(summarize(&[], 0.0).is_err() && summarize(&[task(&["0 / 0"])], 0.0).is_err());
    }
}
