//! Checks of native tasks: how an episode began, and what it came to.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::SourceText;
use arenad_verdict::Report;

/// `POST /v1/environments/{environment}/checks/begin`: an episode of a task begins.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BeginRequest {
    /// The task's name.
    pub task: String,
    /// The task file; without it, the files of the environment's folder are read.
    #[serde(default)]
    pub file: Option<SourceText>,
    /// Whether the task's sites are brought to where it starts first.
    #[serde(default)]
    pub reset: bool,
}

/// How an episode began; a check wants it back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Begun {
    /// The task.
    pub task: String,
    /// The environment.
    pub environment: String,
    /// When.
    pub at: String,
    /// What the agent is told.
    pub intent: String,
    /// The URL that it begins at.
    pub start: String,
    /// As whom it is signed in, by site.
    pub accounts: BTreeMap<String, String>,
    /// The task's sites.
    pub sites: Vec<BegunSite>,
    /// The values that were captured, by name.
    pub values: BTreeMap<String, BegunValue>,
}

/// A site when an episode began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BegunSite {
    /// The site.
    pub site: String,
    /// The instance.
    pub instance: String,
    /// Its generation: another one later means that the site was reset.
    pub generation: u64,
    /// The snapshot that it stood on.
    pub snapshot: Option<String>,
}

/// A captured value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BegunValue {
    /// Its type, as in [`super::Located`].
    #[serde(rename = "type")]
    pub kind: String,
    /// The value, as in [`super::Located`].
    pub value: Json,
    /// What ran.
    pub ran: String,
    /// How long it took.
    pub duration_ms: f64,
}

/// `POST /v1/environments/{environment}/checks`: an episode is judged.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckRequest {
    /// The task's name.
    pub task: String,
    /// The task file; without it, the files of the environment's folder are read.
    #[serde(default)]
    pub file: Option<SourceText>,
    /// How the episode began. Needed where the task captures values; otherwise it shows whether a site was reset since.
    #[serde(default)]
    pub begun: Option<Begun>,
    /// What the agent said in the end.
    #[serde(default)]
    pub answer: String,
    /// Where it ended. Default: where its browser is, if that is given.
    #[serde(default)]
    pub url: Option<String>,
    /// The CDP address of its browser.
    #[serde(default)]
    pub cdp: Option<String>,
    /// Whether what was seen is wanted besides.
    #[serde(default)]
    pub evidence: bool,
}

/// What an episode came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Checked {
    /// The task.
    pub task: String,
    /// The environment.
    pub environment: String,
    /// When it was judged.
    pub at: String,
    /// The answer that was judged.
    pub answer: String,
    /// The URL that was judged; null where nobody said.
    pub url: Option<String>,
    /// The verdict and its parts.
    pub report: Report,
    /// How long it took.
    pub duration_ms: f64,
    /// What it was judged by, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
}

/// All that a check was made by: with the task, enough to make it again without the sites.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// The task.
    pub task: String,
    /// The environment.
    pub environment: String,
    /// When the sites were looked at.
    pub at: String,
    /// What the agent said in the end.
    pub answer: String,
    /// Where it ended; null where nobody said.
    pub url: Option<String>,
    /// What was captured when the episode began, by name: `{"type", "value"}`.
    pub captured: BTreeMap<String, Json>,
    /// What was seen.
    pub seen: Vec<SeenReading>,
}

/// A look at a site.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeenReading {
    /// The site.
    pub site: String,
    /// The locator, as the task has it.
    pub locate: String,
    /// The task's variables in it.
    pub arguments: BTreeMap<String, String>,
    /// The page, where the locator names none.
    pub page: Option<String>,
    /// As whom, where the locator does not say.
    pub account: Option<String>,
    /// What was seen.
    pub seen: Sighted,
    /// How long it took.
    pub duration_ms: f64,
}

/// What was seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sighted {
    /// A value: `{"type", "value"}`.
    Value(Json),
    /// Nothing: what was looked for is not there, for this reason.
    Nothing(String),
    /// Nobody could look, for this reason.
    Unavailable(String),
    /// It cannot be read, for this reason.
    Unsupported(String),
}
