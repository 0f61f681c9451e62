//! The sections of an environment file for the sources of images and data.

use schemars::JsonSchema;
use serde::Deserialize;

use super::values::{FilePart, Size};

/// The source of an image of the Compose file that is not pulled from a registry.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawImage {
    /// The file name of the archive that holds the image, in the format of `docker save`: plain, or compressed with
    /// gzip or Zstandard, whatever the file's extension. Default: none, a registry has the image.
    pub(crate) archive: Option<String>,
    /// The approximate size of the archive.
    pub(crate) size: Option<Size>,
    /// The approximate size of the image in the engine. Default: estimated from the archive.
    pub(crate) loaded_size: Option<Size>,
    /// SHA-256 of the archive. Default: the hash of the first copy that arrives is remembered.
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"), title = "64 hexadecimal digits in lower case")]
    pub(crate) sha256: Option<String>,
    /// URLs of the archive, in the order in which they are tried. Default: none, the archive must be provided.
    pub(crate) mirrors: Option<Vec<String>>,
}

/// A file that services mount, or an archive of folders that they mount.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawData {
    /// The name of the file.
    #[schemars(required)]
    pub(crate) file: Option<String>,
    /// The approximate size of the file.
    pub(crate) size: Option<Size>,
    /// SHA-256 of the file. Default: the hash of the first copy that arrives is remembered.
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"), title = "64 hexadecimal digits in lower case")]
    pub(crate) sha256: Option<String>,
    /// URLs of the file, in the order in which they are tried. Default: none, the file must be provided.
    pub(crate) mirrors: Option<Vec<String>>,
    /// The folder that receives the unchanged file, relative to the Compose file's. Either this or `unpack`.
    pub(crate) target: Option<String>,
    /// The folders to unpack. The file is a tar archive, plain or compressed with gzip or Zstandard, or a zip archive.
    #[schemars(length(min = 1))]
    pub(crate) unpack: Option<Vec<FilePart<RawUnpacking>>>,
}

/// A folder of an archive and its destination.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawUnpacking {
    /// The folder in the archive. Default: the whole archive.
    pub(crate) from: Option<String>,
    /// The folder that receives the content, relative to the Compose file's.
    #[schemars(required)]
    pub(crate) to: Option<String>,
}
