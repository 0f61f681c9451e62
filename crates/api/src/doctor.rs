//! The JSON of the doctor's findings about this host.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{FindingArea, FindingLevel};

/// The output of `arenad doctor --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Doctor {
    /// The environment whose requirements were examined; null if only the host was examined.
    pub environment: Option<String>,
    /// The most serious level of all findings.
    pub level: FindingLevel,
    /// All findings, including those of level `ok`, by area.
    pub findings: Vec<ReportedFinding>,
}

/// One finding about the host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReportedFinding {
    /// The name of the check, such as `port` or `reflinks`.
    pub id: String,
    /// The area: `engine`, `storage`, `capacity`, `network`, `host` or `images`.
    pub area: FindingArea,
    /// The level: `ok`, `note`, `warning` or `problem`.
    pub level: FindingLevel,
    /// The object of a check that runs once for each of several: a site, an image, a folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The facts that the check found.
    pub seen: String,
    /// The effect of those facts on arenad.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consequence: Option<String>,
    /// The action that removes the cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cure: Option<String>,
}
