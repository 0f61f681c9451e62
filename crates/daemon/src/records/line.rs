//! The lines of a record. Each is a JSON object with one field, which names the kind of the line.
//!
//! ```text
//!   {"record":{…}}         the first line: the episode and its sites
//!   {"entry":{…}}          an exchange, as an entry of a HAR, without secrets
//!   {"left_out":{…}}       exchanges that are not in the record, and the reason
//!   {"closed":{…}}         the end of the episode, or of a daemon that stopped in order
//!   {"resumed":{…}}        a new daemon continues the record
//!   {"no_beginning":{…}}   the beginning of the record, in a file of its own, was lost
//! ```
//! Exchanges are in the order in which they ended. The beginning of a record consists of the lines of the episode that
//! was forked, after those of its own beginning. A line `{"forked":{…}}` ends the part of each episode.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The version of the format.
pub(super) const VERSION: u32 = 1;

/// The beginning and the end of a line with an exchange, around its entry.
const ENTRY: (&str, &str) = (r#"{"entry":"#, "}\n");

/// A line without an exchange.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RecordLine {
    Record(RecordHead),
    LeftOut(LeftOut),
    Closed { at: Timestamp },
    Resumed { at: Timestamp },
    NoBeginning { at: Timestamp },
    Forked { at: Timestamp },
}

/// The episode of a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RecordHead {
    /// The version of the format.
    pub version: u32,
    /// The id of the episode.
    pub episode: String,
    /// The name of the environment.
    pub environment: String,
    /// The requests that are recorded: `writes` or `all`; in the beginning of another record also `none`.
    pub records: String,
    /// The time at which the clients of the episode could reach its sites.
    pub since: Timestamp,
    /// The sites, in the order of the request.
    pub sites: Vec<RecordedSite>,
}

/// A site of a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RecordedSite {
    /// The name of the site.
    pub site: String,
    /// The variable by which benchmarks' tasks name the site.
    pub variable: Option<String>,
    /// The id of the instance; `None` for a site that all episodes share.
    pub instance: Option<String>,
    /// The generation that served the episode; `None` for a site that all episodes share.
    pub generation: Option<u64>,
    /// The URLs at which a client of the episode may have reached the site.
    pub urls: Vec<String>,
}

/// Exchanges that are not in the record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LeftOut {
    /// The number of exchanges.
    pub requests: u64,
    /// The reason for which they are not.
    pub because: LeftOutReason,
    /// The time at which this was noted.
    pub at: Timestamp,
}

/// The reason why exchanges are not in a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum LeftOutReason {
    /// The record has its maximum size.
    Full,
    /// Too many exchanges were under way at once, or the record could not be written.
    NotWritten,
}

impl RecordLine {
    /// Returns the line with its end.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        // Serialization fails only for maps with keys that are not text.
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }
}

/// Returns the line of an exchange, with its end.
pub(super) fn of_entry(entry: &serde_json::Value) -> Vec<u8> {
    format!("{}{entry}{}", ENTRY.0, ENTRY.1).into_bytes()
}

/// Returns the entry of a line, given without its end; `None` for lines of other kinds.
pub(super) fn entry_in(line: &str) -> Option<&str> {
    line.strip_prefix(ENTRY.0)?.strip_suffix(ENTRY.1.trim_end())
}
