//! Snapshots, and the files that they travel in.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Difference;

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

/// `POST /v1/environments/{environment}/sites/{site}/snapshots`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TakeRequest {
    /// What to call the snapshot.
    pub name: String,
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
    /// Where the engine answered last that has its images, if that is not the one in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_engine: Option<String>,
    /// When its images were first missed; none while they are there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_since: Option<String>,
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
pub struct ImportRequest<Manifest> {
    /// The manifest of the file, as `arenad-export` reads it.
    pub manifest: Manifest,
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
