//! The append-only log of what happened, for `arenad events` and for people who come later.

use jiff::Timestamp;
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::{Doing, Store, StoreError, now, timestamp};

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEvent {
    /// Counts up; never used twice.
    pub seq: i64,
    /// When it happened.
    pub at: Timestamp,
    /// A stable word, such as `instance.ready`.
    pub kind: String,
    /// The instance that it is about.
    pub instance: Option<String>,
    /// A sentence that reads alone.
    pub message: String,
}

fn from_row(row: &SqliteRow) -> Result<StoredEvent, StoreError> {
    Ok(StoredEvent {
        seq: row.get("seq"),
        at: timestamp(row.get("at"))?,
        kind: row.get("kind"),
        instance: row.get("instance"),
        message: row.get("message"),
    })
}

impl Store {
    /// Appends an event.
    pub async fn append_event(
        &self,
        kind: &str,
        instance: Option<&str>,
        message: &str,
    ) -> Result<StoredEvent, StoreError> {
        let row = sqlx::query("INSERT INTO events (at, kind, instance, message) VALUES (?, ?, ?, ?) RETURNING *")
            .bind(now())
            .bind(kind)
            .bind(instance)
            .bind(message)
            .fetch_one(&self.pool)
            .await
            .doing("append an event")?;
        from_row(&row)
    }

    /// The events after `seq`, oldest first, at most `limit`.
    pub async fn events_after(&self, seq: i64, limit: u32) -> Result<Vec<StoredEvent>, StoreError> {
        let rows = sqlx::query("SELECT * FROM events WHERE seq > ? ORDER BY seq LIMIT ?")
            .bind(seq)
            .bind(limit)
            .fetch_all(&self.pool)
            .await
            .doing("read the events")?;
        rows.iter().map(from_row).collect()
    }

    /// The sequence number before the newest `count` events, to read those with [`Store::events_after`].
    pub async fn seq_before_last(&self, count: u32) -> Result<i64, StoreError> {
        let seq: Option<i64> = sqlx::query_scalar("SELECT seq FROM events ORDER BY seq DESC LIMIT 1 OFFSET ?")
            .bind(count)
            .fetch_optional(&self.pool)
            .await
            .doing("read the events")?;
        Ok(seq.unwrap_or(0))
    }

    /// Forgets all but the newest `keep` events.
    pub async fn prune_events(&self, keep: u32) -> Result<u64, StoreError> {
        let done = sqlx::query("DELETE FROM events WHERE seq <= (SELECT max(seq) FROM events) - ?")
            .bind(keep)
            .execute(&self.pool)
            .await
            .doing("forget old events")?;
        Ok(done.rows_affected())
    }
}
