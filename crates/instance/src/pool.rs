//! The members of a site's pool, and the tasks that work on them.
//!
//! `SitePool` guards these values; the keeper changes them as `arenad_model::pool` plans (`standbys.rs`), and the drivers of
//! the slots take standbys and return generations. Tasks do the work (`making.rs`, `looks.rs`); everything that they create
//! bears the site's labels, so the next removal of the site finds it. An abandoned pool is empty and usable at once, while
//! its old tasks end in the background. No client reaches a standby, so nothing here touches the route.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::task::{self, JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::looks::{LookResult, Looks};
use super::standby_error::StandbyError;
use crate::proof::StandbyProof;
use arenad_digest::Taken;
use arenad_engine::EngineHandle;
use arenad_launch::Incarnation;
use arenad_model::pool::{PoolMember, StandbyShortage, Standing};
use arenad_model::site::ResetSpec;
use arenad_model::snapshot::SnapshotId;

/// How often containers are brought back in place before they are replaced, which ends everything that a rewind does
/// not reach, such as memory leaks of their processes.
pub(super) const MOST_RENEWALS: u32 = 100;
/// How long a reset waits for a standby that is about to be ready.
pub(super) const RESUMES_WITHIN: Duration = Duration::from_millis(200);
/// A number of renewals that no pool allows: a standby that has this many is removed.
pub(super) const WORN: u32 = u32::MAX;

/// The members of the pool of one site.
#[derive(Default)]
pub(super) struct StandbyPool {
    /// Shape: by the generation that the containers were made for.
    members: BTreeMap<u64, PooledGeneration>,
    work: Work,
    /// The tasks of abandoned pools.
    ending: Vec<JoinSet<Finished>>,
    /// The number of consecutive failures to make a standby, and the time of the last one.
    failures: Option<(u32, Instant)>,
    reset_at: Option<Instant>,
    /// The duration of the last renewal that rewound its containers.
    renewal_took: Option<Duration>,
    /// Whether the site has been written to or reset at all. A site that is only read needs no standby.
    pub(super) is_wanted: bool,
    lack: Option<StandbyShortage>,
    /// When the pool is to be checked; `None` if it is not to be checked on its own.
    tend_at: Option<Instant>,
    /// The number of times that the pool has been abandoned.
    abandoned: u64,
}

/// The tasks of a pool.
#[derive(Default)]
struct Work {
    tasks: JoinSet<Finished>,
    /// The member that each task works on, which is needed if the task panics.
    of: HashMap<task::Id, u64>,
    /// Cancelled to end tasks that wait for their turn or compare a standby.
    stop: CancellationToken,
}

/// One member of the pool: a standby, or a generation that has left service.
pub(super) struct PooledGeneration {
    /// The containers; `None` while they are being made or brought back.
    pub(super) incarnation: Option<Incarnation>,
    /// The snapshot that it is of; `None` for one that is being removed.
    pub(super) snapshot: Option<SnapshotId>,
    pub(super) standing: Standing,
    /// The proof that it equals the snapshot; `None` if there is nothing to compare.
    pub(super) proof: Option<KeptProof>,
    pub(super) renewals: u32,
    /// The digest that was taken before it served.
    pub(super) before: Option<Taken>,
    /// Whether no client can have reached it since the digest was taken.
    pub(super) is_untouched: bool,
    /// Whether it is about to be ready within a very short time: it is being compared by the digest from before it
    /// served, paused or resumed.
    pub(super) is_resuming: bool,
    /// When the renewal that is running began.
    pub(super) renewing_since: Option<Instant>,
    /// The schedule of comparisons while it runs.
    pub(super) looks: Looks,
}

/// A proof that background tasks renew and a swap uses.
pub(super) type KeptProof = Arc<Mutex<StandbyProof>>;

/// The result of a task.
pub(super) struct Finished {
    pub(super) made: u64,
    pub(super) result: Result<PoolTaskOutcome, StandbyError>,
}

pub(super) enum PoolTaskOutcome {
    Ready {
        incarnation: Incarnation,
        proof: Option<Box<StandbyProof>>,
        /// The number of rewinds that this took, 0 or 1.
        rewinds: u32,
    },
    Removed,
    Looked(LookResult),
    /// Its processes were paused or resumed; the member's new state.
    Moved(Standing),
}

impl PoolTaskOutcome {
    pub(super) fn ready(incarnation: Incarnation, proof: Option<StandbyProof>, rewinds: u32) -> Self {
        Self::Ready { incarnation, proof: proof.map(Box::new), rewinds }
    }
}

/// A standby that was taken out of the pool to serve.
pub(super) struct ChosenStandby {
    pub(super) incarnation: Incarnation,
    pub(super) is_frozen: bool,
    pub(super) proof: Option<KeptProof>,
    pub(super) renewals: u32,
}

impl PooledGeneration {
    /// Creates a member that has no containers yet.
    pub(super) fn new(snapshot: &SnapshotId, standing: Standing) -> Self {
        Self {
            incarnation: None,
            snapshot: Some(snapshot.clone()),
            standing,
            proof: None,
            renewals: 0,
            before: None,
            is_untouched: false,
            is_resuming: false,
            renewing_since: None,
            looks: Looks::default(),
        }
    }

    fn has(&self, handle: &EngineHandle) -> bool {
        self.incarnation.iter().any(|incarnation| incarnation.containers.values().any(|own| own == handle))
    }
}

/// The pool as readers see it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StandbyReport {
    /// Shape: the generation that the containers were made for, and the state of the member.
    pub members: Vec<(u64, Standing)>,
    /// The reason why there are fewer standbys than wanted.
    pub lack: Option<String>,
}

impl StandbyPool {
    /// Returns the generations whose containers belong to the pool.
    pub(super) fn generations(&self) -> impl Iterator<Item = u64> {
        self.members.keys().copied()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    pub(super) fn members_mut(&mut self) -> impl Iterator<Item = (u64, &mut PooledGeneration)> {
        self.members.iter_mut().map(|(made, standby)| (*made, standby))
    }

    pub(super) fn member_mut(&mut self, made: u64) -> Option<&mut PooledGeneration> {
        self.members.get_mut(&made)
    }

    pub(super) fn add(&mut self, made: u64, standby: PooledGeneration) {
        self.members.insert(made, standby);
    }

    pub(super) fn drop_member(&mut self, made: u64) {
        self.members.remove(&made);
    }

    /// Returns the best standby of a snapshot: one that runs, or else one that is paused.
    fn best(&self, snapshot: &SnapshotId) -> Option<u64> {
        let fits = |standing| {
            let mut found = self.members.iter().filter(|(_, standby)| standby.snapshot.as_ref() == Some(snapshot));
            found.find(|(_, standby)| standby.standing == standing).map(|(made, _)| *made)
        };
        fits(Standing::Running).or_else(|| fits(Standing::Frozen))
    }

    /// Returns until when to wait for a standby of a snapshot that is about to be ready, if this many slots that wait for one
    /// come first; `None` if there is none.
    pub(super) fn ready_by(&self, snapshot: &SnapshotId, ahead: usize, now: Instant) -> Option<Instant> {
        let coming = self.members.values().filter(|standby| standby.snapshot.as_ref() == Some(snapshot));
        let resuming = coming.clone().filter(|standby| standby.is_resuming).map(|_| now + RESUMES_WITHIN);
        let renewing = coming.filter(|standby| !standby.is_resuming).filter_map(|standby| {
            let took = self.renewal_took?;
            worth_waiting(standby.renewing_since?, took, now)
        });
        resuming.chain(renewing).nth(ahead)
    }

    /// Records the duration of a renewal that has ended.
    pub(super) fn note_renewal(&mut self, since: Instant) {
        self.renewal_took = Some(since.elapsed());
    }

    /// Removes the best standby of a snapshot from the pool and returns it.
    pub(super) fn choose(&mut self, snapshot: &SnapshotId) -> Option<(u64, ChosenStandby)> {
        let made = self.best(snapshot)?;
        let standby = self.members.remove(&made)?;
        let is_frozen = standby.standing == Standing::Frozen;
        let PooledGeneration { incarnation, proof, renewals, .. } = standby;
        Some((made, ChosenStandby { incarnation: incarnation?, is_frozen, proof, renewals }))
    }

    /// Returns the reason why no standby can serve; `None` if the definition asks for none.
    pub(super) fn why_none(&self, wanted: &ResetSpec) -> Option<String> {
        let is_wanted = wanted.standby > 0 || !wanted.schedule.is_empty();
        is_wanted.then(|| {
            let lack = self.lack.map(told);
            lack.map_or("no standby was ready".to_owned(), |lack| format!("no standby: {lack}"))
        })
    }

    /// Adds a generation that has left service. `before` is the digest that was taken before it served; `is_untouched`
    /// states that no client can have reached it since.
    pub(super) fn retire(
        &mut self,
        incarnation: Incarnation,
        snapshot: &SnapshotId,
        renewals: u32,
        before: Option<Taken>,
        is_untouched: bool,
    ) {
        let made = incarnation.made;
        let standing = Standing::Used { renewals };
        let standby = PooledGeneration {
            incarnation: Some(incarnation),
            renewals,
            before,
            is_untouched,
            ..PooledGeneration::new(snapshot, standing)
        };
        self.add(made, standby);
    }

    /// Adds containers that must not serve again; the pool removes them.
    pub(super) fn reject(&mut self, incarnation: Incarnation, snapshot: &SnapshotId) {
        self.retire(incarnation, snapshot, WORN, None, false);
    }

    /// Gives up a standby of which a container has ended.
    pub(super) fn miss(&mut self, handle: &EngineHandle) {
        self.miss_where(|standby| standby.has(handle));
    }

    /// Abandons a running standby if one of its containers was paused. It was not paused by arenad, because a standby
    /// that arenad pauses does not count as running. The kernel still accepts connections for a paused container, so
    /// the standby would seem to respond.
    pub(super) fn miss_paused(&mut self, handle: &EngineHandle) {
        self.miss_where(|standby| standby.standing == Standing::Running && standby.has(handle));
    }

    fn miss_where(&mut self, is_meant: impl Fn(&PooledGeneration) -> bool) {
        let mut is_missed = false;
        for standby in self.members.values_mut().filter(|standby| is_meant(standby)) {
            standby.standing = Standing::Used { renewals: WORN };
            is_missed = true;
        }
        if is_missed {
            self.tend_soon();
        }
    }

    /// Records that a reset was requested; from now on standbys are useful.
    pub(super) fn expect_resets(&mut self) {
        self.is_wanted = true;
        self.reset_at = Some(Instant::now());
    }

    /// Whether a reset was requested within the last `pause`.
    pub(super) fn was_reset_within(&self, pause: Duration) -> bool {
        self.reset_at.is_some_and(|at| at.elapsed() < pause)
    }

    /// Has the pool checked as soon as the driver has time.
    pub(super) fn tend_soon(&mut self) {
        self.tend_at = Some(Instant::now());
    }

    /// Has the pool checked at a time, or not on its own.
    pub(super) fn tend_at(&mut self, at: Option<Instant>) {
        self.tend_at = at;
    }

    /// Returns when the pool is to be checked.
    pub(super) fn due(&self) -> Option<Instant> {
        self.tend_at
    }

    /// Records the reason why no more standbys are made; returns the previous one.
    pub(super) fn note_lack(&mut self, lack: Option<StandbyShortage>) -> Option<StandbyShortage> {
        std::mem::replace(&mut self.lack, lack)
    }

    /// Starts a task that works on a member. The pool receives its result, even if it panics.
    pub(super) fn spawn(
        &mut self,
        tracker: &TaskTracker,
        made: u64,
        work: impl Future<Output = Result<PoolTaskOutcome, StandbyError>> + Send + 'static,
    ) {
        let work = async move { Finished { made, result: work.await } };
        let spawned = self.work.tasks.spawn(tracker.track_future(work));
        self.work.of.insert(spawned.id(), made);
    }

    /// Returns the token that ends tasks which wait for their turn or compare a standby.
    pub(super) fn token(&self) -> CancellationToken {
        self.work.stop.clone()
    }

    /// Abandons all members; the caller removes their containers. Tasks are not aborted during a call to the engine,
    /// because its end would go unnoticed: [`Self::poll_ended`] tells when all have ended. The pool is as new.
    pub(super) fn abandon(&mut self) {
        self.work.stop.cancel();
        let old = std::mem::take(self);
        (self.ending, self.abandoned) = (old.ending, old.abandoned + 1);
        if !old.work.tasks.is_empty() {
            self.ending.push(old.work.tasks);
        }
    }

    /// Returns a number that changes when the pool is abandoned.
    pub(super) fn life(&self) -> u64 {
        self.abandoned
    }

    /// Is ready when all tasks of abandoned pools have ended.
    pub(super) fn poll_ended(&mut self, context: &mut Context<'_>) -> Poll<()> {
        while let Some(tasks) = self.ending.last_mut() {
            match tasks.poll_join_next(context) {
                Poll::Ready(Some(_)) => {}
                Poll::Ready(None) => drop(self.ending.pop()),
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(())
    }

    /// Aborts all tasks, because the daemon stops.
    pub(super) fn abort(&mut self) {
        self.work = Work::default();
        self.ending.clear();
    }

    /// Returns the result of the next task that ends. If none runs, nothing wakes the caller when one is started.
    pub(super) fn poll_news(&mut self, context: &mut Context<'_>) -> Poll<Finished> {
        loop {
            match self.work.tasks.poll_join_next_with_id(context) {
                Poll::Ready(Some(Ok((id, finished)))) => {
                    self.work.of.remove(&id);
                    return Poll::Ready(finished);
                }
                Poll::Ready(Some(Err(error))) => {
                    if let Some(finished) = self.broken_off(&error) {
                        return Poll::Ready(finished);
                    }
                }
                Poll::Ready(None) | Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Turns a panic into a failure of the member that the task worked on.
    fn broken_off(&mut self, error: &JoinError) -> Option<Finished> {
        tracing::error!("a standby's task ended: {error}");
        let made = self.work.of.remove(&error.id())?;
        Some(Finished { made, result: Err(StandbyError::BrokenOff(error.to_string())) })
    }

    /// Returns the members for the plan.
    pub(super) fn observed(&self) -> Vec<PoolMember> {
        let members = self.members.iter();
        members
            .map(|(made, standby)| PoolMember {
                generation: *made,
                snapshot: standby.snapshot.clone(),
                standing: standby.standing,
            })
            .collect()
    }

    pub(super) fn report(&self) -> StandbyReport {
        StandbyReport {
            members: self.members.iter().map(|(made, standby)| (*made, standby.standing)).collect(),
            lack: self.lack.map(told),
        }
    }

    /// Returns the number of consecutive failures to make a standby, and the time since the last one.
    pub(super) fn failures(&self) -> Option<(u32, Duration)> {
        self.failures.map(|(count, at)| (count, at.elapsed()))
    }

    pub(super) fn note_failure(&mut self) {
        let count = self.failures.map_or(0, |(count, _)| count);
        self.failures = Some((count.saturating_add(1), Instant::now()));
    }

    pub(super) fn forget_failures(&mut self) {
        self.failures = None;
    }
}

/// Returns until when to wait for a standby whose renewal began at `since`, if the last renewal took `took`. Waiting is
/// worthwhile if half of the time has passed: a rewind of the serving generation would take all of it, and slow the
/// renewal down.
fn worth_waiting(since: Instant, took: Duration, now: Instant) -> Option<Instant> {
    let passed = now.saturating_duration_since(since);
    // A renewal that takes twice as long may never end.
    (passed * 2 >= took && passed < took * 2).then(|| (since + took).max(now) + took / 2)
}

/// Describes the reason why no more standbys are made.
pub(super) fn told(lack: StandbyShortage) -> String {
    match lack {
        StandbyShortage::Memory { needed, free } => {
            format!("{} MiB of memory are free, a standby needs {} MiB", free >> 20, needed >> 20)
        }
        StandbyShortage::Pause(left) => format!("the last attempt failed, the next is in {} s", left.as_secs() + 1),
    }
}

/// Waits until `at`; forever if it is `None`.
pub(super) async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    fn id(text: &str) -> SnapshotId {
        text.to_owned().into()
    }

    #[tokio::test(start_paused = true)]
    async fn a_standby_that_is_half_way_back_is_waited_for() {
        let mut pool = StandbyPool::default();
        let now = Instant::now();
        let ms = Duration::from_millis;
        pool.add(
            7,
            PooledGeneration { renewing_since: Some(now), ..PooledGeneration::new(&id("s"), Standing::Making) },
        );
        assert_eq!(pool.ready_by(&id("s"), 0, now + ms(300)), None, "the duration of a renewal is not known yet");
        pool.renewal_took = Some(ms(400));
        assert_eq!(pool.ready_by(&id("s"), 0, now + ms(100)), None, "it has only begun");
        assert_eq!(pool.ready_by(&id("s"), 0, now + ms(200)), Some(now + ms(600)));
        assert_eq!(pool.ready_by(&id("s"), 0, now + ms(700)), Some(now + ms(900)), "it is late");
        assert_eq!(pool.ready_by(&id("s"), 0, now + ms(800)), None, "it may never come");
        assert_eq!(pool.ready_by(&id("t"), 0, now + ms(200)), None, "it is of another snapshot");
        tokio::time::advance(ms(250)).await;
        pool.note_renewal(now);
        assert_eq!(pool.renewal_took, Some(ms(250)));
        pool.add(8, PooledGeneration { is_resuming: true, ..PooledGeneration::new(&id("s"), Standing::Making) });
        assert_eq!(pool.ready_by(&id("s"), 0, now), Some(now + RESUMES_WITHIN));
    }

    #[test]
    fn each_slot_that_waits_has_a_standby_of_its_own_to_wait_for() {
        let (mut pool, now, took) = (StandbyPool::default(), Instant::now(), Duration::from_millis(400));
        pool.renewal_took = Some(took);
        let later = now + took / 2;
        pool.add(1, PooledGeneration { is_resuming: true, ..PooledGeneration::new(&id("s"), Standing::Making) });
        let renewing =
            PooledGeneration { renewing_since: Some(now), ..PooledGeneration::new(&id("s"), Standing::Making) };
        pool.add(2, renewing);
        assert_eq!(pool.ready_by(&id("s"), 0, later), Some(later + RESUMES_WITHIN));
        assert_eq!(pool.ready_by(&id("s"), 1, later), Some(now + took + took / 2));
        assert_eq!(pool.ready_by(&id("s"), 2, later), None, "two standbys do not serve three slots");
    }

    #[tokio::test]
    async fn a_task_that_panics_fails_its_member() {
        let mut pool = StandbyPool::default();
        pool.add(7, PooledGeneration::new(&id("s"), Standing::Making));
        pool.spawn(&TaskTracker::new(), 7, async { panic!("of the test") });
        let finished = poll_fn(|context| pool.poll_news(context)).await;
        assert_eq!(finished.made, 7);
        assert!(finished.result.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_pool_that_was_given_up_is_usable_while_an_old_task_goes_on() {
        let mut pool = StandbyPool::default();
        pool.spawn(&TaskTracker::new(), 1, async {
            tokio::time::sleep(Duration::from_secs(100)).await;
            Ok(PoolTaskOutcome::Removed)
        });
        pool.abandon();
        let ended = async |pool: &mut StandbyPool, seconds| {
            tokio::time::timeout(Duration::from_secs(seconds), poll_fn(|context| pool.poll_ended(context)))
                .await
                .is_ok()
        };
        assert!(!ended(&mut pool, 30).await, "the old task has its own pace");
        assert!(!pool.token().is_cancelled(), "new tasks are not ended with the old ones");
        pool.spawn(&TaskTracker::new(), 2, async { Ok(PoolTaskOutcome::Removed) });
        assert_eq!(poll_fn(|context| pool.poll_news(context)).await.made, 2, "news of the old pool does not count");
        assert!(ended(&mut pool, 100).await);
    }
}
