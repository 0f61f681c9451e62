//! The JSON of disk usage and of pruning.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PrunedKind;

/// The output of `arenad storage status`: the place that holds the sites' state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StorageStatus {
    /// The path of the state root.
    pub path: String,
    /// Whether the folder exists; if not, the other fields describe the nearest existing folder above it.
    pub exists: bool,
    /// The type of its file system, such as `xfs`.
    pub file_system: String,
    /// Whether copies share their blocks; null if that could not be tested.
    pub clones: Option<bool>,
    /// The capacity of the file system.
    pub total_bytes: u64,
    /// The space that may still be written.
    pub free_bytes: u64,
    /// The disk that `arenad storage init` created, if there is one.
    pub disk: Option<StorageDisk>,
}

/// A disk that `arenad storage init` created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StorageDisk {
    /// The file that holds the disk's file system.
    pub file: String,
    /// The size that the file may grow to.
    pub size_bytes: u64,
    /// The space that the file occupies on the file system below it; null if the file does not exist.
    pub taken_bytes: Option<u64>,
    /// Whether the disk is mounted; the daemon mounts it at start-up.
    pub is_mounted: bool,
}

/// The disk usage of a part of the state root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Space {
    /// The sum of the lengths of all files, including holes.
    pub apparent_bytes: u64,
    /// The space that the files occupy, including blocks that other files share.
    pub allocated_bytes: u64,
    /// The space that their removal would free.
    pub exclusive_bytes: u64,
}

/// The answer to `GET /v1/df`: disk usage by object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Df {
    /// The place that holds the sites' state; null if there is none.
    pub state_root: Option<DfRoot>,
    /// The stored snapshots, newest first.
    pub snapshots: Vec<DfSnapshot>,
    /// The generations that have state, by site and number.
    pub generations: Vec<DfGeneration>,
    /// The images that were built on this host, by name.
    pub images: Vec<DfImage>,
    /// The archives that `arenad images` has fetched.
    pub archives: Vec<DfFile>,
    /// The files in which snapshots store volumes.
    pub volumes: Vec<DfFile>,
    /// The records of episodes, by the ids of the episodes.
    #[serde(default)]
    pub records: Vec<DfFile>,
}

/// The place that holds the sites' state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DfRoot {
    /// The path of the folder.
    pub path: String,
    /// The type of its file system, such as `xfs`.
    pub file_system: String,
    /// Whether copies share their blocks.
    pub clones: bool,
    /// The capacity of the file system.
    pub total_bytes: u64,
    /// The space that may still be written.
    pub free_bytes: u64,
    /// The space of files that are waiting to be removed.
    pub trash_bytes: u64,
}

/// A snapshot and its disk usage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DfSnapshot {
    /// The id of the snapshot.
    pub id: String,
    /// The name of the environment.
    pub environment: String,
    /// The name of the site.
    pub site: String,
    /// The name that a client gave it; null for baselines, and for copies that forks start from.
    pub name: Option<String>,
    /// The size of its images, including layers that other images share.
    pub image_bytes: u64,
    /// The usage of its state in the state root.
    pub state: Space,
    /// The size of its volume archives.
    pub volume_bytes: u64,
    /// The ids of the instances that currently start from it.
    pub used_by: Vec<String>,
}

/// A generation of a site, and the disk usage of its state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DfGeneration {
    /// The site, as `environment/site`.
    pub site: String,
    /// The generation that the containers were created for.
    pub generation: u64,
    /// The number of the slot in which the generation serves; null for standbys.
    pub slot: Option<u32>,
    /// The usage of its state in the state root.
    pub state: Space,
}

/// An image that was built on this host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DfImage {
    /// The image's name; `<none>` if a newer build has taken the name.
    pub name: String,
    /// The id of the image.
    pub id: String,
    /// The image's size, including layers that other images share.
    pub size_bytes: u64,
}

/// A file and its size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DfFile {
    /// The path of the file.
    pub file: String,
    /// The length of the file.
    pub size_bytes: u64,
}

/// The body of `POST /v1/prune`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PruneRequest {
    /// Prunes, in addition, unused baselines older than this number of seconds.
    #[serde(default)]
    pub older_seconds: Option<u64>,
    /// Prunes, in addition, unused baselines, oldest first, until snapshots use no more than this number of bytes.
    #[serde(default)]
    pub keep_bytes: Option<u64>,
    /// Whether to list the items without removing them.
    #[serde(default)]
    pub is_trial: bool,
    /// The names of the items that may be removed; empty means all.
    #[serde(default)]
    pub only: Vec<String>,
}

/// The items that were removed, or would be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pruned {
    /// The items: snapshots, then kept containers, then images.
    pub items: Vec<PrunedItem>,
    /// Whether the items were listed but not removed.
    pub is_trial: bool,
}

/// An object that nothing needs any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PrunedItem {
    /// The kind of object: `snapshot`, `container` (kept from a failed build) or `image`.
    pub kind: PrunedKind,
    /// The id of the object.
    pub name: String,
    /// The environment and site that the object belongs to.
    pub of: String,
    /// The object's size, including layers that other images share.
    pub bytes: u64,
    /// The reason why the object may be removed.
    pub reason: String,
}
