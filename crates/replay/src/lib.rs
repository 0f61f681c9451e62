//! Replay sites: recordings of web sites (HAR, MHTML, WARC, WACZ), read once, kept in a folder, and matched with
//! requests.
//!
//! ```text
//!   files ──► SourceSet ──► har, mhtml, warc ──► ReplayBuilder ──► folder (replay.json, entries.jsonl, bodies)
//!                                                                     │
//!   request ──► Replay::find ◄── index of entries ◄── Replay::open ◄──┘
//! ```
//! A recording that cannot be read is refused as a whole; a single exchange that cannot be replayed is left out and named
//! in the report. Requests are matched as Playwright's `routeFromHAR` matches them (`matching`), then by the rules for
//! the parts of a request that differ at each visit (`moving`).
//!
//! | File | Job |
//! |---|---|
//! | `source` | the uploaded files: a tar archive, or one file |
//! | `har`, `mhtml`, `warc` | one reader for each format |
//! | `builder` | writes the folder |
//! | `kept` | the folder as it is read again |
//! | `matching`, `moving` | which entry answers a request |
//! | `authority` | the certificate authority under which recorded `https` hosts are served |
//!
//! The crate depends on no other crate of arenad, and makes no network requests.

mod authority;
mod builder;
mod exchange;
mod har;
mod kept;
mod matching;
mod mhtml;
mod moving;
mod source;
mod warc;

use std::path::PathBuf;

pub use authority::{AuthorityError, ReplayAuthority};
pub use builder::{ReplayBuilder, ReplaySettings};
pub use exchange::{HeaderField, ReadExchange};
pub use kept::{BodyPlace, EntryProblem, KeptEntry, KeptReplay, Origin, ReplayReport};
pub use matching::{MatchRule, ReplayIndex, ReplayMatch, ReplayRequest};
pub use source::SourceSet;

/// The maximum size of one recorded body, in bytes.
pub const BODY_MAX: u64 = 256 << 20;

/// The maximum size of all bodies of a replay, in bytes.
pub const BODIES_MAX: u64 = 8 << 30;

/// The maximum number of exchanges of a replay.
pub const ENTRIES_MAX: usize = 500_000;

/// The reason why recordings cannot become a replay.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// A file of this host could not be read or written.
    #[error("{doing} {path}")]
    File {
        /// The action as a verb.
        doing: &'static str,
        /// The path of the file.
        path: PathBuf,
        /// The error that the system reported.
        #[source]
        cause: std::io::Error,
    },
    /// A recording is broken.
    #[error("read {file}: {what}")]
    Broken {
        /// The name of the recording, as it was uploaded.
        file: String,
        /// A description of the fault, with its position if there is one.
        what: String,
    },
    /// None of the files is a recording.
    #[error("no recording among {files}: expected HAR, MHTML, WARC or WACZ")]
    NoRecording {
        /// The number of files and the names of the first ones.
        files: String,
    },
    /// The recordings have no exchange that can be replayed.
    #[error("no exchange can be replayed: {first}")]
    Empty {
        /// The first of the problems, or a statement that there are no exchanges.
        first: String,
    },
    /// The recordings are larger than a replay can be.
    #[error("{what} exceeds the limit of {limit}")]
    TooLarge {
        /// The quantity that is too large.
        what: &'static str,
        /// The limit, with its unit.
        limit: String,
    },
}

impl ReplayError {
    pub(crate) fn broken(file: &str, what: impl Into<String>) -> Self {
        Self::Broken { file: file.to_owned(), what: what.into() }
    }
}
