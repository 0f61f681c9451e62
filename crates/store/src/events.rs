//! The append-only log of what happened, for `arenad events` and for people who come later.

use jiff::Timestamp;
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::{Doing, Retention, Store, StoreError, time_text, timestamp};

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
            .bind(self.now())
            .bind(kind)
            .bind(instance)
            .bind(message)
            .fetch_one(&self.quick)
            .await
            .doing("append an event")?;
        from_row(&row)
    }

    /// The events after `seq`, oldest first, at most `limit`.
    pub async fn events_after(&self, seq: i64, limit: u32) -> Result<Vec<StoredEvent>, StoreError> {
        let rows = sqlx::query("SELECT * FROM events WHERE seq > ? ORDER BY seq LIMIT ?")
            .bind(seq)
            .bind(limit)
            .fetch_all(&self.readers)
            .await
            .doing("read the events")?;
        rows.iter().map(from_row).collect()
    }

    /// The sequence number before the newest `count` events, to read those with [`Store::events_after`].
    pub async fn seq_before_last(&self, count: u32) -> Result<i64, StoreError> {
        let seq: Option<i64> = sqlx::query_scalar("SELECT seq FROM events ORDER BY seq DESC LIMIT 1 OFFSET ?")
            .bind(count)
            .fetch_optional(&self.quick)
            .await
            .doing("read the events")?;
        Ok(seq.unwrap_or(0))
    }

    /// The sequence number of the last event before a time, to read what followed with [`Store::events_after`].
    pub async fn seq_before(&self, time: Timestamp) -> Result<i64, StoreError> {
        let seq: Option<i64> = sqlx::query_scalar("SELECT max(seq) FROM events WHERE at < ?")
            .bind(time_text(time))
            .fetch_one(&self.readers)
            .await
            .doing("read the events")?;
        Ok(seq.unwrap_or(0))
    }

    /// The sequence numbers of the oldest event that is kept and of the newest; none if there is no event.
    pub async fn event_range(&self) -> Result<Option<(i64, i64)>, StoreError> {
        let row = sqlx::query("SELECT min(seq) AS oldest, max(seq) AS newest FROM events")
            .fetch_one(&self.readers)
            .await
            .doing("read the events")?;
        Ok(row.get::<Option<i64>, _>("oldest").zip(row.get("newest")))
    }

    /// Forgets old events; returns how many.
    pub async fn prune_events(&self, keep: Retention) -> Result<u64, StoreError> {
        let done = sqlx::query(
            "DELETE FROM events WHERE seq <= (SELECT max(seq) FROM events) - ?1 \
             OR (at < ?3 AND seq <= (SELECT max(seq) FROM events) - ?2)",
        )
        .bind(keep.most)
        .bind(keep.least)
        .bind(keep.cutoff(self.clock.now()))
        .execute(&self.quick)
        .await
        .doing("forget old events")?;
        Ok(done.rows_affected())
    }
}
