//! What a recording of the gateway's own says of itself, in the HAR that it travels in (`log._arenad`): written by the daemon, read by
//! locators and evaluators, so that neither takes a part for the whole.

use serde::Deserialize;

/// `log._arenad`.
#[derive(Debug, Clone, Deserialize)]
pub struct Own {
    /// What there is of each site.
    pub sites: Vec<Coverage>,
}

/// What was recorded of a site.
#[derive(Debug, Clone, Deserialize)]
pub struct Coverage {
    /// The site.
    pub site: String,
    /// The name that benchmarks' tasks have for it.
    #[serde(default)]
    pub variable: Option<String>,
    /// `all`, `writes` or `none`.
    pub records: String,
    /// Why earlier requests are missing; `None`: none is.
    #[serde(default)]
    pub lacks: Option<String>,
}
