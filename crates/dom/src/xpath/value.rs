//! The values that expressions have.

use crate::tree::{NodeId, NodeKind, Tree};

/// One entry of a node-set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Item {
    /// A node of the tree.
    Node(NodeId),
    /// An attribute of an element, by its position.
    Attribute(NodeId, usize),
}

/// The result of an expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Nodes in document order.
    Nodes(Vec<Item>),
    /// A truth value, as comparisons have it.
    Boolean(bool),
    /// A number, which may be NaN.
    Number(f64),
    /// A text, as literals and functions give it.
    Text(String),
}

impl Item {
    /// Returns the string-value of the entry.
    #[must_use]
    pub fn text(self, tree: &Tree) -> String {
        match self {
            Self::Attribute(element, at) => {
                tree.attributes(element).get(at).map(|(_, value)| value.clone()).unwrap_or_default()
            }
            Self::Node(node) => match tree.kind(node) {
                NodeKind::Comment(text) => text.clone(),
                _ => tree.text(node),
            },
        }
    }

    /// Returns the name of an element or attribute; others have none.
    #[must_use]
    pub fn name(self, tree: &Tree) -> &str {
        match self {
            Self::Attribute(element, at) => tree.attributes(element).get(at).map_or("", |(name, _)| name),
            Self::Node(node) => tree.name(node).unwrap_or_default(),
        }
    }
}

impl Value {
    pub(super) fn boolean(&self) -> bool {
        match self {
            Self::Nodes(nodes) => !nodes.is_empty(),
            Self::Boolean(value) => *value,
            Self::Number(value) => *value != 0.0 && !value.is_nan(),
            Self::Text(text) => !text.is_empty(),
        }
    }

    pub(super) fn text(&self, tree: &Tree) -> String {
        match self {
            Self::Nodes(nodes) => nodes.first().map(|first| first.text(tree)).unwrap_or_default(),
            Self::Boolean(value) => value.to_string(),
            Self::Number(value) => number_text(*value),
            Self::Text(text) => text.clone(),
        }
    }

    pub(super) fn number(&self, tree: &Tree) -> f64 {
        match self {
            Self::Boolean(value) => f64::from(u8::from(*value)),
            Self::Number(value) => *value,
            _ => number_of(&self.text(tree)),
        }
    }
}

/// `number()` of a text: digits with an optional sign and fraction, within white space. As an extension, libxml2 also
/// reads an exponent.
pub(super) fn number_of(text: &str) -> f64 {
    let text = text.trim_matches([' ', '\t', '\n', '\r']);
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_plain = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && digits.chars().all(|c| c.is_ascii_digit() || ".eE+-".contains(c));
    if is_plain { text.parse().unwrap_or(f64::NAN) } else { f64::NAN }
}

fn number_text(value: f64) -> String {
    if value.is_nan() {
        "NaN".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned()
    } else if value == 0.0 {
        "0".to_owned()
    } else {
        value.to_string()
    }
}
