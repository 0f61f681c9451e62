//! Clones of a snapshot's trees that are made before they are needed, so that a rewind need not wait for them.
//!
//! They are begun after a reset that no standby was ready for, where what a site touches in its trees cannot be told. Only
//! where clones share their blocks; elsewhere they would double what the site takes.

use std::sync::Arc;

use tokio::task::JoinHandle;

use crate::baseline::snapshot;
use crate::shared::Shared;
use arenad_launch::{self as launch, Incarnation};
use arenad_model::error::describe;
use arenad_model::instance::InstanceId;
use arenad_model::site::Site;
use arenad_model::snapshot::Snapshot;
use arenad_storage::Fresh;

/// Clones for the next rewind.
pub(super) struct Spare {
    snapshot: String,
    making: JoinHandle<Option<Vec<Fresh>>>,
}

impl Spare {
    /// Begins to make them, beside everything else; `None` where they would be of no use, or cost too much.
    pub(super) fn begin(
        shared: &Arc<Shared>,
        site: &Arc<Site>,
        id: &InstanceId,
        incarnation: &Incarnation,
        of: &Snapshot,
    ) -> Option<Self> {
        let shares_blocks = shared.storage.as_ref().is_some_and(|storage| storage.root().clones());
        if !shares_blocks || site.rewinds().is_none() {
            return None;
        }
        let source = snapshot::state(shared, of)?;
        if launch::knows_touched(&source, site, id, incarnation.made).unwrap_or(false) {
            return None;
        }
        let (common, site, snapshot) = (shared.clone(), site.clone(), of.clone());
        let making = shared.tasks.spawn(async move {
            let source = snapshot::state(&common, &snapshot)?;
            let made = launch::fresh(&source, &site).await;
            made.map_err(|error| tracing::warn!(error = describe(&error), "no clones for the next rewind")).ok()
        });
        Some(Self { snapshot: of.id.to_string(), making })
    }

    /// Whether they are of that snapshot.
    pub(super) fn is_of(&self, snapshot: &str) -> bool {
        self.snapshot == snapshot
    }

    /// The clones, if they are of that snapshot; those that are still being made are waited for.
    pub(super) async fn take(self, snapshot: &str) -> Option<Vec<Fresh>> {
        let is_of = self.is_of(snapshot);
        self.making.await.ok().flatten().filter(|_| is_of)
    }

    /// Gives them up. Those that are still being made are waited for, or they would keep the state root busy.
    pub(super) async fn end(self) {
        let _ = self.making.await;
    }
}
