//! How far a piece of work is, for whoever waits for it, and the wish that it end.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

/// Shared by the work, which writes, and the one who shows it.
#[derive(Default)]
pub struct Watch {
    words: Mutex<Words>,
    done: AtomicU64,
    /// 0: not known.
    total: AtomicU64,
    cancel: CancellationToken,
}

#[derive(Default)]
struct Words {
    stage: String,
    detail: String,
    /// The stages that have begun since someone asked.
    begun: Vec<String>,
}

/// What a look at the work shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// What is being done; empty before it has begun.
    pub stage: String,
    /// More about it, which changes all the time; empty where there is nothing to say.
    pub detail: String,
    /// Bytes behind.
    pub done_bytes: u64,
    /// Bytes in all, where that is known.
    pub total_bytes: Option<u64>,
    /// The stages that have begun since the last look.
    pub begun: Vec<String>,
}

impl Watch {
    /// Watches work that ends when the token is cancelled.
    pub fn new(cancel: CancellationToken) -> Self {
        Self { cancel, ..Self::default() }
    }

    /// A stage begins, or begins again.
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

    /// Says more about a stage, which begins if it has not.
    pub(crate) fn tell(&self, stage: &str, detail: &str) {
        if self.words().stage != stage {
            self.begin(stage, None);
        }
        detail.clone_into(&mut self.words().detail);
    }

    /// So many bytes more are behind.
    pub fn advance(&self, bytes: usize) {
        self.done.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// So many bytes are behind.
    pub(crate) fn reach(&self, bytes: u64) {
        self.done.store(bytes, Ordering::Relaxed);
    }

    /// How far it is.
    pub fn look(&self) -> Look {
        let mut words = self.words();
        let total = self.total.load(Ordering::Relaxed);
        Look {
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

    /// Whether it shall end.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Resolves when it shall end.
    pub async fn cancelled(&self) {
        self.cancel.cancelled().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_stage_is_missed_however_short_it_was() {
        let watch = Watch::default();
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
