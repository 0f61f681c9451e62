//! What an agent did, judged.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use arenad_verdict::Profile;
use arenad_verdict::question::Told;
use arenad_verdict::{Benchmark, Evaluated, Evidence as EpisodeEvidence, Traffic, Urls};

/// `POST /v1/environments/{environment}/evaluations`: a task, and what an agent left.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvaluationRequest {
    /// The benchmark.
    pub benchmark: Benchmark,
    /// The task as the benchmark publishes it, its placeholders replaced or not; or its number, for a daemon that knows the
    /// benchmarks' files by `ARENAD_BENCHMARK_DATA`.
    pub task: serde_json::Value,
    /// Addresses by placeholder, where they are not the environment's own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub urls: Urls,
    /// What the agent answered: a text, or JSON as WebArena-Verified wants it.
    #[serde(default)]
    pub answer: serde_json::Value,
    /// The URL of the page where it ended.
    #[serde(default)]
    pub url: String,
    /// The traffic of its browser, `{"har": {…}}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<Traffic>,
    /// The CDP address of its browser, for tasks that look at the page where it ended.
    #[serde(default)]
    pub cdp: Option<String>,
    /// As whom sites are looked at, by site; others as their first account that can sign in.
    #[serde(default)]
    pub accounts: BTreeMap<String, String>,
    /// Whose rules; `compat` if nothing is said.
    #[serde(default)]
    pub profiles: Vec<Profile>,
    /// What is known already, such as a judge's replies.
    #[serde(default)]
    pub told: Told,
}

/// The answer to an [`EvaluationRequest`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Evaluation {
    /// The reports.
    pub evaluated: Evaluated,
    /// What they follow from. Questions for a judge are open in it unless the request answered them.
    pub evidence: EpisodeEvidence,
    /// From the request to the answer.
    pub duration_ms: f64,
}
