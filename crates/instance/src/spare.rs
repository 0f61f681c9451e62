//! Clones of a snapshot's trees that are made in advance, so that a rewind does not wait for them.
//!
//! They are begun after a reset without a ready standby, if the touched entries of the site's trees are not known. They
//! are made only on file systems on which clones share their blocks; elsewhere they would double the disk usage of the
//! site.

use std::sync::Arc;

use tokio::task::JoinHandle;

use crate::shared::SharedParts;
use arenad_baseline::snapshot;
use arenad_launch::{self as launch, Incarnation};
use arenad_model::error::describe;
use arenad_model::instance::InstanceId;
use arenad_model::site::Site;
use arenad_model::snapshot::{Snapshot, SnapshotId};
use arenad_storage::Fresh;

/// Clones for the next rewind, which may still be being made.
pub(super) struct SpareClones {
    snapshot: SnapshotId,
    making: JoinHandle<Option<Vec<Fresh>>>,
}

impl SpareClones {
    /// Begins to make the clones in the background; returns `None` if they would be useless or take up space.
    pub(super) fn begin(
        shared: &Arc<SharedParts>,
        site: &Arc<Site>,
        id: &InstanceId,
        incarnation: &Incarnation,
        of: &Snapshot,
    ) -> Option<Self> {
        let shares_blocks = shared.storage.as_ref().is_some_and(|storage| storage.root().clones());
        if !shares_blocks || site.rewinds().is_none() {
            return None;
        }
        let source = snapshot::state(&shared.baselines, of)?;
        if launch::knows_touched(&source, site, id, incarnation.made).unwrap_or(false) {
            return None;
        }
        let (common, site, snapshot) = (shared.clone(), site.clone(), of.clone());
        let making = shared.tasks.spawn(async move {
            let source = snapshot::state(&common.baselines, &snapshot)?;
            let made = launch::fresh(&source, &site).await;
            made.map_err(|error| tracing::warn!(error = describe(&error), "no clones for the next rewind")).ok()
        });
        Some(Self { snapshot: of.id.clone(), making })
    }

    /// Whether the clones are of that snapshot.
    pub(super) fn is_of(&self, snapshot: &SnapshotId) -> bool {
        self.snapshot == *snapshot
    }

    /// Waits until the clones are made and returns them if they are of that snapshot.
    pub(super) async fn take(self, snapshot: &SnapshotId) -> Option<Vec<Fresh>> {
        let is_of = self.is_of(snapshot);
        self.making.await.ok().flatten().filter(|_| is_of)
    }

    /// Abandons the clones. Waits until they are made, because otherwise their creation would keep the state root busy.
    pub(super) async fn end(self) {
        let _ = self.making.await;
    }
}
