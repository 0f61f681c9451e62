//! The table of writes that reached read-only instances.

use jiff::Timestamp;
use sqlx::Row;

use super::{DaemonStore, Doing, StoreError, time_text, timestamp};
use arenad_model::instance::InstanceId;

/// The writes to a read-only instance that are known so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredWrites {
    /// The number of requests that may have written.
    pub requests: u64,
    /// The time of the first such request or of the first difference.
    pub since: Timestamp,
    /// The difference from the snapshot; `None` if none is known.
    pub difference: Option<String>,
}

impl StoredWrites {
    /// Returns a record without writes that starts at `now`.
    pub fn since(now: Timestamp) -> Self {
        Self { requests: 0, since: now, difference: None }
    }
}

impl DaemonStore {
    /// Returns the known writes to a generation of an instance.
    pub async fn writes(&self, instance: &InstanceId, generation: u64) -> Result<Option<StoredWrites>, StoreError> {
        let row = sqlx::query("SELECT * FROM writes WHERE instance = ? AND generation = ?")
            .bind(instance.to_string())
            .bind(i64::try_from(generation).unwrap_or(i64::MAX))
            .fetch_optional(&self.quick)
            .await
            .doing("read what was written to an instance")?;
        let Some(row) = row else { return Ok(None) };
        Ok(Some(StoredWrites {
            requests: row.get::<i64, _>("requests").unsigned_abs(),
            since: timestamp(row.get("since"))?,
            difference: row.get("difference"),
        }))
    }

    /// Saves the known writes to a generation of an instance, replacing those of older generations.
    pub async fn save_writes(
        &self,
        instance: &InstanceId,
        generation: u64,
        writes: &StoredWrites,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT OR REPLACE INTO writes (instance, generation, requests, since, difference) VALUES (?, ?, ?, ?, ?)",
        )
        .bind(instance.to_string())
        .bind(i64::try_from(generation).unwrap_or(i64::MAX))
        .bind(i64::try_from(writes.requests).unwrap_or(i64::MAX))
        .bind(time_text(writes.since))
        .bind(&writes.difference)
        .execute(&self.durable)
        .await
        .doing("keep what was written to an instance")?;
        Ok(())
    }
}
