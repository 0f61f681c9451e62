//! Document trees as the benchmarks' Python code sees them. The identity of an element decides verdicts there, so both
//! the parser that builds the tree and the engine that finds the element are part of a benchmark's rules:
//!
//! - [`soup`] is Beautiful Soup with Python's own `html.parser`, which implies no elements and closes none, and [`css`]
//!   is soupsieve, its selector engine.
//! - [`libxml`] is the HTML parser of libxml2, which lxml uses, and [`xpath`] is XPath 1.0 on its trees.
//!
//! Neither is how a browser builds a tree. The crate depends on no other crate of arenad. Start reading at [`Tree`].
//!
//! ```
//! let tree = arenad_dom::soup::parse("<ul><li>one<li class=k>two</ul>");
//! let found = arenad_dom::css::select_one(&tree, "li > .k").expect("a selector");
//! // `html.parser` does not close the first item, so the second one is inside it.
//! assert_eq!(found.and_then(|item| tree.parent(item)).and_then(|parent| tree.name(parent)), Some("li"));
//! ```

pub mod css;
pub mod libxml;
#[cfg(test)]
mod properties;
pub mod soup;
mod text;
mod tree;
pub mod xpath;

pub use tree::{NodeId, NodeKind, Tree};
