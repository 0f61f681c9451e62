//! The keeper of a site's pool: it checks the pool, plans by `arenad_model::pool`, and takes in the results of tasks.
//!
//! Nothing here takes longer than the store takes to write a row: all calls to the engine are made by tasks of the pool.
//! Drivers take standbys out of the pool between any two awaits of the keeper, so each action looks at its member again.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::looks::Looks;
use super::making::{self, Used};
use super::pool::{Finished, MOST_RENEWALS, PoolTaskOutcome, PooledGeneration, WORN, told, until};
use super::site_pool::{SitePool, SiteUse};
use crate::proof::StandbyProof;
use crate::shared::SharedParts;
use arenad_baseline::snapshot;
use arenad_launch::{self as launch, Incarnation};
use arenad_model::error::describe;
use arenad_model::event::EventKind;
use arenad_model::instance::InstanceId;
use arenad_model::pool::{self, PoolAction, PoolBudget, PoolIntent, PoolPlan, StandbyShortage, Standing, pool_size};
use arenad_model::site::Site;
use arenad_model::snapshot::Snapshot;
use arenad_model::standby_schedule::count_at;
use arenad_reset::hindrance;
use arenad_seams::fault::{self, Point};
use arenad_store::StoredStandby;
use arenad_telemetry::supervised::supervised;

/// The longest interval between two checks of the pool. Requests to the site do not wake the keeper, so they are noticed
/// only then.
const TEND_EVERY: Duration = Duration::from_secs(2);
/// How long after a reset another one is expected, even if no client has written to the site.
const RESETS_COME_IN_ROWS: Duration = Duration::from_secs(60);
/// The pause after a panic of the keeper.
const PAUSE: Duration = Duration::from_secs(1);

/// The keeper of the pool of one site.
pub(super) struct StandbyKeeper {
    pub(super) shared: Arc<SharedParts>,
    /// The id that the generations of the site are filed under.
    pub(super) id: InstanceId,
    pub(super) site: Arc<Site>,
    pub(super) pool: Arc<SitePool>,
}

impl StandbyKeeper {
    /// Keeps the pool until the last slot has left it or the daemon stops.
    pub(super) async fn run(self) {
        loop {
            match supervised(Box::pin(self.step())).await {
                Ok(true) => {}
                Ok(false) => break,
                Err(panicked) => {
                    self.note_later(EventKind::InstancePanicked, format!("standbys of {}: {panicked}", self.id));
                    // A panic that repeats at once would fill the log.
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
        self.pool.close();
    }

    /// Handles what is due or happens next; returns false when the keeper is to end.
    async fn step(&self) -> bool {
        let is_due = self.pool.lock().pool.due().is_some_and(|due| due <= Instant::now());
        if is_due {
            self.tend().await;
        }
        let due = {
            let mut state = self.pool.lock();
            state.answer_waiting(Instant::now());
            state.due()
        };
        tokio::select! {
            biased;
            () = self.shared.shutdown.cancelled() => false,
            () = self.pool.ended() => false,
            finished = self.pool.news() => {
                self.note_finished(finished).await;
                true
            }
            () = self.pool.changed() => true,
            () = until(due) => true,
        }
    }

    /// Stores an event about the standbys in the background.
    pub(super) fn note_later(&self, kind: EventKind, message: String) {
        let (shared, id) = (self.shared.clone(), self.id.clone());
        self.shared.tasks.spawn(async move { shared.events.note(kind, Some(&id), &message).await });
    }

    /// Checks the pool and begins the next actions.
    async fn tend(&self) {
        let Some((plan, current)) = self.plan() else { return };
        for action in plan.actions {
            self.act(action, &current).await;
        }
        self.look_at_standbys(&current);
    }

    /// Returns the next actions, and the snapshot that the standbys are of; `None` if there is nothing to plan.
    fn plan(&self) -> Option<(PoolPlan, Snapshot)> {
        let spec = &self.site.reset;
        let mut state = self.pool.lock();
        let has_pool = spec.standby > 0 || !spec.schedule.is_empty() || !state.pool.is_empty();
        let usage = state.usage().filter(|_| has_pool);
        // The end of the operation that hides how the slots are used has the pool checked again.
        state.pool.tend_at(usage.is_some().then(|| Instant::now() + TEND_EVERY));
        let SiteUse { serves, is_written, slots } = usage?;
        state.pool.is_wanted |= serves && is_written;
        // Standbys of a schedule are made before there is any use for them, because that is the purpose of a schedule.
        let count = match count_at(&spec.schedule, self.shared.clock.now()) {
            _ if !serves => 0,
            Some(count) => count,
            None if state.pool.is_wanted => spec.standby,
            None => 0,
        };
        let current = state.baseline.clone()?;
        let just_reset = state.pool.was_reset_within(RESETS_COME_IN_ROWS);
        let most_renewals = if self.can_rewind(&current) { MOST_RENEWALS } else { 0 };
        let wanted = PoolIntent {
            count: pool_size(count, slots),
            snapshot: &current.id,
            expects_reset: is_written || just_reset,
            may_pause: spec.may_pause,
            most_renewals,
        };
        let budget = PoolBudget {
            memory_free: self.shared.machine.free_memory(),
            memory_each: self.site.expected_memory(),
            memory_reserve: self.shared.memory_reserve,
            failures: state.pool.failures(),
        };
        let plan = pool::plan(wanted, &state.observed(), budget);
        let lacked = state.pool.note_lack(plan.lack);
        drop(state);
        if let Some(lack @ StandbyShortage::Memory { .. }) = plan.lack
            && !matches!(lacked, Some(StandbyShortage::Memory { .. }))
        {
            let message = format!("{} has too few standbys: {}", self.id, told(lack));
            self.note_later(EventKind::StandbyLacking, message);
        }
        Some((plan, current))
    }

    async fn act(&self, action: PoolAction, snapshot: &Snapshot) {
        match action {
            PoolAction::Make => self.make_standby(snapshot).await,
            PoolAction::Renew(made) => self.renew_standby(made, snapshot),
            PoolAction::Discard(made) => self.discard_standby(made).await,
            PoolAction::Freeze(made) => self.move_standby(made, true),
            PoolAction::Thaw(made) => self.move_standby(made, false),
        }
    }

    async fn make_standby(&self, snapshot: &Snapshot) {
        let life = self.pool.lock().pool.life();
        let generation = match self.shared.store.begin_standby(&self.id).await {
            Ok(generation) => generation,
            Err(error) => {
                self.pool.lock().pool.note_failure();
                tracing::warn!(instance.id = %self.id, error = describe(&error), "no standby can be begun");
                return;
            }
        };
        fault::reach(Point::StandbyRecorded).await;
        let mut state = self.pool.lock();
        // The site has gone down meanwhile.
        if state.pool.life() != life {
            return;
        }
        // The pool has the standby before its first container exists, because reconciliation spares the generations in
        // the pool.
        state.pool.add(generation, PooledGeneration::new(&snapshot.id, Standing::Making));
        let (shared, id, site) = (self.shared.clone(), self.id.clone(), self.site.clone());
        let work = making::make(shared, id, site, snapshot.clone(), generation, state.pool.token());
        state.pool.spawn(&self.shared.tasks, generation, async move {
            work.await.map(|(incarnation, proof)| PoolTaskOutcome::ready(incarnation, proof, 0))
        });
    }

    fn can_rewind(&self, from: &Snapshot) -> bool {
        self.site.rewinds().is_some()
            && snapshot::state(&self.shared.baselines, from).is_some()
            && hindrance(&self.site, &from.volumes, None).is_none()
    }

    /// Brings containers that have served back to the snapshot in the background; they are removed if that fails.
    fn renew_standby(&self, made: u64, snapshot: &Snapshot) {
        let mut state = self.pool.lock();
        let stop = state.pool.token();
        let Some(standby) = state.pool.member_mut(made) else { return };
        let Some(incarnation) = standby.incarnation.take() else { return };
        standby.standing = Standing::Making;
        standby.proof = None;
        let before = standby.before.take();
        let is_untouched = standby.is_untouched;
        standby.is_resuming = is_untouched && before.is_some();
        standby.renewing_since = Some(Instant::now());
        let (shared, id, site) = (self.shared.clone(), self.id.clone(), self.site.clone());
        let used = Used { incarnation, before, is_untouched };
        let work = making::renew(shared, id, site, snapshot.clone(), used, stop);
        state.pool.spawn(&self.shared.tasks, made, work);
    }

    async fn discard_standby(&self, made: u64) {
        let life = {
            let mut state = self.pool.lock();
            let life = state.pool.life();
            // A slot has taken it meanwhile.
            let Some(standby) = state.pool.member_mut(made) else { return };
            standby.standing = Standing::Making;
            standby.incarnation = None;
            standby.proof = None;
            // A member without a snapshot is not counted until it is removed.
            standby.snapshot = None;
            life
        };
        self.forget_standby(made).await;
        fault::reach(Point::StandbyForgotten).await;
        let (shared, id) = (self.shared.clone(), self.id.clone());
        let mut state = self.pool.lock();
        if state.pool.life() != life {
            return;
        }
        state.pool.spawn(&self.shared.tasks, made, async move {
            let removed = making::remove(&shared, &id, made).await;
            Ok(removed.map(|()| PoolTaskOutcome::Removed)?)
        });
    }

    /// Pauses or resumes a standby in the background. It cannot serve until that is done.
    fn move_standby(&self, made: u64, frozen: bool) {
        let mut state = self.pool.lock();
        let Some(standby) = state.pool.member_mut(made) else { return };
        let expected = if frozen { Standing::Running } else { Standing::Frozen };
        // The servers must respond while a comparison runs. When it ends, the pool is checked again.
        if standby.standing != expected || (frozen && standby.looks.goes_on()) {
            return;
        }
        let Some(incarnation) = standby.incarnation.clone() else { return };
        standby.standing = Standing::Making;
        standby.is_resuming = true;
        let shared = self.shared.clone();
        state.pool.spawn(&self.shared.tasks, made, async move {
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

    /// Takes in the result of a task.
    async fn note_finished(&self, finished: Finished) {
        let Finished { made, result } = finished;
        match result {
            Ok(PoolTaskOutcome::Looked(look)) => self.note_look(made, look),
            Ok(PoolTaskOutcome::Moved(standing)) => {
                if let Some(standby) = self.pool.lock().pool.member_mut(made) {
                    standby.is_resuming = false;
                    // A standby that was abandoned meanwhile remains abandoned.
                    if standby.standing == Standing::Making {
                        standby.standing = standing;
                    }
                }
            }
            Ok(PoolTaskOutcome::Ready { incarnation, proof, rewinds }) => {
                // The row comes first: a slot takes the standby as soon as it is ready, and deletes the row.
                self.remember_standby(made, rewinds).await;
                let is_kept = self.keep(made, incarnation, proof.map(|proof| *proof), rewinds);
                match is_kept {
                    true => fault::reach(Point::StandbyKept).await,
                    // The site has gone down meanwhile.
                    false => self.forget_standby(made).await,
                }
            }
            Ok(PoolTaskOutcome::Removed) => self.pool.lock().pool.drop_member(made),
            Err(error) => {
                {
                    let mut state = self.pool.lock();
                    state.pool.note_failure();
                    // Reconciliation removes its leftovers.
                    state.pool.drop_member(made);
                }
                self.forget_standby(made).await;
                let message = format!("a standby of {} could not be created: {}", self.id, describe(&error));
                self.note_later(EventKind::StandbyFailed, message);
            }
        }
        self.pool.lock().pool.tend_soon();
    }

    /// Makes a standby available to the slots; returns false if the pool has been abandoned.
    fn keep(&self, made: u64, incarnation: Incarnation, proof: Option<StandbyProof>, rewinds: u32) -> bool {
        let mut state = self.pool.lock();
        state.pool.forget_failures();
        let Some(standby) = state.pool.member_mut(made) else { return false };
        standby.incarnation = Some(incarnation);
        standby.proof = proof.map(|proof| Arc::new(Mutex::new(proof)));
        standby.looks = Looks::default();
        standby.standing = Standing::Running;
        standby.is_resuming = false;
        standby.renewals += rewinds;
        let since = standby.renewing_since.take().filter(|_| rewinds > 0);
        since.into_iter().for_each(|since| state.pool.note_renewal(since));
        true
    }

    /// Notes for the next daemon that a standby is ready.
    async fn remember_standby(&self, made: u64, rewinds: u32) {
        let known = self.pool.lock().pool.member_mut(made).map(|standby| (standby.snapshot.clone(), standby.renewals));
        let Some((Some(snapshot), renewals)) = known else { return };
        let standby = StoredStandby { made, snapshot, renewals: renewals + rewinds };
        if let Err(error) = self.shared.store.keep_standby(&self.id, &standby).await {
            tracing::warn!(instance.id = %self.id, error = describe(&error), "the next daemon will not know of a standby");
        }
    }

    /// Removes the note about a standby, before anything is done to the standby.
    async fn forget_standby(&self, made: u64) {
        if let Err(error) = self.shared.store.forget_standby(&self.id, made).await {
            // The next daemon compares the standby in full before it counts.
            tracing::warn!(instance.id = %self.id, error = describe(&error), "a standby is still noted");
        }
    }
}
