//! Images and data that no build makes.

use serde::{Deserialize, Serialize};

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
