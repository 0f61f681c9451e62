//! The table of standbys: the ready ones, from which the next daemon knows which containers it can adopt. A standby belongs to
//! its site, and its row bears the id that the site's generations are filed under ([`InstanceId::owner`]).

use std::collections::{BTreeMap, BTreeSet};

use sqlx::Row;

use super::{DaemonStore, Doing, StoreError, instance_id};
use arenad_model::instance::InstanceId;
use arenad_model::snapshot::SnapshotId;

/// One row of the table of standbys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredStandby {
    /// The generation that the standby's containers were made for.
    pub made: u64,
    /// The id of the snapshot that the standby was made from.
    pub snapshot: SnapshotId,
    /// The number of times that the standby has been restored to its snapshot since it was made.
    pub renewals: u32,
}

impl DaemonStore {
    /// Records that a standby of the site of an instance is ready.
    pub async fn keep_standby(&self, instance: &InstanceId, standby: &StoredStandby) -> Result<(), StoreError> {
        sqlx::query("INSERT OR REPLACE INTO standbys (instance, made, snapshot, renewals) VALUES (?, ?, ?, ?)")
            .bind(instance.owner().to_string())
            .bind(i64::try_from(standby.made).unwrap_or(i64::MAX))
            .bind(standby.snapshot.as_str())
            .bind(standby.renewals)
            .execute(&self.quick)
            .await
            .doing("note a standby")?;
        Ok(())
    }

    /// Deletes the row of one standby; called before anything is done to the standby.
    pub async fn forget_standby(&self, instance: &InstanceId, made: u64) -> Result<(), StoreError> {
        sqlx::query("DELETE FROM standbys WHERE instance = ? AND made = ?")
            .bind(instance.owner().to_string())
            .bind(i64::try_from(made).unwrap_or(i64::MAX))
            .execute(&self.quick)
            .await
            .doing("forget a standby")?;
        Ok(())
    }

    /// Deletes the rows of all standbys of the site of an instance.
    pub async fn forget_standbys(&self, instance: &InstanceId) -> Result<(), StoreError> {
        sqlx::query("DELETE FROM standbys WHERE instance = ?")
            .bind(instance.owner().to_string())
            .execute(&self.quick)
            .await
            .doing("forget the standbys")?;
        Ok(())
    }

    /// Returns the standbys of the site of an instance, oldest first.
    pub async fn standbys(&self, instance: &InstanceId) -> Result<Vec<StoredStandby>, StoreError> {
        let rows = sqlx::query("SELECT made, snapshot, renewals FROM standbys WHERE instance = ? ORDER BY made")
            .bind(instance.owner().to_string())
            .fetch_all(&self.quick)
            .await
            .doing("read the standbys")?;
        let read = rows.iter().map(|row| StoredStandby {
            made: row.get::<i64, _>("made").unsigned_abs(),
            snapshot: row.get::<String, _>("snapshot").into(),
            renewals: row.get("renewals"),
        });
        Ok(read.collect())
    }

    /// Returns the generations whose containers the instances that are to be up need: those that serve or are being made
    /// to, and the standbys, by the id that they are filed under. All are read in one statement, so none is missed while it
    /// changes from one to the other.
    pub async fn claimed_generations(&self) -> Result<BTreeMap<InstanceId, BTreeSet<u64>>, StoreError> {
        let rows = sqlx::query(
            "SELECT environment || '/' || site || '/1' AS instance, made FROM instances \
             WHERE desired = 'up' AND serving IS NOT NULL AND made IS NOT NULL \
             UNION SELECT standbys.instance, standbys.made FROM standbys \
             JOIN instances ON instances.id = standbys.instance WHERE instances.desired = 'up'",
        );
        let rows = rows.fetch_all(&self.quick).await.doing("read which generations are needed")?;
        let mut claimed: BTreeMap<InstanceId, BTreeSet<u64>> = BTreeMap::new();
        for row in rows {
            let made = row.get::<i64, _>("made").unsigned_abs();
            claimed.entry(instance_id(row.get("instance"))?).or_default().insert(made);
        }
        Ok(claimed)
    }
}
