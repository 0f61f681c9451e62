//! Resets that leave the instance unchanged, because a comparison shows that it equals its snapshot.

use super::{Ending, ResetParameters, times};
use crate::failure::OperationFailure;
use crate::operations::Instance;
use crate::proof::ProofCandidate;
use arenad_digest::StoreConnections;
use arenad_model::event::EventKind;
use arenad_model::instance::InstanceState;
use arenad_model::reset::{ResetOutcome, ResetWay};
use arenad_model::snapshot::Snapshot;
use arenad_model::verify::{ComparisonExtent, Verified};

impl Instance {
    /// Whether the instance may differ from its baseline, as far as can be told.
    pub(super) async fn is_dirty(&mut self) -> bool {
        // A store that is not compared may have been written to.
        if !Verified::of(&self.context.site, ComparisonExtent::Moved).covers_all() {
            return true;
        }
        // A request may or may not have changed the site, and the caller needs certainty.
        if self.service.state() != InstanceState::Ready || self.service.may_be_written() {
            return true;
        }
        let Some(serving) = self.service.serving() else { return true };
        if self.baseline.as_ref().is_none_or(|baseline| baseline.id != serving.snapshot.id) {
            return true;
        }
        let context = &self.context;
        let candidate = ProofCandidate {
            shared: &context.shared,
            id: &context.id,
            site: &context.site,
            snapshot: &serving.snapshot,
            incarnation: &serving.incarnation,
        };
        let lines = StoreConnections::passing();
        let compared = match &serving.proven {
            Some(last) => candidate.prove_again(last, &lines).await,
            // The generation was adopted from an earlier daemon and no client has reached it.
            None => match candidate.prove(&lines).await {
                Ok(None) => return true,
                compared => compared,
            },
        };
        match compared {
            Ok(None) => false,
            Ok(moved) => {
                self.service.prove(moved);
                // A request that arrived during the comparison may have written to a part that had been compared
                // already.
                self.service.may_be_written()
            }
            Err(_) => true,
        }
    }

    /// Whether nothing has to be brought back to a snapshot, or to the baseline if none is given: the site serves this
    /// snapshot already, its probes pass, and it is trusted not to have been written to.
    pub(super) async fn is_kept(&mut self, to: Option<&Snapshot>) -> bool {
        let Some(wanted) = to.or(self.baseline.as_ref()).map(|snapshot| snapshot.id.clone()) else { return false };
        let Some(serving) = self.service.serving().filter(|serving| serving.snapshot.id == wanted) else {
            return false;
        };
        let (probes, site) = (&self.context.site.readiness.probes, &self.context.site);
        let probed = self.context.shared.prober.round(probes, site, &serving.incarnation, None).await;
        probed.is_ok() && self.is_trusted().await
    }

    /// Records a reset that had nothing to do.
    pub(super) async fn leave(
        &self,
        plan: &ResetParameters<'_>,
        way: ResetWay,
        why: &str,
    ) -> Result<(), OperationFailure> {
        let is_proven = self.service.serving().is_some_and(|serving| serving.proven.is_some());
        let extent = if is_proven { ComparisonExtent::Moved } else { ComparisonExtent::Nothing };
        let verified = Verified::of(&self.context.site, extent);
        let stages = times(&plan.stages);
        let ending =
            Ending { way, outcome: ResetOutcome::Done, reason: None, stages: &stages, verified: Some(&verified) };
        self.context.shared.store.note_reset(&self.context.id, &plan.row(&ending)).await?;
        self.service.forget_recorded();
        self.context.note(EventKind::InstanceReset, &format!("{} was left as it is: {why}", self.context.id)).await;
        Ok(())
    }
}
