//! How far a piece of work is, for whoever waits for it, and the wish that it end.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio_util::sync::CancellationToken;

/// Shared by the work, which writes, and the one who shows it.
#[derive(Default)]
pub struct Watch {
    stage: Mutex<String>,
    done: AtomicU64,
    /// 0: not known.
    total: AtomicU64,
    cancel: CancellationToken,
}

/// What a look at the work shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// What is being done; empty before it has begun.
    pub stage: String,
    /// Bytes behind.
    pub done_bytes: u64,
    /// Bytes in all, where that is known.
    pub total_bytes: Option<u64>,
}

impl Watch {
    /// Watches work that ends when the token is cancelled.
    pub fn new(cancel: CancellationToken) -> Self {
        Self { cancel, ..Self::default() }
    }

    /// A stage begins.
    pub fn begin(&self, stage: impl Into<String>, total_bytes: Option<u64>) {
        self.done.store(0, Ordering::Relaxed);
        self.total.store(total_bytes.unwrap_or_default(), Ordering::Relaxed);
        *self.stage.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = stage.into();
    }

    /// So many bytes more are behind.
    pub fn advance(&self, bytes: usize) {
        self.done.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// So many bytes are behind.
    pub fn reach(&self, bytes: u64) {
        self.done.store(bytes, Ordering::Relaxed);
    }

    /// How far it is.
    pub fn look(&self) -> Look {
        let stage = self.stage.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        let total = self.total.load(Ordering::Relaxed);
        Look { stage, done_bytes: self.done.load(Ordering::Relaxed), total_bytes: (total > 0).then_some(total) }
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
