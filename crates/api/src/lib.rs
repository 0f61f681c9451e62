//! The JSON of the API, shared by daemon and CLI. `--json` prints these shapes; they change only with CHANGELOG.md.
//!
//! Times are RFC 3339 in UTC, durations are milliseconds, sizes are bytes.

use serde::{Deserialize, Serialize};

mod accounts;
pub mod checks;
mod doctor;
mod environments;
mod evaluations;
mod health;
mod images;
mod locators;
pub mod plan;
mod resets;
mod snapshots;
mod space;

pub use self::accounts::{Account, Accounts, Cookie, Session};
pub use self::doctor::{Doctor, Finding};
pub use self::environments::{
    Condition, Container, Daemon, DownRequest, Entry, EntryRequest, Environment, Site, SitesRequest, Standby, Standbys,
    Status, UpRequest, Written,
};
pub use self::evaluations::{Evaluation, EvaluationRequest};
pub use self::health::{Health, HealthProbes, Round, SiteHealth};
pub use self::images::{ImageArchive, ImageItem, Images};
pub use self::locators::{Evidence, LocateRequest, Located};
pub use self::resets::{Compared, Difference, LeftOut, Reset, ResetRequest, Stage, Verification, VerifiedStore};
pub use self::snapshots::{
    Exported, ImportBegun, ImportRequest, SIZE_HEADER, Snapshot, SnapshotDifferences, Snapshots, TakeRequest,
};
pub use self::space::{
    Df, DfFile, DfImage, DfInstance, DfRoot, DfSnapshot, PruneRequest, Pruned, PrunedItem, Space, StorageDisk,
    StorageStatus,
};

/// A file as text, with the path it was read from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceText {
    /// Absolute path.
    pub path: String,
    /// Content.
    pub text: String,
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

/// The name of the last event of a stream that cannot go on without a gap.
pub const GONE: &str = "arenad.gone";

/// What a stream of events ends with when the next ones are not there to be sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventsGone {
    /// The last event that was sent; a stream with `after` of this number goes on, as soon as it can.
    pub after: i64,
    /// The next event that is kept; none if they could not be read.
    pub next: Option<i64>,
    /// Why, as a sentence.
    pub message: String,
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
