//! Log probes, which search a container's log for a line that matches.
//!
//! A round reads only the part of the log that is new since the previous round, and at most the end of that part. The
//! cost is therefore bounded even if a log grows by gigabytes. A match is remembered, even if the log is removed
//! afterwards.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use regex::bytes::Regex;

use super::Unmet;
use arenad_engine::{Engine, EngineError, EngineHandle, EngineStream, LogChunk, LogRange};
use arenad_model::lines::{Line, LineSplitter};

/// The maximum length of a line's part that is matched, in bytes.
const LINE_MAX: usize = 64 << 10;

/// The maximum number of lines that a round after the first reads, from the end of the new part.
const LINES_MAX: u32 = 20_000;

/// The maximum number of bytes that a round reads.
const BYTES_MAX: usize = 8 << 20;

/// The maximum sizes of the log's end that is shown in a message, for each container and for each line, in bytes.
const TAIL_MAX: usize = 16 << 10;
const TAIL_LINE_MAX: usize = 1 << 10;

/// The time limit for reading a log's end. It only illustrates an error, which it must not delay.
const TAIL_LIMIT: Duration = Duration::from_secs(3);

/// The maximum number of logs that are remembered. Beyond it, the log that was read the longest ago is forgotten.
const REMEMBERED: usize = 512;

/// The number of seconds that a round reads again before the end of the previous one. The engine's clock may differ
/// from arenad's, and a line may enter the log some time after it was written.
const OVERLAP: i64 = 5;

/// The results of earlier rounds.
#[derive(Clone, Default)]
pub(super) struct LogMemory(Arc<Mutex<HashMap<Key, LogProgress>>>);

/// One run of a container, and the pattern that is searched for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    handle: EngineHandle,
    started_at: i64,
    pattern: String,
}

#[derive(Debug, Clone, Copy)]
struct LogProgress {
    /// The time up to which the log was read, in seconds since 1970.
    until: i64,
    has_matched: bool,
}

impl LogMemory {
    fn with<T>(&self, change: impl FnOnce(&mut HashMap<Key, LogProgress>) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn get(&self, key: &Key) -> Option<LogProgress> {
        self.with(|logs| logs.get(key).copied())
    }

    fn note(&self, key: Key, read: LogProgress) {
        self.with(|logs| {
            if logs.len() >= REMEMBERED && !logs.contains_key(&key) {
                let oldest = logs.iter().min_by_key(|(_, read)| read.until).map(|(key, _)| key.clone());
                oldest.map(|key| logs.remove(&key));
            }
            logs.insert(key, read);
        });
    }

    /// Checks whether a line since the container's start matches, as far as the log was read. `now` and `started_at`
    /// are in seconds since 1970.
    pub(super) async fn has_line(
        &self,
        engine: &dyn Engine,
        handle: &EngineHandle,
        started_at: i64,
        pattern: &str,
        now: i64,
    ) -> Result<(), Unmet> {
        let key = Key { handle: handle.clone(), started_at, pattern: pattern.to_owned() };
        let before = self.get(&key);
        if before.is_some_and(|before| before.has_matched) {
            return Ok(());
        }
        let regex = Regex::new(pattern).map_err(|error| error.to_string())?;
        // The engine takes the time in whole seconds. Reading one second more is better than missing a line.
        let begin = before.map_or(started_at - 1, |before| (before.until - OVERLAP).max(started_at - 1));
        // The first round reads the log from its beginning, where sites report that they are ready. Later rounds read
        // its end.
        let range = LogRange { tail: before.map(|_| LINES_MAX), since: Some(begin), follow: false, timestamps: false };
        let look = look(engine.logs(handle, range), &regex).await?;
        self.note(key, LogProgress { until: now, has_matched: look.has_matched });
        match look {
            LogScan { has_matched: true, .. } => Ok(()),
            LogScan { is_whole: true, .. } => Err(format!("no line of its log matches /{pattern}/ yet").into()),
            LogScan { .. } => Err(format!(
                "no line of its log matches /{pattern}/, as far as it was read: it grows by more than {} MiB between two \
                 looks",
                BYTES_MAX >> 20
            )
            .into()),
        }
    }
}

struct LogScan {
    has_matched: bool,
    /// Whether the log was read to its end.
    is_whole: bool,
}

async fn look(mut log: EngineStream<LogChunk>, regex: &Regex) -> Result<LogScan, EngineError> {
    let mut lines = LineSplitter::new(LINE_MAX);
    let mut has_matched = false;
    let mut bytes = 0;
    let mut matches = |line: Line<'_>| has_matched |= regex.is_match(line.bytes);
    while let Some(chunk) = log.next().await {
        let chunk = chunk?.bytes;
        bytes += chunk.len();
        lines.push(&chunk, &mut matches);
        if bytes > BYTES_MAX {
            return Ok(LogScan { has_matched, is_whole: false });
        }
    }
    lines.end(&mut matches);
    Ok(LogScan { has_matched, is_whole: true })
}

/// Returns the last lines of a log, for error messages. Parts that cannot be read are omitted.
pub(super) async fn tail(engine: &dyn Engine, handle: &EngineHandle, lines: u32) -> Vec<String> {
    let range = LogRange { tail: Some(lines), since: None, follow: false, timestamps: false };
    let mut log = engine.logs(handle, range);
    let mut cutter = LineSplitter::new(TAIL_LINE_MAX);
    let mut found = Vec::new();
    let mut kept = 0;
    let mut keep = |line: Line<'_>| {
        kept += line.bytes.len();
        if kept <= TAIL_MAX {
            let cut = if line.is_cut { " … (cut)" } else { "" };
            found.push(format!("{}{cut}", String::from_utf8_lossy(line.bytes)));
        }
    };
    let mut bytes = 0;
    let read = async {
        while let Some(Ok(chunk)) = log.next().await {
            bytes += chunk.bytes.len();
            cutter.push(&chunk.bytes, &mut keep);
            if bytes > BYTES_MAX {
                break;
            }
        }
        cutter.end(&mut keep);
    };
    let _ = tokio::time::timeout(TAIL_LIMIT, read).await;
    found
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use futures_util::stream;

    use super::*;

    fn log(chunks: usize, chunk: &'static [u8]) -> EngineStream<LogChunk> {
        let chunk = LogChunk { is_stderr: false, bytes: Bytes::from_static(chunk) };
        Box::pin(stream::iter(std::iter::repeat_n(chunk, chunks).map(Ok)))
    }

    async fn looked(log: EngineStream<LogChunk>, pattern: &str) -> (bool, bool) {
        let look = look(log, &Regex::new(pattern).expect("a pattern")).await.expect("a look");
        (look.has_matched, look.is_whole)
    }

    #[tokio::test]
    async fn a_log_without_end_is_read_up_to_its_bound() {
        static CHUNK: [u8; 1 << 16] = [b'y'; 1 << 16];
        // The log would have a terabyte if it were read completely.
        assert_eq!(looked(log(1 << 24, &CHUNK), "never").await, (false, false));
        assert_eq!(looked(log(1 << 24, &CHUNK), "^y").await, (true, false), "the beginning of a line counts");
        assert_eq!(looked(log(3, b"y\n"), "never").await, (false, true));
        assert_eq!(looked(log(1, b"one\ntwo"), "^two$").await, (true, true), "a last line without an end");
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let memory = LogMemory::default();
        for number in 0..2000 {
            let key = Key { handle: EngineHandle(number.to_string()), started_at: 0, pattern: String::new() };
            memory.note(key, LogProgress { until: number, has_matched: true });
        }
        memory.with(|logs| {
            assert_eq!(logs.len(), REMEMBERED);
            assert!(logs.values().all(|read| read.until >= 2000 - 512), "the oldest went");
        });
    }
}
