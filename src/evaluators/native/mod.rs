//! Native checks.

mod tree;
pub mod words;
