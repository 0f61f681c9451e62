//! The table of digests, which describe the content of each snapshot's stores.

use super::{DaemonStore, Doing, StoreError, json, to_json};
use arenad_digest::Digest;

impl DaemonStore {
    /// Returns the digest of a snapshot, if one has been taken.
    pub async fn digest(&self, snapshot: &str) -> Result<Option<Digest>, StoreError> {
        let text: Option<String> = sqlx::query_scalar("SELECT digest FROM digests WHERE snapshot = ?")
            .bind(snapshot)
            .fetch_optional(&self.quick)
            .await
            .doing("read a digest")?;
        text.map(|text| json("a digest", &text)).transpose()
    }

    /// Saves the digest of a snapshot and returns the digest that counts.
    ///
    /// A digest taken under other declarations is replaced. Of several taken under the same declarations, the first one
    /// counts.
    pub async fn save_digest(&self, snapshot: &str, digest: &Digest) -> Result<Digest, StoreError> {
        sqlx::query(
            "INSERT INTO digests (snapshot, digest) VALUES (?, ?) \
             ON CONFLICT (snapshot) DO UPDATE SET digest = excluded.digest \
             WHERE json_extract(digests.digest, '$.declared') <> json_extract(excluded.digest, '$.declared')",
        )
        .bind(snapshot)
        .bind(to_json(digest))
        .execute(&self.quick)
        .await
        .doing("keep a digest")?;
        Ok(self.digest(snapshot).await?.unwrap_or_else(|| digest.clone()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use jiff::Timestamp;

    use super::*;
    use arenad_digest::StoreContent;
    use arenad_model::ids::{EnvironmentName, SiteName};
    use arenad_model::snapshot::Snapshot;

    #[tokio::test]
    async fn of_two_that_learn_a_digest_the_first_counts() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = DaemonStore::open(&folder.path().join("arenad.db"), arenad_seams::wall_clock::WallClock::system())
            .await
            .expect("a store");
        let snapshot = Snapshot {
            id: "s".to_owned().into(),
            environment: EnvironmentName::parse("e").expect("a name"),
            site: SiteName::parse("s").expect("a name"),
            baseline_key: None,
            name: None,
            images: BTreeMap::new(),
            volumes: BTreeMap::new(),
            state: Vec::new(),
            recipe: None,
            copied_from: None,
            is_imported: false,
            size_bytes: 0,
            created_at: Timestamp::UNIX_EPOCH,
        };
        store.save_snapshot(&snapshot).await.expect("saved");
        let digest = |declared: &str, name: &str| Digest {
            declared: declared.to_owned(),
            stores: BTreeMap::from([(name.to_owned(), StoreContent::default())]),
        };
        let (first, second) = (digest("one", "first"), digest("one", "second"));
        assert_eq!(store.save_digest("s", &first).await.expect("saved"), first);
        assert_eq!(
            store.save_digest("s", &second).await.expect("saved"),
            first,
            "the second caller receives the first digest"
        );
        assert_eq!(store.digest("s").await.expect("read"), Some(first));
        let other = digest("another", "third");
        assert_eq!(store.save_digest("s", &other).await.expect("saved"), other, "by other declarations it is another");
    }
}
