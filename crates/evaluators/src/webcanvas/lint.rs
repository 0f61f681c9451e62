//! Key nodes that cannot be reached, or are reached by mistake, found without a browser.

use serde::Serialize;

use super::matching::{self, Method, Rule};
use super::task::{NodeRule, Target, WebCanvasTask};

/// A defect of a key node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NodeFinding {
    /// Name of the task.
    pub task: String,
    /// Number of the node, from 1.
    pub node: usize,
    /// A word for the kind of defect.
    pub kind: &'static str,
    /// Description of the defect and its cause.
    pub problem: String,
}

/// Returns the defects of a task's nodes.
#[must_use]
pub fn lint(task: &WebCanvasTask) -> Vec<NodeFinding> {
    let mut findings = Vec::new();
    let mut add = |node: usize, kind: &'static str, problem: String| {
        findings.push(NodeFinding { task: task.id.clone(), node: node + 1, kind, problem });
    };
    for function in &task.left_out {
        add(0, "left_out", format!("the benchmark does not know `{function}` and leaves the node out"));
    }
    for (at, node) in task.nodes.iter().enumerate() {
        let same = |other: &&super::KeyNode| {
            other.function == node.function && other.reference == node.reference && other.target == node.target
        };
        if task.nodes[..at].iter().any(|other| same(&other)) {
            add(at, "duplicate", "the node repeats an earlier one, and both score at once".to_owned());
        }
        if node.rule() == NodeRule::Unknown {
            add(
                at,
                "unknown_function",
                format!("no rule scores `{}`, so that the task cannot be finished", node.function),
            );
        }
        if node.reference.is_empty() {
            add(at, "empty_reference", "an empty reference is part of everything".to_owned());
        }
        match &node.target {
            Target::Url { key } => {
                let plain = if node.rule() == NodeRule::Included { Rule::Included } else { Rule::Exact };
                if key.is_empty() && node.rule() == NodeRule::Included && node.reference.contains('?') {
                    add(at, "unreachable", "the query is not part of what is compared, so `?` never occurs".to_owned());
                }
                let is_plain = matches!(node.rule(), NodeRule::Exact | NodeRule::Included);
                if let (true, Some(url)) = (is_plain, &node.recorded_url)
                    && !matching::url_matches(url, &node.reference, key, plain)
                {
                    add(at, "own_url", format!("the address of the recording does not satisfy the node: {url}"));
                }
            }
            Target::Path { method: Method::Selector, netloc } => {
                if let Err(error) = arenad_dom::css::check(&node.reference) {
                    add(at, "selector", error.to_string());
                }
                add_netloc(&mut add, at, netloc, node.recorded_url.as_deref());
            }
            Target::Path { method: Method::XPath, netloc } => {
                if let Err(error) = arenad_dom::xpath::check(&node.reference) {
                    add(at, "xpath", error.to_string());
                }
                add_netloc(&mut add, at, netloc, node.recorded_url.as_deref());
            }
            Target::Path { method: Method::Other, .. } => {
                add(
                    at,
                    "method",
                    "the method is neither `selector` nor `xpath`, with which nothing matches".to_owned(),
                );
            }
            Target::Value { path, netloc } => {
                if let Some(Err(error)) = path.as_deref().map(arenad_dom::css::check) {
                    add(at, "selector", error.to_string());
                }
                add_netloc(&mut add, at, netloc, node.recorded_url.as_deref());
            }
            Target::Cache | Target::Answer => {
                if node.rule() == NodeRule::Semantic {
                    add(at, "unreachable", "the published code never scores texts that need a judge".to_owned());
                }
            }
        }
    }
    findings
}

fn add_netloc(add: &mut impl FnMut(usize, &'static str, String), at: usize, netloc: &str, url: Option<&str>) {
    if let Some(Ok(site)) = url.map(matching::get_netloc)
        && site != netloc
    {
        add(at, "netloc", format!("the site `{netloc}` is not that of the recording, `{site}`"));
    }
}
