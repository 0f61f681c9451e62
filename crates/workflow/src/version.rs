//! Versions of a task: repairs are applied to its key nodes, and the former ones are kept.

use arenad_evaluators::webcanvas::{Observation, is_known};
use serde_json::{Value, json};

use crate::diagnosis::{Diagnosis, NodeFinding};
use crate::file::{ReachedNode, Workflow};
use crate::replay::Replay;

/// A task that cannot have another version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VersionError {
    /// The entry has no list of key nodes.
    #[error("the task has no list `evaluation`")]
    NoNodes,
    /// The diagnosis is that of another task.
    #[error("key node {0} of the diagnosis is none of the task")]
    OtherTask(usize),
}

/// Returns the entry of a task file with its repaired key nodes, or `None` if no node has a repair. The former nodes are
/// kept under `versions`, with their number, the time of the repair and the causes. Files with versions are read by
/// WebCanvas' own code, which ignores other fields.
///
/// Errors: the entry is not that of the diagnosis.
pub fn version(entry: &Value, diagnosis: &Diagnosis, at: &str) -> Result<Option<Value>, VersionError> {
    let former = entry["evaluation"].as_array().ok_or(VersionError::NoNodes)?.clone();
    let mut repaired = former.clone();
    let mut causes = Vec::new();
    for finding in &diagnosis.nodes {
        let (Some(repair), Some(cause)) = (&finding.repair, &finding.cause) else { continue };
        let is_node = |entry: &&mut Value| entry["match_function_name"].as_str().is_some_and(is_known);
        let node =
            repaired.iter_mut().filter(is_node).nth(finding.node).ok_or(VersionError::OtherTask(finding.node))?;
        node["content"][repair.field] = json!(repair.to);
        causes.push(json!({ "node": finding.node, "cause": cause.to_string() }));
    }
    if causes.is_empty() {
        return Ok(None);
    }
    let mut next = entry.clone();
    let number = next["version"].as_u64().unwrap_or(1);
    let kept = json!({ "version": number, "until": at, "causes": causes, "evaluation": former });
    match next["versions"].as_array_mut() {
        Some(versions) => versions.push(kept),
        None => next["versions"] = json!([kept]),
    }
    next["version"] = json!(number + 1);
    next["evaluation"] = Value::Array(repaired);
    Ok(Some(next))
}

/// Returns a workflow as its replay saw it: with the present addresses and elements, and the steps at which key nodes are
/// reached. Returns `None` unless all steps were done.
pub fn updated(workflow: &Workflow, replay: &Replay, seen: &[Observation], diagnosis: &Diagnosis) -> Option<Workflow> {
    if replay.unreachable.is_some() || replay.broken_at().is_some() || replay.steps.len() != workflow.steps.len() {
        return None;
    }
    let mut next = workflow.clone();
    for ((step, replayed), seen) in next.steps.iter_mut().zip(&replay.steps).zip(seen) {
        step.url.clone_from(&seen.url);
        if let (Some(recorded), Some(sight)) = (&step.element, &replayed.element) {
            step.element = sight.found(recorded).cloned();
        }
    }
    next.end = seen.last().map(|last| last.url.clone());
    let reached = |node: &NodeFinding| Some(ReachedNode { node: node.node, step: node.reached_at? });
    next.reached = diagnosis.nodes.iter().filter_map(reached).collect();
    Some(next)
}
