//! The work on slots: one piece at a time for each slot, in tasks that end with the keeper.
//!
//! A piece that is not wanted any more is cancelled, and the next piece for its slot begins when it has ended. So no two
//! pieces ever work on the same slot.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::slots::{PreparedSlot, SlotPreparation, Slots};
use arenad_model::episode::ending::VoidReason;
use arenad_model::episode::ids::EpisodeId;
use arenad_model::episode::lease::RecycleOrder;
use arenad_model::episode::registry::WithdrawalScope;
use arenad_model::instance::InstanceId;
use arenad_telemetry::supervised::supervised;

/// The pause after the first failure to recycle a slot. Each further one doubles it.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause between two attempts to recycle a slot.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// A piece of work on a slot.
#[derive(Debug)]
pub(crate) enum SlotJob {
    Prepare(SlotPreparation),
    Recycle(RecycleOrder),
}

impl SlotJob {
    fn slot(&self) -> &InstanceId {
        match self {
            Self::Prepare(preparation) => &preparation.slot,
            Self::Recycle(order) => &order.slot,
        }
    }

    fn is_for(&self, lease: &EpisodeId) -> bool {
        matches!(self, Self::Prepare(preparation) if preparation.episode == *lease)
    }
}

/// The end of a piece of work.
#[derive(Debug)]
pub(crate) enum JobResult {
    Prepared { lease: EpisodeId, result: Result<PreparedSlot, VoidReason> },
    Recycled { order: RecycleOrder, result: Result<(), VoidReason> },
    Cancelled,
}

/// A piece of work that has ended.
#[derive(Debug)]
pub(crate) struct FinishedJob {
    pub(crate) slot: InstanceId,
    pub(crate) result: JobResult,
}

struct RunningJob {
    cancel: CancellationToken,
    /// The episode that the slot is being prepared for.
    lease: Option<EpisodeId>,
}

/// All work on slots.
pub(crate) struct SlotWork {
    slots: Arc<dyn Slots>,
    /// The time after which an attempt to recycle a slot has failed.
    recycle_limit: Duration,
    tasks: JoinSet<FinishedJob>,
    running: BTreeMap<InstanceId, RunningJob>,
    /// The pieces that wait for the end of one that was cancelled.
    next: BTreeMap<InstanceId, SlotJob>,
    /// The consecutive failures to recycle a slot.
    failures: BTreeMap<InstanceId, u32>,
}

impl SlotWork {
    pub(crate) fn new(slots: Arc<dyn Slots>, recycle_limit: Duration) -> Self {
        Self {
            slots,
            recycle_limit,
            tasks: JoinSet::new(),
            running: BTreeMap::new(),
            next: BTreeMap::new(),
            failures: BTreeMap::new(),
        }
    }

    /// Begins a piece of work. It replaces the one that is running or waiting for the same slot.
    pub(crate) fn begin(&mut self, job: SlotJob) {
        let slot = job.slot().clone();
        if let Some(running) = self.running.get(&slot) {
            running.cancel.cancel();
            self.next.insert(slot, job);
            return;
        }
        let (cancel, lease) = match &job {
            SlotJob::Prepare(preparation) => (preparation.permit.withdrawn.clone(), Some(preparation.episode.clone())),
            SlotJob::Recycle(_) => (CancellationToken::new(), None),
        };
        let pause = self.pause(&slot);
        let (slots, limit) = (self.slots.clone(), self.recycle_limit);
        self.running.insert(slot.clone(), RunningJob { cancel: cancel.clone(), lease });
        self.tasks.spawn(async move {
            let work = cancel.run_until_cancelled(run(slots, job, pause, limit));
            let result = work.await.unwrap_or(JobResult::Cancelled);
            FinishedJob { slot, result }
        });
    }

    fn pause(&self, slot: &InstanceId) -> Duration {
        match self.failures.get(slot) {
            None => Duration::ZERO,
            Some(failures) => {
                let factor = 1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
                FIRST_PAUSE.saturating_mul(factor).min(LONGEST_PAUSE)
            }
        }
    }

    /// Cancels the preparation of a slot for an episode.
    pub(crate) fn stop_preparing(&mut self, slot: &InstanceId, lease: &EpisodeId) {
        if self.next.get(slot).is_some_and(|job| job.is_for(lease)) {
            self.next.remove(slot);
        }
        if let Some(running) = self.running.get(slot)
            && running.lease.as_ref() == Some(lease)
        {
            running.cancel.cancel();
        }
    }

    /// Cancels all work on the slots of sites.
    pub(crate) fn stop_all(&mut self, scope: &WithdrawalScope) {
        self.next.retain(|slot, _| !scope.includes(&slot.site_id()));
        self.failures.retain(|slot, _| !scope.includes(&slot.site_id()));
        for (slot, running) in &self.running {
            if scope.includes(&slot.site_id()) {
                running.cancel.cancel();
            }
        }
    }

    /// Whether any work on the slots of sites has not ended.
    pub(crate) fn is_busy(&self, scope: &WithdrawalScope) -> bool {
        self.running.keys().any(|slot| scope.includes(&slot.site_id()))
    }

    /// Notes whether an attempt to recycle a slot succeeded.
    pub(crate) fn note_recycled(&mut self, slot: &InstanceId, is_done: bool) {
        if is_done {
            self.failures.remove(slot);
        } else {
            *self.failures.entry(slot.clone()).or_default() += 1;
        }
    }

    /// Forgets the failures of a slot that was removed.
    pub(crate) fn forget(&mut self, slot: &InstanceId) {
        self.failures.remove(slot);
    }

    /// Waits for the end of a piece of work. Waits for ever if none is running.
    ///
    /// Cancellation: no end is lost.
    pub(crate) async fn finished(&mut self) -> FinishedJob {
        loop {
            match self.tasks.join_next().await {
                Some(Ok(finished)) => return finished,
                // Unreachable: tasks are not aborted, and panics of the work are results.
                Some(Err(error)) => tracing::error!(%error, "work on a slot was lost"),
                None => std::future::pending().await,
            }
        }
    }

    /// Returns the end of a piece of work if one has ended.
    pub(crate) fn try_finished(&mut self) -> Option<FinishedJob> {
        self.tasks.try_join_next()?.ok()
    }

    /// Makes room for the next piece of work on a slot, and returns it if one waits.
    pub(crate) fn clear(&mut self, slot: &InstanceId) -> Option<SlotJob> {
        self.running.remove(slot);
        self.next.remove(slot)
    }
}

async fn run(slots: Arc<dyn Slots>, job: SlotJob, pause: Duration, limit: Duration) -> JobResult {
    match job {
        SlotJob::Prepare(preparation) => {
            let (slot, lease) = (preparation.slot.clone(), preparation.episode.clone());
            let prepared = supervised(slots.prepare(preparation)).await;
            let failed = |error: String| VoidReason::InstanceFailed { slot, detail: error };
            JobResult::Prepared { lease, result: prepared.unwrap_or_else(|panic| Err(failed(panic.to_string()))) }
        }
        SlotJob::Recycle(order) => {
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            let recycled = tokio::time::timeout(limit, supervised(slots.recycle(&order))).await;
            let failed = |detail: String| VoidReason::ResetFailed { slot: order.slot.clone(), detail };
            let result = match recycled {
                Ok(Ok(result)) => result,
                Ok(Err(panic)) => Err(failed(panic.to_string())),
                Err(_) => Err(failed(format!("it took longer than {} s", limit.as_secs()))),
            };
            JobResult::Recycled { order, result }
        }
    }
}
