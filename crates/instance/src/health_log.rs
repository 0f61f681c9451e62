//! The history of health rounds.
//!
//! Rounds that pass come every few seconds for every site and are all alike, so they are collected and stored many at a
//! time: an idle daemon does not make its disk work. A failed one is stored at once. Whoever reads gets all of them.

use std::sync::{Mutex, PoisonError};

use arenad_model::error::describe;
use arenad_model::health::Depth;
use arenad_store::{NewRound, Store, StoreError, StoredRound};

/// How many rounds are collected: what a crash may lose, all of them good ones.
const COLLECTED_MAX: usize = 64;

/// The history of health rounds.
pub struct HealthLog {
    store: Store,
    collected: Mutex<Vec<NewRound>>,
}

impl HealthLog {
    /// A history in that store.
    pub fn new(store: Store) -> Self {
        Self { store, collected: Mutex::default() }
    }

    /// Adds a round. That it cannot be stored is no reason to stop watching, but is said.
    pub async fn note(&self, round: NewRound) {
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

    /// Stores what has been collected.
    pub async fn flush(&self) -> Result<(), StoreError> {
        let collected = std::mem::take(&mut *self.collected.lock().unwrap_or_else(PoisonError::into_inner));
        if collected.is_empty() { Ok(()) } else { self.store.append_rounds(&collected).await }
    }

    /// The newest rounds of an instance, the newest first.
    pub async fn newest(&self, instance: &str, depth: Depth, limit: u32) -> Result<Vec<StoredRound>, StoreError> {
        self.flush().await?;
        self.store.rounds(instance, depth, limit).await
    }
}
