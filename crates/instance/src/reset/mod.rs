//! The steps of a reset. Each step takes the result of the previous one, so none can be left out:
//!
//! ```text
//!   Plan ──► leave                                       read only and untouched, or proven untouched
//!        ├─► swap:     a standby is chosen ─┐
//!        ├─► rewind:   state is put back  ──┼─► Proven ──► Recorded ──► Service::switch
//!        └─► recreate: containers are made ─┘    stores      store        route and state
//! ```
//! If a strategy cannot be used or fails, the next one is tried, and the reset records why. The serving generation
//! serves until a step has to take it out of service for good; a failure before that leaves it unchanged.

mod leave;
mod recreate;
mod rewind;
mod steps;
mod swap;

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::failure::{self, OperationFailure};
use super::operations::{Instance, OperationStart, unless};
use arenad_model::coverage;
use arenad_model::error::describe;
use arenad_model::event::EventKind;
use arenad_model::reset::{ResetOutcome, ResetWay};
use arenad_model::snapshot::Snapshot;
use arenad_model::verify::{ComparisonExtent, Verified};
use arenad_reset::{ResetError, Stages};
use arenad_seams::fault::{self, Point};
use arenad_store::{NewReset, StageTime};

pub(super) use steps::{Proven, RecordedGeneration};

/// The parameters of a reset, and the notes about its progress.
pub(super) struct ResetParameters<'a> {
    /// The reset's id, in the store and on its ticket.
    pub(super) id: &'a str,
    /// The time of day at which the reset was requested.
    pub(super) requested_at: Timestamp,
    pub(super) begun: Instant,
    /// The number of earlier resets of the instance under this daemon, for policies that compare only every n-th one.
    pub(super) number: u64,
    pub(super) stages: Stages,
    /// The reasons why no faster strategy was used, if the definition asks for one.
    fallbacks: Vec<String>,
}

impl<'a> ResetParameters<'a> {
    pub(super) fn new(operation: OperationStart<'a>, number: u64) -> Self {
        let OperationStart { id, requested_at, begun } = operation;
        Self { id, requested_at, begun, number, stages: Stages::default(), fallbacks: Vec::new() }
    }

    /// Records why a strategy was not used.
    pub(super) fn fall_back(&mut self, why: impl Into<String>) {
        self.fallbacks.push(why.into());
    }

    fn reason(&self) -> Option<String> {
        (!self.fallbacks.is_empty()).then(|| self.fallbacks.join("; "))
    }

    fn duration_ms(&self) -> f64 {
        milliseconds(self.begun.elapsed())
    }

    /// Returns the row of the reset if it ends now.
    fn row<'r>(&'r self, ending: &'r Ending<'r>) -> NewReset<'r> {
        let Ending { way, outcome, reason, stages, verified } = ending;
        NewReset {
            id: self.id,
            requested_at: self.requested_at,
            strategy: *way,
            outcome: *outcome,
            reason: *reason,
            duration_ms: self.duration_ms(),
            stages,
            verified: *verified,
        }
    }
}

/// The result of a reset, for its row.
struct Ending<'a> {
    way: ResetWay,
    outcome: ResetOutcome,
    reason: Option<&'a str>,
    stages: &'a [StageTime],
    verified: Option<&'a Verified>,
}

impl Instance {
    /// Brings the instance to a snapshot, or to its baseline if none is given.
    pub(super) async fn reset(
        &mut self,
        mut plan: ResetParameters<'_>,
        to: Option<Snapshot>,
        cancel: &CancellationToken,
    ) -> Result<(), OperationFailure> {
        let is_kept = self.is_only_read() && {
            let kept = self.is_kept(to.as_ref());
            unless(cancel, plan.stages.time("verify", kept)).await?
        };
        if is_kept {
            return self.leave(&plan, ResetWay::Keep, "it is read-only and equals its snapshot").await;
        }
        self.progress.commit();
        self.pool.expect_resets();
        self.resets += 1;
        plan.stages.note("queue", plan.begun.elapsed());
        let result = Box::pin(self.bring_to(&mut plan, to, cancel)).await;
        if let Err(failure) = &result {
            self.note_failed(&plan, failure).await;
        }
        result
    }

    async fn bring_to(
        &mut self,
        plan: &mut ResetParameters<'_>,
        to: Option<Snapshot>,
        cancel: &CancellationToken,
    ) -> Result<(), OperationFailure> {
        // The row of a site that failed while the store accepted no writes may have said that the site is down, so its
        // baseline may have been removed.
        if !self.service.state().serves() {
            self.forget_missing_baseline().await;
        }
        if to.is_none() {
            self.follow_first().await?;
        }
        let target = match to.or_else(|| self.baseline.clone()) {
            Some(target) => target,
            None => unless(cancel, Box::pin(self.provide_baseline())).await??,
        };
        if self.swap(plan, &target).await? {
            return Ok(());
        }
        // No write of a client that is acknowledged after this can be lost, because none is admitted.
        self.service.pause("is being reset");
        plan.stages.note("hold", plan.begun.elapsed());
        fault::reach(Point::ResetHeld).await;
        let extent = self.context.site.reset.verify.extent(plan.number, false);
        let (way, proven) = unless(cancel, Box::pin(self.bring_back(plan, &target, extent))).await??;
        let baseline = self.baseline.as_ref().map(|baseline| &baseline.id);
        let recorded = proven.record(&self.context, plan, way, baseline).await.map_err(|(_, failure)| failure)?;
        self.switch(recorded)?;
        fault::reach(Point::Routed).await;
        self.note_done(plan, way);
        self.prepare_spare();
        Ok(())
    }

    /// Brings the instance back to its baseline, unless a comparison shows that it equals the baseline.
    pub(super) async fn reset_if_dirty(
        &mut self,
        plan: ResetParameters<'_>,
        cancel: &CancellationToken,
    ) -> Result<(), OperationFailure> {
        let is_dirty = unless(cancel, plan.stages.time("verify", self.is_dirty())).await?;
        if is_dirty {
            return Box::pin(self.reset(plan, None, cancel)).await;
        }
        self.leave(&plan, ResetWay::Untouched, "it is proven to equal its snapshot").await
    }

    /// Brings the instance to the snapshot: in place if that is possible and succeeds, by new containers otherwise.
    async fn bring_back(
        &mut self,
        plan: &mut ResetParameters<'_>,
        target: &Snapshot,
        extent: ComparisonExtent,
    ) -> Result<(ResetWay, Proven), OperationFailure> {
        match self.rewind(plan, target, extent).await? {
            Ok(proven) => return Ok((ResetWay::Rewind, proven)),
            Err(Some(error)) => {
                let (what, reason) = match &error {
                    OperationFailure::Reset(ResetError::Uncovered(gaps)) => ("no rewind", coverage::told(gaps)),
                    _ => ("the rewind failed", describe(&error)),
                };
                let message =
                    format!("{} could not be rewound, so its containers are recreated: {reason}", self.context.id);
                plan.fall_back(format!("{what}: {reason}"));
                self.context.note(EventKind::InstanceRewindFailed, &message).await;
            }
            Err(None) => {}
        }
        let is_baseline = self.baseline.as_ref().is_some_and(|baseline| baseline.id == target.id);
        let made = match self.recreate(Some(plan), target, extent).await {
            // The snapshot's images were removed by hand; they are made again, once.
            Err(failure) if is_baseline && failure.is_missing_image() => {
                let target = self.provide_baseline().await?;
                self.recreate(Some(plan), &target, extent).await
            }
            result => result,
        }?;
        Ok((ResetWay::Recreate, made))
    }

    /// Finds the baseline, or makes it again.
    async fn provide_baseline(&mut self) -> Result<Snapshot, OperationFailure> {
        let prepared = self.prepare().await?;
        self.baseline = Some(prepared.clone());
        Ok(prepared)
    }

    /// Announces a reset by an event, in the background, because a client waits.
    fn note_done(&self, plan: &ResetParameters<'_>, way: ResetWay) {
        let because = plan.reason().map(|why| format!(" ({why})")).unwrap_or_default();
        let (id, took) = (&self.context.id, plan.duration_ms());
        self.context
            .note_later(EventKind::InstanceReset, format!("{id} was reset in {took:.0} ms by {}{because}", way.name()));
    }

    /// Writes the row of a reset that failed or was cancelled.
    async fn note_failed(&self, plan: &ResetParameters<'_>, failure: &OperationFailure) {
        let reason = failure::of(failure, &self.context.id).reason;
        let (outcome, reason) = match failure {
            OperationFailure::Superseded => (ResetOutcome::Cancelled, None),
            _ => (ResetOutcome::Failed, Some(reason.as_str())),
        };
        let stages = times(&plan.stages);
        let ending = Ending { way: ResetWay::Recreate, outcome, reason, stages: &stages, verified: None };
        if let Err(error) = self.context.shared.store.note_reset(&self.context.id, &plan.row(&ending)).await {
            tracing::warn!(instance.id = %self.context.id, error = describe(&error), "a reset's failure is not stored");
        }
    }
}

fn milliseconds(took: Duration) -> f64 {
    took.as_secs_f64() * 1e3
}

/// Returns the stages as they are stored and shown.
fn times(stages: &Stages) -> Vec<StageTime> {
    let all = stages.list().into_iter();
    all.map(|(stage, took)| StageTime { stage: stage.to_owned(), duration_ms: milliseconds(took) }).collect()
}
