//! The table of imports: snapshots that have not arrived as a whole.

use jiff::Timestamp;
use serde_json::Value;
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::sessions::StoredSession;
use super::{Doing, Store, StoreError, json, now, timestamp, to_json};
use crate::export::Manifest;

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
        sqlx::query("INSERT OR REPLACE INTO imports (snapshot, name, manifest, touched_at) VALUES (?, ?, ?, ?)")
            .bind(&manifest.id)
            .bind(name)
            .bind(to_json(manifest))
            .bind(now())
            .execute(&self.pool)
            .await
            .doing("keep an import")?;
        Ok(())
    }

    /// Notes that something of an import has arrived.
    pub async fn touch_import(&self, snapshot: &str) -> Result<(), StoreError> {
        sqlx::query("UPDATE imports SET touched_at = ? WHERE snapshot = ?")
            .bind(now())
            .bind(snapshot)
            .execute(&self.pool)
            .await
            .doing("touch an import")?;
        Ok(())
    }

    /// The imports that have begun.
    pub async fn imports(&self) -> Result<Vec<StoredImport>, StoreError> {
        let rows = sqlx::query("SELECT * FROM imports ORDER BY snapshot").fetch_all(&self.pool).await;
        rows.doing("read the imports")?.iter().map(from_row).collect()
    }

    /// The import of a snapshot.
    pub async fn import(&self, snapshot: &str) -> Result<Option<StoredImport>, StoreError> {
        let row = sqlx::query("SELECT * FROM imports WHERE snapshot = ?").bind(snapshot).fetch_optional(&self.pool);
        row.await.doing("read an import")?.as_ref().map(from_row).transpose()
    }

    /// Forgets an import: it is whole, or given up.
    pub async fn forget_import(&self, snapshot: &str) -> Result<(), StoreError> {
        let deleted = sqlx::query("DELETE FROM imports WHERE snapshot = ?").bind(snapshot).execute(&self.pool);
        deleted.await.doing("forget an import")?;
        Ok(())
    }

    /// The sessions that are part of a snapshot: account, place, session. Opaque, for another store of arenad.
    pub async fn packed_sessions(&self, snapshot: &str) -> Result<Vec<(String, String, Value)>, StoreError> {
        let rows = sqlx::query("SELECT account, place, session FROM sessions WHERE snapshot = ? ORDER BY account")
            .bind(snapshot)
            .fetch_all(&self.pool)
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
        sessions: &[(String, String, Value)],
    ) -> Result<(), StoreError> {
        for (account, place, packed) in sessions {
            if let Ok(session) = serde_json::from_value::<StoredSession>(packed.clone()) {
                self.save_session(snapshot, account, place, &session.into()).await?;
            }
        }
        Ok(())
    }
}
