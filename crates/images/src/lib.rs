//! Lists, fetches, loads and verifies the images and data of an environment that no build creates.
//!
//! ```text
//!   mirrors ──fetch──► NAME.part ──scan, pin──► NAME ──load──► engine ──identity──► present
//!                      resumable               whole           atomic
//!   --from FILE ─────────────────── scan, pin ──┘
//! ```
//! An incomplete file never counts as complete: a download gets its final name only after its content has been read and
//! compared; an archive is parsed before the engine receives it, so that the image's id is known beforehand; and after
//! loading, the engine is queried for that id. Repeating an interrupted command continues its work.
//!
//! The crate runs in the command's process, not in the daemon. It needs no daemon, uses the proxy and the certificates
//! of the user's shell, and a download that takes days is not affected by a restart or by the load of the daemon.
//!
//! The crate depends on `engine` and `outbound`. Start reading at [`inventory`], then [`fetch`] and [`load`].

mod compression;
mod docker_archive;
pub mod fetch;
pub mod inventory;
pub mod load;
mod member;
pub mod place;
pub mod scan;
pub mod shelf;
pub mod space;
mod unpack;
pub mod verify;
pub mod watch;
mod zipped;

use std::path::{Path, PathBuf};

use arenad_engine::EngineError;
use scan::ScanError;

/// The reason why an image or data is not present.
#[derive(Debug, thiserror::Error)]
pub enum ImagesError {
    /// Another process is working on the same archive.
    #[error("work on {file}: another arenad does that already")]
    Busy {
        /// Name of the archive.
        file: String,
    },
    /// The user interrupted the command, or its token was cancelled.
    #[error("interrupted")]
    Cancelled,
    /// The archive to load from does not exist.
    #[error("find the archive {file}")]
    NoArchive {
        /// Name of the archive.
        file: String,
        /// Path that was searched.
        looked_at: PathBuf,
        /// Whether the archive can be fetched from mirrors.
        has_mirrors: bool,
    },
    /// No mirror delivered the archive.
    #[error("fetch {file}: {}", reasons.join("; "))]
    NoMirror {
        /// Name of the archive.
        file: String,
        /// The error of each mirror, in the definition's order.
        reasons: Vec<String>,
        /// Size of the partial download that is kept, in bytes.
        kept_bytes: u64,
    },
    /// The content of an archive is invalid.
    #[error("check {path}")]
    Unsound {
        /// Path of the archive.
        path: PathBuf,
        /// The fault that the scan found.
        #[source]
        cause: ScanError,
    },
    /// The digest of an archive differs from the pinned one.
    #[error("check {path}: its SHA-256 is {found}, {pin} is {expected}")]
    OtherContent {
        /// Path of the archive.
        path: PathBuf,
        /// SHA-256 (hex) of the archive.
        found: String,
        /// SHA-256 (hex) that is pinned.
        expected: String,
        /// Origin of the pin: `that in the definition` or `that of the first copy`.
        pin: &'static str,
        /// Record that pins the first copy's digest; `None` if the definition pins it.
        record: Option<PathBuf>,
    },
    /// An archive does not contain the expected image.
    #[error("find {reference} in {path}: it holds {}", list(holds))]
    OtherImage {
        /// Path of the archive.
        path: PathBuf,
        /// Reference that was expected.
        reference: String,
        /// References that the archive contains.
        holds: Vec<String>,
    },
    /// Loading would take a name from another image of the engine.
    #[error("load {path}: the engine has another image called {reference} ({found})")]
    WouldReplace {
        /// Path of the archive.
        path: PathBuf,
        /// Name of the image.
        reference: String,
        /// ID of the image that has the name now.
        found: String,
    },
    /// There is not enough disk space.
    #[error("{doing}: {needed} are needed below {folder}, {free} are free")]
    NoSpace {
        /// Action that needs the space.
        doing: String,
        /// Folder that would be written to.
        folder: PathBuf,
        /// Required space, for users.
        needed: String,
        /// Free space, for users.
        free: String,
    },
    /// After loading, the engine does not have the archive's image.
    #[error("prove {reference} after loading {path}: the engine {found}, the archive holds {expected}")]
    NotProven {
        /// Path of the archive.
        path: PathBuf,
        /// Reference of the image.
        reference: String,
        /// ID according to the archive.
        expected: String,
        /// ID according to the engine.
        found: String,
    },
    /// The engine reported an error.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A file could not be read or written.
    #[error("{doing} {path}")]
    File {
        /// Verb of the operation: `read`, `write`, …
        doing: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// The underlying I/O error.
        #[source]
        cause: std::io::Error,
    },
}

impl ImagesError {
    /// Returns whether the content of a file caused the error, rather than the disk, the engine or the user.
    pub(crate) fn is_about_content(&self) -> bool {
        matches!(self, Self::Unsound { .. } | Self::OtherContent { .. } | Self::OtherImage { .. })
    }

    /// Returns advice on the next step, if there is any.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Busy { .. } => "wait for it, or end it: what it has done so far is kept".to_owned(),
            Self::Cancelled => "what is there is kept: the same command goes on from here".to_owned(),
            Self::NoArchive { has_mirrors: true, .. } => {
                "`arenad images pull` fetches it; `--from FILE|DIR` takes one that is there".to_owned()
            }
            Self::NoArchive { .. } => "no mirror is known: give it with `--from FILE|DIR`".to_owned(),
            Self::NoMirror { kept_bytes: 0, .. } => {
                "look at the network and the mirrors, or bring the file along: `arenad images load --from`".to_owned()
            }
            Self::NoMirror { .. } => "the same command goes on from what is there".to_owned(),
            Self::Unsound { .. } => "get the file anew: this copy was cut off or damaged on its way".to_owned(),
            Self::OtherContent { record: Some(record), .. } => {
                format!("get the file anew; if the new content is meant, remove {} first", record.display())
            }
            Self::OtherContent { record: None, .. } => {
                "get the file anew, or correct `sha256` in the environment file".to_owned()
            }
            Self::OtherImage { .. } => "save it under that name: `docker save -o FILE NAME`".to_owned(),
            Self::WouldReplace { .. } => "`--replace` gives the name to the archive's image".to_owned(),
            Self::NoSpace { .. } => "free some space; `--ignore-space` tries it all the same".to_owned(),
            Self::NotProven { .. } => "load it again; the engine's log may say more".to_owned(),
            Self::Engine(_) | Self::File { .. } => return None,
        })
    }
}

fn list(holds: &[String]) -> String {
    if holds.is_empty() { "no image with a name".to_owned() } else { holds.join(", ") }
}

/// Returns a function that adds the operation and the file to an I/O error.
fn file(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> ImagesError {
    let path = path.to_owned();
    move |cause| ImagesError::File { doing, path, cause }
}
