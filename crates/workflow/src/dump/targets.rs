//! The elements that count as right for an action. Source: the paper's appendix C.1 and the published data: the nearest
//! clickable element around the labelled one, and what lies within the labelled one's box.

use super::page::{DumpedNode, DumpedPage};

/// The elements that count as right.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Targets {
    /// The nearest clickable element that contains the labelled one's centre, which may be itself.
    pub(super) top: Option<usize>,
    /// All of them, in the order of the page.
    pub(super) all: Vec<usize>,
}

/// Elements that people click whatever scripts do.
const CLICKABLE: [&str; 9] = ["a", "button", "img", "input", "label", "li", "svg", "td", "textarea"];

const CLICKABLE_ROLES: [&str; 11] = [
    "button",
    "checkbox",
    "combobox",
    "link",
    "menuitem",
    "menuitemcheckbox",
    "menuitemradio",
    "option",
    "radio",
    "switch",
    "tab",
];

/// Whether people expect that an element can be clicked.
pub(super) fn is_clickable(node: &DumpedNode) -> bool {
    node.is_clickable
        || CLICKABLE.contains(&node.tag.as_str())
        || node.attribute("role").is_some_and(|role| CLICKABLE_ROLES.contains(&role))
}

/// Returns the elements that count as right if one is labelled.
pub(super) fn acceptable(page: &DumpedPage, labelled: usize) -> Targets {
    let bounds = page.nodes[labelled].bounds;
    let contains = |at: &usize| {
        let around = page.nodes[*at].bounds;
        *at == labelled || bounds.zip(around).is_some_and(|(own, around)| around.has_point(own.centre()))
    };
    let top = page.upward(labelled).find(|at| is_clickable(&page.nodes[*at]) && contains(at)).unwrap_or(labelled);
    let is_within = |at: &usize| {
        let node = &page.nodes[*at];
        !node.is_text() && node.bounds.zip(bounds).is_some_and(|(own, around)| around.has_box(&own))
    };
    let mut all: Vec<usize> = page.below(top).into_iter().filter(is_within).collect();
    all.extend([top, labelled]);
    all.sort_unstable();
    all.dedup();
    Targets { top: Some(top), all }
}
