//! The members of an instance's pool, and the tasks that work on them.
//!
//! The driver alone changes what is noted here (`standbys.rs`, as `domain::pool` plans); the work itself (`making.rs`,
//! `looks.rs`) is done by tasks, and whatever they make bears the instance's labels and goes with the next removal. A pool that
//! is given up is empty and usable at once; the tasks of the old one come to their end aside. No client reaches a standby, so
//! nothing here touches the route.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::task::{self, JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::looks::{Look, Looks};
use super::standby_error::StandbyError;
use crate::proof::Proof;
use arenad_digest::Taken;
use arenad_engine::EngineHandle;
use arenad_launch::Incarnation;
use arenad_model::pool::{Lack, Member, Standing};
use arenad_model::site::ResetSpec;

/// How often containers are brought back in place before they are made anew: whatever a rewind does not reach, such as memory
/// that a process loses, ends with them.
pub(super) const MOST_RENEWALS: u32 = 100;
/// How long a reset waits for a standby that is about to be ready.
pub(super) const RESUMES_WITHIN: Duration = Duration::from_millis(200);
/// More renewals than any pool allows: a standby that has this many is removed.
pub(super) const WORN: u32 = u32::MAX;

/// The pool of one instance.
#[derive(Default)]
pub(super) struct Pool {
    /// By the generation that their containers were made for.
    members: BTreeMap<u64, Standby>,
    work: Work,
    /// The tasks of pools that were given up.
    ending: Vec<JoinSet<Finished>>,
    /// Failures to make a standby in a row, and when the last was.
    failures: Option<(u32, Instant)>,
    reset_at: Option<Instant>,
    /// How long it took last to bring one back to the snapshot.
    renewal_took: Option<Duration>,
    /// Whether this instance has been written to or reset at all: one that is only looked at needs no standby.
    pub(super) is_wanted: bool,
    lack: Option<Lack>,
    /// When the pool is to be looked at; never, where there are to be no standbys.
    tend_at: Option<Instant>,
}

/// The tasks of a pool.
#[derive(Default)]
struct Work {
    tasks: JoinSet<Finished>,
    /// The member that a task works on, for one that panics.
    of: HashMap<task::Id, u64>,
    /// Ends what has not touched the engine yet.
    stop: CancellationToken,
}

/// One standby.
pub(super) struct Standby {
    /// Its containers; none while they are being made or brought back.
    pub(super) incarnation: Option<Incarnation>,
    pub(super) snapshot: String,
    pub(super) standing: Standing,
    /// That it is as the snapshot; none where there is nothing to compare.
    pub(super) proof: Option<KeptProof>,
    pub(super) renewals: u32,
    /// What was proven of it before it served.
    pub(super) before: Option<Taken>,
    /// Whether no client can have reached it since.
    pub(super) is_untouched: bool,
    /// Whether it is about to be ready, which takes next to no time: it is being proven by what was proven before, or let go on.
    pub(super) is_resuming: bool,
    /// Since when it has been brought back to the snapshot, while it is.
    pub(super) renewing_since: Option<Instant>,
    /// How it is looked at in between.
    pub(super) looks: Looks,
}

/// A proof that is renewed in the background and needed in the foreground.
pub(super) type KeptProof = Arc<Mutex<Proof>>;

/// What a task has done.
pub(super) struct Finished {
    pub(super) made: u64,
    pub(super) result: Result<Ended, StandbyError>,
}

pub(super) enum Ended {
    Ready {
        incarnation: Incarnation,
        proof: Option<Box<Proof>>,
        /// How often it was brought back for that: once or not at all.
        rewinds: u32,
    },
    Removed,
    Looked(Look),
    /// Its processes were stopped where they are, or let go on.
    Moved(Standing),
}

impl Ended {
    pub(super) fn ready(incarnation: Incarnation, proof: Option<Proof>, rewinds: u32) -> Self {
        Self::Ready { incarnation, proof: proof.map(Box::new), rewinds }
    }
}

/// A standby that was taken out of the pool to serve.
pub(super) struct Chosen {
    pub(super) incarnation: Incarnation,
    pub(super) is_frozen: bool,
    pub(super) proof: Option<KeptProof>,
    pub(super) renewals: u32,
}

impl Standby {
    /// One that has no containers yet.
    pub(super) fn new(snapshot: &str, standing: Standing) -> Self {
        Self {
            incarnation: None,
            snapshot: snapshot.to_owned(),
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

/// What readers of the instance's report are told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StandbyReport {
    /// The generation that the containers were made for, and what it is doing.
    pub members: Vec<(u64, Standing)>,
    /// Why there are fewer than wanted.
    pub lack: Option<String>,
}

impl Pool {
    /// The generations whose containers belong to the pool.
    pub(super) fn generations(&self) -> Vec<u64> {
        self.members.keys().copied().collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    pub(super) fn members_mut(&mut self) -> impl Iterator<Item = (u64, &mut Standby)> {
        self.members.iter_mut().map(|(made, standby)| (*made, standby))
    }

    pub(super) fn member_mut(&mut self, made: u64) -> Option<&mut Standby> {
        self.members.get_mut(&made)
    }

    pub(super) fn add(&mut self, made: u64, standby: Standby) {
        self.members.insert(made, standby);
    }

    pub(super) fn drop_member(&mut self, made: u64) {
        self.members.remove(&made);
    }

    /// The best one that is of this snapshot, if there is one: one that runs before one that is frozen.
    fn best(&self, snapshot: &str) -> Option<u64> {
        let fits = |standing| {
            let mut found = self.members.iter().filter(|(_, standby)| standby.snapshot == snapshot);
            found.find(|(_, standby)| standby.standing == standing).map(|(made, _)| *made)
        };
        fits(Standing::Running).or_else(|| fits(Standing::Frozen))
    }

    /// How long to wait for a standby of a snapshot that is about to be ready; none, if there is no such one.
    pub(super) fn ready_by(&self, snapshot: &str, now: Instant) -> Option<Instant> {
        let mut coming = self.members.values().filter(|standby| standby.snapshot == snapshot);
        if coming.clone().any(|standby| standby.is_resuming) {
            return Some(now + RESUMES_WITHIN);
        }
        let took = self.renewal_took?;
        coming.find_map(|standby| worth_waiting(standby.renewing_since?, took, now))
    }

    /// Takes note of how long it took to bring a standby back.
    pub(super) fn note_renewal(&mut self, since: Instant) {
        self.renewal_took = Some(since.elapsed());
    }

    /// Whether there is one of this snapshot that can serve.
    pub(super) fn has_ready(&self, snapshot: &str) -> bool {
        self.best(snapshot).is_some()
    }

    /// Takes the best one that is of this snapshot.
    pub(super) fn choose(&mut self, snapshot: &str) -> Option<(u64, Chosen)> {
        let made = self.best(snapshot)?;
        let standby = self.members.remove(&made)?;
        let is_frozen = standby.standing == Standing::Frozen;
        let Standby { incarnation, proof, renewals, .. } = standby;
        Some((made, Chosen { incarnation: incarnation?, is_frozen, proof, renewals }))
    }

    /// Why there is none that can serve, where the definition asks for some.
    pub(super) fn why_none(&self, wanted: &ResetSpec) -> Option<String> {
        let is_wanted = wanted.standby > 0 || !wanted.schedule.is_empty();
        is_wanted.then(|| {
            let lack = self.lack.map(told);
            lack.map_or("no standby was ready".to_owned(), |lack| format!("no standby: {lack}"))
        })
    }

    /// Takes in what has left service, `before` which that was proven of it. `is_untouched`: no client can have reached it since.
    pub(super) fn retire(
        &mut self,
        incarnation: Incarnation,
        snapshot: &str,
        renewals: u32,
        before: Option<Taken>,
        is_untouched: bool,
    ) {
        let made = incarnation.made;
        let standing = Standing::Used { renewals };
        let standby = Standby {
            incarnation: Some(incarnation),
            renewals,
            before,
            is_untouched,
            ..Standby::new(snapshot, standing)
        };
        self.add(made, standby);
    }

    /// The same for what must not serve again, whatever happens to it.
    pub(super) fn reject(&mut self, incarnation: Incarnation, snapshot: &str) {
        self.retire(incarnation, snapshot, WORN, None, false);
    }

    /// A container of a standby has ended: it is none any more.
    pub(super) fn miss(&mut self, handle: &EngineHandle) {
        self.miss_where(|standby| standby.has(handle));
    }

    /// A container was paused. A standby that is to be running was paused by somebody else: its kernel goes on accepting
    /// connections, so it would be taken for one that answers. While arenad freezes one, it does not count as running.
    pub(super) fn miss_paused(&mut self, handle: &EngineHandle) {
        self.miss_where(|standby| standby.standing == Standing::Running && standby.has(handle));
    }

    fn miss_where(&mut self, is_meant: impl Fn(&Standby) -> bool) {
        let mut is_missed = false;
        for standby in self.members.values_mut().filter(|standby| is_meant(standby)) {
            standby.standing = Standing::Used { renewals: WORN };
            is_missed = true;
        }
        if is_missed {
            self.tend_soon();
        }
    }

    /// A reset was asked for: from now on there is a use for standbys.
    pub(super) fn expect_resets(&mut self) {
        self.is_wanted = true;
        self.reset_at = Some(Instant::now());
    }

    /// Whether a reset was asked for so lately.
    pub(super) fn was_reset_within(&self, pause: Duration) -> bool {
        self.reset_at.is_some_and(|at| at.elapsed() < pause)
    }

    /// Has the pool looked at as soon as the driver has time.
    pub(super) fn tend_soon(&mut self) {
        self.tend_at = Some(Instant::now());
    }

    /// Has it looked at then; never, if there is no such time.
    pub(super) fn tend_at(&mut self, at: Option<Instant>) {
        self.tend_at = at;
    }

    /// Waits until the pool is to be looked at.
    pub(super) async fn tending_due(at: Option<Instant>) {
        match at {
            Some(at) => tokio::time::sleep_until(at).await,
            None => std::future::pending().await,
        }
    }

    /// When the pool is to be looked at.
    pub(super) fn due(&self) -> Option<Instant> {
        self.tend_at
    }

    /// Notes what stands in the way of more; returns what did before.
    pub(super) fn note_lack(&mut self, lack: Option<Lack>) -> Option<Lack> {
        std::mem::replace(&mut self.lack, lack)
    }

    /// Has a task work on a member. The pool hears of its end, whichever way it ends.
    pub(super) fn spawn(
        &mut self,
        tracker: &TaskTracker,
        made: u64,
        work: impl Future<Output = Result<Ended, StandbyError>> + Send + 'static,
    ) {
        let work = async move { Finished { made, result: work.await } };
        let spawned = self.work.tasks.spawn(tracker.track_future(work));
        self.work.of.insert(spawned.id(), made);
    }

    /// Ends the tasks of the pool that have not touched the engine yet.
    pub(super) fn token(&self) -> CancellationToken {
        self.work.stop.clone()
    }

    /// Gives everything up; the containers go with the instance's. A task is not cut off in the middle of a call to the engine,
    /// whose end nobody would hear of: [`Pool::has_ended`] says when all are over. The pool is as new.
    pub(super) fn abandon(&mut self) {
        self.work.stop.cancel();
        let old = std::mem::take(self);
        self.ending = old.ending;
        if !old.work.tasks.is_empty() {
            self.ending.push(old.work.tasks);
        }
    }

    /// Waits for the tasks of pools that were given up, for a while; says whether all are over.
    pub(super) async fn has_ended(&mut self, within: Duration) -> bool {
        let ending = &mut self.ending;
        let drained = async {
            while let Some(tasks) = ending.last_mut() {
                while tasks.join_next().await.is_some() {}
                ending.pop();
            }
        };
        tokio::time::timeout(within, drained).await.is_ok()
    }

    /// The next task that has ended; for ever, if none goes on.
    ///
    /// Cancellation: safe.
    pub(super) async fn news(&mut self) -> Finished {
        loop {
            match self.work.tasks.join_next_with_id().await {
                Some(Ok((id, finished))) => {
                    self.work.of.remove(&id);
                    return finished;
                }
                Some(Err(error)) => {
                    if let Some(finished) = self.broken_off(&error) {
                        return finished;
                    }
                }
                None => std::future::pending().await,
            }
        }
    }

    /// A task that panicked has failed like any other.
    fn broken_off(&mut self, error: &JoinError) -> Option<Finished> {
        tracing::error!("a standby's task ended: {error}");
        let made = self.work.of.remove(&error.id())?;
        Some(Finished { made, result: Err(StandbyError::BrokenOff(error.to_string())) })
    }

    /// The members, for the plan.
    pub(super) fn observed(&self) -> Vec<Member> {
        let members = self.members.iter();
        members
            .map(|(made, standby)| Member {
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

    /// Failures to make a standby in a row, and the time since the last.
    pub(super) fn failures(&self) -> Option<(u32, Duration)> {
        self.failures.map(|(count, at)| (count, at.elapsed()))
    }

    pub(super) fn note_failure(&mut self) {
        let count = self.failures.map_or(0, |(count, _)| count);
        self.failures = Some((count.saturating_add(1), Instant::now()));
    }

    pub(super) fn note_success(&mut self) {
        self.failures = None;
    }
}

/// Until when to wait for a standby that has been brought back `since` then, which took so long the last time: if half of it is
/// done, for to bring back what serves would take all of it, and keep the other from its end.
fn worth_waiting(since: Instant, took: Duration, now: Instant) -> Option<Instant> {
    let passed = now.saturating_duration_since(since);
    // One that takes twice as long may never come.
    (passed * 2 >= took && passed < took * 2).then(|| (since + took).max(now) + took / 2)
}

/// What stands in the way of another standby, in words.
pub(super) fn told(lack: Lack) -> String {
    match lack {
        Lack::Memory { needed, free } => {
            format!("{} MiB of memory are free, a standby needs {} MiB", free >> 20, needed >> 20)
        }
        Lack::Pause(left) => format!("the last attempt failed, the next is in {} s", left.as_secs() + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_standby_that_is_half_way_back_is_waited_for() {
        let mut pool = Pool::default();
        let now = Instant::now();
        let ms = Duration::from_millis;
        pool.add(7, Standby { renewing_since: Some(now), ..Standby::new("s", Standing::Making) });
        assert_eq!(pool.ready_by("s", now + ms(300)), None, "nobody knows how long it takes");
        pool.renewal_took = Some(ms(400));
        assert_eq!(pool.ready_by("s", now + ms(100)), None, "it has only begun");
        assert_eq!(pool.ready_by("s", now + ms(200)), Some(now + ms(600)));
        assert_eq!(pool.ready_by("s", now + ms(700)), Some(now + ms(900)), "it is late");
        assert_eq!(pool.ready_by("s", now + ms(800)), None, "it may never come");
        assert_eq!(pool.ready_by("t", now + ms(200)), None, "it is of another snapshot");
        tokio::time::advance(ms(250)).await;
        pool.note_renewal(now);
        assert_eq!(pool.renewal_took, Some(ms(250)));
        pool.add(8, Standby { is_resuming: true, ..Standby::new("s", Standing::Making) });
        assert_eq!(pool.ready_by("s", now), Some(now + RESUMES_WITHIN));
    }

    #[tokio::test]
    async fn a_task_that_panics_fails_its_member() {
        let mut pool = Pool::default();
        pool.add(7, Standby::new("s", Standing::Making));
        pool.spawn(&TaskTracker::new(), 7, async { panic!("of the test") });
        let finished = pool.news().await;
        assert_eq!(finished.made, 7);
        assert!(finished.result.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_pool_that_was_given_up_is_usable_while_an_old_task_goes_on() {
        let mut pool = Pool::default();
        pool.spawn(&TaskTracker::new(), 1, async {
            tokio::time::sleep(Duration::from_secs(100)).await;
            Ok(Ended::Removed)
        });
        pool.abandon();
        assert!(!pool.has_ended(Duration::from_secs(30)).await, "the old task has its own pace");
        assert!(!pool.token().is_cancelled(), "new tasks are not ended with the old ones");
        pool.spawn(&TaskTracker::new(), 2, async { Ok(Ended::Removed) });
        assert_eq!(pool.news().await.made, 2, "news of the old pool is no news");
        assert!(pool.has_ended(Duration::from_secs(100)).await);
    }
}
