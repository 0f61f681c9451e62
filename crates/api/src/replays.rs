//! The JSON of replays: recorded sites that are served under their original host names.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::episodes::EpisodeProxy;

/// All replays of an installation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Replays {
    /// The replays by name, without their problems and missed requests.
    pub replays: Vec<Replay>,
}

/// A replay: its content, and the answers that it has given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Replay {
    /// The name of the replay.
    pub name: String,
    /// The time at which it was added.
    pub created_at: String,
    /// The addresses that it answers for, such as `https://www.example.com`.
    pub origins: Vec<String>,
    /// The number of recorded exchanges.
    pub entries: u64,
    /// The size of the recorded bodies, each counted once, in bytes.
    pub size_bytes: u64,
    /// The names of the recordings.
    pub recordings: Vec<String>,
    /// The recordings that could not be read and were left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<ReplayProblem>,
    /// The number of exchanges that cannot be replayed.
    pub left_out: u64,
    /// The exchanges that cannot be replayed, and redirects that lead nowhere; at most 200.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<ReplayProblem>,
    /// The time of the first recorded request; null if the recordings do not state it.
    pub recorded_from: Option<String>,
    /// The time of the last recorded request; null if the recordings do not state it.
    pub recorded_until: Option<String>,
    /// The names of parameters that differ at each visit, in addition to those that arenad knows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moving: Vec<String>,
    /// The answers since the daemon was started.
    pub counts: ReplayCounts,
    /// The latest hundred requests without a recorded answer, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missed: Vec<MissedRequest>,
    /// The ids of the live episodes that use it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub used_by: Vec<String>,
    /// The episode proxy with the credentials of the replay, which need no episode; null in lists, and if the daemon
    /// offers no proxy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<EpisodeProxy>,
}

/// A part of a recording that cannot be replayed, or that leads nowhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayProblem {
    /// The name of the recording.
    pub file: String,
    /// The place in the recording, such as `entry 17`; empty for the whole recording.
    pub place: String,
    /// A description of the problem.
    pub what: String,
}

/// The answers of a replay since the daemon was started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayCounts {
    /// The requests that were answered from the recording.
    pub hits: u64,
    /// The same requests by the rule that found their entry.
    pub rules: Vec<RuleCount>,
    /// The requests among them whose recorded answer is a failure, such as 404.
    pub recorded_failures: u64,
    /// The requests to recorded hosts for which nothing was recorded. They are answered 404.
    pub misses: u64,
    /// The requests to other hosts. They are answered 403 and never reach the network.
    pub forbidden: u64,
    /// The requests for scripts of service workers, which are off. They are answered 404.
    pub service_workers: u64,
}

/// The requests that were answered by one rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuleCount {
    /// The rule: `exact`, `body`, `parameters`, `values`, `head` or `preflight`.
    pub rule: String,
    /// The number of requests.
    pub requests: u64,
}

/// A request without a recorded answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MissedRequest {
    /// The time of the request.
    pub at: String,
    /// `miss` for a recorded host, `forbidden` for any other.
    pub kind: MissKind,
    /// The method, which is CONNECT for a forbidden host of `https`.
    pub method: String,
    /// The URL, or the host and port that are forbidden.
    pub url: String,
}

/// The reason why a request has no recorded answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MissKind {
    /// Nothing was recorded for the request.
    Miss,
    /// The host was not recorded.
    Forbidden,
}

/// The certificate authority under which recorded `https` hosts are served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayCertificate {
    /// The certificate in the form PEM, which clients trust while they use replays.
    pub certificate: String,
    /// The SHA-256 of its public key in base64, for Chromium's `--ignore-certificate-errors-spki-list`.
    pub key_hash: String,
}
