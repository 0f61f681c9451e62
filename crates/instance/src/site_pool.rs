//! The pool of one site, which serves all of its slots, and the record of which slot holds which generation.
//!
//! ```text
//!   driver of slot 1 ─┐ take, wait  ┌──────────┐  plans   ┌────────┐
//!   driver of slot 2 ─┼────────────►│ SitePool │◄─────────│ keeper │──► tasks: making, looks
//!   driver of slot 3 ─┘ retire      └──────────┘  results └────────┘◄── (`standbys.rs`)
//! ```
//! Each generation of the site belongs to the pool or to one slot. It changes hands under one lock, which is never held
//! across an await, so two slots cannot take the same standby. Slots that find no ready standby wait in the order of their
//! requests, as long as one is about to be ready for them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::InstanceReport;
use super::gate::RouteGate;
use super::pool::{ChosenStandby, Finished, PoolTaskOutcome, PooledGeneration, StandbyPool, StandbyReport, WORN};
use super::standby_error::StandbyError;
use super::standbys::StandbyKeeper;
use crate::shared::SharedParts;
use arenad_digest::Taken;
use arenad_engine::EngineEvent;
use arenad_launch::Incarnation;
use arenad_model::ids::SiteId;
use arenad_model::instance::{InstanceId, InstanceState};
use arenad_model::pool::{PoolMember, Standing, pool_size};
use arenad_model::site::{ResetSpec, Site};
use arenad_model::snapshot::{Snapshot, SnapshotId};
use arenad_seams::ordered_watch as channel;
use arenad_store::StoredStandby;

/// The pools of all sites that have drivers.
#[derive(Default)]
pub struct SitePools(Mutex<BTreeMap<SiteId, Weak<SitePool>>>);

impl SitePools {
    /// Returns the pool of the site of an instance. If the site has no driver, a new pool is begun, with the definition of
    /// the site that its drivers have.
    pub fn of(&self, shared: &Arc<SharedParts>, id: &InstanceId, site: &Arc<Site>) -> Arc<SitePool> {
        let mut pools = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pools.retain(|_, pool| pool.strong_count() > 0);
        let known = pools.get(&id.site_id()).and_then(Weak::upgrade);
        if let Some(pool) = known.filter(|pool| !pool.closed.is_cancelled()) {
            return pool;
        }
        let pool = Arc::new(SitePool::default());
        pools.insert(id.site_id(), Arc::downgrade(&pool));
        let keeper = StandbyKeeper { shared: shared.clone(), id: id.owner(), site: site.clone(), pool: pool.clone() };
        shared.tasks.spawn(keeper.run());
        pool
    }
}

/// The pool of one site.
#[derive(Default)]
pub struct SitePool {
    state: Mutex<PoolState>,
    /// Signalled when the keeper has something to do.
    changed: Notify,
    /// Cancelled when the last slot has left, and when the keeper ends.
    closed: CancellationToken,
}

#[derive(Default)]
pub(super) struct PoolState {
    pub(super) pool: StandbyPool,
    slots: BTreeMap<u32, PoolSlot>,
    /// The generations that belong to slots.
    held: BTreeMap<u64, HeldGeneration>,
    /// The slots that wait for a standby, in the order of their requests.
    waiting: VecDeque<WaitingSlot>,
    /// The snapshot that standbys are made from.
    pub(super) baseline: Option<Snapshot>,
    /// Whether the standbys of an earlier daemon have been taken up.
    is_taken_up: bool,
}

/// A slot, as the pool sees it.
struct PoolSlot {
    gate: Arc<RouteGate>,
    report: channel::Receiver<InstanceReport>,
    /// Whether its driver performs an operation.
    is_busy: bool,
}

impl PoolSlot {
    fn serves(&self) -> bool {
        self.report.borrow().state.serves()
    }

    /// Whether the slot neither has containers nor is getting any.
    fn is_down(&self) -> bool {
        !self.is_busy && matches!(self.report.borrow().state, InstanceState::Down | InstanceState::Failed(_))
    }
}

/// A generation that belongs to a slot: it serves there, is being made for the slot, or was taken out of the pool.
struct HeldGeneration {
    slot: u32,
    /// The snapshot, from when the generation leaves the pool until the one that it replaces comes to the pool.
    taken: Option<SnapshotId>,
}

struct WaitingSlot {
    slot: u32,
    snapshot: SnapshotId,
    /// Until when it waits; `None` until the pool has been checked for it.
    deadline: Option<Instant>,
    reply: oneshot::Sender<WaitedStandby>,
}

/// The end of a wait for a standby.
#[derive(Default)]
pub(super) struct WaitedStandby {
    /// The standby, with the generation that it was made for. It belongs to the slot.
    pub(super) standby: Option<(u64, ChosenStandby)>,
    /// Whether one was about to be ready.
    pub(super) has_waited: bool,
}

/// How the slots of a site are used.
pub(super) struct SiteUse {
    /// Whether any slot serves.
    pub(super) serves: bool,
    /// Whether a client may have written to a generation that serves.
    pub(super) is_written: bool,
    /// The number of slots.
    pub(super) slots: usize,
}

/// The objects to remove when a slot goes down or fails.
pub(super) struct GivenUp {
    /// The generations whose containers are removed.
    pub(super) generations: Vec<u64>,
    /// Whether no other slot of the site is up, so the pool has been abandoned too.
    pub(super) is_last: bool,
    /// Whether the site has no other slot.
    pub(super) is_only: bool,
}

impl SitePool {
    // Every change leaves a valid state at each point where it could panic.
    pub(super) fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the pool, and has it checked soon.
    fn change<T>(&self, change: impl FnOnce(&mut PoolState) -> T) -> T {
        let mut state = self.lock();
        let changed = change(&mut state);
        state.pool.tend_soon();
        drop(state);
        self.changed.notify_one();
        changed
    }

    /// Adds a slot. `made` is the generation that an earlier daemon has left in it.
    pub(super) fn join(
        &self,
        slot: u32,
        gate: Arc<RouteGate>,
        report: channel::Receiver<InstanceReport>,
        made: Option<u64>,
    ) {
        let mut state = self.lock();
        state.slots.insert(slot, PoolSlot { gate, report, is_busy: false });
        if let Some(made) = made {
            state.held.insert(made, HeldGeneration { slot, taken: None });
        }
    }

    /// Removes a slot whose driver ends. The pool ends with the last one.
    pub(super) fn leave(&self, slot: u32) {
        let is_last = self.change(|state| {
            state.slots.remove(&slot);
            state.keep_held(slot, None);
            state.slots.is_empty()
        });
        if is_last {
            self.closed.cancel();
        }
    }

    /// Records that the driver of a slot begins an operation.
    pub(super) fn begin_operation(&self, slot: u32) {
        if let Some(slot) = self.lock().slots.get_mut(&slot) {
            slot.is_busy = true;
        }
    }

    /// Records that the operation of a slot has ended and has left one generation in the slot, or none. Other generations
    /// that the slot held are left over.
    pub(super) fn end_operation(&self, slot: u32, made: Option<u64>) {
        self.change(|state| {
            if let Some(slot) = state.slots.get_mut(&slot) {
                slot.is_busy = false;
            }
            state.keep_held(slot, made);
        });
    }

    /// Records the snapshot that a slot is reset to. Standbys are made from that of slot 1, which further slots follow.
    pub(super) fn note_baseline(&self, slot: u32, baseline: Option<&Snapshot>) {
        let mut state = self.lock();
        if slot == 1 || state.baseline.is_none() {
            state.baseline = baseline.cloned();
        }
    }

    /// Records that a reset was requested; from now on standbys are useful.
    pub(super) fn expect_resets(&self) {
        self.lock().pool.expect_resets();
    }

    /// Forgets failures, because the cause may be gone.
    pub(super) fn forget_failures(&self) {
        self.lock().pool.forget_failures();
    }

    /// Records that a generation is made for a slot. This comes before its first container.
    pub(super) fn hold(&self, slot: u32, made: u64) {
        self.lock().held.insert(made, HeldGeneration { slot, taken: None });
    }

    /// Returns the generations that belong to a slot.
    pub(super) fn held_by(&self, slot: u32) -> Vec<u64> {
        self.lock().held_by(slot)
    }

    /// Returns the generations of the site that belong to the pool or to a slot.
    pub fn generations(&self) -> BTreeSet<u64> {
        let state = self.lock();
        state.pool.generations().chain(state.held.keys().copied()).collect()
    }

    /// Gives the best standby of a snapshot to a slot, if one is ready and no slot waits for it.
    pub(super) fn take(&self, slot: u32, snapshot: &SnapshotId) -> Option<(u64, ChosenStandby)> {
        let mut state = self.lock();
        if state.waiting.iter().any(|waiting| waiting.snapshot == *snapshot) {
            return None;
        }
        let taken = state.take(slot, snapshot)?;
        state.pool.tend_soon();
        drop(state);
        self.changed.notify_one();
        Some(taken)
    }

    /// Gives the best standby of a snapshot to a slot, and waits for it if one is about to be ready.
    pub(super) async fn wait(&self, slot: u32, snapshot: &SnapshotId) -> WaitedStandby {
        let (reply, answer) = oneshot::channel();
        let waiting = WaitingSlot { slot, snapshot: snapshot.clone(), deadline: None, reply };
        self.change(|state| state.waiting.push_back(waiting));
        tokio::select! {
            biased;
            answer = answer => answer.unwrap_or_default(),
            // No keeper is left that would answer.
            () = self.closed.cancelled() => WaitedStandby::default(),
        }
    }

    /// Returns the reason why no standby can serve; `None` if the definition asks for none.
    pub(super) fn why_none(&self, wanted: &ResetSpec) -> Option<String> {
        self.lock().pool.why_none(wanted)
    }

    /// Adds a generation that has left service in a slot, in exchange for the standby that the slot has taken. `before` is
    /// the digest that was taken before it served; `is_untouched` states that no client can have reached it since.
    pub(super) fn retire(
        &self,
        incarnation: Incarnation,
        snapshot: &SnapshotId,
        renewals: u32,
        before: Option<Taken>,
        is_untouched: bool,
    ) {
        self.change(|state| {
            state.give_back(incarnation.made);
            state.pool.retire(incarnation, snapshot, renewals, before, is_untouched);
        });
    }

    /// Adds containers that must not serve again; the pool removes them.
    pub(super) fn reject(&self, incarnation: Incarnation, snapshot: &SnapshotId) {
        self.change(|state| {
            state.give_back(incarnation.made);
            state.pool.reject(incarnation, snapshot);
        });
    }

    /// Gives up the standby to which an event of the engine happened, if it concerns one.
    pub(super) fn heard(&self, event: &EngineEvent) {
        let mut state = self.lock();
        if ["die", "oom", "destroy"].contains(&event.action.as_str()) {
            state.pool.miss(&event.handle);
        }
        if event.action == "pause" {
            state.pool.miss_paused(&event.handle);
        }
        drop(state);
        self.changed.notify_one();
    }

    /// Takes the standbys of an earlier daemon into the pool, once; `begin` returns the work that proves one of the current
    /// snapshot. Those of another snapshot are removed.
    pub(super) fn take_up<W>(
        &self,
        tracker: &TaskTracker,
        current: &SnapshotId,
        standbys: Vec<StoredStandby>,
        begin: impl Fn(u64, CancellationToken) -> W,
    ) where
        W: Future<Output = Result<PoolTaskOutcome, StandbyError>> + Send + 'static,
    {
        self.change(|state| {
            if std::mem::replace(&mut state.is_taken_up, true) {
                return;
            }
            for StoredStandby { made, snapshot, renewals } in standbys {
                let is_wanted = snapshot == *current;
                let standing = if is_wanted { Standing::Making } else { Standing::Used { renewals: WORN } };
                state.pool.add(made, PooledGeneration { renewals, ..PooledGeneration::new(&snapshot, standing) });
                // A standby exists, so the site needed standbys before.
                state.pool.is_wanted = true;
                if is_wanted {
                    let work = begin(made, state.pool.token());
                    state.pool.spawn(tracker, made, work);
                }
            }
        });
    }

    /// Whether the standbys of an earlier daemon have been taken up.
    pub(super) fn is_taken_up(&self) -> bool {
        self.lock().is_taken_up
    }

    /// Returns the token that ends tasks which wait for their turn or compare a standby.
    pub(super) fn token(&self) -> CancellationToken {
        self.lock().pool.token()
    }

    /// Gives up everything that a slot holds, and the pool if no other slot of the site is up.
    pub(super) fn give_up(&self, slot: u32) -> GivenUp {
        self.change(|state| {
            let mut generations = state.held_by(slot);
            let mut others = state.slots.iter().filter(|(number, _)| **number != slot).peekable();
            let is_only = others.peek().is_none();
            let is_last = others.all(|(_, other)| other.is_down());
            if is_last {
                generations.extend(state.pool.generations());
                state.pool.abandon();
                state.is_taken_up = false;
            }
            GivenUp { generations, is_last, is_only }
        })
    }

    /// Waits for the tasks of abandoned pools; returns whether all have ended in time.
    pub(super) async fn has_ended(&self, within: Duration) -> bool {
        tokio::time::timeout(within, poll_fn(|context| self.lock().pool.poll_ended(context))).await.is_ok()
    }

    /// Waits for the end of a task of the pool. It does not notice tasks that are started meanwhile: [`Self::changed`]
    /// does.
    ///
    /// Cancellation: safe.
    pub(super) async fn news(&self) -> Finished {
        poll_fn(|context| self.lock().pool.poll_news(context)).await
    }

    /// Waits until something may be to be done.
    ///
    /// Cancellation: safe.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Waits until the last slot has left.
    pub(super) async fn ended(&self) {
        self.closed.cancelled().await;
    }

    /// Ends the pool with its keeper: tasks are aborted, and slots wait no longer.
    pub(super) fn close(&self) {
        self.closed.cancel();
        let mut state = self.lock();
        state.pool.abort();
        state.waiting.clear();
    }

    pub(super) fn report(&self) -> StandbyReport {
        self.lock().pool.report()
    }

    /// Returns the number of standbys that the site keeps if its definition says `configured`.
    pub fn size(&self, configured: usize) -> usize {
        pool_size(configured, self.lock().slots.len())
    }
}

impl PoolState {
    fn held_by(&self, slot: u32) -> Vec<u64> {
        self.held.iter().filter(|(_, held)| held.slot == slot).map(|(made, _)| *made).collect()
    }

    /// Makes a slot give up all generations but one.
    fn keep_held(&mut self, slot: u32, kept: Option<u64>) {
        self.held.retain(|made, held| held.slot != slot || kept == Some(*made));
        self.held.values_mut().filter(|held| held.slot == slot).for_each(|held| held.taken = None);
    }

    /// Takes a generation from its slot, which gives it to the pool.
    fn give_back(&mut self, made: u64) {
        let Some(HeldGeneration { slot, .. }) = self.held.remove(&made) else { return };
        self.held.values_mut().filter(|held| held.slot == slot).for_each(|held| held.taken = None);
    }

    fn take(&mut self, slot: u32, snapshot: &SnapshotId) -> Option<(u64, ChosenStandby)> {
        let (made, chosen) = self.pool.choose(snapshot)?;
        self.held.insert(made, HeldGeneration { slot, taken: Some(snapshot.clone()) });
        Some((made, chosen))
    }

    /// Returns how the slots are used; `None` if that cannot be told before an operation of one of them has ended.
    pub(super) fn usage(&self) -> Option<SiteUse> {
        let serves = self.slots.values().any(PoolSlot::serves);
        let is_any_busy = self.slots.values().any(|slot| slot.is_busy);
        let are_all_busy = self.slots.values().all(|slot| slot.is_busy);
        if (!serves && is_any_busy) || (are_all_busy && self.waiting.is_empty()) {
            return None;
        }
        let is_written = self.slots.values().any(|slot| slot.gate.route().stats().unsafe_requests > 0);
        Some(SiteUse { serves, is_written, slots: self.slots.len() })
    }

    /// Returns the members for the plan. In place of a standby that a slot has taken, the generation that it replaces is
    /// about to come.
    pub(super) fn observed(&self) -> Vec<PoolMember> {
        let coming = self.held.iter().filter_map(|(made, held)| {
            let snapshot = Some(held.taken.clone()?);
            Some(PoolMember { generation: *made, snapshot, standing: Standing::Making })
        });
        self.pool.observed().into_iter().chain(coming).collect()
    }

    /// Returns when the keeper has something to do.
    pub(super) fn due(&self) -> Option<Instant> {
        let deadlines = self.waiting.iter().filter_map(|waiting| waiting.deadline);
        deadlines.chain(self.pool.due()).min()
    }

    /// Gives standbys that are ready to the slots that wait, in the order of their requests, and answers those that would
    /// wait in vain.
    pub(super) fn answer_waiting(&mut self, now: Instant) {
        let mut still = VecDeque::new();
        for mut waiting in std::mem::take(&mut self.waiting) {
            // The driver has given up.
            if waiting.reply.is_closed() {
                continue;
            }
            let ahead = still.iter().filter(|other: &&WaitingSlot| other.snapshot == waiting.snapshot).count();
            let standby = (ahead == 0).then(|| self.take(waiting.slot, &waiting.snapshot)).flatten();
            let ready_by = self.pool.ready_by(&waiting.snapshot, ahead, now);
            let deadline = waiting.deadline.or(ready_by);
            if standby.is_none() && ready_by.is_some() && deadline.is_some_and(|deadline| now < deadline) {
                waiting.deadline = deadline;
                still.push_back(waiting);
                continue;
            }
            let answer = WaitedStandby { standby, has_waited: deadline.is_some() };
            if let Err(WaitedStandby { standby: Some((made, ChosenStandby { incarnation, .. })), .. }) =
                waiting.reply.send(answer)
            {
                self.give_back(made);
                self.pool.reject(incarnation, &waiting.snapshot);
            }
        }
        self.waiting = still;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arenad_engine::EngineHandle;
    use arenad_model::ids::ServiceName;

    const WITHIN: Duration = Duration::from_secs(60);

    fn snapshot() -> SnapshotId {
        "s".to_owned().into()
    }

    fn incarnation(made: u64) -> Incarnation {
        let web = ServiceName::parse("web").expect("a name");
        Incarnation {
            generation: made,
            made,
            containers: [(web, EngineHandle(format!("container-{made}")))].into(),
            addresses: BTreeMap::new(),
            started_at: 0,
            pristine: None,
        }
    }

    /// Adds a standby that is ready.
    fn add_ready(pool: &SitePool, made: u64) {
        let standby = PooledGeneration::new(&snapshot(), Standing::Running);
        pool.lock().pool.add(made, PooledGeneration { incarnation: Some(incarnation(made)), ..standby });
    }

    fn enqueue(pool: &SitePool, slot: u32) -> oneshot::Receiver<WaitedStandby> {
        let (reply, answer) = oneshot::channel();
        pool.lock().waiting.push_back(WaitingSlot { slot, snapshot: snapshot(), deadline: None, reply });
        answer
    }

    fn made_of(answer: &mut oneshot::Receiver<WaitedStandby>) -> Option<u64> {
        answer.try_recv().expect("an answer").standby.map(|(made, _)| made)
    }

    fn coming(pool: &SitePool) -> Vec<u64> {
        let observed = pool.lock().observed();
        observed
            .into_iter()
            .filter(|member| member.standing == Standing::Making)
            .map(|member| member.generation)
            .collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_standby_goes_to_one_slot_and_what_it_replaces_comes_back() {
        let pool = SitePool::default();
        pool.hold(1, 3);
        add_ready(&pool, 5);
        let (made, _) = pool.take(1, &snapshot()).expect("a standby");
        assert_eq!((made, pool.held_by(1)), (5, vec![3, 5]));
        assert!(pool.take(2, &snapshot()).is_none(), "it is taken");
        assert_eq!(coming(&pool), [5], "no other one is made in its place");
        pool.retire(incarnation(3), &snapshot(), 0, None, false);
        assert_eq!((pool.held_by(1), coming(&pool)), (vec![5], vec![]));
        assert_eq!(pool.report().members, [(3, Standing::Used { renewals: 0 })]);
        assert_eq!(pool.generations(), [3, 5].into());
        // The slot still serves it at the end of the operation.
        pool.end_operation(1, Some(5));
        assert_eq!(pool.held_by(1), [5]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_standby_that_was_taken_and_does_not_serve_is_left_over() {
        let pool = SitePool::default();
        pool.hold(1, 3);
        add_ready(&pool, 5);
        drop(pool.take(1, &snapshot()));
        // The operation has ended without the standby, which may have been touched.
        pool.end_operation(1, Some(3));
        assert_eq!((pool.held_by(1), coming(&pool)), (vec![3], vec![]));
        assert_eq!(pool.generations(), [3].into());
    }

    #[tokio::test(start_paused = true)]
    async fn slots_get_standbys_in_the_order_of_their_requests() {
        let pool = SitePool::default();
        let now = Instant::now();
        let resuming = |made| {
            let standby = PooledGeneration::new(&snapshot(), Standing::Making);
            pool.lock().pool.add(made, PooledGeneration { is_resuming: true, ..standby });
        };
        resuming(5);
        resuming(6);
        let (mut first, gone, mut second, mut third) =
            (enqueue(&pool, 2), enqueue(&pool, 4), enqueue(&pool, 1), enqueue(&pool, 3));
        drop(gone);
        pool.lock().answer_waiting(now);
        assert!(first.try_recv().is_err() && second.try_recv().is_err(), "two standbys are about to be ready");
        let answer = third.try_recv().expect("an answer");
        assert!(answer.standby.is_none() && !answer.has_waited, "and no third one");
        add_ready(&pool, 6);
        assert!(pool.take(5, &snapshot()).is_none(), "no slot comes before those that wait");
        pool.lock().answer_waiting(now);
        assert_eq!((made_of(&mut first), pool.held_by(2)), (Some(6), vec![6]));
        assert!(second.try_recv().is_err());
        add_ready(&pool, 5);
        pool.lock().answer_waiting(now);
        assert_eq!((made_of(&mut second), pool.held_by(1)), (Some(5), vec![5]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_slot_does_not_wait_longer_than_it_is_worth() {
        let pool = SitePool::default();
        let standby = PooledGeneration::new(&snapshot(), Standing::Making);
        pool.lock().pool.add(5, PooledGeneration { is_resuming: true, ..standby });
        let mut answer = enqueue(&pool, 1);
        pool.lock().answer_waiting(Instant::now());
        let due = pool.lock().due().expect("a deadline");
        tokio::time::sleep_until(due).await;
        pool.lock().answer_waiting(Instant::now());
        let answer = answer.try_recv().expect("an answer");
        assert!(answer.standby.is_none() && answer.has_waited);
        assert_eq!(pool.lock().due(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn no_slot_waits_for_a_pool_that_has_ended() {
        let pool = Arc::new(SitePool::default());
        let waiting = tokio::spawn({
            let pool = pool.clone();
            async move { pool.wait(1, &snapshot()).await.standby.is_none() }
        });
        tokio::task::yield_now().await;
        pool.close();
        assert!(tokio::time::timeout(WITHIN, waiting).await.expect("it ends").expect("it does not panic"));
        assert!(tokio::time::timeout(WITHIN, pool.wait(2, &snapshot())).await.expect("it ends").standby.is_none());
    }
}
