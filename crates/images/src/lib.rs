//! Lists, fetches, loads and verifies the images and data of an environment that no build creates.
//!
//! ```text
//!   mirrors ──fetch──► NAME.part ──scan, pin──► NAME ──load──► engine ──identity──► present
//!                      resumable               whole           atomic
//!   --from FILE ─────────────────── scan, pin ──┘
//! ```
//! An incomplete file never counts as whole: a download gets its final name only after its content has been read and
//! compared; an archive is parsed before the engine receives it, so that the image's id is known beforehand; and after
//! loading, the engine is queried for that id. Repeating an interrupted command continues its work.
//!
//! This runs in the process of the command, not in the daemon: it needs none, takes the proxy and the certificates of
//! the shell that it was typed in, and neither a daemon's restart nor its load disturbs a download of days.

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

/// Why an image or data is not there.
#[derive(Debug, thiserror::Error)]
pub enum ImagesError {
    /// Another process works on the same archive.
    #[error("work on {file}: another arenad does that already")]
    Busy {
        /// The name of the archive.
        file: String,
    },
    /// Ctrl-C.
    #[error("interrupted")]
    Cancelled,
    /// There is no archive to load from.
    #[error("find the archive {file}")]
    NoArchive {
        /// The name of the archive.
        file: String,
        /// Where it was looked for.
        looked_at: PathBuf,
        /// Whether it can be fetched.
        has_mirrors: bool,
    },
    /// No mirror had it.
    #[error("fetch {file}: {}", reasons.join("; "))]
    NoMirror {
        /// The name of the archive.
        file: String,
        /// The error of each mirror, in order.
        reasons: Vec<String>,
        /// How much is kept for the next time, in bytes.
        kept_bytes: u64,
    },
    /// An archive is not what it should be.
    #[error("check {path}")]
    Unsound {
        /// The path of the archive.
        path: PathBuf,
        /// The fault that the scan found.
        #[source]
        cause: ScanError,
    },
    /// An archive's content is another than the pinned one.
    #[error("check {path}: its SHA-256 is {found}, {pin} is {expected}")]
    OtherContent {
        /// The path of the archive.
        path: PathBuf,
        /// The digest that was found.
        found: String,
        /// The digest that was expected.
        expected: String,
        /// Who says so: `that in the definition`, `that of the first copy`.
        pin: &'static str,
        /// The record that holds the pin of a first copy.
        record: Option<PathBuf>,
    },
    /// An archive holds other images than the one that it should.
    #[error("find {reference} in {path}: it holds {}", list(holds))]
    OtherImage {
        /// The path of the archive.
        path: PathBuf,
        /// The reference that was expected.
        reference: String,
        /// The references that the archive contains.
        holds: Vec<String>,
    },
    /// The engine has another image under a name that loading would take from it.
    #[error("load {path}: the engine has another image called {reference} ({found})")]
    WouldReplace {
        /// The path of the archive.
        path: PathBuf,
        /// The name of the image.
        reference: String,
        /// The id of the image that has it now.
        found: String,
    },
    /// There is too little room.
    #[error("{doing}: {needed} are needed below {folder}, {free} are free")]
    NoSpace {
        /// The action that needs the space.
        doing: String,
        /// Where.
        folder: PathBuf,
        /// How much is needed, for people.
        needed: String,
        /// How much is free, for people.
        free: String,
    },
    /// The engine has something else after loading.
    #[error("prove {reference} after loading {path}: the engine {found}, the archive holds {expected}")]
    NotProven {
        /// The path of the archive.
        path: PathBuf,
        /// The reference of the image.
        reference: String,
        /// The id according to the archive.
        expected: String,
        /// The id according to the engine.
        found: String,
    },
    /// The engine refused something.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A file could not be read or written.
    #[error("{doing} {path}")]
    File {
        /// `read`, `write`, …
        doing: &'static str,
        /// Which.
        path: PathBuf,
        /// The error that the system reported.
        #[source]
        cause: std::io::Error,
    },
}

impl ImagesError {
    /// Whether a file's content is to blame, rather than the disk, the engine or the user.
    pub(crate) fn is_about_content(&self) -> bool {
        matches!(self, Self::Unsound { .. } | Self::OtherContent { .. } | Self::OtherImage { .. })
    }

    /// What to do next, where something can be said.
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

/// Completes an error of the file system with what was done to which file.
fn file(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> ImagesError {
    let path = path.to_owned();
    move |cause| ImagesError::File { doing, path, cause }
}
