//! The standbys of an instance: what has been made ahead of time.
//!
//! `domain::pool` says what to do, this does it. The driver alone changes what is noted here; the work itself (`making.rs`) is
//! tasks that end with their owner, and whatever they had made by then bears the instance's labels and goes with the next removal.
//! No client reaches a standby, so nothing here touches the route.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::core::Core;
use super::looks::{Look, Looks};
use super::making;
use crate::daemon::baseline::snapshot;
use crate::daemon::proof::Proof;
use crate::daemon::store::{StoredSnapshot, StoredStandby};
use crate::digest::Taken;
use crate::domain::pool::{self, Budget, Lack, Member, PoolAction, Standing, Wanted};
use crate::domain::site::{ResetSpec, Site};
use crate::domain::standby_schedule::count_at;
use crate::fault::{self, Point};
use crate::launch::{self, Incarnation};
use crate::probes::describe;
use crate::reset::Stages;

/// How often the pool is looked at when nothing happens: traffic is no event here.
const TEND_EVERY: Duration = Duration::from_secs(2);
/// After a reset the next one is expected for so long, even if nobody has written to the site.
const RESETS_COME_IN_ROWS: Duration = Duration::from_secs(60);
/// How long a reset waits for a standby that only has to be proven once more.
const RESUMES_WITHIN: Duration = Duration::from_millis(200);
/// What a service is expected to take where its definition does not say, in bytes.
const USUAL_MEMORY: u64 = 256 << 20;
/// How often containers are brought back in place before they are made anew: whatever a rewind does not reach, such as files
/// outside of the stores or memory that a process loses, ends with them.
pub(super) const MOST_RENEWALS: u32 = 100;
/// What is said of a standby that nobody wants any more.
pub(super) const GIVEN_UP: &str = "the site went down";
/// More renewals than any pool allows: what has this many is worn.
pub(super) const WORN: u32 = u32::MAX;

/// The standbys of one instance.
pub(super) struct Standbys {
    /// By the generation that their containers were made for.
    pub(super) members: BTreeMap<u64, Standby>,
    pub(super) work: JoinSet<Finished>,
    /// Ends what has not touched the engine yet.
    pub(super) stop: CancellationToken,
    failures: u32,
    failed_at: Option<Instant>,
    reset_at: Option<Instant>,
    /// Whether this instance has been written to or reset at all: one that is only looked at needs no standby.
    pub(super) is_wanted: bool,
    lack: Option<Lack>,
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
    /// What was proven of it before it served, where nothing can have reached it since.
    pub(super) untouched: Option<Taken>,
    /// Whether it is about to be proven by that, which takes next to no time.
    pub(super) is_resuming: bool,
    /// How it is looked at in between.
    pub(super) looks: Looks,
}

/// A proof that is renewed in the background and needed in the foreground.
pub(super) type KeptProof = Arc<Mutex<Proof>>;

/// What a task has done.
pub(super) struct Finished {
    pub(super) made: u64,
    pub(super) result: Result<Ended, String>,
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
    /// One of which there is nothing yet.
    pub(super) fn new(snapshot: &str, standing: Standing) -> Self {
        let snapshot = snapshot.to_owned();
        let looks = Looks::default();
        Self {
            incarnation: None,
            snapshot,
            standing,
            proof: None,
            renewals: 0,
            untouched: None,
            is_resuming: false,
            looks,
        }
    }
}

/// What readers of the instance's report are told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StandbyReport {
    /// The generation that the containers were made for, and what it is doing.
    pub members: Vec<(u64, &'static str)>,
    /// Why there are fewer than wanted.
    pub lack: Option<String>,
}

impl Standbys {
    pub(super) fn new() -> Self {
        Self {
            members: BTreeMap::new(),
            work: JoinSet::new(),
            stop: CancellationToken::new(),
            failures: 0,
            failed_at: None,
            reset_at: None,
            is_wanted: false,
            lack: None,
        }
    }

    /// The generations whose containers belong to the pool.
    pub(super) fn generations(&self) -> Vec<u64> {
        self.members.keys().copied().collect()
    }

    /// The best one that is of this snapshot, if there is one: one that runs before one that is frozen.
    fn best(&self, snapshot: &str) -> Option<u64> {
        let fits = |standing| {
            let mut found = self.members.iter().filter(|(_, standby)| standby.snapshot == snapshot);
            found.find(|(_, standby)| standby.standing == standing).map(|(made, _)| *made)
        };
        fits(Standing::Running).or_else(|| fits(Standing::Frozen))
    }

    /// Whether there is one that only has to be proven once more.
    fn is_resuming(&self) -> bool {
        self.members.values().any(|standby| standby.is_resuming)
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
        is_wanted
            .then(|| self.lack.map_or("no standby was ready".to_owned(), |lack| format!("no standby: {}", told(lack))))
    }

    /// Takes in what has left service; `untouched`: what was proven of it, if nothing can have reached it since.
    pub(super) fn retire(&mut self, incarnation: Incarnation, snapshot: &str, renewals: u32, untouched: Option<Taken>) {
        let made = incarnation.made;
        let standing = Standing::Used { renewals };
        let standby =
            Standby { incarnation: Some(incarnation), renewals, untouched, ..Standby::new(snapshot, standing) };
        self.members.insert(made, standby);
    }

    /// The same for what must not serve again, whatever happens to it.
    pub(super) fn reject(&mut self, incarnation: Incarnation, snapshot: &str) {
        self.retire(incarnation, snapshot, WORN, None);
    }

    /// A reset was asked for: from now on there is a use for standbys.
    pub(super) fn expect_resets(&mut self) {
        self.is_wanted = true;
        self.reset_at = Some(Instant::now());
    }

    /// Gives everything up; the containers go with the instance's. What is being made is not cut off in the middle of a call
    /// to the engine, whose end nobody would hear of: [`Standbys::has_ended`] says when it is over.
    pub(super) fn abandon(&mut self) {
        self.stop.cancel();
        self.members.clear();
    }

    /// Waits until nothing goes on any more, for a while; says whether that is so. Then the pool is as new.
    pub(super) async fn has_ended(&mut self, within: Duration) -> bool {
        let drained = async { while self.work.join_next().await.is_some() {} };
        let is_over = tokio::time::timeout(within, drained).await.is_ok();
        if is_over {
            *self = Self::new();
        }
        is_over
    }

    /// The next task that has ended; for ever, if none goes on.
    pub(super) async fn news(&mut self) -> Finished {
        loop {
            match self.work.join_next().await {
                Some(Ok(finished)) => return finished,
                // A task that panicked leaves a member that is being made for ever; the next look finds no task for it.
                Some(Err(error)) => tracing::error!("a standby's task ended: {error}"),
                None => std::future::pending().await,
            }
        }
    }

    fn observed(&self) -> Vec<Member> {
        let members = self.members.iter();
        members
            .map(|(made, standby)| Member {
                generation: *made,
                snapshot: standby.snapshot.clone(),
                standing: standby.standing,
            })
            .collect()
    }

    fn report(&self) -> StandbyReport {
        StandbyReport {
            members: self.members.iter().map(|(made, standby)| (*made, standby.standing.name())).collect(),
            lack: self.lack.map(told),
        }
    }

    fn failed(&mut self) {
        self.failures = self.failures.saturating_add(1);
        self.failed_at = Some(Instant::now());
    }
}

impl Core {
    /// Looks at the pool and does what is to be done next.
    pub(super) async fn tend_standbys(&mut self) {
        let spec = &self.site.reset;
        let has_pool = spec.standby > 0 || !spec.schedule.is_empty() || !self.standbys.members.is_empty();
        self.tend_at = has_pool.then(|| Instant::now() + TEND_EVERY);
        if !has_pool {
            return;
        }
        let serves = self.state().serves();
        let is_written = self.route_stats().unsafe_requests > 0;
        self.standbys.is_wanted |= serves && is_written;
        // What a schedule asks for is wanted without any use for it yet: that is what it is for.
        let count = match count_at(&self.site.reset.schedule, Timestamp::now()) {
            _ if !serves => 0,
            Some(count) => count,
            None if self.standbys.is_wanted => self.site.reset.standby,
            None => 0,
        };
        let Some(current) = self.baseline.clone() else { return };
        let just_reset = self.standbys.reset_at.is_some_and(|at| at.elapsed() < RESETS_COME_IN_ROWS);
        let most_renewals = if self.can_rewind(&current) { MOST_RENEWALS } else { 0 };
        let wanted = Wanted { count, snapshot: &current.id, expects_reset: is_written || just_reset, most_renewals };
        let budget = Budget {
            memory_free: free_memory(),
            memory_each: expected_memory(&self.site),
            memory_reserve: self.shared.memory_reserve,
            failures: self.standbys.failed_at.map(|at| (self.standbys.failures, at.elapsed())),
        };
        let plan = pool::plan(wanted, &self.standbys.observed(), budget);
        let lacked = std::mem::replace(&mut self.standbys.lack, plan.lack);
        if let Some(lack @ Lack::Memory { .. }) = plan.lack
            && !matches!(lacked, Some(Lack::Memory { .. }))
        {
            let message = format!("{} has fewer standbys than it wants: {}", self.id, told(lack));
            self.shared.events.note("standby.lacking", Some(&self.id.to_string()), &message).await;
        }
        for action in plan.actions {
            self.act(action, &current).await;
        }
        self.look_at_standbys(&current);
        self.show_standbys();
    }

    async fn act(&mut self, action: PoolAction, snapshot: &StoredSnapshot) {
        match action {
            PoolAction::Make => self.make_standby(snapshot).await,
            PoolAction::Renew(made) => self.renew_standby(made, snapshot),
            PoolAction::Discard(made) => self.discard_standby(made).await,
            PoolAction::Freeze(made) => self.freeze_standby(made, true).await,
            PoolAction::Thaw(made) => self.freeze_standby(made, false).await,
        }
    }

    async fn make_standby(&mut self, snapshot: &StoredSnapshot) {
        let generation = match self.shared.store.begin_standby(&self.id).await {
            Ok(generation) => generation,
            Err(error) => {
                self.standbys.failed();
                tracing::warn!(instance.id = %self.id, error = describe(&error), "no standby can be begun");
                return;
            }
        };
        fault::reach(Point::StandbyRecorded).await;
        self.standbys.members.insert(generation, Standby::new(&snapshot.id, Standing::Making));
        // Shown before its first container exists: reconciliation leaves alone what is shown.
        self.show_standbys();
        let stop = self.standbys.stop.clone();
        let work =
            making::make(self.shared.clone(), self.id.clone(), self.site.clone(), snapshot.clone(), generation, stop);
        self.standbys.work.spawn(self.shared.tasks.track_future(async move {
            Finished {
                made: generation,
                result: work.await.map(|(incarnation, proof)| Ended::ready(incarnation, proof, 0)),
            }
        }));
    }

    fn can_rewind(&self, from: &StoredSnapshot) -> bool {
        self.site.rewinds().is_some() && snapshot::state(&self.shared, from).is_some()
    }

    /// Brings what has served back to the snapshot in the background; if that fails, it goes.
    fn renew_standby(&mut self, made: u64, snapshot: &StoredSnapshot) {
        let Some(standby) = self.standbys.members.get_mut(&made) else { return };
        let Some(incarnation) = standby.incarnation.take() else { return };
        standby.standing = Standing::Making;
        standby.proof = None;
        let untouched = standby.untouched.take();
        standby.is_resuming = untouched.is_some();
        let stop = self.standbys.stop.clone();
        let (shared, id, site) = (self.shared.clone(), self.id.clone(), self.site.clone());
        let work = making::renew(shared, id, site, snapshot.clone(), incarnation, untouched, stop);
        self.standbys.work.spawn(self.shared.tasks.track_future(async move { Finished { made, result: work.await } }));
    }

    async fn discard_standby(&mut self, made: u64) {
        self.forget_standby(made).await;
        fault::reach(Point::StandbyForgotten).await;
        let Some(standby) = self.standbys.members.get_mut(&made) else { return };
        standby.standing = Standing::Making;
        standby.incarnation = None;
        standby.proof = None;
        // So that it counts for nothing until it is gone.
        standby.snapshot.clear();
        let (shared, id) = (self.shared.clone(), self.id.clone());
        self.standbys.work.spawn(self.shared.tasks.track_future(async move {
            let removed = making::remove(&shared, &id, made).await;
            Finished { made, result: removed.map(|()| Ended::Removed).map_err(|error| describe(&error)) }
        }));
    }

    async fn freeze_standby(&mut self, made: u64, frozen: bool) {
        let Some(standby) = self.standbys.members.get_mut(&made) else { return };
        // What is being looked at must answer until that is over; then the pool is looked at again.
        if frozen && standby.looks.goes_on() {
            return;
        }
        let Some(incarnation) = &standby.incarnation else { return };
        let engine = self.shared.engine.as_ref();
        let done =
            if frozen { launch::freeze(engine, incarnation).await } else { launch::thaw(engine, incarnation).await };
        fault::reach(if frozen { Point::StandbyFrozen } else { Point::StandbyThawed }).await;
        standby.standing = match done {
            Ok(()) if frozen => Standing::Frozen,
            Ok(()) => Standing::Running,
            Err(error) => {
                tracing::warn!(instance.id = %self.id, error = describe(&error), "a standby is given up");
                Standing::Used { renewals: WORN }
            }
        };
    }

    /// Waits for those that nothing has reached while they served, so that only their proof is missing: to rewind what serves
    /// would take longer.
    pub(super) async fn await_resumed(&mut self, stages: &Stages) {
        self.tend_standbys().await;
        if self.standbys.is_resuming() {
            let deadline = Instant::now() + RESUMES_WITHIN;
            stages.time("resume", self.await_news(deadline)).await;
        }
    }

    /// Takes in what tasks have done until no standby is about to be proven, or time is up.
    async fn await_news(&mut self, deadline: Instant) {
        while self.standbys.is_resuming()
            && let Ok(finished) = tokio::time::timeout_at(deadline, self.standbys.news()).await
        {
            self.note_standby(finished).await;
        }
    }

    /// Takes in what a task has done.
    pub(super) async fn note_standby(&mut self, finished: Finished) {
        let Finished { made, result } = finished;
        self.tend_at = Some(Instant::now());
        match result {
            Ok(Ended::Looked(look)) => return self.note_look(made, look).await,
            Ok(Ended::Ready { incarnation, proof, rewinds }) => {
                self.standbys.failures = 0;
                self.standbys.failed_at = None;
                if let Some(standby) = self.standbys.members.get_mut(&made) {
                    standby.incarnation = Some(incarnation);
                    standby.proof = proof.map(|proof| Arc::new(Mutex::new(*proof)));
                    standby.looks = Looks::default();
                    standby.standing = Standing::Running;
                    standby.is_resuming = false;
                    standby.renewals += rewinds;
                    let (snapshot, renewals) = (standby.snapshot.clone(), standby.renewals);
                    self.remember_standby(StoredStandby { made, snapshot, renewals }).await;
                    fault::reach(Point::StandbyKept).await;
                }
            }
            Ok(Ended::Removed) => {
                self.standbys.members.remove(&made);
            }
            Err(reason) => {
                self.standbys.failed();
                // Reconciliation removes what is left of it.
                self.standbys.members.remove(&made);
                self.forget_standby(made).await;
                let message = format!("a standby of {} could not be made: {reason}", self.id);
                self.shared.events.note("standby.failed", Some(&self.id.to_string()), &message).await;
            }
        }
        self.show_standbys();
    }

    /// A container of a standby has ended: it is none any more.
    pub(super) fn miss_standby(&mut self, handle: &crate::engine::EngineHandle) {
        let is_its = |standby: &Standby| {
            let containers = standby.incarnation.iter().flat_map(|incarnation| incarnation.containers.values());
            containers.into_iter().any(|own| own == handle)
        };
        for standby in self.standbys.members.values_mut().filter(|standby| is_its(standby)) {
            standby.standing = Standing::Used { renewals: WORN };
            self.tend_at = Some(Instant::now());
        }
    }

    pub(super) fn show_standbys(&self) {
        let shown = self.standbys.report();
        self.report.send_if_modified(|report| {
            let is_new = report.standbys != shown;
            report.standbys = shown;
            is_new
        });
    }
}

/// What stands in the way of another standby, in words.
fn told(lack: Lack) -> String {
    match lack {
        Lack::Memory { needed, free } => {
            format!("{} MiB of memory are free, a standby needs {} MiB", free >> 20, needed >> 20)
        }
        Lack::Pause(left) => format!("the last attempt failed, the next is in {} s", left.as_secs() + 1),
    }
}

/// Memory that nothing on the host uses, in bytes; where the kernel does not say, none is promised.
fn free_memory() -> u64 {
    procfs::Current::current().map_or(0, |memory: procfs::Meminfo| memory.mem_available.unwrap_or(memory.mem_free))
}

/// What a standby of the site is expected to take, in bytes.
fn expected_memory(site: &Site) -> u64 {
    site.services.iter().map(|service| service.limits.reserved_memory_bytes.unwrap_or(USUAL_MEMORY)).sum()
}
