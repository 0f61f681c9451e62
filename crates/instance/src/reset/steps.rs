//! The steps between a generation that was made or chosen and one that serves.

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::{Ending, ResetParameters, times};
use crate::context::InstanceContext;
use crate::failure::OperationFailure;
use crate::service::ServingIncarnation;
use arenad_digest::Taken;
use arenad_launch::Incarnation;
use arenad_model::reset::{ResetOutcome, ResetWay};
use arenad_model::snapshot::{Snapshot, SnapshotId};
use arenad_model::verify::{ComparisonExtent, Verified};
use arenad_store::{NewReset, NewServing};

/// A generation whose probes have passed and that was compared with its snapshot as far as requested.
pub(crate) struct Proven {
    pub(crate) incarnation: Incarnation,
    pub(crate) snapshot: Snapshot,
    /// The digest of its stores. The digest of a standby is fetched after the switch, because it is large and a client
    /// waits.
    pub(crate) proof: Option<Taken>,
    /// The extent of the comparison.
    pub(crate) extent: ComparisonExtent,
    /// The number of times its containers have been brought back.
    pub(crate) renewals: u32,
    /// Whether it was a standby, which gets its generation number when it takes over.
    pub(crate) is_standby: bool,
}

/// A generation that is recorded in the store as serving. The route switches only to such a generation.
pub(crate) struct RecordedGeneration {
    pub(crate) serving: ServingIncarnation,
    pub(crate) since: Timestamp,
}

/// A generation that could not be recorded, and the reason. Nothing has changed.
pub(crate) type NotRecorded = (Box<Proven>, OperationFailure);

impl Proven {
    /// Records in one transaction that the generation serves and that the reset is done. From now on resets lead to
    /// `baseline`, which may have been made again for this reset.
    pub(crate) async fn record(
        self,
        context: &InstanceContext,
        plan: &ResetParameters<'_>,
        way: ResetWay,
        baseline: Option<&SnapshotId>,
    ) -> Result<RecordedGeneration, NotRecorded> {
        let stages = times(&plan.stages);
        let reason = plan.reason();
        let (outcome, reason) = (ResetOutcome::Done, reason.as_deref());
        let verified = Verified::of(&context.site, self.extent);
        let ending = Ending { way, outcome, reason, stages: &stages, verified: Some(&verified) };
        self.store(context, baseline, Some(plan.row(&ending))).await
    }

    /// Records that a generation serves which no reset has made. From now on resets lead to `baseline`.
    pub(crate) async fn record_up(
        self,
        context: &InstanceContext,
        baseline: Option<&SnapshotId>,
    ) -> Result<RecordedGeneration, NotRecorded> {
        self.store(context, baseline, None).await
    }

    async fn store(
        self,
        context: &InstanceContext,
        baseline: Option<&SnapshotId>,
        reset: Option<NewReset<'_>>,
    ) -> Result<RecordedGeneration, NotRecorded> {
        let since = context.shared.clock.now();
        let serving = NewServing {
            generation: (!self.is_standby).then_some(self.incarnation.generation),
            made: self.incarnation.made,
            snapshot: &self.snapshot.id,
            baseline,
            since,
            reset,
        };
        let generation = match context.shared.store.record_serving(&context.id, &serving).await {
            Ok(generation) => generation,
            Err(error) => return Err((Box::new(self), error.into())),
        };
        let Self { incarnation, snapshot, proof, renewals, .. } = self;
        let incarnation = Incarnation { generation, ..incarnation };
        let visits = CancellationToken::new();
        let serving = ServingIncarnation { incarnation, snapshot, proven: proof, renewals, is_adopted: false, visits };
        Ok(RecordedGeneration { serving, since })
    }
}

impl RecordedGeneration {
    /// Creates the record of a generation that served under an earlier daemon and passes its probes; its row already
    /// says so. `was_reached` tells whether a client may have reached it.
    pub(crate) fn adopted(incarnation: Incarnation, snapshot: Snapshot, since: Timestamp, was_reached: bool) -> Self {
        let visits = CancellationToken::new();
        let serving =
            ServingIncarnation { incarnation, snapshot, proven: None, renewals: 0, is_adopted: was_reached, visits };
        Self { serving, since }
    }
}
