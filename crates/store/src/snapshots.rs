//! The table of snapshots. A row exists only once every object that it names has been stored.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::{DaemonStore, Doing, StoreError, episode_id, instance_id, json, parsed, time_text, timestamp, to_json};
use arenad_model::episode::ids::EpisodeId;
use arenad_model::ids::{EnvironmentName, ServiceName, SiteName};
use arenad_model::instance::InstanceId;
use arenad_model::snapshot::{Snapshot, SnapshotId};

/// Reads one row of the table.
pub(super) fn from_row(row: &SqliteRow) -> Result<Snapshot, StoreError> {
    Ok(Snapshot {
        id: SnapshotId::from(row.get::<String, _>("id")),
        environment: parsed("the environment of a snapshot", row.get("environment"), EnvironmentName::parse)?,
        site: parsed("the site of a snapshot", row.get("site"), SiteName::parse)?,
        baseline_key: row.get("baseline_key"),
        name: row.get("name"),
        images: by_service("a snapshot's images", row.get("images"))?,
        volumes: by_service("a snapshot's volumes", row.get("volumes"))?,
        state: json("a snapshot's state", row.get("state"))?,
        recipe: row.get("recipe"),
        copied_from: row.get::<Option<&str>, _>("copied_from").map(episode_id).transpose()?,
        is_imported: row.get::<Option<&str>, _>("imported_at").is_some(),
        size_bytes: row.get::<i64, _>("size_bytes").unsigned_abs(),
        created_at: timestamp(row.get("created_at"))?,
    })
}

/// Parses a column that holds a map by service.
fn by_service<T: DeserializeOwned>(what: &'static str, text: &str) -> Result<BTreeMap<ServiceName, T>, StoreError> {
    let texts: BTreeMap<String, T> = json(what, text)?;
    ServiceName::parse_keys(texts).map_err(|_| StoreError::Row { what, text: text.to_owned() })
}

fn text_keys<T>(by_service: &BTreeMap<ServiceName, T>) -> BTreeMap<&str, &T> {
    by_service.iter().map(|(service, value)| (service.as_str(), value)).collect()
}

impl DaemonStore {
    /// Saves a snapshot whose images and archives are in place. Identical content that is taken twice gets one row.
    ///
    /// A named snapshot whose images are on another engine keeps its reference to them. Otherwise, `up` on the engine
    /// in use, which makes a baseline of the same content, would overwrite the only record of those images.
    pub async fn save_snapshot(&self, snapshot: &Snapshot) -> Result<(), StoreError> {
        const KEEPS: &str =
            "snapshots.name IS NOT NULL AND excluded.name IS NULL AND snapshots.engine <> excluded.engine";
        sqlx::query(sqlx::AssertSqlSafe(format!(
            "INSERT INTO snapshots (id, environment, site, baseline_key, name, images, volumes, state, recipe, copied_from, \
             imported_at, size_bytes, created_at, engine) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, (SELECT engine FROM installation)) ON CONFLICT (id) DO UPDATE SET \
             baseline_key = coalesce(excluded.baseline_key, baseline_key), name = coalesce(excluded.name, name), \
             recipe = coalesce(excluded.recipe, recipe), \
             images = CASE WHEN {KEEPS} THEN snapshots.images ELSE excluded.images END, \
             engine = CASE WHEN {KEEPS} THEN snapshots.engine ELSE excluded.engine END, \
             volumes = excluded.volumes, state = excluded.state, missing_since = NULL",
        )))
        .bind(snapshot.id.as_str())
        .bind(snapshot.environment.as_str())
        .bind(snapshot.site.as_str())
        .bind(&snapshot.baseline_key)
        .bind(&snapshot.name)
        .bind(to_json(&text_keys(&snapshot.images)))
        .bind(to_json(&text_keys(&snapshot.volumes)))
        .bind(to_json(&snapshot.state))
        .bind(&snapshot.recipe)
        .bind(snapshot.copied_from.as_ref().map(EpisodeId::as_str))
        .bind(snapshot.is_imported.then(|| self.now()))
        .bind(i64::try_from(snapshot.size_bytes).unwrap_or(i64::MAX))
        .bind(time_text(snapshot.created_at))
        .execute(&self.durable)
        .await
        .doing("keep a snapshot")?;
        Ok(())
    }

    /// Returns the name of a snapshot that another engine holds, and the endpoint where that engine last answered;
    /// `None` for any other snapshot.
    pub async fn named_elsewhere(&self, id: &str) -> Result<Option<(String, String)>, StoreError> {
        let row = sqlx::query(
            "SELECT snapshots.name, engines.endpoint FROM snapshots JOIN engines ON engines.id = snapshots.engine \
             WHERE snapshots.id = ? AND snapshots.name IS NOT NULL AND engines.id <> (SELECT engine FROM installation)",
        )
        .bind(id)
        .fetch_optional(&self.quick)
        .await
        .doing("look up which engine has a snapshot")?;
        Ok(row.map(|row| (row.get("name"), row.get("endpoint"))))
    }

    /// Returns all snapshots, newest first.
    pub async fn snapshots(&self) -> Result<Vec<Snapshot>, StoreError> {
        let rows = sqlx::query("SELECT * FROM snapshots ORDER BY created_at DESC, id")
            .fetch_all(&self.quick)
            .await
            .doing("read the snapshots")?;
        rows.iter().map(from_row).collect()
    }

    /// Returns the snapshot with the given id.
    pub async fn snapshot(&self, id: &str) -> Result<Option<Snapshot>, StoreError> {
        let row = sqlx::query("SELECT * FROM snapshots WHERE id = ?")
            .bind(id)
            .fetch_optional(&self.quick)
            .await
            .doing("read a snapshot")?;
        row.as_ref().map(from_row).transpose()
    }

    /// Returns the newest baseline of a site that was made from `key`, preferring one that the engine in use holds.
    pub async fn baseline(&self, environment: &str, site: &str, key: &str) -> Result<Option<Snapshot>, StoreError> {
        let row = sqlx::query(
            "SELECT * FROM snapshots WHERE environment = ? AND site = ? AND baseline_key = ? \
             ORDER BY engine IS NOT (SELECT engine FROM installation), missing_since IS NOT NULL, created_at DESC LIMIT 1",
        )
        .bind(environment)
        .bind(site)
        .bind(key)
        .fetch_optional(&self.quick)
        .await
        .doing("look a baseline up")?;
        row.as_ref().map(from_row).transpose()
    }

    /// Returns the imported baselines of a site, newest first.
    pub async fn imported_baselines(&self, environment: &str, site: &str) -> Result<Vec<Snapshot>, StoreError> {
        let rows = sqlx::query(
            "SELECT * FROM snapshots WHERE environment = ? AND site = ? AND baseline_key IS NOT NULL \
             AND imported_at IS NOT NULL ORDER BY created_at DESC",
        )
        .bind(environment)
        .bind(site)
        .fetch_all(&self.quick)
        .await
        .doing("look imported baselines up")?;
        rows.iter().map(from_row).collect()
    }

    /// Returns the copies for forks that no live episode starts from, and that no instance was made from or brought to.
    /// Later ones come first, because their images may be based on those of earlier ones.
    pub async fn unused_copies(&self) -> Result<Vec<Snapshot>, StoreError> {
        let rows = sqlx::query(
            "SELECT * FROM snapshots WHERE copied_from IS NOT NULL \
             AND id NOT IN (SELECT snapshot FROM instances WHERE snapshot IS NOT NULL AND state <> 'down') \
             AND id NOT IN (SELECT copy FROM episode_sites JOIN episodes ON episodes.id = episode_sites.episode \
             WHERE copy IS NOT NULL AND episodes.ended_at IS NULL) ORDER BY rowid DESC",
        )
        .fetch_all(&self.quick)
        .await
        .doing("look for copies that no fork needs")?;
        rows.iter().map(from_row).collect()
    }

    /// Returns the ids of the instances that start from a snapshot, or are reset to it.
    pub async fn snapshot_users(&self, id: &str) -> Result<Vec<InstanceId>, StoreError> {
        let users: Vec<String> = sqlx::query_scalar(
            "SELECT id FROM instances WHERE (snapshot = ?1 OR baseline = ?1) AND state <> 'down' ORDER BY id",
        )
        .bind(id)
        .fetch_all(&self.quick)
        .await
        .doing("look up who uses a snapshot")?;
        users.iter().map(|user| instance_id(user)).collect()
    }

    /// Removes the name of a snapshot but keeps the snapshot.
    pub async fn unname_snapshot(&self, id: &str) -> Result<(), StoreError> {
        let unnamed =
            sqlx::query("UPDATE snapshots SET name = NULL WHERE id = ?").bind(id).execute(&self.durable).await;
        unnamed.doing("take a snapshot's name off").map(drop)
    }

    /// Deletes a snapshot's row, unless an instance that is not down starts from it or is reset to it.
    pub async fn forget_snapshot(&self, id: &SnapshotId) -> Result<(), StoreError> {
        let doing = "forget a snapshot";
        let mut transaction = self.durable.begin().await.doing(doing)?;
        for statement in [
            "UPDATE instances SET baseline = NULL WHERE baseline = ? AND state = 'down'",
            "UPDATE instances SET snapshot = NULL WHERE snapshot = ? AND state = 'down'",
        ] {
            sqlx::query(statement).bind(id.as_str()).execute(&mut transaction).await.doing(doing)?;
        }
        // The check is repeated inside the transaction: a reset may have begun since the caller's check.
        let users: Vec<String> =
            sqlx::query_scalar("SELECT id FROM instances WHERE snapshot = ?1 OR baseline = ?1 ORDER BY id")
                .bind(id.as_str())
                .fetch_all(&mut transaction)
                .await
                .doing(doing)?;
        if !users.is_empty() {
            let users = users.iter().map(|user| instance_id(user)).collect::<Result<_, _>>()?;
            return Err(StoreError::InUse { snapshot: id.clone(), users });
        }
        sqlx::query("DELETE FROM snapshots WHERE id = ?")
            .bind(id.as_str())
            .execute(&mut transaction)
            .await
            .doing(doing)?;
        transaction.commit().await.doing(doing)
    }
}
