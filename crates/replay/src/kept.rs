//! The folder of a replay, as it is kept and read again.
//!
//! ```text
//!   replay.json     the report, with the name and the credentials (written by the daemon)
//!   entries.jsonl   the exchanges, a line each
//!   bodies          the bodies of responses, one after the other
//! ```

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::ReplayError;
use super::exchange::HeaderField;
use super::matching::ReplayIndex;
use super::moving::{BodyKeys, MovingRules};

/// The file of the exchanges.
pub(crate) const ENTRIES: &str = "entries.jsonl";
/// The file of the bodies.
pub(crate) const BODIES: &str = "bodies";

/// The place of a body in the file of bodies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BodyPlace {
    /// The position of the first byte.
    pub offset: u64,
    /// The number of bytes.
    pub length: u64,
}

/// One exchange of a replay.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KeptEntry {
    /// The method in capitals.
    pub method: String,
    /// The URL without a fragment.
    pub url: String,
    /// The header fields of the request.
    pub request_headers: Vec<HeaderField>,
    /// The keys of the body of the request; `None` if none was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<BodyKeys>,
    /// The status of the response.
    pub status: u16,
    /// The header fields of the response, without those that concern one connection.
    pub headers: Vec<HeaderField>,
    /// The body of the response.
    pub body: BodyPlace,
    /// The recording that has the exchange.
    pub file: String,
    /// The time of the request as the recording states it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

/// A host and port that a replay answers for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Origin {
    /// The host in lower case, without brackets.
    pub host: String,
    /// The port, even if it is the default one.
    pub port: u16,
    /// Whether the recorded scheme is `https`.
    pub is_tls: bool,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, default) = if self.is_tls { ("https", 443) } else { ("http", 80) };
        let (open, close) = if self.host.contains(':') { ("[", "]") } else { ("", "") };
        write!(f, "{scheme}://{open}{}{close}", self.host)?;
        if self.port == default { Ok(()) } else { write!(f, ":{}", self.port) }
    }
}

/// A part of a recording that cannot be replayed, or that leads nowhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryProblem {
    /// The name of the recording.
    pub file: String,
    /// The place in it, such as `entry 17`; empty for the whole recording.
    pub place: String,
    /// A description of the problem.
    pub what: String,
}

impl fmt::Display for EntryProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place.is_empty() {
            true => write!(f, "{}: {}", self.file, self.what),
            false => write!(f, "{}: {}: {}", self.file, self.place, self.what),
        }
    }
}

/// The content of a replay, and what of its recordings is not in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayReport {
    /// The number of exchanges.
    pub entries: usize,
    /// The size of all bodies, each counted once, in bytes.
    pub body_bytes: u64,
    /// The hosts that the replay answers for.
    pub origins: Vec<Origin>,
    /// The names of the recordings.
    pub recordings: Vec<String>,
    /// The recordings that could not be read and were left out.
    pub skipped: Vec<EntryProblem>,
    /// The number of exchanges that cannot be replayed.
    pub left_out: usize,
    /// Exchanges that cannot be replayed, and redirects that lead nowhere; at most 200.
    pub problems: Vec<EntryProblem>,
    /// The time of the first request, as the recordings state it.
    pub recorded_from: Option<String>,
    /// The time of the last request, as the recordings state it.
    pub recorded_until: Option<String>,
    /// The names of parameters that differ at each visit, in addition to those that are known.
    pub moving: Vec<String>,
}

/// A replay whose entries are in memory and whose bodies are read as they are needed.
pub struct KeptReplay {
    index: ReplayIndex,
    bodies: File,
}

impl fmt::Debug for KeptReplay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptReplay").finish_non_exhaustive()
    }
}

impl KeptReplay {
    /// Opens the folder of a replay.
    ///
    /// Errors: `ReplayError::File`; also for a line that is not an exchange.
    pub fn open(folder: &Path, report: &ReplayReport) -> Result<Self, ReplayError> {
        let failed = |name: &str, cause| ReplayError::File { doing: "read", path: folder.join(name), cause };
        let lines = File::open(folder.join(ENTRIES)).map_err(|cause| failed(ENTRIES, cause))?;
        let mut entries = Vec::with_capacity(report.entries);
        for line in BufReader::new(lines).lines() {
            let line = line.map_err(|cause| failed(ENTRIES, cause))?;
            let entry: KeptEntry = serde_json::from_str(&line).map_err(|error| failed(ENTRIES, error.into()))?;
            entries.push(entry);
        }
        let bodies = File::open(folder.join(BODIES)).map_err(|cause| failed(BODIES, cause))?;
        Ok(Self { index: ReplayIndex::new(entries, MovingRules::new(&report.moving)), bodies })
    }

    /// Returns the index, which finds the entry that answers a request.
    pub fn index(&self) -> &ReplayIndex {
        &self.index
    }

    /// Reads a body. The call blocks.
    ///
    /// Errors: those of the file system.
    pub fn body(&self, place: BodyPlace) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(place.length).map_err(io::Error::other)?];
        self.bodies.read_exact_at(&mut bytes, place.offset)?;
        Ok(bytes)
    }
}
