//! The JSON of checks of native tasks: the start of an episode and its verdict.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::{SourceText, ValueKind};
use arenad_verdict::Report;

/// The body of `POST /v1/environments/{environment}/checks/begin`, which begins an episode of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BeginRequest {
    /// The name of the task.
    pub task: String,
    /// The task file; without it, the daemon reads the files of the environment's folder.
    #[serde(default)]
    pub file: Option<SourceText>,
    /// Whether the task's sites are first reset to the state that the task starts from.
    #[serde(default)]
    pub reset: bool,
}

/// The record of how an episode began, which a check takes as input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Begun {
    /// The name of the task.
    pub task: String,
    /// The name of the environment.
    pub environment: String,
    /// The time at which the episode began.
    pub at: String,
    /// The instruction that the agent receives.
    pub intent: String,
    /// The URL that the agent starts at.
    pub start: String,
    /// The account that the agent is signed in as, by site.
    pub accounts: BTreeMap<String, String>,
    /// The sites that the task uses.
    pub sites: Vec<BegunSite>,
    /// The captured values, by name.
    pub values: BTreeMap<String, BegunValue>,
}

/// The state of a site when an episode began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BegunSite {
    /// The name of the site.
    pub site: String,
    /// The id of the instance.
    pub instance: String,
    /// The instance's generation; a different one later means that the site was reset.
    pub generation: u64,
    /// The snapshot that the instance was started from or reset to.
    pub snapshot: Option<String>,
}

/// A value that was captured when an episode began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BegunValue {
    /// The type of the value, as in [`super::LocateResponse`].
    #[serde(rename = "type")]
    pub kind: ValueKind,
    /// The value, as in [`super::LocateResponse`].
    pub value: Json,
    /// The query, request, script or command that ran.
    pub ran: String,
    /// The time that the capture took.
    pub duration_ms: f64,
}

/// The body of `POST /v1/environments/{environment}/checks`, which judges an episode.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckRequest {
    /// The name of the task.
    pub task: String,
    /// The task file; without it, the daemon reads the files of the environment's folder.
    #[serde(default)]
    pub file: Option<SourceText>,
    /// The record of how the episode began. Required if the task captures values; otherwise it shows whether a site was
    /// reset since.
    #[serde(default)]
    pub begun: Option<Begun>,
    /// The agent's final answer.
    #[serde(default)]
    pub answer: String,
    /// The URL at which the episode ended. Default: the URL of the agent's browser, if `cdp` is given.
    #[serde(default)]
    pub url: Option<String>,
    /// The CDP address of the agent's browser.
    #[serde(default)]
    pub cdp: Option<String>,
    /// Whether the answer includes the evidence.
    #[serde(default)]
    pub evidence: bool,
}

/// The outcome of an episode.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Checked {
    /// The name of the task.
    pub task: String,
    /// The name of the environment.
    pub environment: String,
    /// The time at which the episode was judged.
    pub at: String,
    /// The answer that was judged.
    pub answer: String,
    /// The URL that was judged; null if none was given.
    pub url: Option<String>,
    /// The verdict and the results that it consists of.
    pub report: Report,
    /// The time that the check took.
    pub duration_ms: f64,
    /// The evidence that the verdict is based on, if the request asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<CheckEvidence>,
}

/// The complete evidence of a check: with the task, it suffices to repeat the check without the sites.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckEvidence {
    /// The name of the task.
    pub task: String,
    /// The name of the environment.
    pub environment: String,
    /// The time at which the sites were read.
    pub at: String,
    /// The agent's final answer.
    pub answer: String,
    /// The URL at which the episode ended; null if none was given.
    pub url: Option<String>,
    /// The values that were captured when the episode began, by name: `{"type", "value"}`.
    pub captured: BTreeMap<String, Json>,
    /// The readings that were taken of the sites.
    pub seen: Vec<SeenReading>,
}

/// One reading of a site.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SeenReading {
    /// The name of the site.
    pub site: String,
    /// The locator, as the task states it.
    pub locate: String,
    /// The values of the task's variables in the locator.
    pub arguments: BTreeMap<String, String>,
    /// The page to read, if the locator names none.
    pub page: Option<String>,
    /// The account to read as, if the locator names none.
    pub account: Option<String>,
    /// The outcome of the reading.
    pub seen: Sighted,
    /// The time that the reading took.
    pub duration_ms: f64,
}

/// The outcome of one reading.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sighted {
    /// A value: `{"type", "value"}`.
    Value(Json),
    /// No value, because the object does not exist; holds the reason.
    Nothing(String),
    /// No value, because the reading failed; holds the reason.
    Unavailable(String),
    /// No value, because this kind of reading is not supported; holds the reason.
    Unsupported(String),
}
