//! What the driver does: the operations of one instance, each of which moves its state by the diagram in
//! `domain::instance`, tells the store before the engine, and the gateway last.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch as channel;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::making::blueprint;
use super::spare::Spare;
use super::standbys::{StandbyReport, Standbys};
use super::trouble::{self, Failure};
use super::watch::Watch;
use super::{AskError, Outcome, Report, reset};
use crate::daemon::baseline::{self, snapshot};
use crate::daemon::gateway::{Route, RouteStats, Target};
use crate::daemon::proof::Candidate;
use crate::daemon::shared::Shared;
use crate::daemon::store::{StoredInstance, StoredSnapshot};
use crate::digest::{Lines, Taken};
use crate::domain::instance::{InstanceEvent, InstanceId, InstanceState};
use crate::domain::request_queue::Request;
use crate::domain::site::Site;
use crate::domain::verify::Extent;
use crate::engine::{CpuWeight, labels};
use crate::fault::{self, Point};
use crate::launch::{self, Incarnation, Remains, RemoveError, Which};
use crate::probes::ProbeFailure;
use crate::reset::{AnyStrategy, ResetContext, ResetError, ResetStrategy, Stages};

/// What clients of a site that is not serving are told to wait before they try again.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// How long the tasks of standbys get to notice that the site goes down.
const STANDBY_PATIENCE: Duration = Duration::from_secs(30);
/// The pause between two rounds of removing what they make.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// How long a found incarnation gets to pass its probes before it is made anew.
pub(super) const ADOPTION_PATIENCE: Duration = Duration::from_secs(10);

/// The state of one instance, owned by its driver.
pub(super) struct Core {
    pub(super) shared: Arc<Shared>,
    pub(super) id: InstanceId,
    pub(super) site: Arc<Site>,
    route: Route,
    pub(super) report: channel::Sender<Report>,
    pub(super) incarnation: Option<Incarnation>,
    /// What it is, or is to be, made from: the baseline, unless someone has asked for another snapshot.
    pub(super) snapshot: Option<StoredSnapshot>,
    /// What a reset leads to, and standbys are made from.
    pub(super) baseline: Option<StoredSnapshot>,
    stored: Option<StoredInstance>,
    pub(super) watch: Watch,
    pub(super) standbys: Standbys,
    /// When the standbys are to be looked at; never, where there are to be none.
    pub(super) tend_at: Option<Instant>,
    /// What was found in the stores of what serves before it did; none where there is nothing to compare.
    pub(super) proven: Option<Taken>,
    /// Whether the operation that goes on has let traffic in: what is asked for from then on is not covered by it.
    pub(super) is_open: Arc<AtomicBool>,
    /// The latest generation that was visited past the gateway, by a locator or a log-in of ours.
    pub(super) looked_at: Arc<AtomicU64>,
    /// How often the serving containers have been brought back since they were made.
    pub(super) renewals: u32,
    /// Clones for the next rewind.
    pub(super) spare: Option<Spare>,
    /// How many resets there have been, as far as this daemon knows.
    pub(super) resets: u64,
    /// How far the gateway's count of requests that may write has been taken note of.
    pub(super) requests_seen: u64,
}

/// Ends an operation that was superseded, between two awaits.
pub(super) async fn unless<T>(cancel: &CancellationToken, work: impl Future<Output = T>) -> Result<T, Failure> {
    cancel.run_until_cancelled(work).await.ok_or(Failure::Superseded)
}

/// Tells readers of the report what is being done.
pub(super) fn tell(report: &channel::Sender<Report>, stage: &str) {
    report.send_modify(|report| report.stage = Some(stage.to_owned()));
}

impl Core {
    pub(super) fn new(
        shared: Arc<Shared>,
        id: InstanceId,
        site: Arc<Site>,
        route: Route,
        stored: Option<StoredInstance>,
    ) -> Self {
        route.refuse(format!("{} is not up", site.name), RETRY_AFTER);
        let report = Report {
            state: InstanceState::Down,
            since: stored.as_ref().map_or_else(Timestamp::now, |stored| stored.since),
            stage: None,
            waiting_for: None,
            generation: stored.as_ref().map_or(0, |stored| stored.generation),
            snapshot: stored.as_ref().and_then(|stored| stored.snapshot.clone()),
            containers: Default::default(),
            last_passed: None,
            incarnation: None,
            standbys: StandbyReport::default(),
            writes: None,
        };
        let report = channel::channel(report).0;
        Self {
            shared,
            id,
            site,
            route,
            report,
            incarnation: None,
            snapshot: None,
            baseline: None,
            stored,
            watch: Watch::new(),
            standbys: Standbys::new(),
            tend_at: None,
            proven: None,
            is_open: Arc::default(),
            looked_at: Arc::default(),
            renewals: 0,
            spare: None,
            resets: 0,
            requests_seen: 0,
        }
    }

    pub(super) fn subscribe(&self) -> channel::Receiver<Report> {
        self.report.subscribe()
    }

    pub(super) fn state(&self) -> InstanceState {
        self.report.borrow().state.clone()
    }

    /// Why a request makes no sense in the present state.
    pub(super) fn refuses(&self, request: Request) -> Option<AskError> {
        let state = self.state();
        let possible = match request {
            Request::Up | Request::Down => true,
            Request::Reset | Request::ResetIfDirty => {
                matches!(state, InstanceState::Ready | InstanceState::Unhealthy(_) | InstanceState::Failed(_))
            }
            Request::Take => state == InstanceState::Ready,
        };
        (!possible).then(|| AskError::NotUp { instance: self.id.to_string(), state: state.name() })
    }

    /// Moves the state by the diagram, and tells store, readers and the event log.
    pub(super) async fn enter(&mut self, event: InstanceEvent) {
        let state = self.state();
        let next = match state.after(event) {
            Ok(next) => next,
            Err(refused) => {
                // The driver asks only for moves that exist; if it ever does not, it stays where it is and says so.
                tracing::error!(instance.id = %self.id, "{refused}");
                return;
            }
        };
        // Another reason for the same state does not make it begin anew.
        let since = if state.name() == next.name() { self.report.borrow().since } else { Timestamp::now() };
        // The row first: whoever has seen a reset begin finds it completed after a crash.
        if let Err(error) = self.shared.store.save_state(&self.id, &next, since).await {
            tracing::error!(instance.id = %self.id, error = crate::probes::describe(&error), "state not stored");
        }
        self.publish(&next, since);
        if state.name() != next.name() {
            let because = next.trouble().map(|trouble| format!(": {}", trouble.reason)).unwrap_or_default();
            let message = format!("{} is {}{because}", self.id, next.name());
            let kind = format!("instance.{}", next.name());
            self.shared.events.note(&kind, Some(&self.id.to_string()), &message).await;
        }
    }

    /// Moves the state where the store knows of it already.
    pub(super) fn advance(&mut self, event: InstanceEvent, since: Timestamp) {
        match self.state().after(event) {
            Ok(next) => self.publish(&next, since),
            Err(refused) => tracing::error!(instance.id = %self.id, "{refused}"),
        }
    }

    fn publish(&mut self, next: &InstanceState, since: Timestamp) {
        self.report.send_modify(|report| {
            report.state = next.clone();
            report.since = since;
            report.stage = None;
            report.waiting_for = None;
        });
        if !next.serves() {
            self.watch.end();
        }
    }

    /// Does what was asked and says how it ended.
    pub(super) async fn perform(
        &mut self,
        request: Request,
        operation: &str,
        name: Option<&str>,
        cancel: &CancellationToken,
    ) -> Outcome {
        let begun = Instant::now();
        self.is_open.store(false, Ordering::SeqCst);
        // Whatever comes of it, the pool is looked at afterwards.
        self.tend_at = Some(begun);
        // Nobody would hear them end before the operation does, and then they would be of the past.
        self.watch.drop_rounds();
        let stages = Stages::default();
        let result = match request {
            Request::Up => self.up(cancel).await,
            Request::Reset => match self.target(name).await {
                Ok(target) => self.reset(operation, target, begun, &stages, cancel).await,
                // What serves is left as it is: nothing has been touched.
                Err(failure) => return Outcome::Failed(trouble::of(&failure, &self.id)),
            },
            Request::ResetIfDirty => self.reset_if_dirty(operation, begun, &stages, cancel).await,
            Request::Down => self.down().await,
            Request::Take => match self.take(name.unwrap_or_default(), cancel).await {
                Ok(snapshot) => {
                    let (took, snapshot) = (begun.elapsed(), Some(Box::new(snapshot)));
                    return Outcome::Done { took, snapshot, stages: Vec::new() };
                }
                Err(failure) => Err(failure),
            },
        };
        match result {
            Ok(()) => Outcome::Done { took: begun.elapsed(), snapshot: None, stages: reset::times(&stages) },
            Err(Failure::Superseded) => Outcome::Superseded,
            Err(failure) => {
                let trouble = trouble::of(&failure, &self.id);
                self.route.refuse(format!("{} has failed: {}", self.site.name, trouble.reason), RETRY_AFTER);
                self.incarnation = None;
                self.show_containers();
                self.standbys.abandon();
                self.show_standbys();
                self.enter(InstanceEvent::StepFailed(trouble.clone())).await;
                // Nothing of a failed attempt stays behind; if the engine is away, reconciliation comes back to it.
                if let Err(error) = self.clear().await {
                    tracing::warn!(instance.id = %self.id, error = crate::probes::describe(&error), "leftovers remain");
                }
                Outcome::Failed(trouble)
            }
        }
    }

    /// Makes the instance ready, from its baseline, unless it already is.
    async fn up(&mut self, cancel: &CancellationToken) -> Result<(), Failure> {
        let serving = self.state().serves();
        if !serving {
            self.enter(InstanceEvent::UpRequested).await;
            self.route.refuse(format!("{} is starting", self.site.name), RETRY_AFTER);
        }
        let prepared = unless(cancel, self.prepare()).await??;
        let is_current = self.baseline.as_ref().is_some_and(|current| current.id == prepared.id);
        if self.state() == InstanceState::Ready && is_current {
            self.report.send_modify(|report| report.stage = None);
            return Ok(());
        }
        let event = if serving { InstanceEvent::ResetRequested } else { InstanceEvent::BaselineReady };
        self.enter(event).await;
        self.baseline = Some(prepared.clone());
        self.snapshot = Some(prepared);
        if !serving && self.stored.is_some() {
            unless(cancel, self.take_up_standbys()).await??;
        }
        if !serving && unless(cancel, self.adopt()).await?? {
            return Ok(());
        }
        if serving {
            self.route.hold(format!("{} is restarting from a new baseline", self.site.name));
        }
        unless(cancel, self.recreate(&Stages::default(), Extent::Everything)).await??;
        Ok(())
    }

    /// Provides images and baseline.
    pub(super) async fn prepare(&self) -> Result<StoredSnapshot, Failure> {
        Ok(baseline::provide(&self.shared, &self.id, &self.site, &|text: &str| tell(&self.report, text)).await?)
    }

    /// Takes up the containers that an earlier daemon left, if they are of the newest generation, from the snapshot
    /// that is wanted, and pass their probes.
    async fn adopt(&mut self) -> Result<bool, Failure> {
        let Some(stored) = self.stored.take() else {
            return Ok(false);
        };
        let named = match &stored.snapshot {
            Some(id) => self.shared.store.snapshot(id).await?.filter(|snapshot| snapshot.baseline_key.is_none()),
            None => None,
        };
        // Whoever asked for a snapshot of their own finds it again.
        let wanted = named.or_else(|| self.snapshot.clone());
        // A reset that a crash cut off may have left the old generation as it was: it is brought to its end.
        let Some(serving) = stored.serving else { return Ok(false) };
        let is_wanted = stored.snapshot.is_some() && stored.snapshot == wanted.as_ref().map(|wanted| wanted.id.clone());
        if !is_wanted || stored.state == InstanceState::Resetting.name() {
            return Ok(false);
        }
        let engine = self.shared.engine.as_ref();
        let found = launch::find(engine, &self.site, &self.shared.installation, &self.id, serving.made).await;
        let Some(mut incarnation) = found.map_err(ResetError::Launch)? else {
            return Ok(false);
        };
        incarnation.generation = serving.generation;
        let deadline = Instant::now() + ADOPTION_PATIENCE;
        let probes = &self.site.readiness.probes;
        while let Err(failure) = self.shared.prober.round(probes, &self.site, &incarnation, None).await {
            self.report.send_modify(|report| report.waiting_for = Some(failure.to_string()));
            if Instant::now() >= deadline || self.shared.prober.still_running(&self.site, &incarnation).await.is_err() {
                return Ok(false);
            }
            tokio::time::sleep(self.site.readiness.interval).await;
        }
        self.snapshot = wanted;
        self.recall_writes(incarnation.generation).await;
        self.route.take_up(incarnation.generation);
        self.serve(incarnation, &Stages::default()).await;
        Ok(true)
    }

    /// Makes a new generation by the site's strategy and lets traffic in.
    pub(super) async fn recreate(&mut self, stages: &Stages, extent: Extent) -> Result<(), Failure> {
        let Some(snapshot) = self.snapshot.clone() else {
            return Err(Failure::Superseded);
        };
        let shared = self.shared.clone();
        let report = &self.report;
        let stage = |text: &str| tell(report, text);
        let _turn = stages.time("wait", shared.turns.boots.turn(&stage)).await;
        let generation = self.shared.store.begin_serving(&self.id, &snapshot.id).await?;
        fault::reach(Point::RecreateRecorded).await;
        self.report.send_modify(|report| {
            report.generation = generation;
            report.snapshot = Some(snapshot.id.clone());
        });
        let waiting = |failure: &ProbeFailure| {
            report.send_modify(|report| report.waiting_for = Some(failure.to_string()));
        };
        let mut keep = self.standbys.generations();
        keep.push(generation);
        let context = ResetContext {
            engine: self.shared.engine.as_ref(),
            storage: self.shared.storage.as_ref(),
            prober: &self.shared.prober,
            blueprint: blueprint(&self.shared, &self.id, &self.site, &snapshot, generation, CpuWeight::Serving),
            keep: &keep,
            stages,
            stage: &stage,
            waiting: &waiting,
        };
        let incarnation = AnyStrategy::named(self.site.reset.strategy).reset(&context).await?;
        let candidate = Candidate {
            shared: &shared,
            id: &self.id,
            site: &self.site,
            snapshot: &snapshot,
            incarnation: &incarnation,
        };
        self.proven = match extent {
            Extent::Nothing => None,
            Extent::Everything | Extent::Moved => {
                stages.time("verify", candidate.prove_or_learn(&Lines::passing())).await?
            }
        };
        fault::reach(Point::RecreateVerified).await;
        self.renewals = 0;
        self.forget_writes();
        self.serve(incarnation, stages).await;
        Ok(())
    }

    /// Lets traffic in. Everything before this line was invisible to clients.
    pub(super) async fn serve(&mut self, incarnation: Incarnation, stages: &Stages) {
        let begun = Instant::now();
        self.is_open.store(true, Ordering::SeqCst);
        self.incarnation = Some(incarnation);
        self.show_containers();
        let snapshot = self.snapshot.as_ref().map(|snapshot| snapshot.id.clone());
        self.report.send_modify(|report| report.snapshot = snapshot);
        self.route_to_current();
        stages.note("switch", begun.elapsed());
        fault::reach(Point::Routed).await;
        self.report.send_modify(|report| report.last_passed = Some(Timestamp::now()));
        self.enter(InstanceEvent::ProbesPassed).await;
        self.begin_watch();
    }

    /// Points the gateway at the present containers.
    pub(super) fn route_to_current(&self) {
        let entry = &self.site.entry;
        let Some(incarnation) = &self.incarnation else { return };
        if let Some(address) = incarnation.socket(&entry.service, entry.port) {
            self.route.serve(Target { address, instance: self.id.to_string(), generation: incarnation.generation });
        }
    }

    /// Answers clients 503 with the reason.
    pub(super) fn refuse_traffic(&self, reason: &str) {
        self.route.refuse(format!("{} is unhealthy: {reason}", self.site.name), RETRY_AFTER);
    }

    /// Lets clients wait.
    pub(super) fn hold_traffic(&self, why: &str) {
        self.route.hold(format!("{} {why}", self.site.name));
    }

    /// Whoever comes next finds no request of those before recorded, although the generation stays.
    pub(super) fn forget_recorded(&self) {
        self.route.forget_recorded();
    }

    /// What the route has done.
    pub(super) fn route_stats(&self) -> RouteStats {
        self.route.stats()
    }

    pub(super) fn show_containers(&self) {
        let containers = self.incarnation.as_ref().map(|incarnation| {
            let shown = incarnation.containers.iter().map(|(service, handle)| {
                let address = incarnation.addresses.get(service).copied();
                (service.to_string(), (handle.0.clone(), address))
            });
            (incarnation.generation, shown.collect())
        });
        let incarnation = self.incarnation.clone();
        self.report.send_modify(|report| report.incarnation = incarnation);
        self.report.send_modify(|report| match containers {
            Some((generation, containers)) => {
                report.generation = generation;
                report.containers = containers;
            }
            None => report.containers.clear(),
        });
    }

    /// Removes everything of the instance.
    async fn down(&mut self) -> Result<(), Failure> {
        self.route.refuse(format!("{} is going down", self.site.name), RETRY_AFTER);
        self.enter(InstanceEvent::DownRequested).await;
        self.incarnation = None;
        self.standbys.abandon();
        self.show_standbys();
        self.show_containers();
        self.clear().await?;
        self.stored = None;
        self.enter(InstanceEvent::Removed).await;
        Ok(())
    }

    /// Removes everything, what the standbys' tasks are still making included.
    async fn clear(&mut self) -> Result<(), RemoveError> {
        self.standbys.abandon();
        if let Some(spare) = self.spare.take() {
            spare.end().await;
        }
        if let Err(error) = self.shared.store.forget_standbys(&self.id).await {
            // A row without containers is found out by the next daemon.
            tracing::warn!(instance.id = %self.id, error = crate::probes::describe(&error), "standbys are still noted");
        }
        let deadline = Instant::now() + STANDBY_PATIENCE;
        while !self.standbys.has_ended(LOOK_AGAIN).await && Instant::now() < deadline {
            // What they make next meets the end of its network, or is removed in the next round. What cannot be removed
            // while they are at it can be afterwards.
            let _ = self.clear_once().await;
        }
        self.clear_once().await
    }

    async fn clear_once(&self) -> Result<(), RemoveError> {
        for role in [labels::ROLE_BUILDER, labels::ROLE_INSTANCE] {
            let installation = &self.shared.installation;
            let which = Which::All;
            self.shared.remove(Remains { installation, instance: &self.id, role, which }).await?;
        }
        Ok(())
    }

    /// Stops the instance cleanly, stores what it is as a snapshot, and starts it again.
    async fn take(&mut self, name: &str, cancel: &CancellationToken) -> Result<StoredSnapshot, Failure> {
        let Some(mut incarnation) = self.incarnation.clone() else {
            return Err(Failure::Superseded);
        };
        let shared = self.shared.clone();
        // It boots again afterwards. Traffic is held from when the turn has come, not while others boot.
        let _turn = unless(cancel, shared.turns.boots.turn(&|text: &str| tell(&self.report, text))).await?;
        self.route.hold(format!("a snapshot of {} is being taken", self.site.name));
        self.enter(InstanceEvent::ResetRequested).await;
        let work = async {
            tell(&self.report, "stopping cleanly");
            snapshot::stop_cleanly(&shared, &self.site, &incarnation).await?;
            tell(&self.report, "taking the snapshot");
            let purpose = snapshot::Purpose::Named { name: name.to_owned() };
            let taken = snapshot::store(&shared, &self.id, &self.site, &incarnation, purpose).await?;
            if let Some(from) = &self.snapshot {
                shared.store.inherit_sessions(&from.id, &taken.id).await?;
            }
            tell(&self.report, "starting again");
            let deadline = Instant::now() + self.site.readiness.timeout;
            let engine = shared.engine.as_ref();
            launch::start(engine, &self.site, &mut incarnation, deadline).await.map_err(ResetError::Launch)?;
            if let Err(cause) = shared.prober.wait_ready(&self.site, &incarnation, &|_| {}).await {
                let log = shared.prober.log_tail(&incarnation, 15).await;
                return Err(ResetError::NotReady { cause, log }.into());
            }
            // It is as the snapshot now, and nobody has reached it since: this is what the snapshot holds.
            let (id, site) = (&self.id, &self.site);
            let candidate = Candidate { shared: &shared, id, site, snapshot: &taken, incarnation: &incarnation };
            candidate.prove_or_learn(&Lines::passing()).await?;
            Ok::<_, Failure>((taken, incarnation))
        };
        let (taken, incarnation) = unless(cancel, work).await??;
        // The servers were started anew, and what was noted of the last start says nothing of this one.
        self.proven = None;
        self.serve(incarnation, &Stages::default()).await;
        Ok(taken)
    }

    /// The driver ends: the port is given back, the containers stay for the next daemon.
    pub(super) async fn close(self) {
        self.route.close().await;
    }
}
