//! The `log._arenad` section of a HAR that the gateway recorded. The daemon writes it; locators and evaluators read it,
//! so that they do not mistake a partial recording for a complete one.
//!
//! The crate depends on no other crate of arenad. It has one type with its parts: [`Own`].

use serde::Deserialize;

/// `log._arenad`.
#[derive(Debug, Clone, Deserialize)]
pub struct Own {
    /// The coverage of each site in the recording.
    pub sites: Vec<Coverage>,
}

/// The coverage of one site.
#[derive(Debug, Clone, Deserialize)]
pub struct Coverage {
    /// Name of the site.
    pub site: String,
    /// The variable by which benchmarks' tasks name the site.
    #[serde(default)]
    pub variable: Option<String>,
    /// `all`, `writes` or `none`.
    pub records: String,
    /// The reason why earlier requests are missing; `None` if none are missing.
    #[serde(default)]
    pub lacks: Option<String>,
}
