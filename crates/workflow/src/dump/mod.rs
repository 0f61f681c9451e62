//! Recorded tasks in the layout of Mind2Web: a data file, and the raw dump that it was made from.
//!
//! ```text
//!   WorkflowStep + PageSnapshot before and after ──► DumpedAction
//!     ├─► page      the nodes of the snapshot, frames inlined
//!     ├─► targets   the elements that count as right
//!     └─► markup    `raw_html`, `cleaned_html`, the candidates
//! ```
//! The names of the fields are Mind2Web's. Its generator was not published; the rules are those of its paper and of its
//! published data (`targets`, `markup`).

mod markup;
mod page;
mod targets;

use arenad_api::browser::PageSnapshot;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::{StepAction, Workflow, WorkflowStep};
use page::DumpedPage;

/// An action of a workflow, with the page before it and after it.
#[derive(Debug)]
pub struct DumpedAction<'a> {
    /// The position of the step in the workflow, from 0.
    pub position: usize,
    /// The step with its element and its value.
    pub step: &'a WorkflowStep,
    /// The page before the action. `element` is the node of the action's element.
    pub before: PageSnapshot,
    /// The page after the action.
    pub after: PageSnapshot,
}

/// A recorded task in the layout of Mind2Web.
#[derive(Debug, Clone, PartialEq)]
pub struct DumpedTask {
    /// The `annotation_id` of the entry.
    pub id: String,
    /// The entry of the data file.
    pub entry: Value,
    /// The `action_uid` of each action, in order.
    pub actions: Vec<String>,
    /// The content of `dom_content.json`: the nodes before and after each action.
    pub dom_content: Value,
}

/// The action of a step as Mind2Web calls it (`op`, `original_op`). `None` for steps that it does not have.
fn operation(step: &WorkflowStep) -> Option<(&'static str, &'static str)> {
    match (step.action, step.value.as_deref()) {
        (StepAction::Click, _) => Some(("CLICK", "CLICK")),
        (StepAction::Hover, _) => Some(("CLICK", "HOVER")),
        (StepAction::Press, Some("Enter")) => Some(("CLICK", "ENTER")),
        (StepAction::Type, _) => Some(("TYPE", "TYPE")),
        (StepAction::Select, _) => Some(("SELECT", "SELECT")),
        (StepAction::Press | StepAction::Goto | StepAction::GoBack | StepAction::Stop, _) => None,
    }
}

/// Whether Mind2Web has a step of this kind: an action on an element. The others are left out of dumps.
#[must_use]
pub fn is_dumped(step: &WorkflowStep) -> bool {
    operation(step).is_some()
}

/// Returns a recorded task. `actions` are the dumped steps of the workflow.
#[must_use]
pub fn dump(workflow: &Workflow, actions: &[DumpedAction<'_>]) -> DumpedTask {
    let id = uuid(&["task", &workflow.task, &workflow.title, &workflow.start]);
    let (mut uids, mut entries, mut reprs, mut contents) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for DumpedAction { position, step, before, after } in actions {
        let Some((op, original)) = operation(step) else { continue };
        let uid = uuid(&["action", &id, &position.to_string()]);
        let page = DumpedPage::read(&before.dom);
        let value = if op == "CLICK" { "" } else { step.value.as_deref().unwrap_or_default() };
        let target = before.element.and_then(|element| page.position(element));
        let targets = target.map(|target| targets::acceptable(&page, target)).unwrap_or_default();
        let written = markup::written(&page, target, &targets, &uid);
        entries.push(json!({
            "action_uid": uid,
            "raw_html": written.raw_html,
            "cleaned_html": written.cleaned_html,
            "operation": { "original_op": original, "value": value, "op": op },
            "pos_candidates": written.positive,
            "neg_candidates": written.negative,
        }));
        let described = step.element.as_ref().map_or_else(
            || written.described.clone(),
            |element| {
                let role = if element.role.is_empty() { &element.tag } else { &element.role };
                format!("[{role}]  {}", element.name)
            },
        );
        let with_value = if value.is_empty() { String::new() } else { format!(": {value}") };
        reprs.push(format!("{described} -> {original}{with_value}"));
        contents.push(json!({ "action_uid": uid, "before": { "dom": before.dom }, "after": { "dom": after.dom } }));
        uids.push(uid);
    }
    let entry = json!({
        "annotation_id": id,
        "website": workflow.sites.first(),
        "domain": "recorded",
        "subdomain": workflow.sites.join(" "),
        "confirmed_task": workflow.title,
        "action_reprs": reprs,
        "actions": entries,
    });
    DumpedTask { id, entry, actions: uids, dom_content: Value::from(contents) }
}

/// Returns an identifier in the form of a UUID, the same for the same parts.
fn uuid(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let digits: String = hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}

#[cfg(test)]
mod tests;
