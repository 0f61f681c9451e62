//! The driver's work on standbys, as `arenad_model::pool` plans it.
//!
//! Nothing here delays the driver for longer than the store takes to write a row: all calls to the engine are made by
//! tasks of the pool.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::looks::Looks;
use super::making::{self, Used};
use super::operations::Instance;
use super::pool::{Finished, MOST_RENEWALS, PoolTaskOutcome, PooledGeneration, WORN, told};
use arenad_baseline::snapshot;
use arenad_launch as launch;
use arenad_model::error::describe;
use arenad_model::event::EventKind;
use arenad_model::pool::{self, PoolAction, PoolBudget, PoolIntent, StandbyShortage, Standing};
use arenad_model::snapshot::{Snapshot, SnapshotId};
use arenad_model::standby_schedule::count_at;
use arenad_reset::{Stages, hindrance};
use arenad_seams::fault::{self, Point};
use arenad_store::StoredStandby;

/// The longest interval between two checks of the pool. Requests to the site do not wake the driver, so they are noticed
/// only then.
const TEND_EVERY: Duration = Duration::from_secs(2);
/// How long after a reset another one is expected, even if no client has written to the site.
const RESETS_COME_IN_ROWS: Duration = Duration::from_secs(60);

impl Instance {
    /// Checks the pool and begins the next actions.
    pub(super) async fn tend_standbys(&mut self) {
        let spec = &self.context.site.reset;
        let has_pool = spec.standby > 0 || !spec.schedule.is_empty() || !self.pool.is_empty();
        self.pool.tend_at(has_pool.then(|| Instant::now() + TEND_EVERY));
        if !has_pool {
            return;
        }
        let serves = self.service.state().serves();
        let is_written = self.service.stats().unsafe_requests > 0;
        self.pool.is_wanted |= serves && is_written;
        // Standbys of a schedule are made before there is any use for them, because that is the purpose of a schedule.
        let count = match count_at(&spec.schedule, self.context.shared.clock.now()) {
            _ if !serves => 0,
            Some(count) => count,
            None if self.pool.is_wanted => spec.standby,
            None => 0,
        };
        let Some(current) = self.baseline.clone() else { return };
        let just_reset = self.pool.was_reset_within(RESETS_COME_IN_ROWS);
        let most_renewals = if self.can_rewind(&current) { MOST_RENEWALS } else { 0 };
        let wanted = PoolIntent {
            count,
            snapshot: &current.id,
            expects_reset: is_written || just_reset,
            may_pause: self.context.site.reset.may_pause,
            most_renewals,
        };
        let budget = PoolBudget {
            memory_free: self.context.shared.machine.free_memory(),
            memory_each: self.context.site.expected_memory(),
            memory_reserve: self.context.shared.memory_reserve,
            failures: self.pool.failures(),
        };
        let plan = pool::plan(wanted, &self.pool.observed(), budget);
        let lacked = self.pool.note_lack(plan.lack);
        if let Some(lack @ StandbyShortage::Memory { .. }) = plan.lack
            && !matches!(lacked, Some(StandbyShortage::Memory { .. }))
        {
            let message = format!("{} has too few standbys: {}", self.context.id, told(lack));
            self.context.note_later(EventKind::StandbyLacking, message);
        }
        for action in plan.actions {
            self.act(action, &current).await;
        }
        self.look_at_standbys(&current);
        self.show_standbys();
    }

    async fn act(&mut self, action: PoolAction, snapshot: &Snapshot) {
        match action {
            PoolAction::Make => self.make_standby(snapshot).await,
            PoolAction::Renew(made) => self.renew_standby(made, snapshot),
            PoolAction::Discard(made) => self.discard_standby(made).await,
            PoolAction::Freeze(made) => self.move_standby(made, true),
            PoolAction::Thaw(made) => self.move_standby(made, false),
        }
    }

    async fn make_standby(&mut self, snapshot: &Snapshot) {
        let context = &self.context;
        let generation = match context.shared.store.begin_standby(&context.id).await {
            Ok(generation) => generation,
            Err(error) => {
                self.pool.note_failure();
                tracing::warn!(instance.id = %context.id, error = describe(&error), "no standby can be begun");
                return;
            }
        };
        fault::reach(Point::StandbyRecorded).await;
        self.pool.add(generation, PooledGeneration::new(&snapshot.id, Standing::Making));
        // The report shows the standby before its first container exists, because reconciliation spares the generations
        // in the report.
        self.show_standbys();
        let (shared, id, site) = (context.shared.clone(), context.id.clone(), context.site.clone());
        let work = making::make(shared, id, site, snapshot.clone(), generation, self.pool.token());
        self.pool.spawn(&context.shared.tasks, generation, async move {
            work.await.map(|(incarnation, proof)| PoolTaskOutcome::ready(incarnation, proof, 0))
        });
    }

    fn can_rewind(&self, from: &Snapshot) -> bool {
        self.context.site.rewinds().is_some()
            && snapshot::state(&self.context.shared.baselines, from).is_some()
            && hindrance(&self.context.site, &from.volumes, None).is_none()
    }

    /// Brings containers that have served back to the snapshot in the background; they are removed if that fails.
    fn renew_standby(&mut self, made: u64, snapshot: &Snapshot) {
        let Some(standby) = self.pool.member_mut(made) else { return };
        let Some(incarnation) = standby.incarnation.take() else { return };
        standby.standing = Standing::Making;
        standby.proof = None;
        let before = standby.before.take();
        let is_untouched = standby.is_untouched;
        standby.is_resuming = is_untouched && before.is_some();
        standby.renewing_since = Some(Instant::now());
        let context = &self.context;
        let (shared, id, site) = (context.shared.clone(), context.id.clone(), context.site.clone());
        let used = Used { incarnation, before, is_untouched };
        let work = making::renew(shared, id, site, snapshot.clone(), used, self.pool.token());
        self.pool.spawn(&context.shared.tasks, made, work);
    }

    async fn discard_standby(&mut self, made: u64) {
        self.forget_standby(made).await;
        fault::reach(Point::StandbyForgotten).await;
        let Some(standby) = self.pool.member_mut(made) else { return };
        standby.standing = Standing::Making;
        standby.incarnation = None;
        standby.proof = None;
        // A member without a snapshot is not counted until it is removed.
        standby.snapshot = None;
        let (shared, id) = (self.context.shared.clone(), self.context.id.clone());
        self.pool.spawn(&self.context.shared.tasks, made, async move {
            let removed = making::remove(&shared, &id, made).await;
            Ok(removed.map(|()| PoolTaskOutcome::Removed)?)
        });
    }

    /// Pauses or resumes a standby in the background. It cannot serve until that is done.
    fn move_standby(&mut self, made: u64, frozen: bool) {
        let Some(standby) = self.pool.member_mut(made) else { return };
        // The servers must respond while a comparison runs. When it ends, the pool is checked again.
        if frozen && standby.looks.goes_on() {
            return;
        }
        let Some(incarnation) = standby.incarnation.clone() else { return };
        standby.standing = Standing::Making;
        standby.is_resuming = true;
        let shared = self.context.shared.clone();
        self.pool.spawn(&self.context.shared.tasks, made, async move {
            let engine = shared.engine.as_ref();
            let done = match frozen {
                true => launch::freeze(engine, &incarnation).await,
                false => launch::thaw(engine, &incarnation).await,
            };
            fault::reach(if frozen { Point::StandbyFrozen } else { Point::StandbyThawed }).await;
            Ok(PoolTaskOutcome::Moved(match done {
                Ok(()) if frozen => Standing::Frozen,
                Ok(()) => Standing::Running,
                Err(error) => {
                    tracing::warn!(error = describe(&error), "a standby was discarded");
                    Standing::Used { renewals: WORN }
                }
            }))
        });
    }

    /// Waits for a standby of a snapshot that is about to be ready, because a rewind of the serving generation would
    /// take longer.
    pub(super) async fn await_resumed(&mut self, snapshot: &SnapshotId, stages: &Stages) {
        self.tend_standbys().await;
        if let Some(deadline) = self.pool.ready_by(snapshot, Instant::now()) {
            stages.time("resume", self.await_news(snapshot, deadline)).await;
        }
    }

    /// Takes in the results of tasks until a standby is ready, none is about to be, or the time is up.
    async fn await_news(&mut self, snapshot: &SnapshotId, deadline: Instant) {
        while !self.pool.has_ready(snapshot)
            && self.pool.ready_by(snapshot, Instant::now()).is_some()
            && let Ok(finished) = tokio::time::timeout_at(deadline, self.pool.news()).await
        {
            self.note_standby(finished).await;
        }
    }

    /// Takes in the result of a task.
    pub(super) async fn note_standby(&mut self, finished: Finished) {
        let Finished { made, result } = finished;
        self.pool.tend_soon();
        match result {
            Ok(PoolTaskOutcome::Looked(look)) => return self.note_look(made, look),
            Ok(PoolTaskOutcome::Moved(standing)) => {
                if let Some(standby) = self.pool.member_mut(made) {
                    standby.is_resuming = false;
                    // A standby that was abandoned meanwhile remains abandoned.
                    if standby.standing == Standing::Making {
                        standby.standing = standing;
                    }
                }
            }
            Ok(PoolTaskOutcome::Ready { incarnation, proof, rewinds }) => {
                self.pool.forget_failures();
                if let Some(standby) = self.pool.member_mut(made) {
                    standby.incarnation = Some(incarnation);
                    standby.proof = proof.map(|proof| Arc::new(Mutex::new(*proof)));
                    standby.looks = Looks::default();
                    standby.standing = Standing::Running;
                    standby.is_resuming = false;
                    let since = standby.renewing_since.take().filter(|_| rewinds > 0);
                    standby.renewals += rewinds;
                    let (snapshot, renewals) = (standby.snapshot.clone(), standby.renewals);
                    since.into_iter().for_each(|since| self.pool.note_renewal(since));
                    if let Some(snapshot) = snapshot {
                        self.remember_standby(StoredStandby { made, snapshot, renewals }).await;
                    }
                    fault::reach(Point::StandbyKept).await;
                }
            }
            Ok(PoolTaskOutcome::Removed) => self.pool.drop_member(made),
            Err(error) => {
                self.pool.note_failure();
                // Reconciliation removes its leftovers.
                self.pool.drop_member(made);
                self.forget_standby(made).await;
                let message = format!("a standby of {} could not be created: {}", self.context.id, describe(&error));
                self.context.note_later(EventKind::StandbyFailed, message);
            }
        }
        self.show_standbys();
    }

    pub(super) fn show_standbys(&self) {
        let shown = self.pool.report();
        self.service.report().send_if_modified(|report| {
            let is_new = report.standbys != shown;
            report.standbys = shown;
            is_new
        });
    }
}
