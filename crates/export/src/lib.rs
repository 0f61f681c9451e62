//! The file that a snapshot travels in: written by `arenad snapshot export`, read by `import`.
//!
//! ```text
//!   format.json               what this is, and the version of its form
//!   images.tar/000000 …       the images, as `docker save` writes them
//!   volumes/SHA256.tar/000000 …   each archive of a volume
//!   stores/NAME.tar/000000 …  each tree of the state root, as a tar archive
//!   manifest.json             what the snapshot is, and the BLAKE3 of every piece before
//! ```
//! One tar archive, compressed by Zstandard. The parts are cut into pieces of equal length, because nobody knows how long
//! they are before they have been written. The manifest comes last, so a file that was cut off has none, and it says
//! from what the snapshot's id was derived, so that content and id can be held against each other.
//!
//! Nothing of a file is believed: a reader takes the members in the order and under the names that a writer gives them,
//! and refuses everything else.

mod identity;
mod manifest;
mod reader;
mod scan;
mod writer;

pub use identity::content_id;
pub use manifest::{
    Baseline, DIGEST_BYTES_MAX, MANIFEST_BYTES_MAX, Manifest, ManifestError, Part, PartKind, RawJson, Service, VERSION,
};
pub use reader::{Next, PartReader, ReadError, Reader};
pub use scan::scan;
pub use writer::Writer;

/// How long the pieces of a part are, in bytes; the last one is shorter.
pub const PIECE_BYTES: u64 = 8 << 20;

/// The first member.
const FORMAT: &str = "format.json";
/// The last member.
const MANIFEST: &str = "manifest.json";
/// What the first member says that the file is.
const NAME: &str = "arenad-snapshot";

#[cfg(test)]
mod tests;
