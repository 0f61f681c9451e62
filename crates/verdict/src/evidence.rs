//! The complete evidence of an episode, and the result of its evaluation.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::question::KnownAnswers;
use crate::{Benchmark, Report, Traffic};

/// URLs by placeholder, such as `http://localhost:7770` for `__SHOPPING__`. The first URL of a list is the site's
/// current one. The others are URLs that the site may have had when traffic was recorded.
pub type Urls = BTreeMap<String, Vec<String>>;

/// An instance from which evidence was read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct LookedAt {
    /// Name of the site.
    pub site: String,
    /// Identifier of the instance.
    pub instance: String,
    /// Number of the generation.
    pub generation: u64,
}

/// The complete evidence of an episode. It suffices to judge the episode again under any profile without its sites.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EpisodeEvidence {
    /// Benchmark of the task.
    pub benchmark: Benchmark,
    /// Number of the task in the form that was requested, such as `35`, or `shopping/35` for VisualWebArena.
    pub id: String,
    /// The task as the benchmark publishes it.
    pub task: Value,
    /// URLs of the sites, by placeholder.
    #[serde(default)]
    pub urls: Urls,
    /// The agent's answer; for WebArena-Verified, the content of `agent_response.json`.
    #[serde(default)]
    pub answer: String,
    /// URL of the page on which the agent ended.
    #[serde(default)]
    pub url: String,
    /// The questions of evaluators, with their answers.
    #[serde(default)]
    pub told: KnownAnswers,
    /// Traffic of the agent's browser.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<Traffic>,
    /// The instances from which answers were read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub looked_at: Vec<LookedAt>,
}

/// The reports on an episode.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct EpisodeReports {
    /// Benchmark of the task.
    pub benchmark: Benchmark,
    /// Number of the task in the requested form.
    pub task: String,
    /// Instruction that the agent was given.
    pub intent: String,
    /// Names of the sites that the task needs.
    pub sites: Vec<String>,
    /// One report for each requested profile.
    pub reports: Vec<Report>,
    /// Further information for readers of the reports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}
