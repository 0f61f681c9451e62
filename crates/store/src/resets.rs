//! The table of resets: who asked when, how it ended, where the time went.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::connection::Transaction;
use super::{Doing, Retention, Store, StoreError, json, time_text, timestamp, to_json};
use arenad_model::instance::InstanceId;
use arenad_model::verify::Verified;

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
    /// What that covered; none if it did not come to that, or it was not noted yet.
    pub compared: Option<StoredCompared>,
}

/// Which of the declared stores a reset compared.
///
/// Shape: `{"declared": 2, "stores": ["database"], "left_out": [{"store": "files", "part": null, "reason": "…"}]}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredCompared {
    /// How many stores the definition declared.
    pub declared: usize,
    /// The names of those that were compared.
    pub stores: Vec<String>,
    /// What was left out.
    pub left_out: Vec<StoredLeftOut>,
}

/// A store, or a part of one, that a reset did not compare.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredLeftOut {
    /// The store.
    pub store: String,
    /// The part; none: all of it.
    pub part: Option<String>,
    /// Why.
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

/// A reset that has ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NewReset<'a> {
    /// Its id.
    pub id: &'a str,
    /// When it was asked for.
    pub requested_at: Timestamp,
    /// The way by which it was done, or the last one that was tried.
    pub strategy: &'a str,
    /// `done`, `failed`, `cancelled`.
    pub outcome: &'static str,
    /// Why it failed; where it was done, why by no faster way.
    pub reason: Option<&'a str>,
    /// Milliseconds from the request to the instance being ready to serve.
    pub duration_ms: f64,
    /// Where the time went.
    pub stages: &'a [StageTime],
    /// What was compared with the snapshot; none if it did not come to that.
    pub verified: Option<&'a Verified>,
}

/// Writes the one row of a reset.
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
    .bind(reset.strategy)
    .bind(time_text(reset.requested_at))
    .bind(now)
    .bind(reset.outcome)
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
        compared: row.get::<Option<&str>, _>("compared").map(|text| json("what a reset compared", text)).transpose()?,
    })
}

impl Store {
    /// Notes a reset that left the instance as it was, or failed: one that led to a new generation is noted with it.
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

    /// Notes the resets that a crash cut off; returns how many there were.
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
        // Rows of versions that wrote one when a reset began.
        sqlx::query("UPDATE resets SET outcome = 'interrupted', finished_at = ? WHERE outcome IS NULL")
            .bind(self.now())
            .execute(&mut transaction)
            .await
            .doing(doing)?;
        transaction.commit().await.doing(doing)?;
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
        let row =
            sqlx::query("SELECT * FROM resets WHERE instance = ? AND outcome IS NOT NULL ORDER BY seq DESC LIMIT 1")
                .bind(instance.to_string())
                .fetch_optional(&self.quick)
                .await
                .doing("read the last reset")?;
        row.as_ref().map(from_row).transpose()
    }

    /// Forgets old resets that have ended; returns how many. Which are the newest is told by their order, not by the clock.
    pub async fn prune_resets(&self, keep: Retention) -> Result<u64, StoreError> {
        let done = sqlx::query(
            "DELETE FROM resets WHERE outcome IS NOT NULL AND (seq <= (SELECT max(seq) FROM resets) - ?1 \
             OR (requested_at < ?3 AND seq <= (SELECT max(seq) FROM resets) - ?2))",
        )
        .bind(keep.most)
        .bind(keep.least)
        .bind(keep.cutoff(self.clock.now()))
        .execute(&self.quick)
        .await
        .doing("forget old resets")?;
        Ok(done.rows_affected())
    }
}
