//! Reads a record back, as a HAR.

use std::fs;
use std::io;
use std::path::Path;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;

use super::line::{LeftOut, LeftOutReason, RecordHead, RecordLine, VERSION, entry_in};
use crate::traffic;
use arenad_gateway::{Exchange, RecordedBody, UnfinishedExchange};

/// A record cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecordError {
    /// The file could not be read.
    #[error("read the record")]
    Io(#[source] io::Error),
    /// The first line is not that of a record of this version.
    #[error("read the record: it does not begin like one of version {VERSION}")]
    Head,
}

/// The content of a record.
#[derive(Debug)]
pub(super) struct RecordContent {
    pub(super) head: RecordHead,
    /// The exchanges in the order of their lines, each with its text.
    entries: Vec<(EntryKey, String)>,
    gaps: RecordGaps,
}

/// The reasons why exchanges may be missing.
#[derive(Debug, Default, PartialEq, Eq)]
struct RecordGaps {
    /// The time since when the record is full, and the number of exchanges that are missing for that reason.
    full: Option<(Timestamp, u64)>,
    not_written: u64,
    /// The last time that a new daemon continued a record that its predecessor had not closed.
    resumed: Option<Timestamp>,
    /// The lines that are not of a record.
    damaged: u64,
}

/// The parts of an entry by which it is found.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct EntryKey {
    #[serde(rename = "startedDateTime")]
    at: Timestamp,
    request: EntryRequest,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct EntryRequest {
    method: String,
    url: String,
}

impl RecordContent {
    /// Reads a file. The rest of a line that a daemon was writing when it was killed is passed over.
    ///
    /// Errors: there is no file ([`io::ErrorKind::NotFound`]), or it is not a record.
    pub(super) fn read(path: &Path) -> Result<Self, RecordError> {
        Self::parse(&fs::read(path).map_err(RecordError::Io)?)
    }

    fn parse(bytes: &[u8]) -> Result<Self, RecordError> {
        let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let mut lines = bytes[..end].split_inclusive(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
        let first = lines.next().and_then(|line| serde_json::from_slice(line).ok());
        let Some(RecordLine::Record(head)) = first else { return Err(RecordError::Head) };
        if head.version != VERSION {
            return Err(RecordError::Head);
        }
        let mut content = Self { head, entries: Vec::new(), gaps: RecordGaps::default() };
        let mut is_closed = false;
        for line in lines {
            is_closed = content.add(line, is_closed);
        }
        Ok(content)
    }

    /// Adds a line. Returns whether it closes the record.
    fn add(&mut self, line: &[u8], is_closed: bool) -> bool {
        let Ok(text) = std::str::from_utf8(line) else {
            self.gaps.damaged += 1;
            return is_closed;
        };
        if let Some(entry) = entry_in(text)
            && let Ok(key) = serde_json::from_str(entry)
        {
            self.entries.push((key, entry.to_owned()));
            return false;
        }
        match serde_json::from_str(text) {
            Ok(RecordLine::Closed { .. }) => return true,
            Ok(RecordLine::Resumed { at }) if !is_closed => self.gaps.resumed = Some(at),
            Ok(RecordLine::Resumed { .. }) => {}
            Ok(RecordLine::LeftOut(left_out)) => self.gaps.add(&left_out),
            Ok(RecordLine::Record(_)) | Err(_) => self.gaps.damaged += 1,
        }
        false
    }

    /// Notes exchanges that could not be written, and that no line mentions yet.
    pub(super) fn add_missed(&mut self, requests: u64) {
        self.gaps.not_written += requests;
    }

    /// Returns the HAR, with the requests that are under way. `limit` is the maximum size of a record, in bytes.
    ///
    /// Shape: as that of [`traffic::har`]; `_arenad` has `episode`, `environment`, `records` and `since` in addition, and
    /// each site has `urls`, at which clients may have reached it.
    pub(super) fn har(mut self, under_way: &[UnfinishedExchange], limit: u64) -> String {
        for unfinished in under_way {
            self.add_unfinished(unfinished);
        }
        // By the times at which they began. The sort is stable, so requests with equal times keep their order.
        self.entries.sort_by_key(|(key, _)| key.at);
        let lacks = self.gaps.lacks(limit);
        let RecordHead { episode, environment, records, since, sites, .. } = &self.head;
        let sites = sites.iter().map(|site| {
            json!({
                "site": site.site, "variable": site.variable, "instance": site.instance, "generation": site.generation,
                "records": records, "since": since, "lacks": lacks, "urls": site.urls,
            })
        });
        let own = json!({
            "episode": episode, "environment": environment, "records": records, "since": since,
            "sites": sites.collect::<Vec<_>>(),
        });
        let entries: Vec<String> = self.entries.into_iter().map(|(_, entry)| entry).collect();
        traffic::assembled(&entries, &own)
    }

    /// Adds a request that was under way a moment ago, unless it has been written meanwhile.
    fn add_unfinished(&mut self, unfinished: &UnfinishedExchange) {
        let exchange = Exchange {
            request: unfinished.request.clone(),
            sent: RecordedBody::None,
            answer: None,
            received: RecordedBody::None,
            took: None,
        };
        let entry = traffic::recorded_entry(unfinished.site.as_deref(), &exchange);
        let Ok(key) = EntryKey::deserialize(&entry) else { return };
        if self.entries.iter().all(|(known, _)| *known != key) {
            self.entries.push((key, entry.to_string()));
        }
    }
}

impl RecordGaps {
    fn add(&mut self, left_out: &LeftOut) {
        match left_out.because {
            LeftOutReason::Full => {
                let (since, requests) = self.full.unwrap_or((left_out.at, 0));
                self.full = Some((since, requests + left_out.requests));
            }
            LeftOutReason::NotWritten => self.not_written += left_out.requests,
        }
    }

    /// Returns the reasons why exchanges may be missing, as text; `None` if none are.
    fn lacks(&self, limit: u64) -> Option<String> {
        let time = |at: Timestamp| at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let mut reasons = Vec::new();
        if let Some((since, requests)) = self.full {
            let at = time(since);
            reasons.push(format!(
                "the record reached its limit of {} MiB at {at}, so {requests} or more later requests are missing",
                limit >> 20
            ));
        }
        if self.not_written > 0 {
            reasons.push(format!("requests that could not be written are missing: {}", self.not_written));
        }
        if let Some(at) = self.resumed {
            let at = time(at);
            reasons.push(format!(
                "the daemon ended without notice and was started anew at {at}, so requests without a complete response may be missing"
            ));
        }
        if self.damaged > 0 {
            reasons.push(format!("{} lines of the record are damaged", self.damaged));
        }
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }
}
