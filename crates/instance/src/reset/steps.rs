//! The steps between a generation that was made or chosen and one that serves.

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::{Ending, Plan, times};
use crate::context::Context;
use crate::failure::Failure;
use crate::service::Serving;
use arenad_digest::Taken;
use arenad_launch::Incarnation;
use arenad_model::reset::{ResetOutcome, ResetWay};
use arenad_model::snapshot::Snapshot;
use arenad_model::verify::{Extent, Verified};
use arenad_store::{NewReset, NewServing};

/// A generation whose probes have passed, compared with its snapshot as far as was asked for.
pub(crate) struct Proven {
    pub(crate) incarnation: Incarnation,
    pub(crate) snapshot: Snapshot,
    /// What was found in its stores. A standby's is fetched after the switch: it is large, and a client waits.
    pub(crate) proof: Option<Taken>,
    /// How much was compared.
    pub(crate) extent: Extent,
    /// How often its containers have been brought back.
    pub(crate) renewals: u32,
    /// Whether it is a standby, which gets its generation when it takes over.
    pub(crate) is_standby: bool,
}

/// A generation that the store knows to serve. Only such a one is switched to.
pub(crate) struct Recorded {
    pub(crate) serving: Serving,
    pub(crate) since: Timestamp,
}

/// A generation that could not be recorded, and why. Nothing has changed.
pub(crate) type NotRecorded = (Box<Proven>, Failure);

impl Proven {
    /// Writes, in one transaction, that the generation serves and that the reset is done. A reset leads to `baseline` from now
    /// on: it may have been made anew for this one.
    pub(crate) async fn record(
        self,
        context: &Context,
        plan: &Plan<'_>,
        way: ResetWay,
        baseline: Option<&str>,
    ) -> Result<Recorded, NotRecorded> {
        let stages = times(&plan.stages);
        let reason = plan.reason();
        let (outcome, reason) = (ResetOutcome::Done, reason.as_deref());
        let verified = Verified::of(&context.site, self.extent);
        let ending = Ending { way, outcome, reason, stages: &stages, verified: Some(&verified) };
        self.store(context, baseline, Some(plan.row(&ending))).await
    }

    /// The same for a generation that no reset led to. A reset leads to `baseline` from now on.
    pub(crate) async fn record_up(self, context: &Context, baseline: Option<&str>) -> Result<Recorded, NotRecorded> {
        self.store(context, baseline, None).await
    }

    async fn store(
        self,
        context: &Context,
        baseline: Option<&str>,
        reset: Option<NewReset<'_>>,
    ) -> Result<Recorded, NotRecorded> {
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
        let serving = Serving { incarnation, snapshot, proven: proof, renewals, is_adopted: false, visits };
        Ok(Recorded { serving, since })
    }
}

impl Recorded {
    /// A generation that served under an earlier daemon and passes its probes: its row says so already. `was_reached`: by
    /// anyone, as far as is known.
    pub(crate) fn adopted(incarnation: Incarnation, snapshot: Snapshot, since: Timestamp, was_reached: bool) -> Self {
        let visits = CancellationToken::new();
        let serving = Serving { incarnation, snapshot, proven: None, renewals: 0, is_adopted: was_reached, visits };
        Self { serving, since }
    }
}
