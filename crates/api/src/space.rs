//! What takes room on disk, and what need not.

use serde::{Deserialize, Serialize};

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
    /// Snapshots, then kept containers, then images.
    pub items: Vec<PrunedItem>,
    /// Whether it is still there.
    pub is_trial: bool,
}

/// Something that nothing needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrunedItem {
    /// `snapshot`, `container` (kept from a failed build) or `image`.
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
