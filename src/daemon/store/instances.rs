//! The table of instances: what is wanted of each, and its newest generation.

use jiff::Timestamp;
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::{Doing, Store, StoreError, now, timestamp};
use crate::domain::instance::{InstanceId, InstanceState};

/// An instance as it stands in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredInstance {
    /// `environment/site/number`.
    pub id: String,
    /// The site.
    pub site: String,
    /// Whether it is wanted up.
    pub desired_up: bool,
    /// The name of its last state.
    pub state: String,
    /// Its newest generation: the highest number that was given out.
    pub generation: u64,
    /// The one that serves, or is being made to; none before the first.
    pub serving: Option<Serving>,
    /// The snapshot that it starts from.
    pub snapshot: Option<String>,
    /// When its last state began.
    pub since: Timestamp,
}

/// The generation of an instance that clients reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Serving {
    /// Its number.
    pub generation: u64,
    /// The generation that its containers were made for, which their labels name. Bringing them back to the snapshot in place
    /// makes a new generation of the same containers.
    pub made: u64,
}

fn from_row(row: &SqliteRow) -> Result<StoredInstance, StoreError> {
    Ok(StoredInstance {
        id: row.get("id"),
        site: row.get("site"),
        desired_up: row.get::<String, _>("desired") == "up",
        state: row.get("state"),
        generation: row.get::<i64, _>("generation").unsigned_abs(),
        serving: serving(row),
        snapshot: row.get("snapshot"),
        since: timestamp(row.get("since"))?,
    })
}

fn serving(row: &SqliteRow) -> Option<Serving> {
    let generation = row.get::<Option<i64>, _>("serving")?.unsigned_abs();
    let made = row.get::<Option<i64>, _>("made")?.unsigned_abs();
    Some(Serving { generation, made })
}

impl Store {
    /// Notes that an instance is wanted up or down; makes its row if it has none.
    pub async fn want_instance(&self, id: &InstanceId, up: bool) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO instances (id, environment, site, desired, state, since) VALUES (?, ?, ?, ?, 'down', ?) \
             ON CONFLICT (id) DO UPDATE SET desired = excluded.desired",
        )
        .bind(id.to_string())
        .bind(id.environment.as_str())
        .bind(id.site.as_str())
        .bind(if up { "up" } else { "down" })
        .bind(now())
        .execute(&self.pool)
        .await
        .doing("note what is wanted of an instance")?;
        Ok(())
    }

    /// The instances of an environment, by id.
    pub async fn instances(&self, environment: &str) -> Result<Vec<StoredInstance>, StoreError> {
        let rows = sqlx::query("SELECT * FROM instances WHERE environment = ? ORDER BY id")
            .bind(environment)
            .fetch_all(&self.pool)
            .await
            .doing("read the instances")?;
        rows.iter().map(from_row).collect()
    }

    /// One instance, if it has a row.
    pub async fn instance(&self, id: &InstanceId) -> Result<Option<StoredInstance>, StoreError> {
        let row = sqlx::query("SELECT * FROM instances WHERE id = ?")
            .bind(id.to_string())
            .fetch_optional(&self.pool)
            .await
            .doing("read an instance")?;
        row.as_ref().map(from_row).transpose()
    }

    /// Notes the state that an instance is in, and since when.
    pub async fn save_state(&self, id: &InstanceId, state: &InstanceState, since: Timestamp) -> Result<(), StoreError> {
        let trouble = state.trouble();
        sqlx::query("UPDATE instances SET state = ?, reason = ?, hint = ?, since = ? WHERE id = ?")
            .bind(state.name())
            .bind(trouble.map(|trouble| trouble.reason.clone()))
            .bind(trouble.map(|trouble| trouble.hint.clone()))
            .bind(since.to_string())
            .bind(id.to_string())
            .execute(&self.pool)
            .await
            .doing("note an instance's state")?;
        Ok(())
    }

    /// Begins a new generation that is to serve, with containers of its own, and returns its number, which no earlier one
    /// has had.
    ///
    /// It is on disk before anything of that generation exists in the engine, so that a generation found there that the
    /// row does not know is impossible, and one that is neither serving nor a standby of this daemon is a leftover.
    pub async fn begin_serving(&self, id: &InstanceId, snapshot: &str) -> Result<u64, StoreError> {
        let generation: i64 = sqlx::query_scalar(
            "UPDATE instances SET generation = generation + 1, serving = generation + 1, made = generation + 1, snapshot = ? \
             WHERE id = ? RETURNING generation",
        )
        .bind(snapshot)
        .bind(id.to_string())
        .fetch_one(&self.pool)
        .await
        .doing("begin a generation")?;
        Ok(generation.unsigned_abs())
    }

    /// Begins a new generation of the containers that serve, and returns its number.
    pub async fn begin_rewind(&self, id: &InstanceId) -> Result<u64, StoreError> {
        let generation: i64 = sqlx::query_scalar(
            "UPDATE instances SET generation = generation + 1, serving = generation + 1 WHERE id = ? RETURNING generation",
        )
        .bind(id.to_string())
        .fetch_one(&self.pool)
        .await
        .doing("begin a generation")?;
        Ok(generation.unsigned_abs())
    }

    /// Begins a new generation that is not to serve yet, and returns its number.
    pub async fn begin_standby(&self, id: &InstanceId) -> Result<u64, StoreError> {
        let generation: i64 =
            sqlx::query_scalar("UPDATE instances SET generation = generation + 1 WHERE id = ? RETURNING generation")
                .bind(id.to_string())
                .fetch_one(&self.pool)
                .await
                .doing("begin a standby")?;
        Ok(generation.unsigned_abs())
    }
}
