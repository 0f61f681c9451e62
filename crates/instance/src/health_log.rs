//! The history of health rounds.
//!
//! Each site produces a round that passes every few seconds. Such rounds are collected and stored in batches, so that
//! an idle daemon does not keep its disk busy. A failed round is stored at once, and a reader receives the collected
//! rounds as well.

use std::sync::{Mutex, PoisonError};

use arenad_model::error::describe;
use arenad_model::health::Depth;
use arenad_model::instance::InstanceId;
use arenad_store::{DaemonStore, NewRound, StoreError, StoredRound};

/// The number of rounds that are collected before they are stored. A crash loses at most these, and all of them passed.
const COLLECTED_MAX: usize = 64;

/// The history of the health rounds of all instances.
pub struct HealthLog {
    store: DaemonStore,
    collected: Mutex<Vec<NewRound>>,
}

impl HealthLog {
    /// Creates the history in a store.
    pub fn new(store: DaemonStore) -> Self {
        Self { store, collected: Mutex::default() }
    }

    /// Adds a round. If rounds cannot be stored, a warning is logged and the caller continues.
    pub(crate) async fn note(&self, round: NewRound) {
        let is_due = {
            let mut collected = self.collected.lock().unwrap_or_else(PoisonError::into_inner);
            let has_failed = round.reason.is_some();
            collected.push(round);
            has_failed || collected.len() >= COLLECTED_MAX
        };
        if is_due && let Err(error) = self.flush().await {
            tracing::warn!(error = describe(&error), "health rounds could not be stored");
        }
    }

    /// Stores the collected rounds. After an error they are lost.
    pub async fn flush(&self) -> Result<(), StoreError> {
        let collected = std::mem::take(&mut *self.collected.lock().unwrap_or_else(PoisonError::into_inner));
        if collected.is_empty() { Ok(()) } else { self.store.append_rounds(&collected).await }
    }

    /// Returns the newest rounds of an instance, newest first.
    pub async fn newest(
        &self,
        instance: &InstanceId,
        depth: Depth,
        limit: u32,
    ) -> Result<Vec<StoredRound>, StoreError> {
        self.flush().await?;
        self.store.rounds(instance, depth, limit).await
    }
}
