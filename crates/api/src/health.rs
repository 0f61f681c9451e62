//! The JSON of the health-check history.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{InstanceState, ProbeKind};

/// The answer to `GET /v1/health`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    /// The sites that are up, by environment and in the definition's order, each with all of its slots by number.
    pub sites: Vec<SiteHealth>,
}

/// The health-check history of a site, or of one of its slots.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SiteHealth {
    /// The name of the environment.
    pub environment: String,
    /// The name of the site.
    pub site: String,
    /// The id of the instance that serves the site.
    pub instance: String,
    /// The instance's state, as in [`super::SiteStatus`].
    pub state: InstanceState,
    /// The time at which the instance entered its state.
    pub since: String,
    /// The reason why the instance is not healthy.
    pub reason: Option<String>,
    /// The histories of the site's probes, by kind.
    pub probes: Vec<ProbeRounds>,
}

/// The rounds of one kind of probe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeRounds {
    /// The kind of probe: `shallow` or `deep`.
    pub kind: ProbeKind,
    /// The schedule of the rounds: `every 3s`, or a cron expression with its time zone.
    pub schedule: String,
    /// The names of the probes.
    pub names: Vec<String>,
    /// The number of consecutive failed rounds after which the instance counts as unhealthy.
    pub failures: u32,
    /// The number of rounds in `rounds`.
    pub count: usize,
    /// The number of rounds that passed.
    pub passed: usize,
    /// The share of rounds that passed, from 0 to 1; null if there are none.
    pub success_rate: Option<f64>,
    /// The median duration of the rounds; null if there are none.
    pub median_ms: Option<f64>,
    /// The duration of the longest round; null if there are none.
    pub longest_ms: Option<f64>,
    /// The rounds, newest first.
    pub rounds: Vec<Round>,
}

/// One round of probes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Round {
    /// The time at which the round began.
    pub at: String,
    /// The generation that was probed.
    pub generation: u64,
    /// Whether all probes passed.
    pub ok: bool,
    /// The first probe that failed, and what it observed.
    pub reason: Option<String>,
    /// The time that the round took.
    pub duration_ms: f64,
}
