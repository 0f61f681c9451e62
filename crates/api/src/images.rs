//! The JSON of the images and data that are fetched instead of built.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ImageItemKind, ImageOrigin, ImageOutcome, ImageState};

/// The output of `arenad images ls|pull|load|verify --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImageList {
    /// The name of the environment.
    pub environment: String,
    /// The environment's images, in the order of the sites, then its data.
    pub items: Vec<ImageItem>,
}

/// An image or a piece of data that an environment needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImageItem {
    /// The reference of an image, or the name of data.
    pub name: String,
    /// The kind of the item: `image` or `data`.
    pub kind: ImageItemKind,
    /// The origin of the item: `built`, `registry` or `archive`.
    pub origin: ImageOrigin,
    /// The names of the sites that need the item.
    pub sites: Vec<String>,
    /// The item's state: `present`, `unverified`, `different`, `downloaded`, `partial` or `missing`.
    pub state: ImageState,
    /// The image's id in the engine.
    pub id: Option<String>,
    /// The item's size once it is loaded, in bytes: exact if it is present, otherwise as the definition states it.
    pub loaded_bytes: Option<u64>,
    /// The archive that contains the item.
    pub archive: Option<ImageArchive>,
    /// The result of the command: `present`, `loaded`, `skipped`, `proven` or `failed`; null for `ls`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<ImageOutcome>,
    /// The facts that `verify` has proven, as sentences.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub proven: Vec<String>,
    /// The reason why the item is missing or invalid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The action that may fix the problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// The archive that contains an image or data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImageArchive {
    /// The archive's file name.
    pub file: String,
    /// The path of the archive, which need not exist yet.
    pub path: String,
    /// The archive's size: exact if it is known, otherwise as the definition states it.
    pub size_bytes: Option<u64>,
    /// The number of bytes that are already on this host.
    pub here_bytes: u64,
    /// The SHA-256 that the archive must have: the definition's, or that of the first copy.
    pub sha256: Option<String>,
    /// The URLs from which the archive can be fetched.
    pub mirrors: Vec<String>,
}
