//! The JSON of episodes: leases on a slot of each of several sites.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::checks::{Begun, Checked};
use super::{
    EpisodeRecording, EpisodeStatus, EpisodeVerdict, Evaluation, EvaluationRequest, SourceText, StorageCookie,
};

/// The header that makes repetitions of a request for an episode get the same episode.
pub const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// The label that names the task of an episode, unless the client uses it for something else.
pub const TASK_LABEL: &str = "task";

/// The time for which a request waits for slots if it states none, in seconds.
pub const DEFAULT_WAIT_SECONDS: u64 = 60;

/// The owner of episodes whose requests name none.
pub const DEFAULT_OWNER: &str = "default";

/// The body of `POST /v1/episodes`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EpisodeStartRequest {
    /// The name of the environment. Default: the only one that is up, or that has the sites or the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    /// The names of the sites; empty means those of the task, or all sites without a task.
    #[serde(default)]
    pub sites: Vec<String>,
    /// The name of a native task, which determines sites and snapshots, and becomes the label `task`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The task file; without it, the daemon reads the files of the environment's folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<SourceText>,
    /// The names of the snapshots from which sites start, by site. All other sites start from their baselines.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub snapshots: BTreeMap<String, String>,
    /// The numbers of slots, by site. All other sites get any slot.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub slots: BTreeMap<String, u32>,
    /// The time after which the episode ends without a heartbeat. Default: 600.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds: Option<u64>,
    /// The longest time that the request waits for slots. Default: 60. With 0 it is granted at once or not at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_seconds: Option<u64>,
    /// Whether the daemon answers before the grant. Otherwise a client that closes the connection while it waits
    /// withdraws its request, unless the request has an idempotency key.
    #[serde(default)]
    pub detach: bool,
    /// Whether the connection of the request holds the episode: the answer is a stream of server-sent events, first
    /// `started` with a [`StartedEpisode`], then those of `GET /v1/episodes/{id}/hold`.
    #[serde(default)]
    pub hold: bool,
    /// The person or program that the episode is counted for. Default: `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Labels by which the client finds the episode again.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The requests that are recorded: `all`, `writes` or `none`. Default: `none`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<EpisodeRecording>,
    /// The names of replays, whose hosts the episode reaches through the episode proxy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replays: Vec<String>,
    /// The id of a running episode, from whose present state the episode starts. It determines the environment, the
    /// sites and the task; its owner, labels and time to live are the defaults of the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_episode: Option<String>,
}

/// The maximum number of children of one fork.
pub const MOST_CHILDREN: u32 = 64;

/// The body of `POST /v1/episodes/{id}/fork`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EpisodeForkRequest {
    /// The number of children, from 1 to 64. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub children: Option<u32>,
    /// The time after which a child ends without a heartbeat. Default: that of the parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds: Option<u64>,
    /// The longest time that the children wait for slots. Default: 60.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_seconds: Option<u64>,
    /// Whether the daemon answers when the state of the parent is copied, without waiting for slots.
    #[serde(default)]
    pub detach: bool,
    /// The person or program that the children are counted for. Default: that of the parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Labels of the children, in addition to those of the parent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The requests of the children that are recorded: `all`, `writes` or `none`. Default: as for the parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<EpisodeRecording>,
}

/// The answer to an [`EpisodeForkRequest`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ForkedEpisodes {
    /// The id of the episode whose state was copied.
    pub parent: String,
    /// The children. Those for which no slot came free in time have ended.
    pub children: Vec<StartedEpisode>,
}

/// The answer to an [`EpisodeStartRequest`].
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StartedEpisode {
    /// The episode. It is `active`, or `queued` or `preparing` if the request was detached.
    pub episode: ReportedEpisode,
    /// The secret that opens the episode to its client. It is shown only here; a repetition gets another one.
    pub token: String,
    /// The episode proxy, with the credentials of the episode; null if the daemon offers none.
    #[serde(default)]
    pub proxy: Option<EpisodeProxy>,
    /// Whether the request repeats an earlier one with the same idempotency key, whose episode it gets.
    pub is_known: bool,
}

impl std::fmt::Debug for StartedEpisode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { episode, is_known, .. } = self;
        f.debug_struct("StartedEpisode").field("episode", episode).field("is_known", is_known).finish_non_exhaustive()
    }
}

/// The episode proxy, in the form of Playwright's option `proxy`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EpisodeProxy {
    /// The address of the proxy, such as `http://127.0.0.1:7500`.
    pub server: String,
    /// The user name, which is the id of the episode.
    pub username: String,
    /// The password, which is the token of the episode.
    pub password: String,
}

impl EpisodeProxy {
    /// Returns the address with the credentials in it, for clients that take a single URL.
    pub fn url(&self) -> String {
        let Self { server, username, password } = self;
        // Neither the id nor the token has characters that a URL escapes.
        match server.split_once("://") {
            Some((scheme, address)) => format!("{scheme}://{username}:{password}@{address}"),
            None => server.clone(),
        }
    }
}

impl std::fmt::Debug for EpisodeProxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { server, username, .. } = self;
        f.debug_struct("EpisodeProxy").field("server", server).field("username", username).finish_non_exhaustive()
    }
}

/// An episode at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReportedEpisode {
    /// The id of the episode. It is not a secret.
    pub id: String,
    /// The name of the environment.
    pub environment: String,
    /// The state: `queued`, `preparing`, `active`, `frozen`, `released`, `expired` or `void`.
    pub state: EpisodeStatus,
    /// The person or program that the episode is counted for.
    pub owner: String,
    /// The labels that the client gave.
    pub labels: BTreeMap<String, String>,
    /// The requests that are recorded: `all`, `writes` or `none`; null from daemons that do not record episodes.
    #[serde(default)]
    pub record: Option<EpisodeRecording>,
    /// The sites, in the order of the request.
    pub sites: Vec<EpisodeSite>,
    /// The names of the replays whose hosts the episode reaches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replays: Vec<String>,
    /// The time to live.
    pub ttl_seconds: f64,
    /// The time until the episode ends without a heartbeat; before the grant, the time that the request still waits.
    pub left_seconds: f64,
    /// Whether a connection holds the episode, which suspends the time to live.
    pub is_held: bool,
    /// The time of the request.
    pub asked_at: String,
    /// The time of the grant; null before it.
    pub granted_at: Option<String>,
    /// The time of the end; null before it.
    pub ended_at: Option<String>,
    /// How the episode ended; null before its end.
    pub ending: Option<ReportedEnding>,
    /// The id of the episode that this one was forked from; null if it was not forked.
    #[serde(default)]
    pub forked_from: Option<String>,
    /// The newest hundred evaluations, oldest first. They are left out of lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evaluations: Vec<ReportedEvaluation>,
    /// The environment variables that benchmarks read, with the addresses of this episode's sites. They are left out of
    /// lists and of episodes without slots.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, String>,
    /// The same variables with the URLs at the slots' own ports, for clients that take no proxy. They are left out as
    /// well if a site of the episode has neither such a URL nor a public one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub port_variables: BTreeMap<String, String>,
}

/// An evaluation of an episode, without its evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReportedEvaluation {
    /// The time of the verdict.
    pub at: String,
    /// The native task by name, or the benchmark and the number of its task, such as `webarena/42`.
    pub task: String,
    /// The verdict: `passed`, `failed`, `needs_judge`, `inconclusive` or `unsupported`.
    pub verdict: String,
    /// 1 if the task was accomplished, 0 if it was not, and null otherwise.
    pub reward: Option<f64>,
}

impl ReportedEpisode {
    /// Whether variables lead to all sites through the proxy, because a site has no public URL. Harnesses take all sites
    /// from one place.
    pub fn is_proxied(&self) -> bool {
        self.sites.iter().any(|site| site.url.is_none() && site.proxy_url.is_some())
    }

    /// Whether clients reach all sites without the proxy, at least one of them at the own port of its slot.
    pub fn has_ports(&self) -> bool {
        self.sites.iter().all(|site| site.direct_url().is_some())
            && self.sites.iter().any(|site| site.port_url.is_some())
    }
}

/// A site of an episode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EpisodeSite {
    /// The name of the site.
    pub site: String,
    /// The number of the slot; null before the grant, and for a site that all episodes share.
    pub slot: Option<u32>,
    /// The id of the instance; null before the grant, and for a site that all episodes share.
    pub instance: Option<String>,
    /// The generation that serves the episode; null before the slot is prepared.
    pub generation: Option<u64>,
    /// The name of the snapshot from which the site starts; null for its baseline.
    pub snapshot: Option<String>,
    /// The public URL of the site; null unless the client can reach it there, which is the case for slot 1 and for a
    /// site that all episodes share.
    pub url: Option<String>,
    /// The URL of the site through the episode proxy, such as `http://shopping.arena.test`; null unless the client can
    /// reach it.
    #[serde(default)]
    pub proxy_url: Option<String>,
    /// The URL at the own port of the slot, such as `http://localhost:17780`, for clients that take no proxy; null unless
    /// the client can reach it.
    #[serde(default)]
    pub port_url: Option<String>,
}

impl EpisodeSite {
    /// Returns the URL of the site without the proxy.
    pub fn direct_url(&self) -> Option<&String> {
        self.port_url.as_ref().or(self.url.as_ref())
    }
}

/// How an episode ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReportedEnding {
    /// The state: `released`, `expired` or `void`.
    pub state: EpisodeStatus,
    /// The cause, as a stable word, such as `client`, `hold_closed`, `wait`, `ttl` or `container_died`.
    pub code: String,
    /// The cause as a sentence.
    pub reason: String,
    /// The id of the instance that failed, if a single one did.
    pub slot: Option<String>,
}

/// The answer to `GET /v1/episodes`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EpisodeList {
    /// The episodes, in the order of their requests.
    pub episodes: Vec<ReportedEpisode>,
}

/// The answer to `GET /v1/episodes/queue`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EpisodeQueueList {
    /// The requests that wait for slots, in the order of their arrival.
    pub requests: Vec<QueuedRequest>,
}

/// A request that waits for slots.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QueuedRequest {
    /// The id of the episode that the request becomes.
    pub id: String,
    /// The place among all requests, from 1.
    pub position: usize,
    /// The number of earlier requests for one of the same sites, for the site where it is highest.
    pub ahead: usize,
    /// Whether the request waits until an episode of its owner ends.
    pub is_over_quota: bool,
    /// The estimated wait; null if there is nothing to estimate it from.
    pub estimate_seconds: Option<f64>,
    /// The person or program that the request is counted for.
    pub owner: String,
    /// The name of the environment.
    pub environment: String,
    /// The names of the sites.
    pub sites: Vec<String>,
    /// The time of the request.
    pub asked_at: String,
}

/// The body of `POST /v1/episodes/{id}/heartbeat`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HeartbeatRequest {
    /// The time from now on after which the episode ends without a further heartbeat. Default: its time to live.
    #[serde(default)]
    pub extend_seconds: Option<u64>,
}

/// A change of an episode's state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EpisodeStateEvent {
    /// The event's sequence number among the events of all episodes.
    pub seq: i64,
    /// The time of the change.
    pub at: String,
    /// The id of the episode.
    pub episode: String,
    /// The state that the episode has entered.
    pub state: EpisodeStatus,
    /// How the episode ended; null if it did not.
    pub ending: Option<ReportedEnding>,
}

/// The body of `POST /v1/episodes/{id}/evaluations/begin`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EpisodeBeginRequest {
    /// The name of the native task. Default: the label `task`.
    #[serde(default)]
    pub task: Option<String>,
    /// The task file; without it, the daemon reads the files of the environment's folder.
    #[serde(default)]
    pub file: Option<SourceText>,
}

/// The body of `POST /v1/episodes/{id}/evaluations`: a native task, or `benchmark` alone.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EpisodeEvaluationRequest {
    /// The name of the native task. Default: the label `task`.
    #[serde(default)]
    pub task: Option<String>,
    /// The task file; without it, the daemon reads the files of the environment's folder.
    #[serde(default)]
    pub file: Option<SourceText>,
    /// The record of how the episode began. Required if the task captures values.
    #[serde(default)]
    pub begun: Option<Begun>,
    /// The agent's final answer. Default: that of `stop` in the browser of the episode.
    #[serde(default)]
    pub answer: String,
    /// The URL at which the episode ended. Default: the URL of the agent's browser, if `cdp` is given, or else of the
    /// browser of the episode, if it has one.
    #[serde(default)]
    pub url: Option<String>,
    /// The CDP address of the agent's browser.
    #[serde(default)]
    pub cdp: Option<String>,
    /// Whether the answer includes the evidence of a native task.
    #[serde(default)]
    pub evidence: bool,
    /// The task of a benchmark, with the results of the agent.
    #[serde(default)]
    pub benchmark: Option<EvaluationRequest>,
    /// Whether the answer includes a certificate. Default: true. Without one, the stores of the sites are not read.
    #[serde(default)]
    pub certificate: Option<bool>,
}

/// The answer to an [`EpisodeEvaluationRequest`].
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct EpisodeEvaluation {
    /// The id of the episode.
    pub episode: String,
    /// The verdict; for a benchmark, by the first of the requested profiles. `void` if the environment failed the
    /// episode.
    pub verdict: EpisodeVerdict,
    /// 1 if the task was accomplished, 0 if it was not, and null otherwise.
    pub reward: Option<f64>,
    /// How the environment failed the episode, if the verdict is `void`.
    pub ending: Option<ReportedEnding>,
    /// The judgement on a native task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<Checked>,
    /// The judgement on a task of a benchmark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluation: Option<Evaluation>,
    /// The signed certificate of the verdict; left out if it is `void`, or the request wanted none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<Json>,
}

/// The answer to `GET /v1/certificates/key`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CertificateKey {
    /// The algorithm of the signatures: `ed25519`.
    pub algorithm: String,
    /// The public key of the installation, in 64 hexadecimal digits.
    pub key: String,
}

/// The answer to `GET /v1/episodes/{id}/storage-state/{site}`, in the form of Playwright's `storageState`.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StorageState {
    /// The cookies of the session.
    pub cookies: Vec<StorageCookie>,
    /// Always empty: no site of an environment keeps its session in a browser's local storage.
    pub origins: Vec<Json>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_needs_nothing_and_refuses_misspelled_fields() {
        let empty: EpisodeStartRequest = serde_json::from_value(json!({})).expect("valid");
        assert_eq!(empty, EpisodeStartRequest::default());
        let slots: EpisodeStartRequest = serde_json::from_value(json!({ "slots": { "shop": 1 } })).expect("valid");
        assert_eq!(slots.slots["shop"], 1);
        for body in [json!({ "site": ["shop"] }), json!({ "ttl": 5 }), json!({ "ttl_seconds": -1 })] {
            assert!(serde_json::from_value::<EpisodeStartRequest>(body.clone()).is_err(), "{body}");
        }
        assert!(serde_json::from_value::<HeartbeatRequest>(json!({ "ttl_seconds": 5 })).is_err());
        assert!(serde_json::from_value::<EpisodeForkRequest>(json!({ "sites": [] })).is_err());
        assert!(serde_json::from_value::<EpisodeEvaluationRequest>(json!({ "reply": "x" })).is_err());
    }

    #[test]
    fn the_token_is_not_part_of_debug_output() {
        let episode = ReportedEpisode {
            id: "ep-00000000000000000000".to_owned(),
            environment: "mini".to_owned(),
            state: EpisodeStatus::Active,
            owner: DEFAULT_OWNER.to_owned(),
            labels: BTreeMap::new(),
            record: None,
            sites: Vec::new(),
            replays: Vec::new(),
            ttl_seconds: 600.0,
            left_seconds: 599.5,
            is_held: false,
            asked_at: String::new(),
            granted_at: None,
            ended_at: None,
            ending: None,
            forked_from: None,
            evaluations: Vec::new(),
            variables: BTreeMap::new(),
            port_variables: BTreeMap::new(),
        };
        let proxy = EpisodeProxy {
            server: "http://127.0.0.1:7500".to_owned(),
            username: episode.id.clone(),
            password: "c0ffee".to_owned(),
        };
        assert!(!format!("{proxy:?}").contains("c0ffee"));
        assert_eq!(proxy.url(), "http://ep-00000000000000000000:c0ffee@127.0.0.1:7500");
        let started = StartedEpisode { episode, token: "c0ffee".to_owned(), proxy: Some(proxy), is_known: false };
        assert!(!format!("{started:?}").contains("c0ffee"));
        assert_eq!(serde_json::to_value(&started).expect("JSON")["token"], "c0ffee");
    }
}
