//! The append-only table of events, for `arenad events` and for later inspection. [`EventLog`](super::EventLog) writes to
//! it.

use jiff::Timestamp;
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::{DaemonStore, Doing, OldRows, Retention, StoreError, instance_id, time_text, timestamp};
use arenad_model::event::EventKind;
use arenad_model::instance::InstanceId;

/// One entry of the event log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEvent {
    /// The sequence number; it increases and is never reused.
    pub seq: i64,
    /// The time of the event.
    pub at: Timestamp,
    /// The kind of event, such as `instance.ready`; another version may have recorded one that [`EventKind`] lacks.
    pub kind: String,
    /// The id of the instance that the event concerns; `None` if it concerns none.
    pub instance: Option<InstanceId>,
    /// A sentence that can be read without context.
    pub message: String,
}

fn from_row(row: &SqliteRow) -> Result<StoredEvent, StoreError> {
    Ok(StoredEvent {
        seq: row.get("seq"),
        at: timestamp(row.get("at"))?,
        kind: row.get("kind"),
        instance: row.get::<Option<&str>, _>("instance").map(instance_id).transpose()?,
        message: row.get("message"),
    })
}

impl DaemonStore {
    /// Appends an event with the current time.
    pub async fn append_event(
        &self,
        kind: EventKind,
        instance: Option<&InstanceId>,
        message: &str,
    ) -> Result<StoredEvent, StoreError> {
        let row = sqlx::query("INSERT INTO events (at, kind, instance, message) VALUES (?, ?, ?, ?) RETURNING *")
            .bind(self.now())
            .bind(kind.name())
            .bind(instance.map(InstanceId::to_string))
            .bind(message)
            .fetch_one(&self.quick)
            .await
            .doing("append an event")?;
        from_row(&row)
    }

    /// Returns at most `limit` events after `seq`, oldest first.
    pub async fn events_after(&self, seq: i64, limit: u32) -> Result<Vec<StoredEvent>, StoreError> {
        let rows = sqlx::query("SELECT * FROM events WHERE seq > ? ORDER BY seq LIMIT ?")
            .bind(seq)
            .bind(limit)
            .fetch_all(&self.readers)
            .await
            .doing("read the events")?;
        rows.iter().map(from_row).collect()
    }

    /// Returns the sequence number before the newest `count` events, to read them with [`DaemonStore::events_after`].
    pub async fn seq_before_last(&self, count: u32) -> Result<i64, StoreError> {
        let seq: Option<i64> = sqlx::query_scalar("SELECT seq FROM events ORDER BY seq DESC LIMIT 1 OFFSET ?")
            .bind(count)
            .fetch_optional(&self.quick)
            .await
            .doing("read the events")?;
        Ok(seq.unwrap_or(0))
    }

    /// Returns the sequence number of the last event before a time, to read the later events with
    /// [`DaemonStore::events_after`].
    pub async fn seq_before(&self, time: Timestamp) -> Result<i64, StoreError> {
        let seq: Option<i64> = sqlx::query_scalar("SELECT max(seq) FROM events WHERE at < ?")
            .bind(time_text(time))
            .fetch_one(&self.readers)
            .await
            .doing("read the events")?;
        Ok(seq.unwrap_or(0))
    }

    /// Deletes old events and returns their number.
    pub async fn prune_events(&self, keep: Retention) -> Result<u64, StoreError> {
        let rows = OldRows { table: "events", seq: "seq", at: "at", only: "TRUE" };
        self.forget_rows(rows, keep, "forget old events").await
    }
}
