//! Swap: a standby replaces the serving generation.

use std::time::Duration;

use tokio::time::Instant;

use super::{Proven, ResetParameters};
use crate::failure::OperationFailure;
use crate::operations::Instance;
use crate::pool::{ChosenStandby, KeptProof};
use crate::proof::ProofCandidate;
use crate::service::Retired;
use crate::site_pool::WaitedStandby;
use crate::standby_error::StandbyError;
use arenad_digest::Taken;
use arenad_engine::CpuWeight;
use arenad_launch as launch;
use arenad_model::error::describe;
use arenad_model::event::EventKind;
use arenad_model::reset::ResetWay;
use arenad_model::snapshot::{Snapshot, SnapshotId};
use arenad_model::verify::ComparisonExtent;
use arenad_reset::Stages;
use arenad_seams::fault::{self, Point};

/// The time within which a standby's entry must accept a connection.
const ANSWERS_WITHIN: Duration = Duration::from_secs(1);

impl Instance {
    /// Switches to a standby; returns false if none can serve. The previous generation goes to the pool, which brings
    /// it back or removes it.
    pub(super) async fn swap(
        &mut self,
        plan: &mut ResetParameters<'_>,
        target: &Snapshot,
    ) -> Result<bool, OperationFailure> {
        let asked = self.context.site.reset.verify.extent(plan.number, true);
        let slot = self.context.id.number;
        // Other slots may have standbys while this one has failed, and a swap replaces a generation that serves.
        let mut next = match self.service.state().serves() {
            true => match self.pool.take(slot, &target.id) {
                Some(ready) => Some(ready),
                None => self.await_standby(&target.id, &plan.stages).await,
            },
            false => None,
        };
        while let Some((made, chosen)) = next {
            if let Err(error) = self.wake(&chosen, target, asked, plan).await {
                let reason = describe(&error);
                let message = format!("standby {made} of {} was discarded: {reason}", self.context.id);
                self.context.note(EventKind::StandbyFailed, &message).await;
                self.pool.reject(chosen.incarnation, &target.id);
                plan.fall_back(format!("a standby was discarded: {reason}"));
                next = self.pool.take(slot, &target.id);
                continue;
            }
            self.take_over(plan, chosen, target, asked).await?;
            return Ok(true);
        }
        self.pool.why_none(&self.context.site.reset).into_iter().for_each(|why| plan.fall_back(why));
        Ok(false)
    }

    /// Waits for a standby of a snapshot that is about to be ready, because a rewind of the serving generation would take
    /// longer.
    async fn await_standby(&self, snapshot: &SnapshotId, stages: &Stages) -> Option<(u64, ChosenStandby)> {
        let (slot, begun) = (self.context.id.number, Instant::now());
        self.pool.note_baseline(slot, self.baseline.as_ref());
        let WaitedStandby { standby, has_waited } = self.pool.wait(slot, snapshot).await;
        if has_waited {
            stages.note("resume", begun.elapsed());
        }
        standby
    }

    /// Checks that a standby runs, responds, and still equals the snapshot; resumes it first if it is paused.
    async fn wake(
        &self,
        chosen: &ChosenStandby,
        snapshot: &Snapshot,
        extent: ComparisonExtent,
        plan: &ResetParameters<'_>,
    ) -> Result<(), StandbyError> {
        fault::reach(Point::SwapChosen).await;
        let (context, stages) = (&self.context, &plan.stages);
        let ChosenStandby { incarnation, is_frozen, proof, .. } = chosen;
        if *is_frozen {
            stages.time("thaw", launch::thaw(context.shared.engine.as_ref(), incarnation)).await?;
        }
        fault::reach(Point::SwapThawed).await;
        let entry = &context.site.entry;
        let Some(address) = incarnation.socket(&entry.service, entry.port) else {
            return Err(StandbyError::NoAddress);
        };
        let knock = async {
            let connecting = tokio::time::timeout(ANSWERS_WITHIN, context.shared.prober.http().dialer().dial(address));
            match stages.time("knock", connecting).await {
                Ok(Ok(_)) => Ok(()),
                Ok(Err(error)) => Err(StandbyError::NoConnection(error.to_string())),
                Err(_) => Err(StandbyError::NoConnectionWithin(ANSWERS_WITHIN)),
            }
        };
        let verify = async {
            let Some(proof) = proof else { return Ok(()) };
            let (shared, id, site) = (&context.shared, &context.id, &context.site);
            let candidate = ProofCandidate { shared, id, site, snapshot, incarnation };
            // If a comparison is running in the background, this waits for it, and then only newer changes are
            // compared.
            let again = stages.time("verify", async { proof.lock().await.again(&candidate, extent).await }).await;
            again.map_err(StandbyError::from)
        };
        // The first failure is sufficient: if containers are gone, the other check would wait for their servers in
        // vain.
        tokio::try_join!(knock, verify)?;
        fault::reach(Point::SwapVerified).await;
        Ok(())
    }

    async fn take_over(
        &mut self,
        plan: &ResetParameters<'_>,
        chosen: ChosenStandby,
        target: &Snapshot,
        asked: ComparisonExtent,
    ) -> Result<(), OperationFailure> {
        let ChosenStandby { incarnation, renewals, proof, .. } = chosen;
        let extent = if proof.is_some() { asked } else { ComparisonExtent::Nothing };
        let snapshot = target.clone();
        let proven = Proven { incarnation, snapshot, proof: None, extent, renewals, is_standby: true };
        let baseline = self.baseline.as_ref().map(|baseline| &baseline.id);
        let record = proven.record(&self.context, plan, ResetWay::Swap, baseline);
        let recorded = match plan.stages.time("record", record).await {
            Ok(recorded) => recorded,
            Err((proven, failure)) => {
                // The serving generation continues to serve. The standby is not used again, because it is unknown
                // whether the row was written.
                self.pool.reject(proven.incarnation, &target.id);
                return Err(failure);
            }
        };
        fault::reach(Point::SwapRecorded).await;
        let retired = self.switch(recorded)?;
        fault::reach(Point::SwapSwitched).await;
        let proven = self.end_proof(proof).await;
        self.service.prove(proven);
        self.retire(retired, &target.id);
        self.weigh_current();
        self.note_done(plan, ResetWay::Swap);
        Ok(())
    }

    /// Adds a generation that has left service to the pool.
    pub(crate) fn retire(&mut self, retired: Option<Retired>, wanted: &SnapshotId) {
        let Some(Retired { serving, was_well, was_reached }) = retired else { return };
        let snapshot = serving.snapshot.id;
        // Containers of another snapshot cannot be brought back to this one.
        match was_well && snapshot == *wanted {
            true => {
                let is_answering = self.watch.take_cut_off();
                let is_untouched = !was_reached && !is_answering;
                self.pool.retire(serving.incarnation, &snapshot, serving.renewals, serving.proven, is_untouched);
            }
            false => self.pool.reject(serving.incarnation, &snapshot),
        }
    }

    /// Returns the digest of the standby that serves now, and closes the daemon's connections to its servers in the
    /// background, because clients use the servers now.
    async fn end_proof(&self, proof: Option<KeptProof>) -> Option<Taken> {
        let proof = proof?;
        let taken = proof.lock().await.taken().clone();
        self.context.shared.tasks.spawn(async move { proof.lock().await.end().await });
        Some(taken)
    }

    /// Gives the serving generation, which was made in the background, its full share of the processors, in the
    /// background, because no client waits for it.
    pub(crate) fn weigh_current(&self) {
        let Some(incarnation) = self.service.serving().map(|serving| serving.incarnation.clone()) else { return };
        let shared = self.context.shared.clone();
        self.context.shared.tasks.spawn(async move {
            for handle in incarnation.containers.values() {
                if let Err(error) = shared.engine.weigh(handle, CpuWeight::Serving).await {
                    tracing::warn!(error = describe(&error), "a container keeps a standby's share of the processors");
                }
            }
        });
    }
}
