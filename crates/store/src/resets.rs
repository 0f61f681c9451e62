//! The table of resets: the time of each request, its outcome, and the duration of its stages.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::connection::Transaction;
use super::{
    DaemonStore, Doing, OldRows, Retention, StoreError, instance_id, json, time_text, timestamp, to_json, word,
};
use arenad_model::instance::InstanceId;
use arenad_model::reset::{ResetOutcome, ResetWay};
use arenad_model::verify::{ComparisonExtent, Verified};

/// The duration of one stage of a reset. Stages may overlap, so their sum may differ from the total.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StageTime {
    /// The name of the stage: `hold`, `remove`, `create`, `start`, `ready` or `switch`.
    pub stage: String,
    /// The duration of the stage, in milliseconds.
    pub duration_ms: f64,
}

/// One row of the table of resets.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredReset {
    /// The id of the reset, which is that of its operation.
    pub id: String,
    /// The id of the instance that was reset.
    pub instance: InstanceId,
    /// The way in which the reset was done.
    pub strategy: ResetWay,
    /// The time when the reset was requested.
    pub requested_at: Timestamp,
    /// The time when the reset ended; `None` while it is in progress.
    pub finished_at: Option<Timestamp>,
    /// The outcome; `None` while the reset is in progress.
    pub outcome: Option<ResetOutcome>,
    /// The reason for the failure, or the reason why a completed reset could not use a faster way.
    pub reason: Option<String>,
    /// The time from the request until the new generation served, in milliseconds.
    pub duration_ms: Option<f64>,
    /// The durations of the reset's stages.
    pub stages: Vec<StageTime>,
    /// The extent of the comparison with the snapshot; `None` if the reset ended before it.
    pub verified: Option<ComparisonExtent>,
    /// The stores that the comparison covered; `None` if the reset ended before it, or the row predates this column.
    pub compared: Option<StoredCompared>,
}

/// The declared stores that a reset compared, and those that it left out.
///
/// Shape: `{"declared": 2, "stores": ["database"], "left_out": [{"store": "files", "part": null, "reason": "…"}]}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredCompared {
    /// The number of stores that the definition declares.
    pub declared: usize,
    /// The names of the stores that were compared.
    pub stores: Vec<String>,
    /// The stores, and parts of stores, that were left out.
    pub left_out: Vec<StoredLeftOut>,
}

/// A store, or a part of one, that a reset did not compare.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredLeftOut {
    /// The name of the store.
    pub store: String,
    /// The part of the store that was left out; `None` for the whole store.
    pub part: Option<String>,
    /// The reason why it was left out.
    pub reason: String,
}

impl StoredCompared {
    fn of(verified: &Verified) -> Self {
        let left_out = verified.left_out.iter().map(|left| StoredLeftOut {
            store: left.store.clone(),
            part: left.part.clone(),
            reason: left.reason.clone(),
        });
        Self { declared: verified.declared, stores: verified.stores.clone(), left_out: left_out.collect() }
    }
}

/// A reset that has ended and is to be recorded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NewReset<'a> {
    /// The id of the reset, which is that of its operation.
    pub id: &'a str,
    /// The time when the reset was requested.
    pub requested_at: Timestamp,
    /// The way in which the reset was done, or the last way that was tried.
    pub strategy: ResetWay,
    /// How the reset ended.
    pub outcome: ResetOutcome,
    /// The reason for the failure, or the reason why a completed reset could not use a faster way.
    pub reason: Option<&'a str>,
    /// The time from the request until the instance was ready to serve, in milliseconds.
    pub duration_ms: f64,
    /// The durations of the reset's stages.
    pub stages: &'a [StageTime],
    /// The result of the comparison with the snapshot; `None` if the reset ended before it.
    pub verified: Option<&'a Verified>,
}

/// Inserts the row of a reset; a reset has exactly one.
pub(super) async fn insert_reset(
    transaction: &mut Transaction,
    instance: &InstanceId,
    reset: &NewReset<'_>,
    now: String,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO resets (id, instance, strategy, requested_at, finished_at, outcome, reason, duration_ms, stages, verified, \
         compared) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )
    .bind(reset.id)
    .bind(instance.to_string())
    .bind(reset.strategy.name())
    .bind(time_text(reset.requested_at))
    .bind(now)
    .bind(reset.outcome.name())
    .bind(reset.reason)
    .bind(reset.duration_ms)
    .bind(to_json(&reset.stages))
    .bind(reset.verified.map(|verified| verified.extent.name()))
    .bind(reset.verified.map(|verified| to_json(&StoredCompared::of(verified))))
    .execute(transaction)
    .await?;
    Ok(())
}

fn from_row(row: &SqliteRow) -> Result<StoredReset, StoreError> {
    let outcome = row.get::<Option<&str>, _>("outcome");
    let verified = row.get::<Option<&str>, _>("verified");
    Ok(StoredReset {
        id: row.get("id"),
        instance: instance_id(row.get("instance"))?,
        strategy: word("the way of a reset", row.get("strategy"), ResetWay::named)?,
        requested_at: timestamp(row.get("requested_at"))?,
        finished_at: row.get::<Option<String>, _>("finished_at").as_deref().map(timestamp).transpose()?,
        outcome: outcome.map(|text| word("the outcome of a reset", text, ResetOutcome::named)).transpose()?,
        reason: row.get("reason"),
        duration_ms: row.get("duration_ms"),
        stages: json("a reset's stages", row.get("stages"))?,
        verified: verified.map(|text| word("what a reset compared", text, ComparisonExtent::named)).transpose()?,
        compared: row.get::<Option<&str>, _>("compared").map(|text| json("what a reset compared", text)).transpose()?,
    })
}

impl DaemonStore {
    /// Records a reset that failed or left the instance unchanged. A reset that led to a new generation is recorded
    /// together with that generation.
    pub async fn note_reset(&self, instance: &InstanceId, reset: &NewReset<'_>) -> Result<(), StoreError> {
        let doing = "note a reset";
        let mut transaction = self.durable.begin().await.doing(doing)?;
        insert_reset(&mut transaction, instance, reset, self.now()).await.doing(doing)?;
        sqlx::query(
            "UPDATE instances SET reset_id = NULL, reset_strategy = NULL, reset_requested_at = NULL WHERE id = ? AND reset_id = ?",
        )
        .bind(instance.to_string())
        .bind(reset.id)
        .execute(&mut transaction)
        .await
        .doing(doing)?;
        transaction.commit().await.doing(doing)
    }

    /// Records the resets that a crash interrupted and returns their number.
    pub async fn note_interrupted_resets(&self) -> Result<u64, StoreError> {
        let doing = "note interrupted resets";
        let mut transaction = self.durable.begin().await.doing(doing)?;
        let done = sqlx::query(
            "INSERT OR IGNORE INTO resets (id, instance, strategy, requested_at, finished_at, outcome) \
             SELECT reset_id, id, coalesce(reset_strategy, 'recreate'), coalesce(reset_requested_at, since), ?, 'interrupted' \
             FROM instances WHERE reset_id IS NOT NULL",
        )
        .bind(self.now())
        .execute(&mut transaction)
        .await
        .doing(doing)?;
        sqlx::query("UPDATE instances SET reset_id = NULL, reset_strategy = NULL, reset_requested_at = NULL")
            .execute(&mut transaction)
            .await
            .doing(doing)?;
        // Earlier versions inserted the row when a reset began.
        sqlx::query("UPDATE resets SET outcome = 'interrupted', finished_at = ? WHERE outcome IS NULL")
            .bind(self.now())
            .execute(&mut transaction)
            .await
            .doing(doing)?;
        transaction.commit().await.doing(doing)?;
        Ok(done.rows_affected())
    }

    /// Returns the reset with the given id.
    pub async fn reset(&self, id: &str) -> Result<Option<StoredReset>, StoreError> {
        let row = sqlx::query("SELECT * FROM resets WHERE id = ?")
            .bind(id)
            .fetch_optional(&self.readers)
            .await
            .doing("read a reset")?;
        row.as_ref().map(from_row).transpose()
    }

    /// Returns the most recent reset of an instance that has ended, with any outcome.
    pub async fn last_reset(&self, instance: &InstanceId) -> Result<Option<StoredReset>, StoreError> {
        let row =
            sqlx::query("SELECT * FROM resets WHERE instance = ? AND outcome IS NOT NULL ORDER BY seq DESC LIMIT 1")
                .bind(instance.to_string())
                .fetch_optional(&self.quick)
                .await
                .doing("read the last reset")?;
        row.as_ref().map(from_row).transpose()
    }

    /// Deletes old resets that have ended and returns their number. Insertion order, not the clock, determines which
    /// resets are the newest.
    pub async fn prune_resets(&self, keep: Retention) -> Result<u64, StoreError> {
        let rows = OldRows { table: "resets", seq: "seq", at: "requested_at", only: "outcome IS NOT NULL" };
        self.forget_rows(rows, keep, "forget old resets").await
    }
}
