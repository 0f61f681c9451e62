//! Marks of files: a hash over their attributes in the file system. The attributes include the time of the last status
//! change (ctime), which a site cannot set and which moves with every change of content or attributes.
//!
//! A write through a memory mapping moves the ctime only when the kernel notices that the page is dirty.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::Stat;

/// Period in which a later change may have the same time as an earlier one: file times advance with the kernel's ticks,
/// which are at most 10 ms apart.
const TICK: Duration = Duration::from_millis(25);

/// A mark being computed.
#[derive(Default)]
pub(super) struct StatMark {
    hash: blake3::Hasher,
    /// Newest ctime, in nanoseconds since 1970.
    newest: i128,
}

impl StatMark {
    /// Adds a file. Files must always be added in the same order.
    pub(super) fn add(&mut self, name: &[u8], stat: &Stat) {
        let (changed, modified) = (changed(stat), modified(stat));
        self.newest = self.newest.max(changed);
        self.hash.update(&(name.len() as u64).to_le_bytes());
        self.hash.update(name);
        for number in [changed, modified, i128::from(stat.st_ino), i128::from(stat.st_size), i128::from(stat.st_mode)] {
            self.hash.update(&number.to_le_bytes());
        }
    }

    /// Adds the fact that a file does not exist.
    pub(super) fn add_missing(&mut self, name: &[u8]) {
        self.hash.update(&u64::MAX.to_le_bytes());
        self.hash.update(name);
    }

    pub(super) fn finish(self) -> FinishedMark {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos() as i128);
        let is_old = self.newest + (TICK.as_nanos() as i128) < now;
        FinishedMark { hash: self.hash.finalize().to_hex().to_string(), is_old }
    }
}

/// The state of files at one point in time.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FinishedMark {
    hash: String,
    /// Whether the last change is so old that any later change has a later time.
    is_old: bool,
}

impl FinishedMark {
    /// Returns whether the files are unchanged since `before`, as far as their attributes show.
    pub(super) fn is_like(&self, before: &FinishedMark) -> bool {
        self.hash == before.hash
    }

    /// Returns the mark, for comparison with a later state, or `None` if a later change could have the same time.
    pub(super) fn mark(self) -> Option<String> {
        self.is_old.then_some(self.hash)
    }

    /// Returns the mark of the content that was read between `before` and this state, or `None` if the files may have
    /// changed in between.
    pub(super) fn mark_since(self, before: FinishedMark) -> Option<String> {
        if self.is_like(&before) { before.mark() } else { None }
    }
}

/// Returns the modification time of a file, in nanoseconds since 1970.
fn modified(stat: &Stat) -> i128 {
    nanoseconds(i128::from(stat.st_mtime), i128::from(stat.st_mtime_nsec))
}

fn changed(stat: &Stat) -> i128 {
    nanoseconds(i128::from(stat.st_ctime), i128::from(stat.st_ctime_nsec))
}

fn nanoseconds(seconds: i128, nanoseconds: i128) -> i128 {
    seconds * 1_000_000_000 + nanoseconds
}
