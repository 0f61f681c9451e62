//! The JSON of environments: requests to bring them up and down, and their status.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ConditionKind, ConditionStatus, InstanceState, Reset, SlotOccupation, SourceText, StandbyState};

/// The body of `PUT /v1/environments/{environment}`: the definition, and the sites to bring up.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpRequest {
    /// The folder that holds `environments/` and `compose/`.
    pub root: String,
    /// The content of `environments/<name>.yaml`.
    pub environment: SourceText,
    /// The content of `compose/<name>.yaml`.
    pub compose: SourceText,
    /// The content of the `.env` file in the folder of the Compose file.
    pub dotenv: Option<SourceText>,
    /// The variables of the caller's shell that the files refer to.
    pub variables: BTreeMap<String, String>,
    /// The names of the sites to bring up; empty means all.
    #[serde(default)]
    pub sites: Vec<String>,
    /// Whether to start the sites even if memory or disk space is insufficient.
    #[serde(default)]
    pub force: bool,
    /// Whether to recreate sites that are up with variables that this request does not set.
    #[serde(default)]
    pub recreate: bool,
    /// Whether the containers of a failed baseline build are kept.
    #[serde(default)]
    pub keep_failed: bool,
}

/// A selection of an environment's sites.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SitesRequest {
    /// The names of the sites; empty means all.
    #[serde(default)]
    pub sites: Vec<String>,
}

/// The body of `POST /v1/environments/{environment}/down`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DownRequest {
    /// The names of the sites; empty means all.
    #[serde(default)]
    pub sites: Vec<String>,
    /// Whether to remove snapshots and built images as well.
    #[serde(default)]
    pub purge: bool,
}

/// One aspect of an object's status, modeled on the conditions of Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Condition {
    /// The type of the condition: `Ready`, `EngineReachable` or `DiskSpace`.
    #[serde(rename = "type")]
    pub kind: ConditionKind,
    /// The value of the condition: `True`, `False` or `Unknown`.
    pub status: ConditionStatus,
    /// The reason for the status, as a machine-readable word.
    pub reason: String,
    /// A sentence for people; empty if there is nothing to add.
    pub message: String,
    /// The time since which the status has had its current value.
    pub last_transition_time: String,
}

/// The answer to `GET /v1/status`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Status {
    /// The daemon that answers.
    pub daemon: DaemonStatus,
    /// The conditions of the host as a whole.
    pub conditions: Vec<Condition>,
    /// The environments that are up, by name.
    pub environments: Vec<EnvironmentStatus>,
}

/// The process and the settings of a daemon.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DaemonStatus {
    /// The version of the daemon.
    pub version: String,
    /// The process id of the daemon.
    pub pid: u32,
    /// The installation's id, which the labels of all objects that it creates contain.
    pub installation: String,
    /// The directory that holds the daemon's files.
    pub state_dir: String,
    /// Whether `arenad up` started it.
    pub background: bool,
    /// The time at which the daemon was started.
    pub started_at: String,
    /// The address of the engine.
    pub engine: String,
    /// The address of the episode proxy, such as `http://127.0.0.1:7500`; null if there is none.
    #[serde(default)]
    pub proxy: Option<String>,
    /// The address of the reset server of harnesses, such as `http://127.0.0.1:7565`; null if there is none.
    #[serde(default)]
    pub compat: Option<String>,
    /// The limits of episodes.
    #[serde(default)]
    pub episodes: EpisodeLimitStatus,
    /// Limitations of this host, each with its reason.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// The limits of episodes that a daemon was started with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EpisodeLimitStatus {
    /// The most episodes at once of each owner without a quota of its own.
    pub quota: usize,
    /// The most episodes at once of single owners.
    pub quotas: BTreeMap<String, usize>,
    /// The most requests that wait for slots.
    pub queue: usize,
    /// The most requests of one owner that wait for slots.
    pub owner_queue: usize,
    /// The longest time to live.
    pub ttl_seconds: u64,
}

/// The status of an environment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EnvironmentStatus {
    /// The name of the environment.
    pub name: String,
    /// The description in the definition.
    pub description: String,
    /// The host name in the environment's URLs.
    pub host: String,
    /// The sites of the environment, in the definition's order.
    pub sites: Vec<SiteStatus>,
}

/// A site and its serving instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SiteStatus {
    /// The name of the environment.
    pub environment: String,
    /// The name of the site.
    pub name: String,
    /// The display name of the site.
    pub title: String,
    /// The URL at which browsers reach the site.
    pub url: String,
    /// The name that benchmarks use for its address, such as `SHOPPING`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variable: Option<String>,
    /// The id of the instance that serves the site.
    pub instance: String,
    /// The instance's state: `down`, `preparing`, `starting`, `ready`, `unhealthy`, `resetting`, `stopping` or
    /// `failed`.
    pub state: InstanceState,
    /// The time at which the instance entered its state.
    pub since: String,
    /// The step that is in progress.
    pub stage: Option<String>,
    /// The most recent probe failure while the instance is starting.
    pub waiting_for: Option<String>,
    /// The reason why the site is not healthy.
    pub reason: Option<String>,
    /// The action that may fix the failure.
    pub hint: Option<String>,
    /// The instance's generation, which counts how often its containers were created.
    pub generation: u64,
    /// The snapshot that the instance starts from.
    pub snapshot: Option<String>,
    /// The time at which its probes last passed.
    pub last_passed: Option<String>,
    /// The containers of the serving generation.
    pub containers: Vec<SiteContainer>,
    /// Whether the site declares stores, which `verify` compares.
    #[serde(default)]
    pub has_stores: bool,
    /// The generations that are ready, or are being prepared, to take over at a reset.
    #[serde(default)]
    pub standbys: Standbys,
    /// The writes that were detected on a read-only site.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<ReadOnlyWrites>,
    /// Whether `arenad exec` or `shell` has run commands in the site's containers. The effects of those commands are
    /// unverified until a reset, which creates new containers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_been_entered: bool,
    /// The slots, by number; empty if the site has slot 1 alone, or if all episodes share it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slots: Vec<SlotStatus>,
    /// The content of `state` as conditions, for programs that expect them.
    pub conditions: Vec<Condition>,
    /// The most recent reset that has ended.
    pub last_reset: Option<Reset>,
}

/// One of several slots of a site, and the state of its instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SlotStatus {
    /// The number among the slots of the site, from 1. Slot 1 is at the public port.
    pub number: u32,
    /// The id of the instance.
    pub instance: String,
    /// The own port of the slot, at which the client of its episode reaches it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The state of the instance.
    pub state: InstanceState,
    /// The time at which the instance entered its state.
    pub since: String,
    /// The reason why the instance is not healthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The generation of the instance.
    pub generation: u64,
    /// The use of the slot: `free`, `preparing`, `leased` or `recycling`.
    pub occupation: SlotOccupation,
    /// The episode that has the slot, or that it is being prepared for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub episode: Option<String>,
    /// The containers of the serving generation.
    #[serde(default)]
    pub containers: Vec<SiteContainer>,
}

/// Writes to a read-only site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReadOnlyWrites {
    /// The number of requests that may have written; a search may be one.
    pub requests: u64,
    /// The time of the first such request.
    pub since: String,
    /// The difference from the snapshot, if there is one; the site is about to be reset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<String>,
}

/// The standbys of a site, wanted and present. All of its slots share them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Standbys {
    /// The number of standbys that the definition asks for, for the number of slots that the site has.
    pub wanted: usize,
    /// The existing standbys. The list is empty until the site has been written to or reset.
    pub members: Vec<Standby>,
    /// The reason why there are fewer than wanted, if something prevents more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lack: Option<String>,
}

/// A generation that can take over at a reset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Standby {
    /// The generation on its containers' labels.
    pub generation: u64,
    /// The standby's state: `making`, `running`, `frozen` or `used`.
    pub state: StandbyState,
}

/// A container of a site.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SiteContainer {
    /// The name of the service.
    pub service: String,
    /// The engine's id of the container.
    pub id: String,
    /// The container's address on its network.
    pub address: Option<String>,
}

/// The body of `POST /v1/environments/{environment}/sites/{site}/entries`, which announces a command that a person runs
/// in a container.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EntryRequest {
    /// The name of the service; the default is the service of the site's entry point.
    #[serde(default)]
    pub service: Option<String>,
}

/// The container in which the command is to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContainerEntry {
    /// The name of the environment.
    pub environment: String,
    /// The name of the site.
    pub site: String,
    /// The name of the service.
    pub service: String,
    /// The engine's id of the container.
    pub container: String,
    /// The address of the engine, as the daemon sees it.
    pub engine: String,
    /// The generation; null for a container that was kept from a failed baseline build.
    pub generation: Option<u64>,
}
