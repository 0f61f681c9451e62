//! The tables of engines: which one is in use, and which has what of this installation.
//!
//! What the engine in use does not have may be on another one, so nothing is ever removed because it is missing here.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::{Doing, Store, StoreError, timestamp};

/// An engine that the installation has worked with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEngine {
    /// Tells it from all others.
    pub id: String,
    /// Where it answered last.
    pub endpoint: String,
}

/// Where the images of a snapshot are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SnapshotPlace {
    /// The engine that has them; none if that is not known.
    pub engine: Option<String>,
    /// When that engine was first seen without them.
    pub missing_since: Option<Timestamp>,
}

impl Store {
    /// Notes which engine is in use. Returns the one that was in use before, if that is another.
    ///
    /// What was made on the engine before stays that engine's.
    pub async fn meet_engine(&self, id: &str, endpoint: &str) -> Result<Option<StoredEngine>, StoreError> {
        const DOING: &str = "note which engine is in use";
        const IN_USE: &str = "SELECT installation.engine, coalesce(engines.endpoint, '') AS endpoint FROM installation \
             LEFT JOIN engines ON engines.id = installation.engine";
        let engine_of = |row: &SqliteRow| {
            let id: Option<String> = row.get("engine");
            id.map(|id| StoredEngine { id, endpoint: row.get("endpoint") })
        };
        let is_known = |known: &Option<StoredEngine>| {
            known.as_ref().is_some_and(|known| known.id == id && known.endpoint == endpoint)
        };
        // Nearly always it is the same, and nothing is written.
        let row = sqlx::query(IN_USE).fetch_one(&self.quick).await.doing(DOING)?;
        if is_known(&engine_of(&row)) {
            return Ok(None);
        }
        let mut transaction = self.durable.begin().await.doing(DOING)?;
        let row = sqlx::query(IN_USE).fetch_one(&mut transaction).await.doing(DOING)?;
        let before = engine_of(&row);
        if is_known(&before) {
            return Ok(None);
        }
        let others = before.filter(|before| before.id != id);
        if let Some(other) = &others {
            for statement in [
                "UPDATE instances SET engine = ?1 WHERE engine IS NULL AND made IS NOT NULL",
                "UPDATE snapshots SET engine = ?1 WHERE engine IS NULL",
                "INSERT OR IGNORE INTO elsewhere SELECT engine, id, made FROM instances WHERE engine = ?1 AND made IS NOT NULL",
                "INSERT OR IGNORE INTO elsewhere SELECT instances.engine, standbys.instance, standbys.made FROM standbys \
                 JOIN instances ON instances.id = standbys.instance WHERE instances.engine = ?1",
            ] {
                sqlx::query(statement).bind(&other.id).execute(&mut transaction).await.doing(DOING)?;
            }
        }
        sqlx::query(
            "INSERT INTO engines (id, endpoint, met_at) VALUES (?, ?, ?) \
             ON CONFLICT (id) DO UPDATE SET endpoint = excluded.endpoint, met_at = excluded.met_at",
        )
        .bind(id)
        .bind(endpoint)
        .bind(self.now())
        .execute(&mut transaction)
        .await
        .doing(DOING)?;
        // What this one has is listed, and judged by that.
        for statement in ["DELETE FROM elsewhere WHERE engine = ?", "UPDATE installation SET engine = ?"] {
            sqlx::query(statement).bind(id).execute(&mut transaction).await.doing(DOING)?;
        }
        transaction.commit().await.doing(DOING)?;
        Ok(others)
    }

    /// The engine in use, once one has answered.
    pub async fn engine_in_use(&self) -> Result<Option<String>, StoreError> {
        sqlx::query_scalar("SELECT engine FROM installation")
            .fetch_optional(&self.quick)
            .await
            .doing("read which engine is in use")
            .map(Option::flatten)
    }

    /// Where each engine answered last, by its id.
    pub async fn engines(&self) -> Result<BTreeMap<String, String>, StoreError> {
        let rows = sqlx::query("SELECT id, endpoint FROM engines").fetch_all(&self.quick).await;
        Ok(rows.doing("read the engines")?.iter().map(|row| (row.get("id"), row.get("endpoint"))).collect())
    }

    /// The engine that has an instance's containers, if it is another than the one in use.
    pub async fn other_engine_of(&self, instance: &str) -> Result<Option<StoredEngine>, StoreError> {
        let row = sqlx::query(
            "SELECT engines.id, engines.endpoint FROM instances JOIN engines ON engines.id = instances.engine \
             WHERE instances.id = ? AND instances.engine <> coalesce((SELECT engine FROM installation), instances.engine)",
        )
        .bind(instance)
        .fetch_optional(&self.quick)
        .await
        .doing("look up which engine has an instance")?;
        Ok(row.map(|row| StoredEngine { id: row.get("id"), endpoint: row.get("endpoint") }))
    }

    /// Notes that the engine in use has the containers of a generation: an engine may change its id, by an upgrade.
    pub async fn place_instance(&self, instance: &str, made: u64) -> Result<bool, StoreError> {
        let made = i64::try_from(made).unwrap_or(i64::MAX);
        let placed = sqlx::query(
            "UPDATE instances SET engine = (SELECT engine FROM installation) WHERE id = ? AND made = ? \
             AND engine IS NOT (SELECT engine FROM installation)",
        )
        .bind(instance)
        .bind(made)
        .execute(&self.durable)
        .await
        .doing("note which engine has an instance")?;
        sqlx::query("DELETE FROM elsewhere WHERE instance = ? AND made = ?")
            .bind(instance)
            .bind(made)
            .execute(&self.durable)
            .await
            .doing("note which engine has an instance")?;
        Ok(placed.rows_affected() > 0)
    }

    /// The generations that [`Store::place_instance`] has something to note of, should the engine in use have their containers:
    /// instance and number.
    pub async fn misplaced(&self) -> Result<BTreeSet<(String, u64)>, StoreError> {
        let rows = sqlx::query(
            "SELECT id AS instance, made FROM instances WHERE made IS NOT NULL \
             AND engine IS NOT (SELECT engine FROM installation) UNION SELECT instance, made FROM elsewhere",
        )
        .fetch_all(&self.quick)
        .await
        .doing("read which engine has what")?;
        Ok(rows.iter().map(|row| (row.get("instance"), row.get::<i64, _>("made").unsigned_abs())).collect())
    }

    /// The generations whose containers are on engines that are not in use, by instance.
    pub async fn generations_elsewhere(&self) -> Result<BTreeMap<String, BTreeSet<u64>>, StoreError> {
        let rows = sqlx::query("SELECT instance, made FROM elsewhere").fetch_all(&self.quick).await;
        let mut elsewhere: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
        for row in rows.doing("read what is on other engines")? {
            elsewhere.entry(row.get("instance")).or_default().insert(row.get::<i64, _>("made").unsigned_abs());
        }
        Ok(elsewhere)
    }

    /// Where the images of each snapshot are, by its id.
    pub async fn snapshot_places(&self) -> Result<BTreeMap<String, SnapshotPlace>, StoreError> {
        let rows = sqlx::query("SELECT id, engine, missing_since FROM snapshots").fetch_all(&self.quick).await;
        let read = rows.doing("read where snapshots are")?;
        let places = read.iter().map(|row| {
            let missing_since: Option<String> = row.get("missing_since");
            let missing_since = missing_since.as_deref().map(timestamp).transpose()?;
            Ok((row.get("id"), SnapshotPlace { engine: row.get("engine"), missing_since }))
        });
        places.collect()
    }

    /// Notes that the engine in use has the images of a snapshot.
    pub async fn place_snapshot(&self, id: &str) -> Result<(), StoreError> {
        sqlx::query(
            "UPDATE snapshots SET engine = (SELECT engine FROM installation), missing_since = NULL WHERE id = ?",
        )
        .bind(id)
        .execute(&self.durable)
        .await
        .doing("note which engine has a snapshot")?;
        Ok(())
    }

    /// Notes that the engine that had the images of a snapshot has them no more.
    pub async fn miss_snapshot(&self, id: &str) -> Result<(), StoreError> {
        sqlx::query("UPDATE snapshots SET missing_since = coalesce(missing_since, ?) WHERE id = ?")
            .bind(self.now())
            .bind(id)
            .execute(&self.durable)
            .await
            .doing("note that a snapshot's images are missing")?;
        Ok(())
    }
}
