//! The logs of simulated containers.

use std::time::Duration;

use bytes::Bytes;

use super::program::LogLine;
use super::world::EngineWorld;
use arenad_engine::{EngineError, LogChunk, LogRange};

/// The result of reading a part of a log.
pub(super) struct LogPage {
    pub(super) chunks: Vec<LogChunk>,
    /// Total number of lines that were written up to this point.
    pub(super) seen: u64,
    /// Whether more lines may follow.
    pub(super) goes_on: bool,
    /// Time at which the next line is due, if it is known.
    pub(super) next: Option<Duration>,
}

impl EngineWorld {
    /// Returns the requested lines of a log, and the container's ID.
    pub(super) fn log(&self, doing: &str, handle: &str, range: LogRange) -> Result<(String, LogPage), EngineError> {
        let id = self.find(doing, handle)?;
        let container = self.container(doing, &id)?;
        let is_meant =
            |line: &&LogLine| line.at <= self.now && range.since.is_none_or(|since| self.clock.at(line.at) >= since);
        let lines: Vec<&LogLine> = container.log.lines.iter().filter(is_meant).collect();
        let skipped = range.tail.map_or(0, |tail| lines.len().saturating_sub(tail as usize));
        let chunks = lines[skipped..].iter().map(|line| self.chunk(line, range.timestamps)).collect();
        let later = container.log.lines.iter().filter(|line| line.at > self.now).count() as u64;
        let seen = container.log.written - later;
        Ok((id, LogPage { chunks, seen, goes_on: true, next: None }))
    }

    /// Returns the lines that follow the first `seen` lines.
    pub(super) fn log_after(&self, id: &str, seen: u64, timestamps: bool) -> LogPage {
        let Some(container) = self.holdings.containers.get(id) else {
            return LogPage { chunks: Vec::new(), seen, goes_on: false, next: None };
        };
        let lines = &container.log.lines;
        let fresh = usize::try_from(container.log.written.saturating_sub(seen)).unwrap_or(usize::MAX);
        let fresh = lines.iter().skip(lines.len().saturating_sub(fresh));
        let chunks: Vec<LogChunk> =
            fresh.clone().take_while(|line| line.at <= self.now).map(|line| self.chunk(line, timestamps)).collect();
        let next = fresh.map(|line| line.at).find(|at| *at > self.now);
        let later = lines.iter().filter(|line| line.at > self.now).count() as u64;
        LogPage { chunks, seen: container.log.written - later, goes_on: container.is_alive() && self.is_up, next }
    }

    fn chunk(&self, line: &LogLine, timestamps: bool) -> LogChunk {
        let text = match timestamps {
            true => format!("{} {}", self.timestamp(line.at), line.text),
            false => line.text.clone(),
        };
        LogChunk { is_stderr: line.is_stderr, bytes: Bytes::from(text) }
    }

    fn timestamp(&self, at: Duration) -> String {
        let nanos = i32::try_from(at.subsec_nanos()).unwrap_or_default();
        match jiff::Timestamp::new(self.clock.at(at), nanos) {
            Ok(timestamp) => format!("{timestamp:.9}"),
            Err(_) => String::new(),
        }
    }
}
