//! The table of writes: what reached instances that are only read.

use jiff::Timestamp;
use sqlx::Row;

use super::{Doing, Store, StoreError, time_text, timestamp};
use arenad_model::instance::InstanceId;

/// What is known of writes to an instance that is only read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredWrites {
    /// Requests that may write.
    pub requests: u64,
    /// When the first of them, or the first difference, was seen.
    pub since: Timestamp,
    /// What differed from the snapshot; `None`: nothing that is known.
    pub difference: Option<String>,
}

impl StoredWrites {
    /// Nothing yet, from now on.
    pub fn since(now: Timestamp) -> Self {
        Self { requests: 0, since: now, difference: None }
    }
}

impl Store {
    /// What is known of writes to a generation of an instance.
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

    /// Keeps what is known of writes to a generation of an instance, in place of what was known of older ones.
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
