//! The sections of an environment file that say where images and data come from.

use schemars::JsonSchema;
use serde::Deserialize;

use super::values::{Part, Size};

/// Where an image of the Compose file comes from, if not from a registry.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawImage {
    /// The file name of the archive that holds the image, in the form of `docker save`: plain, or compressed by gzip or
    /// Zstandard, whatever its name says. Default: none, a registry has the image.
    pub(crate) archive: Option<String>,
    /// About how large the archive is.
    pub(crate) size: Option<Size>,
    /// About how large the image is in the engine. Default: estimated from the archive.
    pub(crate) loaded_size: Option<Size>,
    /// SHA-256 of the archive. Default: that of the first copy that arrives is remembered.
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"), title = "64 hexadecimal digits in lower case")]
    pub(crate) sha256: Option<String>,
    /// URLs of the archive, in the order in which they are tried. Default: none, it has to be brought along.
    pub(crate) mirrors: Option<Vec<String>>,
}

/// A file that services mount, or an archive of folders that they mount.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawData {
    /// The name of the file.
    #[schemars(required)]
    pub(crate) file: Option<String>,
    /// About how large the file is.
    pub(crate) size: Option<Size>,
    /// SHA-256 of the file. Default: that of the first copy that arrives is remembered.
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"), title = "64 hexadecimal digits in lower case")]
    pub(crate) sha256: Option<String>,
    /// URLs of the file, in the order in which they are tried. Default: none, it has to be brought along.
    pub(crate) mirrors: Option<Vec<String>>,
    /// The folder that gets the file as it is, relative to the Compose file's. Either this or `unpack`.
    pub(crate) target: Option<String>,
    /// What is unpacked and where; the file is a tar archive, plain or compressed by gzip or Zstandard, or a zip.
    #[schemars(length(min = 1))]
    pub(crate) unpack: Option<Vec<Part<RawUnpacking>>>,
}

/// A folder of an archive, and where its content goes.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawUnpacking {
    /// The folder in the archive. Default: the whole archive.
    pub(crate) from: Option<String>,
    /// The folder that gets its content, relative to the Compose file's.
    #[schemars(required)]
    pub(crate) to: Option<String>,
}
