//! XPath 1.0 on libxml2's trees, with its values as lxml gives them to Python.

mod evaluate;
mod functions;
mod parse;
mod value;

pub use value::{Item, Value};

use crate::tree::{NodeId, Tree};

/// An expression that libxml2 refuses, or at whose evaluation it fails.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the XPath {expression:?} is malformed at character {at}: {what}")]
pub struct XPathError {
    expression: String,
    at: usize,
    what: String,
}

/// Evaluates an expression with a node as its context. Absolute paths begin at the document.
///
/// # Errors
///
/// Returns an error if libxml2 refuses the expression.
pub fn evaluate(tree: &Tree, context: NodeId, expression: &str) -> Result<Value, XPathError> {
    let fail = |(at, what): (usize, String)| XPathError { expression: expression.to_owned(), at, what };
    let parsed = parse::parse(expression).map_err(fail)?;
    let mut value = evaluate::Evaluator::new(tree).evaluate(&parsed, context).map_err(|what| fail((0, what)))?;
    if let Value::Nodes(nodes) = &mut value {
        // lxml has no object for the document.
        nodes.retain(|node| *node != Item::Node(Tree::DOCUMENT));
    }
    Ok(value)
}

/// Returns whether an expression is well-formed.
///
/// # Errors
///
/// Returns an error that says where it is not.
pub fn check(expression: &str) -> Result<(), XPathError> {
    let parsed = parse::parse(expression);
    parsed.map(|_| ()).map_err(|(at, what)| XPathError { expression: expression.to_owned(), at, what })
}
