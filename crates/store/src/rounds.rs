//! The table of health rounds: the history of each instance's probes.

use std::time::Duration;

use jiff::Timestamp;
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Row, Sqlite};

use super::{DaemonStore, Doing, Retention, StoreError, time_text, timestamp};
use arenad_model::health::Depth;
use arenad_model::instance::InstanceId;

/// A round that has just ended and is to be recorded.
#[derive(Debug, Clone)]
pub struct NewRound {
    /// The id of the instance.
    pub instance: InstanceId,
    /// The generation that was probed.
    pub generation: u64,
    /// The kind of probes that were run.
    pub depth: Depth,
    /// The time when the round began.
    pub at: Timestamp,
    /// The duration of the round.
    pub took: Duration,
    /// The reason why the round failed; `None` if it passed.
    pub reason: Option<String>,
}

/// One row of the table of health rounds.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredRound {
    /// The generation that was probed.
    pub generation: u64,
    /// The time when the round began.
    pub at: Timestamp,
    /// The duration of the round, in milliseconds.
    pub duration_ms: f64,
    /// The reason why the round failed; `None` if it passed.
    pub reason: Option<String>,
}

fn from_row(row: &SqliteRow) -> Result<StoredRound, StoreError> {
    Ok(StoredRound {
        generation: row.get::<i64, _>("generation").unsigned_abs(),
        at: timestamp(row.get("at"))?,
        duration_ms: row.get("duration_ms"),
        reason: row.get("reason"),
    })
}

/// Returns the statement that inserts a round.
fn insert(round: &NewRound) -> Query<'_, Sqlite, SqliteArguments> {
    sqlx::query(
        "INSERT INTO health_rounds (instance, generation, kind, at, duration_ms, ok, reason) VALUES (?, ?, ?, ?, ?, ?, ?)",
    )
    .bind(round.instance.to_string())
    .bind(i64::try_from(round.generation).unwrap_or(i64::MAX))
    .bind(round.depth.name())
    .bind(time_text(round.at))
    .bind(round.took.as_secs_f64() * 1e3)
    .bind(round.reason.is_none())
    .bind(&round.reason)
}

impl DaemonStore {
    /// Appends all of the rounds, or none if a statement fails.
    pub async fn append_rounds(&self, rounds: &[NewRound]) -> Result<(), StoreError> {
        const DOING: &str = "note health rounds";
        // A batch usually holds one round, and a single statement is a transaction of its own.
        if let [round] = rounds {
            return insert(round).execute(&self.quick).await.map(drop).doing(DOING);
        }
        let mut transaction = self.quick.begin().await.doing(DOING)?;
        for round in rounds {
            insert(round).execute(&mut transaction).await.doing(DOING)?;
        }
        transaction.commit().await.doing(DOING)
    }

    /// Returns at most `limit` rounds of an instance and kind, newest first.
    pub async fn rounds(
        &self,
        instance: &InstanceId,
        depth: Depth,
        limit: u32,
    ) -> Result<Vec<StoredRound>, StoreError> {
        let rows = sqlx::query("SELECT * FROM health_rounds WHERE instance = ? AND kind = ? ORDER BY seq DESC LIMIT ?")
            .bind(instance.to_string())
            .bind(depth.name())
            .bind(limit)
            .fetch_all(&self.quick)
            .await
            .doing("read the health rounds")?;
        rows.iter().map(from_row).collect()
    }

    /// Deletes all but the newest `keep` rounds of each instance and kind, and the rounds older than `age` of instances
    /// that no longer exist. Returns the number of deleted rows.
    pub async fn prune_rounds(&self, keep: u32, age: Duration) -> Result<u64, StoreError> {
        let done = sqlx::query(
            "DELETE FROM health_rounds WHERE seq IN (SELECT seq FROM (SELECT seq, row_number() OVER \
             (PARTITION BY instance, kind ORDER BY seq DESC) AS place FROM health_rounds) WHERE place > ?1) \
             OR (at < ?2 AND instance NOT IN (SELECT id FROM instances))",
        )
        .bind(keep)
        .bind(Retention { most: keep, least: 0, age }.cutoff(self.clock.now()))
        .execute(&self.quick)
        .await
        .doing("forget old health rounds")?;
        Ok(done.rows_affected())
    }
}
