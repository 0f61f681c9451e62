//! The table of imports: snapshots that have not arrived completely.

use std::collections::BTreeSet;

use jiff::Timestamp;
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::sessions::StoredSession;
use super::{DaemonStore, Doing, StoreError, json, timestamp, to_json};
use arenad_export::{Manifest, RawJson};
use arenad_model::snapshot::SnapshotId;

/// An import that has begun but is not complete.
#[derive(Debug, Clone)]
pub struct StoredImport {
    /// The name that the snapshot will get, which overrides the manifest's name; `None` keeps the manifest's name.
    pub name: Option<String>,
    /// The manifest of the snapshot that is to arrive.
    pub manifest: Manifest,
    /// The time when a part of the import last arrived.
    pub touched_at: Timestamp,
}

/// The objects that an import has brought or will bring, without its manifest, which may be large.
#[derive(Debug, Clone)]
pub struct ImportOutline {
    /// The id of the snapshot.
    pub snapshot: SnapshotId,
    /// The ids of the snapshot's images.
    pub images: BTreeSet<String>,
    /// The file names of the snapshot's volume archives.
    pub volumes: BTreeSet<String>,
    /// The time when a part of the import last arrived.
    pub touched_at: Timestamp,
}

fn outline(row: &SqliteRow) -> Result<ImportOutline, StoreError> {
    Ok(ImportOutline {
        snapshot: SnapshotId::from(row.get::<String, _>("snapshot")),
        images: json("an import's images", row.get("images"))?,
        volumes: json("an import's volumes", row.get("volumes"))?,
        touched_at: timestamp(row.get("touched_at"))?,
    })
}

fn from_row(row: &SqliteRow) -> Result<StoredImport, StoreError> {
    Ok(StoredImport {
        name: row.get("name"),
        manifest: json("an import's manifest", row.get("manifest"))?,
        touched_at: timestamp(row.get("touched_at"))?,
    })
}

impl DaemonStore {
    /// Saves an import, replacing an earlier attempt at the same snapshot.
    pub async fn save_import(&self, name: Option<&str>, manifest: &Manifest) -> Result<(), StoreError> {
        let images: BTreeSet<&String> = manifest.services.values().map(|service| &service.image).collect();
        let volumes: BTreeSet<&String> = manifest.volumes.values().flat_map(|paths| paths.values()).collect();
        let insert = "INSERT OR REPLACE INTO imports (snapshot, name, manifest, images, volumes, touched_at) \
                      VALUES (?, ?, ?, ?, ?, ?)";
        sqlx::query(insert)
            .bind(&manifest.id)
            .bind(name)
            .bind(to_json(manifest))
            .bind(to_json(&images))
            .bind(to_json(&volumes))
            .bind(self.now())
            .execute(&self.durable)
            .await
            .doing("keep an import")?;
        Ok(())
    }

    /// Records that a part of an import has arrived.
    pub async fn touch_import(&self, snapshot: &str) -> Result<(), StoreError> {
        sqlx::query("UPDATE imports SET touched_at = ? WHERE snapshot = ?")
            .bind(self.now())
            .bind(snapshot)
            .execute(&self.durable)
            .await
            .doing("touch an import")?;
        Ok(())
    }

    /// Returns the outlines of the imports that have begun, ordered by snapshot id.
    pub async fn imports(&self) -> Result<Vec<ImportOutline>, StoreError> {
        let query = "SELECT snapshot, images, volumes, touched_at FROM imports ORDER BY snapshot";
        let rows = sqlx::query(query).fetch_all(&self.quick).await;
        rows.doing("read the imports")?.iter().map(outline).collect()
    }

    /// Returns whether an import of a snapshot has begun.
    pub async fn has_import(&self, snapshot: &str) -> Result<bool, StoreError> {
        let row = sqlx::query("SELECT 1 FROM imports WHERE snapshot = ?").bind(snapshot).fetch_optional(&self.quick);
        Ok(row.await.doing("look for an import")?.is_some())
    }

    /// Returns the import of a snapshot, if one has begun.
    pub async fn import(&self, snapshot: &str) -> Result<Option<StoredImport>, StoreError> {
        let row = sqlx::query("SELECT * FROM imports WHERE snapshot = ?").bind(snapshot).fetch_optional(&self.quick);
        row.await.doing("read an import")?.as_ref().map(from_row).transpose()
    }

    /// Deletes an import, which is complete or was abandoned.
    pub async fn forget_import(&self, snapshot: &str) -> Result<(), StoreError> {
        let deleted = sqlx::query("DELETE FROM imports WHERE snapshot = ?").bind(snapshot).execute(&self.durable);
        deleted.await.doing("forget an import")?;
        Ok(())
    }

    /// Returns the sessions that belong to a snapshot, as account, place and session. They are opaque, for another
    /// arenad's store.
    pub async fn packed_sessions(&self, snapshot: &str) -> Result<Vec<(String, String, RawJson)>, StoreError> {
        let rows = sqlx::query("SELECT account, place, session FROM sessions WHERE snapshot = ? ORDER BY account")
            .bind(snapshot)
            .fetch_all(&self.quick)
            .await
            .doing("read a snapshot's sessions")?;
        let packed = rows.iter().map(|row| {
            let session = json("a session", row.get("session"))?;
            Ok((row.get("account"), row.get("place"), session))
        });
        packed.collect()
    }

    /// Saves sessions that another store has packed. Entries that are not sessions are left out: signing in again
    /// replaces them.
    pub async fn unpack_sessions(
        &self,
        snapshot: &str,
        sessions: &[(String, String, RawJson)],
    ) -> Result<(), StoreError> {
        for (account, place, packed) in sessions {
            if let Ok(session) = serde_json::from_str::<StoredSession>(packed.text()) {
                self.save_session(snapshot, account, place, &session.into()).await?;
            }
        }
        Ok(())
    }
}
