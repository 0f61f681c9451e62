//! Reports the progress of a piece of work to its observer, and the observer's cancellation to the work.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

/// The progress of a piece of work, shared by the work and its observer.
#[derive(Default)]
pub struct WorkProgress {
    words: Mutex<Words>,
    done: AtomicU64,
    /// Zero if the total is unknown.
    total: AtomicU64,
    cancel: CancellationToken,
}

#[derive(Default)]
struct Words {
    stage: String,
    detail: String,
    /// Stages that have begun since the last look.
    begun: Vec<String>,
}

/// The progress at one point in time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgressReading {
    /// Current stage; empty before the first one has begun.
    pub stage: String,
    /// Detail of the stage, which changes often; may be empty.
    pub detail: String,
    /// Number of bytes that have been processed.
    pub done_bytes: u64,
    /// Total number of bytes, if it is known.
    pub total_bytes: Option<u64>,
    /// Stages that have begun since the last look.
    pub begun: Vec<String>,
}

impl WorkProgress {
    /// Creates a watch for work that ends when the token is cancelled.
    pub fn new(cancel: CancellationToken) -> Self {
        Self { cancel, ..Self::default() }
    }

    /// Begins a stage, or begins it again.
    pub fn begin(&self, stage: impl Into<String>, total_bytes: Option<u64>) {
        let stage = stage.into();
        self.done.store(0, Ordering::Relaxed);
        self.total.store(total_bytes.unwrap_or_default(), Ordering::Relaxed);
        let mut words = self.words();
        words.detail.clear();
        if words.stage != stage {
            words.begun.push(stage.clone());
            words.stage = stage;
        }
    }

    /// Sets the detail of a stage, which begins if it has not begun yet.
    pub(crate) fn tell(&self, stage: &str, detail: &str) {
        if self.words().stage != stage {
            self.begin(stage, None);
        }
        detail.clone_into(&mut self.words().detail);
    }

    /// Adds to the number of processed bytes.
    pub fn advance(&self, bytes: usize) {
        self.done.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Sets the number of processed bytes.
    pub(crate) fn reach(&self, bytes: u64) {
        self.done.store(bytes, Ordering::Relaxed);
    }

    /// Returns the progress. Each stage is listed in only one look.
    pub fn look(&self) -> ProgressReading {
        let mut words = self.words();
        let total = self.total.load(Ordering::Relaxed);
        ProgressReading {
            begun: std::mem::take(&mut words.begun),
            stage: words.stage.clone(),
            detail: words.detail.clone(),
            done_bytes: self.done.load(Ordering::Relaxed),
            total_bytes: (total > 0).then_some(total),
        }
    }

    fn words(&self) -> MutexGuard<'_, Words> {
        self.words.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the work should end.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Waits until the work should end.
    pub async fn cancelled(&self) {
        self.cancel.cancelled().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_stage_is_missed_however_short_it_was() {
        let watch = WorkProgress::default();
        watch.begin("checking", Some(10));
        watch.advance(4);
        watch.begin("checking", Some(10));
        watch.tell("loading", "layer 1");
        watch.tell("loading", "layer 2");
        let look = watch.look();
        assert_eq!(look.begun, ["checking", "loading"]);
        assert_eq!((look.stage.as_str(), look.detail.as_str(), look.done_bytes), ("loading", "layer 2", 0));
        assert!(watch.look().begun.is_empty());
    }
}
