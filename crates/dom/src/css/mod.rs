//! CSS selectors as soupsieve reads and matches them on trees of Beautiful Soup's `html.parser`: what it accepts, what it
//! refuses, and the first match in document order.

mod matching;
mod parsing;
mod selector;
mod tokens;

use crate::tree::{NodeId, Tree};
use matching::Matcher;

pub use selector::SelectorError;

/// Returns the first element of the document that a selector matches.
///
/// # Errors
///
/// Returns an error if soupsieve refuses the selector.
pub fn select_one(tree: &Tree, selector: &str) -> Result<Option<NodeId>, SelectorError> {
    let list = parsing::parse(selector)?;
    let mut matcher = Matcher::new(tree);
    Ok(Matcher::candidates(tree).find(|element| matcher.matches(*element, &list)))
}

/// Returns all elements of the document that a selector matches, in document order.
///
/// # Errors
///
/// Returns an error if soupsieve refuses the selector.
pub fn select(tree: &Tree, selector: &str) -> Result<Vec<NodeId>, SelectorError> {
    let list = parsing::parse(selector)?;
    let mut matcher = Matcher::new(tree);
    Ok(Matcher::candidates(tree).filter(|element| matcher.matches(*element, &list)).collect())
}

/// Returns whether soupsieve accepts a selector.
///
/// # Errors
///
/// Returns an error that says where it refuses the selector.
pub fn check(selector: &str) -> Result<(), SelectorError> {
    parsing::parse(selector).map(|_| ())
}
