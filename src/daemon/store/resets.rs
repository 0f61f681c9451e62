//! The table of resets: who asked when, how it ended, where the time went.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::instances::Serving;
use super::{Doing, Store, StoreError, json, now, timestamp, to_json};
use crate::domain::instance::InstanceId;
use crate::domain::verify::Extent;

/// How long one stage of a reset took. Stages may overlap, so they need not add up to the whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StageTime {
    /// `hold`, `remove`, `create`, `start`, `ready`, `switch`.
    pub stage: String,
    /// Milliseconds.
    pub duration_ms: f64,
}

/// A reset as it stands in the store.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredReset {
    /// Its id.
    pub id: String,
    /// The instance.
    pub instance: String,
    /// The way it was done.
    pub strategy: String,
    /// When it was asked for.
    pub requested_at: Timestamp,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// `done`, `failed`, `cancelled`, `interrupted`; none while it goes on.
    pub outcome: Option<String>,
    /// Why it failed; where it was done, why by no faster way.
    pub reason: Option<String>,
    /// Milliseconds from the request to the new instance serving.
    pub duration_ms: Option<f64>,
    /// Where the time went.
    pub stages: Vec<StageTime>,
    /// How much was compared with the snapshot: `everything`, `moved`, `nothing`; none if it did not come to that.
    pub verified: Option<String>,
}

/// A reset that a standby was ready for.
#[derive(Debug, Clone, PartialEq)]
pub struct NewSwap<'a> {
    /// The reset's id.
    pub id: &'a str,
    /// The snapshot that the standby is of.
    pub snapshot: &'a str,
    /// How long it took until then.
    pub duration_ms: f64,
    /// Where the time went.
    pub stages: &'a [StageTime],
    /// How much was compared with the snapshot.
    pub verified: Extent,
}

/// How a reset ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ResetEnd<'a> {
    /// The way by which it came there: what was begun as a rewind may have ended as a recreate.
    pub strategy: &'a str,
    /// `done`, `failed`, `cancelled`.
    pub outcome: &'static str,
    /// Why it failed; where it was done, why by no faster way.
    pub reason: Option<&'a str>,
    /// Milliseconds from the request to the new instance serving.
    pub duration_ms: f64,
    /// Where the time went.
    pub stages: &'a [StageTime],
    /// How much was compared with the snapshot; none if it did not come to that.
    pub verified: Option<Extent>,
}

fn from_row(row: &SqliteRow) -> Result<StoredReset, StoreError> {
    Ok(StoredReset {
        id: row.get("id"),
        instance: row.get("instance"),
        strategy: row.get("strategy"),
        requested_at: timestamp(row.get("requested_at"))?,
        finished_at: row.get::<Option<String>, _>("finished_at").as_deref().map(timestamp).transpose()?,
        outcome: row.get("outcome"),
        reason: row.get("reason"),
        duration_ms: row.get("duration_ms"),
        stages: json("a reset's stages", row.get("stages"))?,
        verified: row.get("verified"),
    })
}

impl Store {
    /// Notes that a reset has begun.
    pub async fn begin_reset(&self, id: &str, instance: &InstanceId, strategy: &str) -> Result<(), StoreError> {
        sqlx::query("INSERT INTO resets (id, instance, strategy, requested_at) VALUES (?, ?, ?, ?)")
            .bind(id)
            .bind(instance.to_string())
            .bind(strategy)
            .bind(now())
            .execute(&self.pool)
            .await
            .doing("note a reset")?;
        Ok(())
    }

    /// Notes, in one step, that a standby serves from now on and that this was the reset which was asked for.
    ///
    /// It is on disk before the first client reaches the standby: after a crash in between, the next daemon takes up what
    /// nobody has used yet.
    pub async fn record_swap(
        &self,
        instance: &InstanceId,
        made: u64,
        swap: &NewSwap<'_>,
    ) -> Result<Serving, StoreError> {
        let doing = "note a swap";
        let now = now();
        let mut transaction = self.pool.begin().await.doing(doing)?;
        let generation: i64 = sqlx::query_scalar(
            "UPDATE instances SET generation = generation + 1, serving = generation + 1, made = ?, snapshot = ?, \
             state = 'ready', reason = NULL, hint = NULL, since = ? WHERE id = ? RETURNING generation",
        )
        .bind(i64::try_from(made).unwrap_or(i64::MAX))
        .bind(swap.snapshot)
        .bind(&now)
        .bind(instance.to_string())
        .fetch_one(&mut *transaction)
        .await
        .doing(doing)?;
        sqlx::query("DELETE FROM standbys WHERE instance = ? AND made = ?")
            .bind(instance.to_string())
            .bind(i64::try_from(made).unwrap_or(i64::MAX))
            .execute(&mut *transaction)
            .await
            .doing(doing)?;
        sqlx::query(
            "INSERT INTO resets (id, instance, strategy, requested_at, finished_at, outcome, duration_ms, stages, verified) \
             VALUES (?, ?, 'swap', ?, ?, 'done', ?, ?, ?)",
        )
        .bind(swap.id)
        .bind(instance.to_string())
        .bind(&now)
        .bind(&now)
        .bind(swap.duration_ms)
        .bind(to_json(&swap.stages))
        .bind(swap.verified.name())
        .execute(&mut *transaction)
        .await
        .doing(doing)?;
        transaction.commit().await.doing(doing)?;
        Ok(Serving { generation: generation.unsigned_abs(), made })
    }

    /// Notes how a reset ended.
    pub async fn end_reset(&self, id: &str, end: ResetEnd<'_>) -> Result<(), StoreError> {
        sqlx::query(
            "UPDATE resets SET strategy = ?, finished_at = ?, outcome = ?, reason = ?, duration_ms = ?, stages = ?, verified = ? \
             WHERE id = ?",
        )
        .bind(end.strategy)
        .bind(now())
        .bind(end.outcome)
        .bind(end.reason)
        .bind(end.duration_ms)
        .bind(to_json(&end.stages))
        .bind(end.verified.map(Extent::name))
        .bind(id)
        .execute(&self.pool)
        .await
        .doing("note a reset's end")?;
        Ok(())
    }

    /// Marks resets that a crash cut off; returns how many there were.
    pub async fn mark_interrupted_resets(&self) -> Result<u64, StoreError> {
        let done = sqlx::query("UPDATE resets SET outcome = 'interrupted', finished_at = ? WHERE outcome IS NULL")
            .bind(now())
            .execute(&self.pool)
            .await
            .doing("mark interrupted resets")?;
        Ok(done.rows_affected())
    }

    /// One reset by its id.
    pub async fn reset(&self, id: &str) -> Result<Option<StoredReset>, StoreError> {
        let row = sqlx::query("SELECT * FROM resets WHERE id = ?")
            .bind(id)
            .fetch_optional(&self.readers)
            .await
            .doing("read a reset")?;
        row.as_ref().map(from_row).transpose()
    }

    /// The last reset of an instance that was done.
    pub async fn last_reset(&self, instance: &InstanceId) -> Result<Option<StoredReset>, StoreError> {
        let row = sqlx::query(
            "SELECT * FROM resets WHERE instance = ? AND outcome IS NOT NULL ORDER BY requested_at DESC LIMIT 1",
        )
        .bind(instance.to_string())
        .fetch_optional(&self.pool)
        .await
        .doing("read the last reset")?;
        row.as_ref().map(from_row).transpose()
    }

    /// Forgets all but the newest `keep` resets.
    pub async fn prune_resets(&self, keep: u32) -> Result<u64, StoreError> {
        let done = sqlx::query(
            "DELETE FROM resets WHERE outcome IS NOT NULL AND id NOT IN \
             (SELECT id FROM resets ORDER BY requested_at DESC LIMIT ?)",
        )
        .bind(keep)
        .execute(&self.pool)
        .await
        .doing("forget old resets")?;
        Ok(done.rows_affected())
    }
}
