//! Writes the record of one episode: exchanges become lines without secrets, within the limits of the record.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio_util::sync::CancellationToken;

use super::beginning::{self, BEGINNING};
use super::file::RecordFile;
use super::line::{LeftOut, LeftOutReason, RecordHead, RecordLine, of_entry};
use crate::traffic;
use arenad_gateway::{Exchange, Loss, RecordedBody, UnfinishedExchange};
use arenad_seams::wall_clock::WallClock;

/// The size that the bodies of responses leave to what follows, as a part of the limit.
const ROOM_WITHOUT_BODIES: u64 = 4;

/// The size that exchanges leave to lines about the record itself, in bytes.
const ROOM_FOR_NOTES: u64 = 16 * 1024;

/// Writes the record of one episode.
pub(super) struct RecordWriter {
    path: PathBuf,
    /// The file that the record of a fork takes over as its beginning.
    beginning: Option<PathBuf>,
    head: RecordHead,
    /// The maximum size of the record with its beginning, in bytes.
    limit: u64,
    clock: WallClock,
    /// `None` until the file can be opened.
    file: Option<RecordFile>,
    /// Cancelled when the file is open, with its first line.
    opened: CancellationToken,
    /// The size of the beginning, in bytes, once the file is open.
    taken_over: u64,
    /// The exchanges that could not be written, and that no line mentions yet.
    missed: Arc<AtomicU64>,
    /// The exchanges that found no room, and that no line mentions yet.
    refused: u64,
    is_full_noted: bool,
}

impl RecordWriter {
    pub(super) fn new(
        path: PathBuf,
        beginning: Option<PathBuf>,
        head: RecordHead,
        limit: u64,
        clock: WallClock,
    ) -> Self {
        let (file, opened, taken_over, missed) = (None, CancellationToken::new(), 0, Arc::default());
        Self { path, beginning, head, limit, clock, file, opened, taken_over, missed, refused: 0, is_full_noted: false }
    }

    /// Returns the number of exchanges that could not be written, which others count as well.
    pub(super) fn missed(&self) -> &Arc<AtomicU64> {
        &self.missed
    }

    /// Returns the token that is cancelled when the file is open.
    pub(super) fn opened(&self) -> &CancellationToken {
        &self.opened
    }

    /// Opens the file, and writes its first line or one that says that the record is continued.
    pub(super) fn open(&mut self) -> bool {
        if self.file.is_some() {
            return true;
        }
        let opened = RecordFile::open(&self.path).and_then(|mut file| {
            let lines = match file.len() {
                0 => self.first_lines()?,
                _ => RecordLine::Resumed { at: self.clock.now() }.to_bytes(),
            };
            file.append(&lines)?;
            let taken_over = match fs::metadata(self.path.with_file_name(BEGINNING)) {
                Ok(beginning) => beginning.len(),
                Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
                Err(error) => return Err(error),
            };
            Ok((file, taken_over))
        });
        match opened {
            Ok((file, taken_over)) => {
                (self.file, self.taken_over) = (Some(file), taken_over);
                self.opened.cancel();
            }
            Err(error) => {
                tracing::warn!(episode.id = self.head.episode, %error, "{} cannot be opened", self.path.display());
            }
        }
        self.file.is_some()
    }

    /// Takes the beginning over, and returns the first lines.
    fn first_lines(&self) -> io::Result<Vec<u8>> {
        let mut lines = RecordLine::Record(self.head.clone()).to_bytes();
        if let Some(kept) = &self.beginning
            && !beginning::take_over(kept, &self.path.with_file_name(BEGINNING))?
        {
            tracing::warn!(episode.id = self.head.episode, "{} does not exist", kept.display());
            lines.extend(RecordLine::NoBeginning { at: self.clock.now() }.to_bytes());
        }
        Ok(lines)
    }

    /// Returns the size of the record with its beginning, in bytes.
    fn len(&self) -> u64 {
        self.taken_over + self.file.as_ref().map_or(0, RecordFile::len)
    }

    /// Writes an exchange, or notes that it is not in the record.
    pub(super) fn write(&mut self, site: Option<&str>, exchange: &Exchange) {
        if !self.open() {
            self.missed.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.note_missed();
        let limit = self.limit.saturating_sub(ROOM_FOR_NOTES);
        let mut line = line_of(site, exchange);
        let length = self.len();
        let end = |line: &[u8]| length + line.len() as u64;
        if end(&line) > limit - limit / ROOM_WITHOUT_BODIES && has_body(exchange) {
            line = line_of(site, &without_body(exchange));
        }
        if end(&line) > limit {
            self.refused += 1;
            self.note_full();
        } else if !self.append(&line) {
            self.missed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Writes the record so far to a new file, which becomes the beginning of other records. `under_way` are the requests
    /// whose responses are not in the record.
    pub(super) fn fork(&mut self, to: &Path, under_way: &[UnfinishedExchange]) -> io::Result<()> {
        if !self.open() {
            return Err(io::Error::other("the record cannot be opened"));
        }
        self.note_missed();
        let Some(file) = &self.file else { return Err(io::ErrorKind::NotFound.into()) };
        let (mut length, mut refused) = (self.len(), self.refused);
        let at = self.clock.now();
        beginning::write(to, |out| {
            if self.taken_over > 0 {
                io::copy(&mut fs::File::open(self.path.with_file_name(BEGINNING))?, out)?;
            }
            file.copy_to(out)?;
            for unfinished in under_way {
                let line = of_entry(&traffic::unfinished_entry(unfinished));
                length += line.len() as u64;
                if length > self.limit.saturating_sub(ROOM_FOR_NOTES) {
                    refused += 1;
                } else {
                    out.write_all(&line)?;
                }
            }
            if refused > 0 {
                let left_out = LeftOut { requests: refused, because: LeftOutReason::Full, at };
                out.write_all(&RecordLine::LeftOut(left_out).to_bytes())?;
            }
            out.write_all(&RecordLine::Forked { at }.to_bytes())
        })
    }

    /// Says that exchanges are missing which could not be written.
    fn note_missed(&mut self) {
        let requests = self.missed.swap(0, Ordering::Relaxed);
        if requests > 0 && !self.leave_out(requests, LeftOutReason::NotWritten) {
            self.missed.fetch_add(requests, Ordering::Relaxed);
        }
    }

    /// Says at once that the record is full. The number of the exchanges that follow is written when it is closed.
    fn note_full(&mut self) {
        if !self.is_full_noted && self.leave_out(self.refused, LeftOutReason::Full) {
            (self.is_full_noted, self.refused) = (true, 0);
        }
    }

    fn leave_out(&mut self, requests: u64, because: LeftOutReason) -> bool {
        let left_out = LeftOut { requests, because, at: self.clock.now() };
        self.append(&RecordLine::LeftOut(left_out).to_bytes())
    }

    fn append(&mut self, line: &[u8]) -> bool {
        let Some(file) = &mut self.file else { return false };
        let appended = file.append(line);
        if let Err(error) = &appended {
            tracing::warn!(episode.id = self.head.episode, %error, "{} cannot be written", self.path.display());
        }
        appended.is_ok()
    }

    /// Says that nothing follows, and lets the record outlive a failure of the host.
    pub(super) fn close(&mut self) {
        if !self.open() {
            return;
        }
        self.note_missed();
        if self.refused > 0 && self.leave_out(self.refused, LeftOutReason::Full) {
            self.refused = 0;
        }
        self.append(&RecordLine::Closed { at: self.clock.now() }.to_bytes());
        if let Some(Err(error)) = self.file.as_ref().map(RecordFile::sync) {
            tracing::warn!(episode.id = self.head.episode, %error, "{} cannot be written", self.path.display());
        }
    }
}

fn line_of(site: Option<&str>, exchange: &Exchange) -> Vec<u8> {
    of_entry(&traffic::recorded_entry(site, exchange))
}

fn has_body(exchange: &Exchange) -> bool {
    matches!(exchange.received, RecordedBody::Whole(_))
}

fn without_body(exchange: &Exchange) -> Exchange {
    let received = match &exchange.received {
        RecordedBody::Whole(body) => RecordedBody::Lost { why: Loss::MadeRoom, size: body.len() as u64 },
        other => other.clone(),
    };
    Exchange { received, ..exchange.clone() }
}
