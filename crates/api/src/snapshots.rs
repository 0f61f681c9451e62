//! The JSON of snapshots, and of the files that carry them between hosts.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{SnapshotKind, StoreDifference};

/// The answer to `GET /v1/snapshots/{id}/differences?from={id}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SnapshotDifferences {
    /// The id of the snapshot that serves as reference.
    pub from: String,
    /// The id of the snapshot that is compared with it.
    pub snapshot: String,
    /// The differences, by store.
    pub differences: Vec<StoreDifference>,
    /// The number of differences that the list leaves out.
    pub omitted: usize,
}

/// The body of `POST /v1/environments/{environment}/sites/{site}/snapshots`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TakeRequest {
    /// The name for the new snapshot.
    pub name: String,
}

/// A snapshot that the daemon has stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StoredSnapshot {
    /// The snapshot's id, which is derived from its content.
    pub id: String,
    /// The name of the environment.
    pub environment: String,
    /// The name of the site.
    pub site: String,
    /// The kind of snapshot: `baseline` or `named`.
    pub kind: SnapshotKind,
    /// The name that a client gave the snapshot.
    pub name: Option<String>,
    /// The image of each service, by service.
    pub images: BTreeMap<String, String>,
    /// The size of its images, including layers that other images share.
    pub size_bytes: u64,
    /// The time at which the snapshot was taken.
    pub created_at: String,
    /// The ids of the instances that currently start from the snapshot.
    pub used_by: Vec<String>,
    /// The address at which the engine that holds the images last answered, if that is not the engine in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_engine: Option<String>,
    /// The time at which the images were first found missing; null while they are present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_since: Option<String>,
}

/// The header that states the approximate uncompressed size of an exported snapshot, in bytes.
pub const SIZE_HEADER: &str = "x-arenad-about-bytes";

/// The output of `arenad snapshot export --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Exported {
    /// The path of the exported file.
    pub file: String,
    /// The size of the exported file.
    pub size_bytes: u64,
}

/// The body of `POST /v1/imports`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ImportRequest", bound = "")]
pub struct ImportRequest<Manifest> {
    /// The manifest of the file, as `arenad-export` parses it.
    #[schemars(with = "serde_json::Value")]
    pub manifest: Manifest,
    /// The name for the snapshot, which overrides the manifest's.
    #[serde(default)]
    pub name: Option<String>,
}

/// The answer to an [`ImportRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImportBegun {
    /// The id of the snapshot.
    pub snapshot: String,
    /// Whether the snapshot is complete, so that no part needs to be sent.
    pub is_present: bool,
    /// The parts to send, as indexes into the manifest's list.
    pub missing: Vec<usize>,
}

/// The answer to `GET /v1/snapshots`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Snapshots {
    /// The snapshots, newest first.
    pub snapshots: Vec<StoredSnapshot>,
}
