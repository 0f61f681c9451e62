//! Reads a record back, as a HAR.

use std::fs;
use std::io;
use std::path::Path;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;

use super::beginning::BEGINNING;
use super::line::{LeftOut, LeftOutReason, RecordHead, RecordLine, VERSION, entry_in};
use crate::traffic;
use arenad_gateway::UnfinishedExchange;
use arenad_model::site::RecordedRequests;

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

/// The content of a record with its beginning.
#[derive(Debug)]
pub(super) struct RecordContent {
    pub(super) head: RecordHead,
    /// The episodes whose requests the record begins with, from the oldest.
    ancestors: Vec<RecordAncestor>,
    /// The exchanges in the order of their lines.
    entries: Vec<RecordedExchange>,
    gaps: RecordGaps,
    /// Whether the last line closes a record.
    is_closed: bool,
}

/// An episode whose requests a record begins with.
#[derive(Debug)]
struct RecordAncestor {
    head: RecordHead,
    /// The time at which it was forked. `None` only if the line is damaged.
    until: Option<Timestamp>,
}

#[derive(Debug)]
struct RecordedExchange {
    /// The number of ancestors up to the episode that the exchange belongs to. Its own exchanges have the highest number.
    part: usize,
    key: EntryKey,
    /// The entry of the HAR.
    text: String,
}

/// The reasons why exchanges may be missing.
#[derive(Debug, Default, PartialEq, Eq)]
struct RecordGaps {
    /// The time since when the record is full, and the number of exchanges that are missing for that reason.
    full: Option<(Timestamp, u64)>,
    not_written: u64,
    /// The last time that a new daemon continued a record that its predecessor had not closed.
    resumed: Option<Timestamp>,
    /// Whether the beginning was lost.
    has_no_beginning: bool,
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
    /// Reads a file, and the beginning next to it. The rest of a line that a daemon was writing when it was killed is passed
    /// over.
    ///
    /// Errors: there is no file ([`io::ErrorKind::NotFound`]), or it is not a record.
    pub(super) fn read(path: &Path) -> Result<Self, RecordError> {
        let own = fs::read(path).map_err(RecordError::Io)?;
        let beginning = match fs::read(path.with_file_name(BEGINNING)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            read => read.map_err(RecordError::Io)?,
        };
        Self::parse(&beginning, &own)
    }

    fn parse(beginning: &[u8], own: &[u8]) -> Result<Self, RecordError> {
        let mut lines = whole_lines(own);
        let first = lines.next().and_then(|line| serde_json::from_slice(line).ok());
        let Some(RecordLine::Record(head)) = first else { return Err(RecordError::Head) };
        if head.version != VERSION {
            return Err(RecordError::Head);
        }
        let (ancestors, entries, gaps) = (Vec::new(), Vec::new(), RecordGaps::default());
        let mut content = Self { head, ancestors, entries, gaps, is_closed: false };
        for line in whole_lines(beginning) {
            match serde_json::from_slice(line) {
                Ok(RecordLine::Record(head)) if head.version == VERSION => {
                    content.ancestors.push(RecordAncestor { head, until: None });
                    content.is_closed = false;
                }
                Ok(RecordLine::Forked { at }) if !content.ancestors.is_empty() => {
                    content.ancestors.last_mut().into_iter().for_each(|ancestor| ancestor.until = Some(at));
                }
                _ => content.add(line, content.ancestors.len()),
            }
        }
        content.is_closed = false;
        let own_part = content.ancestors.len() + 1;
        lines.for_each(|line| content.add(line, own_part));
        Ok(content)
    }

    /// Adds a line of one of the episodes.
    fn add(&mut self, line: &[u8], part: usize) {
        let was_closed = std::mem::replace(&mut self.is_closed, false);
        let Ok(text) = std::str::from_utf8(line) else {
            self.gaps.damaged += 1;
            self.is_closed = was_closed;
            return;
        };
        if let Some(entry) = entry_in(text)
            && let Ok(key) = serde_json::from_str(entry)
        {
            self.entries.push(RecordedExchange { part, key, text: entry.to_owned() });
            return;
        }
        match serde_json::from_str(text) {
            Ok(RecordLine::Closed { .. }) => self.is_closed = true,
            Ok(RecordLine::Resumed { at }) if !was_closed => self.gaps.resumed = Some(at),
            Ok(RecordLine::Resumed { .. }) => {}
            Ok(RecordLine::LeftOut(left_out)) => self.gaps.add(&left_out),
            Ok(RecordLine::NoBeginning { .. }) => self.gaps.has_no_beginning = true,
            Ok(RecordLine::Record(_) | RecordLine::Forked { .. }) | Err(_) => self.gaps.damaged += 1,
        }
    }

    /// Notes exchanges that could not be written, and that no line mentions yet.
    pub(super) fn add_missed(&mut self, requests: u64) {
        self.gaps.not_written += requests;
    }

    /// Returns the HAR, with the requests that are under way. `limit` is the maximum size of a record, in bytes.
    ///
    /// Shape: as that of [`traffic::har`]; `_arenad` has `episode`, `environment`, `records` and `since` in addition, and
    /// `beginnings`, the episodes whose requests come first, each with `episode`, `records` and `until`. Each site has
    /// `urls`, at which clients may have reached it.
    pub(super) fn har(mut self, under_way: &[UnfinishedExchange], limit: u64) -> String {
        for unfinished in under_way {
            self.add_unfinished(unfinished);
        }
        // By the times at which they began, but in the order of the forks, because a clock may be set back. The sort is
        // stable, so requests with equal times keep their order.
        self.entries.sort_by_key(|entry| (entry.part, entry.key.at));
        let lacks = self.lacks(limit);
        let RecordHead { episode, environment, records, since, sites, .. } = &self.head;
        let sites = sites.iter().map(|site| {
            json!({
                "site": site.site, "variable": site.variable, "instance": site.instance, "generation": site.generation,
                "records": records, "since": since, "lacks": lacks, "urls": site.urls,
            })
        });
        let beginnings = self.ancestors.iter().map(|RecordAncestor { head, until }| {
            json!({ "episode": head.episode, "records": head.records, "until": until })
        });
        let own = json!({
            "episode": episode, "environment": environment, "records": records, "since": since,
            "beginnings": beginnings.collect::<Vec<_>>(), "sites": sites.collect::<Vec<_>>(),
        });
        let entries: Vec<String> = self.entries.into_iter().map(|entry| entry.text).collect();
        traffic::assembled(&entries, &own)
    }

    /// Adds a request that was under way a moment ago, unless it has been written meanwhile.
    fn add_unfinished(&mut self, unfinished: &UnfinishedExchange) {
        let entry = traffic::unfinished_entry(unfinished);
        let Ok(key) = EntryKey::deserialize(&entry) else { return };
        let part = self.ancestors.len() + 1;
        if self.entries.iter().all(|known| (known.part, &known.key) != (part, &key)) {
            self.entries.push(RecordedExchange { part, key, text: entry.to_string() });
        }
    }

    /// Returns the reasons why exchanges may be missing, as text; `None` if none are.
    fn lacks(&self, limit: u64) -> Option<String> {
        let own = RecordedRequests::named(&self.head.records);
        let unrecorded = self.ancestors.iter().filter_map(|ancestor| {
            let head = &ancestor.head;
            let missing = match (RecordedRequests::named(&head.records), own) {
                (Some(RecordedRequests::Nothing), _) => "all requests",
                (Some(RecordedRequests::Writes), Some(RecordedRequests::All)) => "all requests but writes",
                _ => return None,
            };
            let until = ancestor.until.map_or_else(String::new, |at| format!(" at {}", time(at)));
            Some(format!(
                "{missing} of {} before its fork{until} are missing, because they were not recorded",
                head.episode
            ))
        });
        let reasons: Vec<String> = unrecorded.chain(self.gaps.reasons(limit)).collect();
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }
}

/// Returns the lines that are complete, without their ends.
fn whole_lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    bytes[..end].split_inclusive(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end)
}

fn time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
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

    /// Returns the reasons why exchanges may be missing, as text.
    fn reasons(&self, limit: u64) -> Vec<String> {
        let mut reasons = Vec::new();
        if self.has_no_beginning {
            reasons.push("the requests before the fork are missing, because they could not be copied".to_owned());
        }
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
        reasons
    }
}
