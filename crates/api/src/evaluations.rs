//! The JSON of evaluations: an agent's actions, judged by the rules of a benchmark.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use arenad_verdict::Profile;
use arenad_verdict::question::KnownAnswers;
use arenad_verdict::{Benchmark, EpisodeEvidence, EpisodeReports, Traffic, Urls};

/// The body of `POST /v1/environments/{environment}/evaluations`: a task, and the results of an agent.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EvaluationRequest {
    /// The benchmark that the task belongs to.
    pub benchmark: Benchmark,
    /// The task as the benchmark publishes it, with its placeholders replaced or not; or its number, if the daemon has
    /// the benchmarks' files (`ARENAD_BENCHMARK_DATA`).
    pub task: serde_json::Value,
    /// The addresses that replace the environment's own, by placeholder.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub urls: Urls,
    /// The agent's answer: a text, or JSON as WebArena-Verified requires it.
    #[serde(default)]
    pub answer: serde_json::Value,
    /// The URL of the page at which the episode ended.
    #[serde(default)]
    pub url: String,
    /// The traffic of the agent's browser, `{"har": {…}}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<Traffic>,
    /// The CDP address of the agent's browser, for tasks that examine the page at which the episode ended.
    #[serde(default)]
    pub cdp: Option<String>,
    /// The account for reading each site; other sites are read as their first account that can sign in.
    #[serde(default)]
    pub accounts: BTreeMap<String, String>,
    /// The profiles to judge by; `compat` if empty.
    #[serde(default)]
    pub profiles: Vec<Profile>,
    /// The facts that are known already, such as a judge's replies.
    #[serde(default)]
    pub told: KnownAnswers,
}

/// The answer to an [`EvaluationRequest`].
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Evaluation {
    /// The reports, one for each profile.
    pub evaluated: EpisodeReports,
    /// The evidence that the reports follow from. It contains open questions for a judge unless the request answered
    /// them.
    pub evidence: EpisodeEvidence,
    /// The time from the request to the answer.
    pub duration_ms: f64,
}
