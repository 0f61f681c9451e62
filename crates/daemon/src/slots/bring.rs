//! Bringing an instance to a snapshot for an episode.

use std::sync::Arc;

use arenad_instance::shared::SharedParts;
use arenad_instance::{InstanceHandle, InstanceReport, OperationOutcome};
use arenad_model::episode::ending::VoidReason;
use arenad_model::error::describe;
use arenad_model::instance::{InstanceId, InstanceState};
use arenad_model::request_queue::{InstanceRequest, Purpose, Want};
use arenad_model::snapshot::SnapshotId;
use arenad_store::StoreError;

use super::slot_use::is_public;

/// Waits for a report that meets a condition.
///
/// Errors: the instance was removed.
async fn wait_for(instance: &InstanceHandle, is_met: impl Fn(&InstanceReport) -> bool) -> Result<(), VoidReason> {
    let removed = |_| VoidReason::EnvironmentDown;
    instance.changes().wait_for(is_met).await.map(drop).map_err(removed)
}

/// Waits until an instance serves.
pub(super) async fn serves(instance: &InstanceHandle) -> Result<(), VoidReason> {
    wait_for(instance, |report| report.state.serves()).await
}

/// Waits until an instance neither comes up nor changes. One that is down is about to come up.
pub(super) async fn has_settled(instance: &InstanceHandle) -> Result<(), VoidReason> {
    let is_settled = |report: &InstanceReport| match &report.state {
        InstanceState::Ready | InstanceState::Unhealthy(_) | InstanceState::Failed(_) => true,
        InstanceState::Down
        | InstanceState::Preparing
        | InstanceState::Starting
        | InstanceState::Resetting
        | InstanceState::Stopping => false,
    };
    wait_for(instance, is_settled).await
}

/// Returns the snapshot of a site that has a name.
pub(super) async fn find_snapshot(
    shared: &SharedParts,
    slot: &InstanceId,
    name: &str,
) -> Result<SnapshotId, VoidReason> {
    let failed = |detail: String| VoidReason::ResetFailed { slot: slot.clone(), detail };
    let known = shared.store.snapshots().await.map_err(|error| failed(describe(&error)))?;
    let (environment, site) = (slot.environment.as_str(), slot.site.as_str());
    let found = known.into_iter().find(|known| known.is_of(environment, site) && known.name.as_deref() == Some(name));
    found.map(|found| found.id).ok_or_else(|| failed(format!("{} has no snapshot {name}", slot.site_id())))
}

/// An order to bring an instance to a snapshot.
pub(super) struct BringOrder {
    pub(super) shared: Arc<SharedParts>,
    pub(super) instance: InstanceHandle,
    /// The snapshot, or `None` for the baseline.
    pub(super) to: Option<SnapshotId>,
    /// Whether the instance is reset even if no client seems to have reached it.
    pub(super) is_forced: bool,
}

impl BringOrder {
    /// Brings the instance to the snapshot, unless it is there already and that suffices. Returns its generation, which
    /// equals the snapshot and which no client has reached.
    pub(super) async fn execute(self) -> Result<u64, VoidReason> {
        let failed = |detail: String| VoidReason::ResetFailed { slot: self.instance.id.clone(), detail };
        if !self.is_forced {
            let found = async {
                let wanted = self.wanted().await?;
                self.reached(wanted.as_ref()).await
            };
            if let Some(generation) = found.await.map_err(|error: StoreError| failed(describe(&error)))? {
                return Ok(generation);
            }
        }
        let want = Want::Reset { to: self.to.as_ref().map(SnapshotId::to_string) };
        let request = InstanceRequest { want, purpose: Purpose::Episode };
        let ticket = self.instance.ask_for(request).await.map_err(|error| failed(describe(&error)))?;
        match ticket.wait().await {
            OperationOutcome::Done { .. } => {}
            OperationOutcome::Failed(failure) => return Err(failed(failure.reason)),
            OperationOutcome::Superseded => return Err(VoidReason::EnvironmentDown),
            OperationOutcome::Stopped => return Err(VoidReason::DaemonRestarted),
        }
        let generation = self.reached(self.to.as_ref()).await.map_err(|error| failed(describe(&error)))?;
        generation.ok_or_else(|| failed("it was changed or reached right after its reset".to_owned()))
    }

    /// Returns the snapshot that the instance is to be at before anything is done: a further slot has the baseline of
    /// slot 1, which `arenad up` may have changed since. `None` means the instance's own baseline.
    async fn wanted(&self) -> Result<Option<SnapshotId>, StoreError> {
        let id = &self.instance.id;
        if self.to.is_some() || is_public(id) {
            return Ok(self.to.clone());
        }
        let first = self.shared.store.instance(&InstanceId::serving(&id.environment, &id.site)).await?;
        Ok(first.and_then(|row| row.baseline))
    }

    /// Returns the serving generation if it was made from the snapshot, or from its baseline if none is given, and proven,
    /// its probes pass, and no client has reached it since.
    async fn reached(&self, snapshot: Option<&SnapshotId>) -> Result<Option<u64>, StoreError> {
        let (is_ready, generation) =
            self.instance.with_report(|report| (report.state == InstanceState::Ready, report.generation));
        if !is_ready || !self.instance.is_untouched(generation) {
            return Ok(None);
        }
        let Some(row) = self.shared.store.instance(&self.instance.id).await? else { return Ok(None) };
        let wanted = snapshot.or(row.baseline.as_ref());
        let is_it = wanted.is_some() && row.snapshot.as_ref() == wanted;
        let serves = row.serving.is_some_and(|serving| serving.generation == generation);
        Ok((is_it && serves).then_some(generation))
    }
}
