//! The tables of engines: the engine in use, and the objects of this installation that each engine holds.
//!
//! An object that is missing on the engine in use may be on another one, so nothing is ever removed because it is
//! missing here.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::{DaemonStore, Doing, StoreError, instance_id, snapshots, timestamp};
use arenad_model::instance::InstanceId;
use arenad_model::snapshot::{Snapshot, SnapshotId};

/// An engine that the installation has worked with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEngine {
    /// The id that distinguishes the engine from all others.
    pub id: String,
    /// The endpoint where the engine last answered.
    pub endpoint: String,
}

/// The location of a snapshot's images.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SnapshotPlace {
    /// The engine that holds the images; `None` if it is unknown.
    pub engine: Option<String>,
    /// The time when that engine was first seen without the images.
    pub missing_since: Option<Timestamp>,
}

fn place(row: &SqliteRow) -> Result<SnapshotPlace, StoreError> {
    let missing_since: Option<String> = row.get("missing_since");
    let missing_since = missing_since.as_deref().map(timestamp).transpose()?;
    Ok(SnapshotPlace { engine: row.get("engine"), missing_since })
}

impl DaemonStore {
    /// Records the engine in use and returns the previous one if it is a different engine.
    ///
    /// Objects that were made on the previous engine stay recorded as that engine's.
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
        // In almost every call the engine is unchanged and nothing is written.
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
                "INSERT OR IGNORE INTO elsewhere SELECT engine, environment || '/' || site || '/1', made FROM instances \
                 WHERE engine = ?1 AND made IS NOT NULL",
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
        // The objects on this engine are listed and judged from that list, so their rows are not needed.
        for statement in ["DELETE FROM elsewhere WHERE engine = ?", "UPDATE installation SET engine = ?"] {
            sqlx::query(statement).bind(id).execute(&mut transaction).await.doing(DOING)?;
        }
        transaction.commit().await.doing(DOING)?;
        Ok(others)
    }

    /// Returns the id of the engine in use; `None` until an engine has answered.
    pub async fn engine_in_use(&self) -> Result<Option<String>, StoreError> {
        sqlx::query_scalar("SELECT engine FROM installation")
            .fetch_optional(&self.quick)
            .await
            .doing("read which engine is in use")
            .map(Option::flatten)
    }

    /// Returns the endpoint where each engine last answered, by engine id.
    pub async fn engines(&self) -> Result<BTreeMap<String, String>, StoreError> {
        let rows = sqlx::query("SELECT id, endpoint FROM engines").fetch_all(&self.quick).await;
        Ok(rows.doing("read the engines")?.iter().map(|row| (row.get("id"), row.get("endpoint"))).collect())
    }

    /// Returns the engine that holds an instance's containers, if it is not the engine in use.
    pub async fn other_engine_of(&self, instance: &InstanceId) -> Result<Option<StoredEngine>, StoreError> {
        let row = sqlx::query(
            "SELECT engines.id, engines.endpoint FROM instances JOIN engines ON engines.id = instances.engine \
             WHERE instances.id = ? AND instances.engine <> coalesce((SELECT engine FROM installation), instances.engine)",
        )
        .bind(instance.to_string())
        .fetch_optional(&self.quick)
        .await
        .doing("look up which engine has an instance")?;
        Ok(row.map(|row| StoredEngine { id: row.get("id"), endpoint: row.get("endpoint") }))
    }

    /// Records that the engine in use holds the containers of a generation of the site of an instance; an upgrade may have
    /// changed the engine's id. Returns whether the row of the instance in which it serves changed.
    pub async fn place_instance(&self, instance: &InstanceId, made: u64) -> Result<bool, StoreError> {
        let made = i64::try_from(made).unwrap_or(i64::MAX);
        let placed = sqlx::query(
            "UPDATE instances SET engine = (SELECT engine FROM installation) WHERE environment = ? AND site = ? AND made = ? \
             AND engine IS NOT (SELECT engine FROM installation)",
        )
        .bind(instance.environment.as_str())
        .bind(instance.site.as_str())
        .bind(made)
        .execute(&self.durable)
        .await
        .doing("note which engine has an instance")?;
        sqlx::query("DELETE FROM elsewhere WHERE instance = ? AND made = ?")
            .bind(instance.owner().to_string())
            .bind(made)
            .execute(&self.durable)
            .await
            .doing("note which engine has an instance")?;
        Ok(placed.rows_affected() > 0)
    }

    /// Returns the generations, as the id that they are filed under and number, that [`DaemonStore::place_instance`] would
    /// update if the engine in use had their containers.
    pub async fn misplaced(&self) -> Result<BTreeSet<(InstanceId, u64)>, StoreError> {
        let rows = sqlx::query(
            "SELECT environment || '/' || site || '/1' AS instance, made FROM instances WHERE made IS NOT NULL \
             AND engine IS NOT (SELECT engine FROM installation) UNION SELECT instance, made FROM elsewhere",
        )
        .fetch_all(&self.quick)
        .await
        .doing("read which engine has what")?;
        let generation =
            |row: &SqliteRow| Ok((instance_id(row.get("instance"))?, row.get::<i64, _>("made").unsigned_abs()));
        rows.iter().map(generation).collect()
    }

    /// Returns the generations whose containers are on engines that are not in use, by the id that they are filed under.
    pub async fn generations_elsewhere(&self) -> Result<BTreeMap<InstanceId, BTreeSet<u64>>, StoreError> {
        let rows = sqlx::query("SELECT instance, made FROM elsewhere").fetch_all(&self.quick).await;
        let mut elsewhere: BTreeMap<InstanceId, BTreeSet<u64>> = BTreeMap::new();
        for row in rows.doing("read what is on other engines")? {
            elsewhere
                .entry(instance_id(row.get("instance"))?)
                .or_default()
                .insert(row.get::<i64, _>("made").unsigned_abs());
        }
        Ok(elsewhere)
    }

    /// Returns the location of each snapshot's images, by snapshot id.
    pub async fn snapshot_places(&self) -> Result<BTreeMap<SnapshotId, SnapshotPlace>, StoreError> {
        let rows = sqlx::query("SELECT id, engine, missing_since FROM snapshots").fetch_all(&self.quick).await;
        let read = rows.doing("read where snapshots are")?;
        let places = read.iter().map(|row| Ok((SnapshotId::from(row.get::<String, _>("id")), place(row)?)));
        places.collect()
    }

    /// Returns all snapshots with the locations of their images, newest first.
    pub async fn placed_snapshots(&self) -> Result<Vec<(Snapshot, SnapshotPlace)>, StoreError> {
        let rows = sqlx::query("SELECT * FROM snapshots ORDER BY created_at DESC, id").fetch_all(&self.quick).await;
        let read = rows.doing("read snapshots and where they are")?;
        read.iter().map(|row| Ok((snapshots::from_row(row)?, place(row)?))).collect()
    }

    /// Records that the engine in use has the images of a snapshot.
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

    /// Records that the engine that had the images of a snapshot no longer has them.
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
