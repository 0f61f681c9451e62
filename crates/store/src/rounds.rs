//! The table of health rounds: what watching has seen of each instance.

use std::time::Duration;

use jiff::Timestamp;
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Row, Sqlite};

use super::{Doing, Retention, Store, StoreError, time_text, timestamp};
use arenad_model::health::Depth;

/// A round that has just ended.
#[derive(Debug, Clone)]
pub struct NewRound {
    /// The instance.
    pub instance: String,
    /// Its generation.
    pub generation: u64,
    /// Which probes were run.
    pub depth: Depth,
    /// When it began.
    pub at: Timestamp,
    /// How long it took.
    pub took: Duration,
    /// Why it failed; `None`: it passed.
    pub reason: Option<String>,
}

/// A round as it stands in the store.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredRound {
    /// The generation that it looked at.
    pub generation: u64,
    /// When it began.
    pub at: Timestamp,
    /// Milliseconds.
    pub duration_ms: f64,
    /// Why it failed; `None`: it passed.
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

/// The statement that appends a round.
fn insert(round: &NewRound) -> Query<'_, Sqlite, SqliteArguments> {
    sqlx::query(
        "INSERT INTO health_rounds (instance, generation, kind, at, duration_ms, ok, reason) VALUES (?, ?, ?, ?, ?, ?, ?)",
    )
    .bind(&round.instance)
    .bind(i64::try_from(round.generation).unwrap_or(i64::MAX))
    .bind(round.depth.name())
    .bind(time_text(round.at))
    .bind(round.took.as_secs_f64() * 1e3)
    .bind(round.reason.is_none())
    .bind(&round.reason)
}

impl Store {
    /// Appends rounds, all or none.
    pub async fn append_rounds(&self, rounds: &[NewRound]) -> Result<(), StoreError> {
        const DOING: &str = "note health rounds";
        // Mostly there is one, and a statement alone is a transaction.
        if let [round] = rounds {
            return insert(round).execute(&self.quick).await.map(drop).doing(DOING);
        }
        let mut transaction = self.quick.begin().await.doing(DOING)?;
        for round in rounds {
            insert(round).execute(&mut transaction).await.doing(DOING)?;
        }
        transaction.commit().await.doing(DOING)
    }

    /// The newest rounds of an instance, the newest first.
    pub async fn rounds(&self, instance: &str, depth: Depth, limit: u32) -> Result<Vec<StoredRound>, StoreError> {
        let rows = sqlx::query("SELECT * FROM health_rounds WHERE instance = ? AND kind = ? ORDER BY seq DESC LIMIT ?")
            .bind(instance)
            .bind(depth.name())
            .bind(limit)
            .fetch_all(&self.quick)
            .await
            .doing("read the health rounds")?;
        rows.iter().map(from_row).collect()
    }

    /// Forgets all but the newest `keep` rounds of each instance and kind, and those older than `age` of instances that are gone.
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
