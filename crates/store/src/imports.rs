//! The table of imports: snapshots that have not arrived as a whole.

use std::collections::BTreeSet;

use jiff::Timestamp;
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::sessions::StoredSession;
use super::{Doing, Store, StoreError, json, timestamp, to_json};
use arenad_export::{Manifest, RawJson};

/// An import that has begun.
#[derive(Debug, Clone)]
pub struct StoredImport {
    /// What it is to be called, whatever the manifest says.
    pub name: Option<String>,
    /// What is to arrive.
    pub manifest: Manifest,
    /// When something of it arrived last.
    pub touched_at: Timestamp,
}

/// What an import has brought so far or will bring, without its manifest.
#[derive(Debug, Clone)]
pub struct ImportOutline {
    /// The snapshot.
    pub snapshot: String,
    /// The ids of its images.
    pub images: BTreeSet<String>,
    /// Its archives of volumes.
    pub volumes: BTreeSet<String>,
    /// When something of it arrived last.
    pub touched_at: Timestamp,
}

fn outline(row: &SqliteRow) -> Result<ImportOutline, StoreError> {
    Ok(ImportOutline {
        snapshot: row.get("snapshot"),
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

impl Store {
    /// Keeps an import, in place of an earlier attempt at the same snapshot.
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

    /// Notes that something of an import has arrived.
    pub async fn touch_import(&self, snapshot: &str) -> Result<(), StoreError> {
        sqlx::query("UPDATE imports SET touched_at = ? WHERE snapshot = ?")
            .bind(self.now())
            .bind(snapshot)
            .execute(&self.durable)
            .await
            .doing("touch an import")?;
        Ok(())
    }

    /// The imports that have begun.
    pub async fn imports(&self) -> Result<Vec<ImportOutline>, StoreError> {
        let query = "SELECT snapshot, images, volumes, touched_at FROM imports ORDER BY snapshot";
        let rows = sqlx::query(query).fetch_all(&self.quick).await;
        rows.doing("read the imports")?.iter().map(outline).collect()
    }

    /// Whether an import of a snapshot has begun.
    pub async fn has_import(&self, snapshot: &str) -> Result<bool, StoreError> {
        let row = sqlx::query("SELECT 1 FROM imports WHERE snapshot = ?").bind(snapshot).fetch_optional(&self.quick);
        Ok(row.await.doing("look for an import")?.is_some())
    }

    /// The import of a snapshot.
    pub async fn import(&self, snapshot: &str) -> Result<Option<StoredImport>, StoreError> {
        let row = sqlx::query("SELECT * FROM imports WHERE snapshot = ?").bind(snapshot).fetch_optional(&self.quick);
        row.await.doing("read an import")?.as_ref().map(from_row).transpose()
    }

    /// Forgets an import: it is whole, or given up.
    pub async fn forget_import(&self, snapshot: &str) -> Result<(), StoreError> {
        let deleted = sqlx::query("DELETE FROM imports WHERE snapshot = ?").bind(snapshot).execute(&self.durable);
        deleted.await.doing("forget an import")?;
        Ok(())
    }

    /// The sessions that are part of a snapshot: account, place, session. Opaque, for another store of arenad.
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

    /// Keeps sessions that another store has packed; what is none is left out: it can be had again by signing in.
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
