//! The JSON of the API, shared by daemon and CLI. `--json` prints these shapes; every change to them is listed in
//! CHANGELOG.md.
//!
//! Times are RFC 3339 in UTC, durations are milliseconds, sizes are bytes.
//!
//! The only other crate here is `verdict`, whose shapes are part of the API. Start reading at [`Operation`] and
//! `environments.rs`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod accounts;
pub mod browser;
mod changes;
pub mod checks;
mod doctor;
mod environments;
pub mod episodes;
mod evaluations;
mod health;
mod images;
mod locators;
pub mod plan;
pub mod replays;
mod resets;
mod snapshots;
mod space;
pub mod trajectory;
mod words;

pub use self::accounts::{AccountSession, Accounts, ListedAccount, StorageCookie};
pub use self::changes::{
    ChangedFile, ChangedItem, ChangedRow, ChangedRows, ChangedSequence, ChangedStore, ChangedTable, EpisodeChanges,
    EpisodeLooks, LeftOutSite, Look, Looks, SiteChanges,
};
pub use self::doctor::{Doctor, ReportedFinding};
pub use self::environments::{
    Condition, ContainerEntry, DaemonStatus, DownRequest, EntryRequest, EnvironmentStatus, EpisodeLimitStatus,
    ReadOnlyWrites, SiteContainer, SiteStatus, SitesRequest, SlotStatus, Standby, Standbys, Status, UpRequest,
};
pub use self::evaluations::{Evaluation, EvaluationRequest};
pub use self::health::{Health, ProbeRounds, Round, SiteHealth};
pub use self::images::{ImageArchive, ImageItem, ImageList};
pub use self::locators::{LocateEvidence, LocateRequest, LocateResponse};
pub use self::resets::{
    Compared, Reset, ResetRequest, ResetStage, StoreDifference, UncomparedPart, Verification, VerifiedStore,
};
pub use self::snapshots::{
    Exported, ImportBegun, ImportRequest, SIZE_HEADER, SnapshotDifferences, Snapshots, StoredSnapshot, TakeRequest,
};
pub use self::space::{
    Df, DfFile, DfGeneration, DfImage, DfRoot, DfSnapshot, PruneRequest, Pruned, PrunedItem, Space, StorageDisk,
    StorageStatus,
};
pub use self::words::{
    ConditionKind, ConditionStatus, DifferenceKind, EpisodeRecording, EpisodeStatus, EpisodeVerdict, Extent,
    FindingArea, FindingLevel, ImageItemKind, ImageOrigin, ImageOutcome, ImageState, InstanceState, ItemChange,
    LeftOutReason, OperationKind, OperationState, ProbeKind, PrunedKind, ResetOutcome, ResetWay, SlotOccupation,
    SnapshotKind, StandbyState, ValueKind,
};

/// A file as text, with the path that it was read from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SourceText {
    /// The absolute path of the file.
    pub path: String,
    /// The complete content of the file.
    pub text: String,
}

/// The operations that a request started or joined.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Accepted {
    /// One operation for each site.
    pub operations: Vec<Operation>,
    /// The findings about this host that may make the request fail.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<ReportedFinding>,
}

/// Work on one site, in progress or ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Operation {
    /// The operation's id; `GET /v1/operations/{id}` returns its progress.
    pub id: String,
    /// The name of the environment.
    pub environment: String,
    /// The name of the site.
    pub site: String,
    /// The id of the instance.
    #[serde(default)]
    pub instance: String,
    /// The kind of work: `up`, `reset`, `down` or `snapshot`.
    pub kind: OperationKind,
    /// Whether the same work had been requested before, so that this request joined it.
    pub joined: bool,
    /// The operation's state: `running`, `done`, `failed` or `superseded`.
    pub state: OperationState,
    /// The time that the operation took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<f64>,
    /// The reason why the operation failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The action that may fix the failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The stages of the reset, if the operation is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reset: Option<Reset>,
    /// The snapshot that was taken, if the operation is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<StoredSnapshot>,
}

/// A recorded event of the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DaemonEvent {
    /// The event's sequence number, which increases with each event.
    pub seq: i64,
    /// The time of the event.
    pub at: String,
    /// A stable word, such as `instance.ready`.
    pub kind: String,
    /// The id of the instance that the event concerns.
    pub instance: Option<String>,
    /// A sentence that needs no context.
    pub message: String,
}

/// The answer to `GET /v1/events`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EventList {
    /// The events, oldest first.
    pub events: Vec<DaemonEvent>,
}

/// The name of the last event of a stream that cannot continue without a gap.
pub const GONE: &str = "arenad.gone";

/// The last item of a stream of events if the events that follow are no longer available.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EventsGone {
    /// The last event that was sent; a stream with `after` set to this number continues as soon as possible.
    pub after: i64,
    /// The next event that is still kept; null if the events could not be read.
    pub next: Option<i64>,
    /// The reason, as a sentence.
    pub message: String,
}

/// The answer to `GET /v1/version`, and the output of `arenad version --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Version {
    /// The version of arenad.
    pub version: String,
    /// The version of the API.
    pub api: String,
}

/// An error of the API, in the form of RFC 9457 (`application/problem+json`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// Always `about:blank`; `code` is more specific.
    #[serde(rename = "type")]
    pub kind: String,
    /// The phrase of the HTTP status.
    pub title: String,
    /// The HTTP status code.
    pub status: u16,
    /// The description of the failure, with its causes.
    pub detail: String,
    /// The kind of failure, as a stable word for programs.
    pub code: String,
    /// The action that may fix the failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The id of the request, which also appears in the daemon's log.
    pub request_id: String,
    /// How the episode of the request ended, if the failure is that it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<episodes::ReportedEnding>,
}
