//! The file format of an exported snapshot: `arenad snapshot export` writes it, `arenad snapshot import` reads it.
//!
//! ```text
//!   format.json               the name and version of the file's format
//!   images.tar/000000 …       the images, as `docker save` writes them
//!   volumes/SHA256.tar/000000 …   each archive of a volume
//!   stores/NAME.tar/000000 …  each tree of the state root, as a tar archive
//!   manifest.json             a description of the snapshot, and the BLAKE3 hash of every piece
//! ```
//! The file is one tar archive, compressed with Zstandard. Parts are cut into pieces of equal length, because a part's
//! length is unknown until it has been written. The manifest comes last, so a truncated file has none. It lists the
//! values from which the snapshot's id is derived, so that a reader can verify the id against the content.
//!
//! The reader treats every file as hostile: it accepts only the members that a writer produces, under their exact names
//! and in their exact order, and refuses everything else.
//!
//! The crate depends on `images`, for archives of images. Start reading at [`Writer`], then [`Reader`].

mod identity;
mod manifest;
mod reader;
mod scan;
mod writer;

pub use identity::content_id;
pub use manifest::{
    Baseline, DIGEST_BYTES_MAX, MANIFEST_BYTES_MAX, Manifest, ManifestError, PartKind, RawJson, ServiceImage,
    SnapshotPart, VERSION,
};
pub use reader::{Next, PartReader, ReadError, SnapshotReader};
pub use scan::scan;
pub use writer::Writer;

/// The length of a part's pieces, in bytes; the last piece may be shorter.
pub const PIECE_BYTES: u64 = 8 << 20;

/// The name of the first member, which identifies the format and its version.
const FORMAT: &str = "format.json";
/// The name of the last member.
const MANIFEST: &str = "manifest.json";
/// The format name that the first member carries.
const NAME: &str = "arenad-snapshot";

#[cfg(test)]
mod tests;
