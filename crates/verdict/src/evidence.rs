//! All that is known of an episode.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::question::Told;
use crate::{Benchmark, Report, Traffic};

/// Addresses by placeholder, such as `http://localhost:7770` for `__SHOPPING__`. The first is where the site is; others are
/// where else it may have been when traffic was recorded.
pub type Urls = BTreeMap<String, Vec<String>>;

/// An instance that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LookedAt {
    /// The site.
    pub site: String,
    /// The instance.
    pub instance: String,
    /// Its generation.
    pub generation: u64,
}

/// All that is known of an episode, whatever the profile: enough to judge it again without its sites.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// The benchmark.
    pub benchmark: Benchmark,
    /// The task's number as it was asked for, such as `35`, or `shopping/35` of VisualWebArena.
    pub id: String,
    /// The task as the benchmark publishes it.
    pub task: Value,
    /// Where the sites were, by placeholder.
    #[serde(default)]
    pub urls: Urls,
    /// What the agent answered; of WebArena-Verified the content of `agent_response.json`.
    #[serde(default)]
    pub answer: String,
    /// The URL of the page where it ended.
    #[serde(default)]
    pub url: String,
    /// What evaluators asked and were told.
    #[serde(default)]
    pub told: Told,
    /// The traffic of the agent's browser.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<Traffic>,
    /// The instances that answers come from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub looked_at: Vec<LookedAt>,
}

/// An episode's reports.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Evaluated {
    /// The benchmark.
    pub benchmark: Benchmark,
    /// The task's number.
    pub task: String,
    /// What the agent was told.
    pub intent: String,
    /// The sites that the task needs.
    pub sites: Vec<String>,
    /// One for each profile that was asked for.
    pub reports: Vec<Report>,
    /// What whoever reads them should know besides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}
