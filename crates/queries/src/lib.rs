//! Queries of JSON, jq filters and JSONPaths, read within bounds: definitions and clients write them. Definitions check them, locators
//! run them, in a process of their own.

pub mod jq;
pub mod json_path;

arenad_model::text_error! {
    /// The reason why a query is refused, with the position if it is known.
    pub struct QueryError;
}
