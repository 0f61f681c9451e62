//! What watching has seen.

use serde::{Deserialize, Serialize};

/// `GET /v1/health`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Health {
    /// The sites that are up, by environment and in the definition's order.
    pub sites: Vec<SiteHealth>,
}

/// What watching has seen of a site.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SiteHealth {
    /// The environment.
    pub environment: String,
    /// The site.
    pub site: String,
    /// The instance that serves it.
    pub instance: String,
    /// Its state, as in [`Site`].
    pub state: String,
    /// Since when.
    pub since: String,
    /// What is wrong.
    pub reason: Option<String>,
    /// The kinds of probes that it is watched with.
    pub probes: Vec<HealthProbes>,
}

/// The rounds of one kind of probes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HealthProbes {
    /// `shallow`, `deep`.
    pub kind: String,
    /// When a round is due: `every 3s`, or a cron expression with its time zone.
    pub schedule: String,
    /// The names of the probes.
    pub names: Vec<String>,
    /// How many rounds must fail in a row before the instance counts as unhealthy.
    pub failures: u32,
    /// How many rounds follow.
    pub count: usize,
    /// How many of them passed.
    pub passed: usize,
    /// The share of them that passed, from 0 to 1; null where there are none.
    pub success_rate: Option<f64>,
    /// How long the middle one of them took; null where there are none.
    pub median_ms: Option<f64>,
    /// How long the longest of them took; null where there are none.
    pub longest_ms: Option<f64>,
    /// The newest first.
    pub rounds: Vec<Round>,
}

/// One round of probes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// When it began.
    pub at: String,
    /// The generation that it looked at.
    pub generation: u64,
    /// Whether all of its probes passed.
    pub ok: bool,
    /// The first probe that failed, and what it saw.
    pub reason: Option<String>,
    /// How long it took.
    pub duration_ms: f64,
}
