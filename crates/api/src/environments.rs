//! Environments: bringing them up and down, and what of them is there.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Reset, SourceText};

/// `PUT /v1/environments/{environment}`: the definition, and which of its sites to bring up.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpRequest {
    /// The folder that holds `environments/` and `compose/`.
    pub root: String,
    /// `environments/<name>.yaml`.
    pub environment: SourceText,
    /// `compose/<name>.yaml`.
    pub compose: SourceText,
    /// The `.env` beside the Compose file.
    pub dotenv: Option<SourceText>,
    /// The variables of the caller's shell that the files mention.
    pub variables: BTreeMap<String, String>,
    /// Site names; empty is all.
    #[serde(default)]
    pub sites: Vec<String>,
    /// Whether to start them even where memory or space does not suffice.
    #[serde(default)]
    pub force: bool,
    /// Whether to make sites anew that are up with variables which are not given now.
    #[serde(default)]
    pub recreate: bool,
    /// Whether the containers of a baseline that cannot be made stay.
    #[serde(default)]
    pub keep_failed: bool,
}

/// Names of sites; empty is all.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SitesRequest {
    /// Site names.
    #[serde(default)]
    pub sites: Vec<String>,
}

/// `POST /v1/environments/{environment}/down`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DownRequest {
    /// Site names; empty is all.
    #[serde(default)]
    pub sites: Vec<String>,
    /// Whether snapshots and built images go too.
    #[serde(default)]
    pub purge: bool,
}

/// One aspect of an object, in the manner of Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// `Ready`, `EngineReachable`, `DiskSpace`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False`, `Unknown`.
    pub status: String,
    /// A word for programs.
    pub reason: String,
    /// A sentence for people; empty where there is nothing to say.
    pub message: String,
    /// Since when the status is what it is.
    pub last_transition_time: String,
}

/// `GET /v1/status`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The daemon.
    pub daemon: Daemon,
    /// What holds for the host as a whole.
    pub conditions: Vec<Condition>,
    /// The environments that are up, by name.
    pub environments: Vec<Environment>,
}

/// The daemon.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Daemon {
    /// Its version.
    pub version: String,
    /// Its process id.
    pub pid: u32,
    /// The installation's id, on the labels of everything it creates.
    pub installation: String,
    /// Where it keeps its files.
    pub state_dir: String,
    /// Whether `arenad up` started it.
    pub background: bool,
    /// When it was started.
    pub started_at: String,
    /// Where the engine is.
    pub engine: String,
    /// What works less well than it could on this host, and why.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// An environment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Its name.
    pub name: String,
    /// What it is.
    pub description: String,
    /// The host name in its URLs.
    pub host: String,
    /// Its sites, in the definition's order.
    pub sites: Vec<Site>,
}

/// A site and its serving instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Site {
    /// The environment.
    pub environment: String,
    /// The site's name.
    pub name: String,
    /// What people call it.
    pub title: String,
    /// Where browsers find it.
    pub url: String,
    /// The name that benchmarks have for its address, such as `SHOPPING`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variable: Option<String>,
    /// The instance that serves it.
    pub instance: String,
    /// `down`, `preparing`, `starting`, `ready`, `unhealthy`, `resetting`, `stopping`, `failed`.
    pub state: String,
    /// Since when.
    pub since: String,
    /// What is being done right now.
    pub stage: Option<String>,
    /// The last probe failure while readiness is awaited.
    pub waiting_for: Option<String>,
    /// What is wrong.
    pub reason: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
    /// Counts the times that its containers were made.
    pub generation: u64,
    /// The snapshot that it starts from.
    pub snapshot: Option<String>,
    /// When its probes last passed.
    pub last_passed: Option<String>,
    /// Its containers.
    pub containers: Vec<Container>,
    /// Whether it declares stores, so that `verify` has something to compare.
    #[serde(default)]
    pub has_stores: bool,
    /// What is ready to take over at a reset, or is being made ready.
    #[serde(default)]
    pub standbys: Standbys,
    /// What is known of writes to a site that is only read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<Written>,
    /// Whether `arenad exec` or `shell` has run commands in its containers: what those changed is unproven until a reset, which
    /// makes new containers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_been_entered: bool,
    /// The same as `state`, for programs that know conditions.
    pub conditions: Vec<Condition>,
    /// The last reset that ended.
    pub last_reset: Option<Reset>,
}

/// Writes to a site that is only read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// Requests that may write; a search may be one.
    pub requests: u64,
    /// When the first was seen.
    pub since: String,
    /// What differs from the snapshot, if anything does; it is about to be brought back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<String>,
}

/// The standbys of a site.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Standbys {
    /// How many the definition wants.
    pub wanted: usize,
    /// Those that there are. There are none before the site has been written to or reset.
    pub members: Vec<Standby>,
    /// Why there are fewer than wanted, where something is in the way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lack: Option<String>,
}

/// A standby.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standby {
    /// The generation on its containers' labels.
    pub generation: u64,
    /// `making`, `running`, `frozen`, `used`.
    pub state: String,
}

/// A container.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Container {
    /// The service.
    pub service: String,
    /// The engine's id of it.
    pub id: String,
    /// Its address on its network.
    pub address: Option<String>,
}

/// `POST /v1/environments/{environment}/sites/{site}/entries`: a command is about to be run in a container by hand.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EntryRequest {
    /// The service; without one, that of the site's entry.
    #[serde(default)]
    pub service: Option<String>,
}

/// Where the command is to be run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The environment.
    pub environment: String,
    /// The site.
    pub site: String,
    /// The service.
    pub service: String,
    /// The engine's id of the container.
    pub container: String,
    /// Where the engine is, as the daemon sees it.
    pub engine: String,
    /// The generation; null where it is the kept container of a baseline that could not be made.
    pub generation: Option<u64>,
}
