//! Queries of JSON: jq filters and JSONPaths, which come from definitions and clients and are therefore parsed within
//! bounds. The validation of definitions checks them; locators run them in a confined process.

use std::fmt;

pub mod jq;
pub mod json_path;

/// The reason why a query is refused, with the position if it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryError(String);

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for QueryError {}

impl From<String> for QueryError {
    fn from(text: String) -> Self {
        Self(text)
    }
}
