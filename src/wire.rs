//! The JSON of the API, shared by daemon and CLI. `--json` prints these shapes; they change only with CHANGELOG.md.
//!
//! Times are RFC 3339 in UTC, durations are milliseconds, sizes are bytes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::evaluation::{Benchmark, Evaluated, Evidence as EpisodeEvidence, Traffic, Urls};
use crate::evaluators::question::Told;
use crate::evaluators::verdict::Profile;

pub mod checks;
pub mod plan;

/// A file as text, with the path it was read from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceText {
    /// Absolute path.
    pub path: String,
    /// Content.
    pub text: String,
}

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
}

/// Names of sites; empty is all.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SitesRequest {
    /// Site names.
    #[serde(default)]
    pub sites: Vec<String>,
}

/// `POST /v1/environments/{environment}/resets`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResetRequest {
    /// Site names; empty is all.
    #[serde(default)]
    pub sites: Vec<String>,
    /// Whether sites that are proven to be as their snapshots are left as they are.
    #[serde(default)]
    pub if_dirty: bool,
    /// The snapshot to go to, by name or id; of one site. Without one: the baseline.
    #[serde(default)]
    pub to: Option<String>,
}

/// `GET /v1/snapshots/{id}/differences?from={id}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SnapshotDifferences {
    /// The snapshot that was compared with.
    pub from: String,
    /// The snapshot.
    pub snapshot: String,
    /// What differs, by store.
    pub differences: Vec<Difference>,
    /// How many differences there are beyond those.
    pub omitted: usize,
}

/// `POST /v1/environments/{environment}/sites/{site}/verify`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verification {
    /// The environment.
    pub environment: String,
    /// The site.
    pub site: String,
    /// The instance that was looked at.
    pub instance: String,
    /// Its generation.
    pub generation: u64,
    /// The snapshot that it was compared with.
    pub snapshot: String,
    /// Whether it is as that.
    pub equal: bool,
    /// SHA-256 over everything that was found.
    pub digest: String,
    /// What differs, by store.
    pub differences: Vec<Difference>,
    /// How many differences there are beyond those.
    pub omitted: usize,
    /// What was looked at.
    pub stores: Vec<VerifiedStore>,
}

/// Something that is not as in the snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The store.
    pub store: String,
    /// `table`, `counter`, `object`, `file`, `key`, `store`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// What it was; null: it was not there.
    pub before: Option<String>,
    /// What it is; null: it is gone.
    pub now: Option<String>,
    /// The same as a sentence.
    pub text: String,
}

/// A store that was looked at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VerifiedStore {
    /// Its name.
    pub name: String,
    /// How long it took.
    pub duration_ms: f64,
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

/// `POST /v1/environments/{environment}/sites/{site}/snapshots`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TakeRequest {
    /// What to call the snapshot.
    pub name: String,
}

/// What was begun, or joined.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Accepted {
    /// One operation for each site.
    pub operations: Vec<Operation>,
    /// What may go wrong with it, of what the host has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Finding>,
}

/// What `arenad doctor --json` prints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Doctor {
    /// The environment whose needs were looked at; null: the host alone.
    pub environment: Option<String>,
    /// The gravest level of all findings.
    pub level: String,
    /// Everything that was looked at, fine or not, by area.
    pub findings: Vec<Finding>,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Which check it is, such as `port` or `reflinks`.
    pub id: String,
    /// `engine`, `storage`, `capacity`, `network`, `host`, `images`.
    pub area: String,
    /// `ok`, `note`, `warning`, `problem`.
    pub level: String,
    /// Which of several it is about: a site, an image, a folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// What was seen.
    pub seen: String,
    /// What follows from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consequence: Option<String>,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cure: Option<String>,
}

impl From<&crate::doctor::Finding> for Finding {
    fn from(finding: &crate::doctor::Finding) -> Self {
        Self {
            id: finding.id.to_owned(),
            area: finding.area.name().to_owned(),
            level: finding.level.name().to_owned(),
            subject: finding.subject.clone(),
            seen: finding.seen.clone(),
            consequence: finding.consequence.clone(),
            cure: finding.cure.clone(),
        }
    }
}

/// Something that goes on with one site, or has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Operation {
    /// Its id; `GET /v1/operations/{id}` tells how it goes.
    pub id: String,
    /// The environment.
    pub environment: String,
    /// The site.
    pub site: String,
    /// `up`, `reset`, `down`, `snapshot`.
    pub kind: String,
    /// Whether it had been asked for before.
    pub joined: bool,
    /// `running`, `done`, `failed`, `superseded`.
    pub state: String,
    /// How long it took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<f64>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The reset's stages, where it was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reset: Option<Reset>,
    /// The snapshot that was taken, where that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<Snapshot>,
}

/// How a reset went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reset {
    /// Its id.
    pub id: String,
    /// The instance.
    pub instance: String,
    /// `swap`, `rewind`, `recreate`, `keep`, `untouched`.
    pub strategy: String,
    /// When it was asked for.
    pub requested_at: String,
    /// When it ended.
    pub finished_at: Option<String>,
    /// `done`, `failed`, `cancelled`, `interrupted`; null while it goes on.
    pub outcome: Option<String>,
    /// Why it failed; where it was done, why by no faster way, such as a standby that there was no memory for.
    pub reason: Option<String>,
    /// From the request to the new containers serving.
    pub duration_ms: Option<f64>,
    /// Where the time went. Stages may overlap.
    pub stages: Vec<Stage>,
    /// How much was compared with the snapshot before it served: `everything`, `moved` (what had moved since it was last
    /// compared), `nothing`; null if it did not come to that.
    #[serde(default)]
    pub verified: Option<String>,
}

/// One stage of a reset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// `queue`, `thaw`, `knock`, `record`; `hold`, `wait`, `remove`, `create`, `start`, `ready`, `switch`.
    pub stage: String,
    /// How long it took.
    pub duration_ms: f64,
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

/// A snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Its content-derived id.
    pub id: String,
    /// The environment.
    pub environment: String,
    /// The site.
    pub site: String,
    /// `baseline` or `named`.
    pub kind: String,
    /// The name it was given.
    pub name: Option<String>,
    /// The image of each service.
    pub images: BTreeMap<String, String>,
    /// Bytes, layers shared with other images included.
    pub size_bytes: u64,
    /// When it was taken.
    pub created_at: String,
    /// The instances that start from it now.
    pub used_by: Vec<String>,
}

/// The header that says about how long the content of an exported snapshot is before it is compressed, in bytes.
pub const SIZE_HEADER: &str = "x-arenad-about-bytes";

/// `arenad snapshot export --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exported {
    /// The file.
    pub file: String,
    /// How long it is.
    pub size_bytes: u64,
}

/// `POST /v1/imports`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImportRequest {
    /// The manifest of the file.
    pub manifest: crate::export::Manifest,
    /// What to call the snapshot, whatever the manifest says.
    #[serde(default)]
    pub name: Option<String>,
}

/// The answer to an [`ImportRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportBegun {
    /// The snapshot's id.
    pub snapshot: String,
    /// Whether all of it is there, and nothing is left to do.
    pub is_present: bool,
    /// The parts that are to be sent, by their places in the manifest.
    pub missing: Vec<usize>,
}

/// `GET /v1/snapshots`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Snapshots {
    /// The newest first.
    pub snapshots: Vec<Snapshot>,
}

/// `GET /v1/environments/{environment}/sites/{site}/accounts`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accounts {
    /// In the definition's order.
    pub accounts: Vec<Account>,
}

/// An account of a site, without its password.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Its name in the definition, such as `customer`.
    pub name: String,
    /// What is typed as user name.
    pub username: String,
    /// How it signs in: `form`, `header`, `token`; null where the definition does not say.
    pub login: Option<String>,
}

/// `POST /v1/environments/{environment}/sites/{site}/accounts/{account}/login`: a new session.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// The environment.
    pub environment: String,
    /// The site.
    pub site: String,
    /// The account's name.
    pub account: String,
    /// Where the session is good.
    pub url: String,
    /// The instance that it is good on.
    pub instance: String,
    /// The generation that it is good for: a reset ends it, unless the session is part of the snapshot.
    pub generation: u64,
    /// Whether it is part of the snapshot, and so good again after every reset.
    #[serde(default)]
    pub is_kept: bool,
    /// How long the log-in took, its proof included.
    pub duration_ms: f64,
    /// By name.
    pub cookies: Vec<Cookie>,
    /// What every request carries besides.
    pub headers: BTreeMap<String, String>,
}

/// `POST /v1/environments/{environment}/sites/{site}/locate`: what is to be read.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocateRequest {
    /// The locator, such as `sql(shop): SELECT count(*) FROM order_order`.
    pub locator: String,
    /// The texts of its places, by name.
    #[serde(default)]
    pub arguments: BTreeMap<String, String>,
    /// The path of the page for a `js:` locator that names none.
    #[serde(default)]
    pub page: Option<String>,
    /// The CDP address of the agent's browser, for `js: … @ live`.
    #[serde(default)]
    pub cdp: Option<String>,
    /// The traffic of the agent's browser as a HAR, for `trace: …`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub har: Option<Box<RawValue>>,
}

/// The answer to a [`LocateRequest`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Located {
    /// `null`, `bool`, `integer`, `decimal`, `float`, `text`, `bytes`, `timestamp`, `json` or `rows`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The value: exact decimals as text, bytes in hexadecimal, times in RFC 3339 and UTC; rows as
    /// `{"columns": […], "rows": [[{"type", "value"}, …], …]}`.
    pub value: serde_json::Value,
    /// How it was found.
    pub evidence: Evidence,
}

/// How a value was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// `sql`, `http`, `js`, `exec`, `file`, `trace` or `helper`.
    pub locator: String,
    /// What ran.
    pub ran: String,
    /// The environment.
    pub environment: String,
    /// The site.
    pub site: String,
    /// The instance that was asked.
    pub instance: String,
    /// Its generation.
    pub generation: u64,
    /// From the request to the value.
    pub duration_ms: f64,
    /// What else was seen, such as `status` or `rows`.
    pub notes: BTreeMap<String, String>,
}

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

/// A cookie, in the form of Playwright's storage state.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cookie {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
    /// The host that it is sent to; with a leading dot, that host's subdomains too.
    pub domain: String,
    /// The path below which it is sent.
    pub path: String,
    /// When it expires, in seconds since 1970; -1 with the browser's session.
    pub expires: i64,
    /// Whether scripts cannot read it.
    pub http_only: bool,
    /// Whether it is sent over encrypted connections only.
    pub secure: bool,
    /// `Strict`, `Lax`, `None`; `Lax`, as browsers take it, where the site does not say.
    pub same_site: String,
}

/// `arenad images ls|pull|load|verify --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Images {
    /// The environment.
    pub environment: String,
    /// Its images, in the order of the sites, then its data.
    pub items: Vec<ImageItem>,
}

/// An image or data that an environment needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageItem {
    /// The image's reference, or the data's name.
    pub name: String,
    /// `image`, `data`.
    pub kind: String,
    /// `built`, `registry`, `archive`.
    pub origin: String,
    /// The sites that need it.
    pub sites: Vec<String>,
    /// `present`, `unverified`, `different`, `downloaded`, `partial`, `missing`.
    pub state: String,
    /// The image's id in the engine.
    pub id: Option<String>,
    /// Bytes when it is there: exactly if it is there, else as the definition says.
    pub loaded_bytes: Option<u64>,
    /// The archive that it comes in.
    pub archive: Option<ImageArchive>,
    /// What the command did: `present`, `loaded`, `skipped`, `proven`, `failed`; null for `ls`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// What `verify` has proven, in words.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub proven: Vec<String>,
    /// What is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// The archive that an image or data comes in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageArchive {
    /// Its name.
    pub file: String,
    /// Where it is, or would be.
    pub path: String,
    /// Its size: exactly where that is known, else as the definition says.
    pub size_bytes: Option<u64>,
    /// How much of it is there.
    pub here_bytes: u64,
    /// SHA-256 that it must have: the definition's, or that of the first copy.
    pub sha256: Option<String>,
    /// Where it can be fetched.
    pub mirrors: Vec<String>,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Counts up.
    pub seq: i64,
    /// When.
    pub at: String,
    /// A stable word, such as `instance.ready`.
    pub kind: String,
    /// The instance that it is about.
    pub instance: Option<String>,
    /// A sentence that reads alone.
    pub message: String,
}

/// `GET /v1/events`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Events {
    /// Oldest first.
    pub events: Vec<Event>,
}

/// `GET /v1/version`, and `arenad version --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// arenad's version.
    pub version: String,
    /// The API's version.
    pub api: String,
}

/// An error of the API, RFC 9457 (`application/problem+json`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Problem {
    /// `about:blank`; the code says more.
    #[serde(rename = "type")]
    pub kind: String,
    /// The status in words.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What went wrong, with its causes.
    pub detail: String,
    /// A stable word for programs.
    pub code: String,
    /// What to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Finds the request in the daemon's log.
    pub request_id: String,
}

/// `arenad storage status`: where sites' state is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StorageStatus {
    /// The folder of the state root.
    pub path: String,
    /// Whether it is there already; else what is said holds for the folder above it.
    pub exists: bool,
    /// The kind of its file system, such as `xfs`.
    pub file_system: String,
    /// Whether copies share their blocks; null where that could not be tried.
    pub clones: Option<bool>,
    /// All that the file system holds.
    pub total_bytes: u64,
    /// What may be written yet.
    pub free_bytes: u64,
    /// The disk that `arenad storage init` made.
    pub disk: Option<StorageDisk>,
}

/// A disk that `arenad storage init` made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StorageDisk {
    /// The file that it is in.
    pub file: String,
    /// How large it may become.
    pub size_bytes: u64,
    /// What it takes of the file system beneath; null where the file is not there.
    pub taken_bytes: Option<u64>,
    /// Whether it is mounted; the daemon mounts it when it starts.
    pub is_mounted: bool,
}

/// What a part of the state root takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Space {
    /// The lengths of all files, holes included.
    pub apparent_bytes: u64,
    /// What they take on disk, shared with others or not.
    pub allocated_bytes: u64,
    /// What removing it gives back.
    pub exclusive_bytes: u64,
}

/// `GET /v1/df`: what takes room on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Df {
    /// Where sites' state is kept; null where there is no such place.
    pub state_root: Option<DfRoot>,
    /// The newest first.
    pub snapshots: Vec<DfSnapshot>,
    /// By id and generation.
    pub instances: Vec<DfInstance>,
    /// Those that were built here, by name.
    pub images: Vec<DfImage>,
    /// The files that `arenad images` has fetched.
    pub archives: Vec<DfFile>,
    /// The files that snapshots keep volumes in.
    pub volumes: Vec<DfFile>,
}

/// Where sites' state is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DfRoot {
    /// The folder.
    pub path: String,
    /// The kind of its file system, such as `xfs`.
    pub file_system: String,
    /// Whether copies share their blocks.
    pub clones: bool,
    /// All that the file system holds.
    pub total_bytes: u64,
    /// What may be written yet.
    pub free_bytes: u64,
    /// What is about to be removed, and takes room until then.
    pub trash_bytes: u64,
}

/// A snapshot, by what it takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DfSnapshot {
    /// Its id.
    pub id: String,
    /// The environment.
    pub environment: String,
    /// The site.
    pub site: String,
    /// The name it was given; null for baselines.
    pub name: Option<String>,
    /// Its images, layers shared with others included.
    pub image_bytes: u64,
    /// Its state in the state root.
    pub state: Space,
    /// Its archives of volumes.
    pub volume_bytes: u64,
    /// The instances that start from it now.
    pub used_by: Vec<String>,
}

/// A generation of an instance, by what its state takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DfInstance {
    /// The instance.
    pub id: String,
    /// The generation that its containers were made for.
    pub generation: u64,
    /// Its state in the state root.
    pub state: Space,
}

/// An image that was built here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DfImage {
    /// Its name; `<none>` where a newer build has taken it.
    pub name: String,
    /// Its id.
    pub id: String,
    /// Layers shared with others included.
    pub size_bytes: u64,
}

/// A file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DfFile {
    /// Its path.
    pub file: String,
    /// Its length.
    pub size_bytes: u64,
}

/// `POST /v1/prune`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PruneRequest {
    /// Also unused baselines that were taken longer ago.
    #[serde(default)]
    pub older_seconds: Option<u64>,
    /// Also unused baselines, the oldest first, until snapshots take no more.
    #[serde(default)]
    pub keep_bytes: Option<u64>,
    /// Whether nothing is to be removed yet.
    #[serde(default)]
    pub is_trial: bool,
    /// The names of the items that may go; empty is all.
    #[serde(default)]
    pub only: Vec<String>,
}

/// What went, or would go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pruned {
    /// Snapshots, then images.
    pub items: Vec<PrunedItem>,
    /// Whether it is still there.
    pub is_trial: bool,
}

/// Something that nothing needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrunedItem {
    /// `snapshot` or `image`.
    pub kind: String,
    /// Its id.
    pub name: String,
    /// What it was of: environment and site.
    pub of: String,
    /// What it takes, layers shared with others included.
    pub bytes: u64,
    /// Why it may go.
    pub reason: String,
}
