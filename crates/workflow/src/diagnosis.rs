//! From a replay to the key nodes that are broken, the causes, and repairs.

use std::fmt;

use arenad_api::browser::PageElement;
use arenad_dom::{css, soup};
use arenad_evaluators::webcanvas::matching::{Method, Rule, url_part};
use arenad_evaluators::webcanvas::{KeyNode, NodeRule, Observation, Open, Progress, Target};
use arenad_verdict::question::KnownAnswers;
use serde::Serialize;

use crate::file::Workflow;
use crate::find::ElementSight;
use crate::replay::{PageSight, Replay, ReplayedStep};

/// The HTTP statuses with which sites keep programs away.
const BLOCKED: [u16; 3] = [403, 429, 503];

/// The state of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// Every step was done, and every key node was reached, as in the recording.
    Valid,
    /// Every key node was reached, but elements or pages have moved.
    Drifted,
    /// A step could not be done, or a key node was not reached.
    Broken,
    /// The site answers programs with an error that says nothing about the task.
    Blocked,
    /// The first page could not be opened, which says nothing about the task.
    SiteDown,
}

/// The cause for which a step cannot be done or a key node is not reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum NodeCause {
    /// The site could not be reached.
    SiteDown {
        /// The reason that the browser gives.
        reason: String,
    },
    /// The site keeps programs away.
    Blocked {
        /// The HTTP status of the page.
        status: u16,
    },
    /// The page does not exist any more.
    PageGone {
        /// The address of the page.
        url: String,
        /// The HTTP status of the page.
        status: u16,
    },
    /// The site leads to another page.
    Redirect {
        /// The address of the recording.
        from: String,
        /// The address of the page that is shown.
        to: String,
    },
    /// The element does not exist any more, or elsewhere.
    ElementGone,
    /// A selector, or role and label, match several elements.
    SelectorAmbiguous {
        /// The number of elements.
        alike: usize,
    },
    /// The element, the address or the answer has another value.
    ValueChanged {
        /// The value of the key node.
        from: String,
        /// The value on the page.
        to: String,
    },
    /// The browser could not perform the action.
    ActionFailed {
        /// The reason that the browser gives.
        reason: String,
    },
    /// The recording does not say where the node was reached, and no step reaches it.
    NeverReached,
}

impl fmt::Display for NodeCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SiteDown { reason } => write!(f, "site down: {reason}"),
            Self::Blocked { status } => write!(f, "blocked: the site answers with status {status}"),
            Self::PageGone { url, status } => write!(f, "page gone: {url} answers with status {status}"),
            Self::Redirect { from, to } => write!(f, "redirect: {from} leads to {to}"),
            Self::ElementGone => write!(f, "element gone"),
            Self::SelectorAmbiguous { alike } => write!(f, "selector ambiguous: it matches {alike} elements"),
            Self::ValueChanged { from, to } => write!(f, "value changed: `{from}` is now `{to}`"),
            Self::ActionFailed { reason } => write!(f, "action failed: {reason}"),
            Self::NeverReached => write!(f, "never reached by the recording"),
        }
    }
}

/// A change of a key node with which the replay would have reached it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Repair {
    /// The field of the node's `content`: `reference_answer` or `path`.
    pub field: &'static str,
    /// The present content of the field.
    pub from: String,
    /// The content with which the replay reaches the node.
    pub to: String,
}

/// A key node after a replay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NodeFinding {
    /// The position of the node in the task, from 0.
    pub node: usize,
    /// The name of its match function.
    pub function: String,
    /// The step at which the recording reached it, from 0; null if that is not known.
    pub expected_at: Option<usize>,
    /// The step at which the replay reached it, from 0; null if it did not.
    pub reached_at: Option<usize>,
    /// Whether only a judge could tell whether it is reached.
    pub needs_judge: bool,
    /// The cause for which it was not reached; null if it was.
    pub cause: Option<NodeCause>,
    /// A change of the node; null if none is known.
    pub repair: Option<Repair>,
}

/// The state of a task after a replay of its workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnosis {
    /// The state of the task.
    pub health: Health,
    /// The step that could not be done, from 0; null if all were.
    pub broken_at: Option<usize>,
    /// The cause for which it could not be done.
    pub cause: Option<NodeCause>,
    /// The steps that were done although the page or the element has moved, from 0.
    pub drifted: Vec<usize>,
    /// The key nodes of the task.
    pub nodes: Vec<NodeFinding>,
}

/// Returns the state of the task with these key nodes after a replay. `seen` are the steps as the browser has told them, and the page after the
/// last one.
pub fn diagnose(nodes: &[KeyNode], workflow: &Workflow, replay: &Replay, seen: &[Observation]) -> Diagnosis {
    let mut progress = Progress::new(nodes);
    for observation in seen {
        // The published code raises for malformed paths, and the node is not reached.
        let _ = progress.see(observation, &KnownAnswers::default());
    }
    let broken_at = replay.broken_at();
    let cause = match (&replay.unreachable, broken_at) {
        (Some(reason), _) => Some(NodeCause::SiteDown { reason: reason.clone() }),
        (None, Some(step)) => Some(cause_of(&replay.steps[step])),
        (None, None) => None,
    };
    let view = ReplayView { workflow, replay, seen, broken_at, cause: cause.as_ref() };
    let nodes: Vec<NodeFinding> =
        nodes.iter().enumerate().map(|(at, node)| view.finding(at, node, &progress)).collect();
    let drifted: Vec<usize> = (0..replay.steps.len()).filter(|step| replay.steps[*step].has_drifted()).collect();
    let is_elsewhere = |node: &NodeFinding| node.reached_at.is_some() && node.expected_at != node.reached_at;
    let is_late = nodes.iter().any(|node| workflow.step_of(node.node).is_some() && is_elsewhere(node));
    let health = match &cause {
        Some(NodeCause::SiteDown { .. }) => Health::SiteDown,
        Some(NodeCause::Blocked { .. }) => Health::Blocked,
        Some(_) => Health::Broken,
        None if nodes.iter().any(|node| node.cause.is_some()) => Health::Broken,
        None if is_late || !drifted.is_empty() => Health::Drifted,
        None => Health::Valid,
    };
    Diagnosis { health, broken_at, cause, drifted, nodes }
}

/// Returns the cause for which a step could not be done.
fn cause_of(step: &ReplayedStep) -> NodeCause {
    match (&step.page, &step.element, &step.error) {
        (PageSight::Failed { status, .. }, _, _) if BLOCKED.contains(status) => NodeCause::Blocked { status: *status },
        (PageSight::Failed { url, status }, _, _) => NodeCause::PageGone { url: url.clone(), status: *status },
        (_, Some(ElementSight::Ambiguous { alike }), _) => NodeCause::SelectorAmbiguous { alike: *alike },
        // On another page the element cannot be expected.
        (PageSight::Redirected { from, to }, Some(ElementSight::Gone { .. }), _) => {
            NodeCause::Redirect { from: from.clone(), to: to.clone() }
        }
        (_, Some(ElementSight::Gone { .. }), _) => NodeCause::ElementGone,
        (_, _, Some(reason)) => NodeCause::ActionFailed { reason: reason.clone() },
        (_, _, None) => NodeCause::NeverReached,
    }
}

/// A replay, with everything that a key node is compared with.
struct ReplayView<'a> {
    workflow: &'a Workflow,
    replay: &'a Replay,
    seen: &'a [Observation],
    broken_at: Option<usize>,
    cause: Option<&'a NodeCause>,
}

impl ReplayView<'_> {
    fn finding(&self, at: usize, node: &KeyNode, progress: &Progress<'_>) -> NodeFinding {
        let reached_at = progress.reached_at(at);
        let needs_judge = reached_at.is_none() && matches!(progress.open(at), Some(Open::Judge(..)));
        let expected_at = self.expected(at, node);
        let (cause, repair) = match reached_at {
            Some(_) => (None, None),
            None if needs_judge => (None, None),
            None => {
                let (cause, repair) = self.missed(node, expected_at);
                (Some(cause), repair)
            }
        };
        NodeFinding { node: at, function: node.function.clone(), expected_at, reached_at, needs_judge, cause, repair }
    }

    /// Returns the step at which a node is reached according to the recording.
    fn expected(&self, at: usize, node: &KeyNode) -> Option<usize> {
        let recorded = node.recorded_url.as_deref();
        self.workflow
            .step_of(at)
            .or_else(|| self.workflow.steps.iter().position(|step| Some(step.url.as_str()) == recorded))
    }

    /// Returns the cause for which a node was not reached, and a repair.
    fn missed(&self, node: &KeyNode, expected: Option<usize>) -> (NodeCause, Option<Repair>) {
        let is_before = |broken: usize| expected.is_none_or(|expected| broken <= expected);
        if let Some(cause) = self.cause.filter(|_| self.broken_at.is_none_or(is_before)) {
            let is_here = self.broken_at.is_some() && self.broken_at == expected;
            let similar = self.similar(expected).filter(|_| is_here);
            let html = expected.and_then(|step| self.html(step));
            return (cause.clone(), similar.and_then(|it| repair_path(node, path_of(it, html))));
        }
        let Some((step, seen)) = expected.and_then(|step| Some((step, self.seen.get(step)?))) else {
            return (NodeCause::NeverReached, None);
        };
        match &node.target {
            Target::Url { key } => self.missed_url(node, key, step, seen),
            Target::Path { method, .. } => self.missed_path(node, *method, &node.reference, "reference_answer", step),
            Target::Value { path: Some(path), .. } if !self.leads_to(path, seen) => {
                self.missed_path(node, Method::Selector, path, "path", step)
            }
            Target::Value { .. } => missed_value(node, seen.element_value.as_deref()),
            Target::Cache | Target::Answer => missed_value(node, seen.text_content.as_deref()),
        }
    }

    fn missed_url(&self, node: &KeyNode, key: &str, step: usize, seen: &Observation) -> (NodeCause, Option<Repair>) {
        let rule = if node.rule() == NodeRule::Exact { Rule::Exact } else { Rule::Included };
        let now = url_part(&seen.url, key, rule);
        let repair = now.clone().filter(|to| !to.is_empty()).map(|to| Repair {
            field: "reference_answer",
            from: node.reference.clone(),
            to,
        });
        let page = self.replay.steps.get(step).map(|step| &step.page);
        let cause = match (page, now) {
            (Some(PageSight::Failed { url, status }), _) => {
                return (NodeCause::PageGone { url: url.clone(), status: *status }, None);
            }
            (Some(PageSight::Redirected { from, to }), _) => NodeCause::Redirect { from: from.clone(), to: to.clone() },
            (_, Some(to)) => NodeCause::ValueChanged { from: node.reference.clone(), to },
            (_, None) => NodeCause::ValueChanged { from: node.reference.clone(), to: String::new() },
        };
        (cause, repair)
    }

    /// The node's path leads elsewhere, although the action was performed.
    fn missed_path(
        &self,
        node: &KeyNode,
        method: Method,
        path: &str,
        field: &'static str,
        step: usize,
    ) -> (NodeCause, Option<Repair>) {
        let html = self.html(step);
        let alike = match (method, html.and_then(soup::try_parse)) {
            (Method::Selector, Some(tree)) => css::select(&tree, path).map(|found| found.len()).unwrap_or_default(),
            _ => 0,
        };
        let cause = match alike {
            0 | 1 => NodeCause::ElementGone,
            alike => NodeCause::SelectorAmbiguous { alike },
        };
        let acted = self.seen.get(step).and_then(|seen| seen.selector.clone());
        let is_selector = method == Method::Selector;
        let to = self.element(step).map(|element| path_of(&element, html)).or(acted).filter(|_| is_selector);
        let from = if field == "path" { path.to_owned() } else { node.reference.clone() };
        (cause, to.map(|to| Repair { field, from, to }))
    }

    /// Whether a selector leads to the element of the action.
    fn leads_to(&self, path: &str, seen: &Observation) -> bool {
        let (Some(html), Some(selector)) = (&seen.html, &seen.selector) else { return true };
        let Some(tree) = soup::try_parse(html) else { return true };
        let first = |selector: &str| css::select_one(&tree, selector).ok().flatten();
        let found = first(path);
        found.is_some() && found == first(selector)
    }

    fn html(&self, step: usize) -> Option<&str> {
        self.seen.get(step)?.html.as_deref()
    }

    /// Returns the element on which a step was performed, as the page listed it.
    fn element(&self, step: usize) -> Option<PageElement> {
        let recorded = self.workflow.steps.get(step)?.element.as_ref()?;
        self.replay.steps.get(step)?.element.as_ref()?.found(recorded).cloned()
    }

    fn similar(&self, step: Option<usize>) -> Option<&PageElement> {
        match self.replay.steps.get(step?)?.element.as_ref()? {
            ElementSight::Gone { similar } => similar.as_deref(),
            _ => None,
        }
    }
}

fn missed_value(node: &KeyNode, now: Option<&str>) -> (NodeCause, Option<Repair>) {
    let to = now.unwrap_or_default().to_owned();
    let cause = NodeCause::ValueChanged { from: node.reference.clone(), to: to.clone() };
    let repair = Repair { field: "reference_answer", from: node.reference.clone(), to };
    (cause, Some(repair).filter(|repair| !repair.to.is_empty()))
}

/// Returns the repair with which a node has another path.
fn repair_path(node: &KeyNode, to: String) -> Option<Repair> {
    let (field, from) = match &node.target {
        Target::Path { method: Method::Selector, .. } => ("reference_answer", node.reference.clone()),
        Target::Value { path: Some(path), .. } => ("path", path.clone()),
        Target::Path { .. } | Target::Value { .. } | Target::Url { .. } | Target::Cache | Target::Answer => {
            return None;
        }
    };
    Some(Repair { field, from, to })
}

/// Returns the selector of an element for a key node: its id, which outlives changes of the page, or its place. An id
/// that the page has several times selects the first of them.
fn path_of(element: &PageElement, html: Option<&str>) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || it == '-' || it == '_';
    let is_name = element.id.starts_with(|first: char| first.is_ascii_alphabetic());
    let by_id = format!("#{}", element.id);
    let is_single = || {
        let tree = html.and_then(soup::try_parse);
        tree.is_none_or(|tree| css::select(&tree, &by_id).is_ok_and(|found| found.len() == 1))
    };
    match is_name && element.id.chars().all(is_plain) && is_single() {
        true => by_id,
        false => element.selector.clone(),
    }
}

#[cfg(test)]
mod tests;
