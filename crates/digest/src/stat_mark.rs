//! Marks of files: a hash over what the file system says about them. The time of change (ctime) among it cannot be set by
//! a site, and moves with every change of content or attributes.
//!
//! What a process writes through a memory mapping moves it only when the kernel takes note of the page.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::Stat;

/// How long a change may bear the time of another: the times of files move in ticks of the kernel, 10 ms at most.
const TICK: Duration = Duration::from_millis(25);

/// A mark being computed.
#[derive(Default)]
pub(super) struct StatMark {
    hash: blake3::Hasher,
    /// The newest time of change, in nanoseconds since 1970.
    newest: i128,
}

impl StatMark {
    /// Takes note of a file; always in the same order.
    pub(super) fn add(&mut self, name: &[u8], stat: &Stat) {
        let (changed, modified) = (changed(stat), modified(stat));
        self.newest = self.newest.max(changed);
        self.hash.update(&(name.len() as u64).to_le_bytes());
        self.hash.update(name);
        for number in [changed, modified, i128::from(stat.st_ino), i128::from(stat.st_size), i128::from(stat.st_mode)] {
            self.hash.update(&number.to_le_bytes());
        }
    }

    /// Takes note that there is no such file.
    pub(super) fn add_missing(&mut self, name: &[u8]) {
        self.hash.update(&u64::MAX.to_le_bytes());
        self.hash.update(name);
    }

    pub(super) fn finish(self) -> Seen {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos() as i128);
        let is_old = self.newest + (TICK.as_nanos() as i128) < now;
        Seen { hash: self.hash.finalize().to_hex().to_string(), is_old }
    }
}

/// What was seen of files at one time.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Seen {
    hash: String,
    /// Whether the last change is so old that none can follow without its time being a later one.
    is_old: bool,
}

impl Seen {
    /// Whether nothing is known to have changed since `before`.
    pub(super) fn is_like(&self, before: &Seen) -> bool {
        self.hash == before.hash
    }

    /// The mark, for what is compared with what is seen later.
    pub(super) fn mark(self) -> Option<String> {
        self.is_old.then_some(self.hash)
    }

    /// The mark of what was read between `before` and this; `None` where something may have changed meanwhile.
    pub(super) fn mark_since(self, before: Seen) -> Option<String> {
        if self.is_like(&before) { before.mark() } else { None }
    }
}

/// When a file's content was last changed, as it says; in nanoseconds since 1970.
fn modified(stat: &Stat) -> i128 {
    nanoseconds(i128::from(stat.st_mtime), i128::from(stat.st_mtime_nsec))
}

fn changed(stat: &Stat) -> i128 {
    nanoseconds(i128::from(stat.st_ctime), i128::from(stat.st_ctime_nsec))
}

fn nanoseconds(seconds: i128, nanoseconds: i128) -> i128 {
    seconds * 1_000_000_000 + nanoseconds
}
