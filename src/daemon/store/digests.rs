//! The table of digests: what is in the stores of each snapshot.

use super::{Doing, Store, StoreError, json, to_json};
use crate::digest::Digest;

impl Store {
    /// The digest of a snapshot, if one has been taken.
    pub async fn digest(&self, snapshot: &str) -> Result<Option<Digest>, StoreError> {
        let text: Option<String> = sqlx::query_scalar("SELECT digest FROM digests WHERE snapshot = ?")
            .bind(snapshot)
            .fetch_optional(&self.pool)
            .await
            .doing("read a digest")?;
        text.map(|text| json("a digest", &text)).transpose()
    }

    /// Keeps the digest of a snapshot, in place of one that was taken by other declarations.
    pub async fn save_digest(&self, snapshot: &str, digest: &Digest) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO digests (snapshot, digest) VALUES (?, ?) \
             ON CONFLICT (snapshot) DO UPDATE SET digest = excluded.digest",
        )
        .bind(snapshot)
        .bind(to_json(digest))
        .execute(&self.pool)
        .await
        .doing("keep a digest")?;
        Ok(())
    }
}
