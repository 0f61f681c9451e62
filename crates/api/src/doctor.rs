//! What is in the way on this host.

use serde::{Deserialize, Serialize};

/// What `arenad doctor --json` prints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Doctor {
    /// The environment whose needs were looked at; null: the host alone.
    pub environment: Option<String>,
    /// The gravest level of all findings.
    pub level: String,
    /// Everything that was looked at, fine or not, by area.
    pub findings: Vec<Finding>,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Which check it is, such as `port` or `reflinks`.
    pub id: String,
    /// `engine`, `storage`, `capacity`, `network`, `host`, `images`.
    pub area: String,
    /// `ok`, `note`, `warning`, `problem`.
    pub level: String,
    /// Which of several it is about: a site, an image, a folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// What was seen.
    pub seen: String,
    /// What follows from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consequence: Option<String>,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cure: Option<String>,
}
