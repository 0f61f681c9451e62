//! Queries of JSON: jq filters and JSONPaths, which come from definitions and clients and are therefore parsed within
//! bounds. The validation of definitions checks them; locators run them in a confined process.
//!
//! The crate depends on `model`, for its error type. Start reading at [`jq`].

pub mod jq;
pub mod json_path;

arenad_model::text_error! {
    /// The reason why a query is refused, with the position if it is known.
    pub struct QueryError;
}
