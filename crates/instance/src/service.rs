//! The serving generation of an instance: its state, its route and its containers, which change together.
//!
//! The methods that begin or end service change the route and the state in the same call, without an await in between,
//! so while the state is `ready`, the route serves the current generation or holds requests for it. A transition that
//! must survive a crash is stored first; if the store refuses it, nothing has changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::SemaphorePermit;
use tokio_util::sync::CancellationToken;

use super::context::{InstanceContext, OperationProgress};
use super::failure::OperationFailure;
use super::gate::RouteGate;
use super::reset::RecordedGeneration;
use super::{Entered, InstanceReport};
use crate::pristine::Pristine;
use arenad_baseline::ConcurrencyLimit;
use arenad_digest::Taken;
use arenad_gateway::{RouteStats, Target};
use arenad_launch::Incarnation;
use arenad_model::error::describe;
use arenad_model::event::EventKind;
use arenad_model::instance::{InstanceEvent, InstanceFailure, InstanceState};
use arenad_model::snapshot::Snapshot;
use arenad_seams::ordered_watch as channel;
use arenad_store::StoredInstance;

/// The `Retry-After` of responses while the site does not serve.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// A generation that serves, or that is recorded and about to serve.
pub(super) struct ServingIncarnation {
    pub(super) incarnation: Incarnation,
    /// The snapshot that its containers were made from or brought back to.
    pub(super) snapshot: Snapshot,
    /// The digest of its stores from before it served, or from a later comparison; `None` if nothing was compared.
    pub(super) proven: Option<Taken>,
    /// The number of times its containers have been brought back since they were made.
    pub(super) renewals: u32,
    /// Whether clients may have reached it under an earlier daemon, whose count of requests is lost. Any of those
    /// requests may have written.
    pub(super) is_adopted: bool,
    /// Ends the daemon's own visits to it: locators and log-ins.
    pub(super) visits: CancellationToken,
}

/// A generation that has left service.
pub(super) struct Retired {
    pub(super) serving: ServingIncarnation,
    /// Whether its probes passed when it left service, and no person had run commands in it.
    pub(super) was_well: bool,
    /// Whether a client or the daemon itself can have reached it.
    pub(super) was_reached: bool,
}

/// The state, the route and the serving generation of one instance.
pub(super) struct InstanceService {
    context: Arc<InstanceContext>,
    gate: Arc<RouteGate>,
    report: channel::Sender<InstanceReport>,
    serving: Option<ServingIncarnation>,
    progress: OperationProgress,
    /// The latest generation that a locator or a log-in of the daemon has visited without the gateway.
    looked_at: Arc<AtomicU64>,
    /// The containers in which a person has run commands.
    entered: Entered,
    /// Tells the next daemon whether a client has reached the serving generation.
    pristine: Arc<Pristine>,
    /// The reason why the route is closed although the state says that the instance serves: a container does not run.
    cut: Option<String>,
    /// Whether the row differs from the report because the store refused a change that had already happened.
    is_late: bool,
}

impl InstanceService {
    pub(super) fn new(
        context: Arc<InstanceContext>,
        gate: Arc<RouteGate>,
        progress: OperationProgress,
        stored: Option<&StoredInstance>,
    ) -> Self {
        gate.refuse(format!("{} is not up", context.site.name), RETRY_AFTER);
        let report = InstanceReport::of_nothing(stored);
        let report = channel::channel(report).0;
        let pristine = Arc::new(Pristine::of(&context.shared.state_dir.pristine(), &context.id));
        let spoilt = pristine.clone();
        gate.route().on_first(move |generation| spoilt.spoil(generation));
        let (looked_at, entered) = (Arc::default(), Entered::default());
        Self { context, gate, report, serving: None, progress, looked_at, entered, pristine, cut: None, is_late: false }
    }

    /// Returns the mark that tells whether the serving generation was reached.
    pub(super) fn pristine(&self) -> Arc<Pristine> {
        self.pristine.clone()
    }

    pub(super) fn subscribe(&self) -> channel::Receiver<InstanceReport> {
        self.report.subscribe()
    }

    pub(super) fn looked_at(&self) -> Arc<AtomicU64> {
        self.looked_at.clone()
    }

    pub(super) fn entered(&self) -> Entered {
        self.entered.clone()
    }

    /// Whether a person has run commands in the serving containers.
    pub(super) fn was_entered(&self) -> bool {
        self.serving.as_ref().is_some_and(|serving| self.entered.has(serving.incarnation.made))
    }

    pub(super) fn state(&self) -> InstanceState {
        self.report.borrow().state.clone()
    }

    pub(super) fn serving(&self) -> Option<&ServingIncarnation> {
        self.serving.as_ref()
    }

    pub(super) fn stats(&self) -> RouteStats {
        self.gate.route().stats()
    }

    /// Publishes a description of the step that is running.
    pub(super) fn tell(&self, stage: &str) {
        tell(&self.report, stage);
    }

    /// Waits for a turn, and says so meanwhile. The future does not borrow the service.
    pub(super) fn turn<'a>(
        &self,
        limit: &'a ConcurrencyLimit,
    ) -> impl Future<Output = SemaphorePermit<'a>> + Send + use<'a> {
        let report = self.report.clone();
        async move { limit.turn(&|text| tell(&report, text)).await }
    }

    /// Returns the sender of the report, for futures that must not borrow the service.
    pub(super) fn report(&self) -> &channel::Sender<InstanceReport> {
        &self.report
    }

    /// Whether a client, or a person by hand, may have written to the serving generation.
    pub(super) fn may_be_written(&self) -> bool {
        self.was_entered()
            || self.serving.as_ref().is_some_and(|serving| serving.is_adopted)
            || self.gate.route().stats().unsafe_requests > 0
    }

    fn next(&self, event: InstanceEvent) -> Result<InstanceState, OperationFailure> {
        Ok(self.state().after(event)?)
    }

    /// Publishes a state together with the generation that serves, in one step; returns the event that announces the
    /// state, unless the instance was in the same state before.
    fn publish(
        &self,
        next: InstanceState,
        since: Timestamp,
        change: impl FnOnce(&mut InstanceReport),
    ) -> Option<(EventKind, String)> {
        let before = self.state();
        // A new reason for the same state does not change when the state began.
        let since = if before.name() == next.name() { self.report.borrow().since } else { since };
        self.report.send_modify(|report| {
            report.state = next.clone();
            report.since = since;
            report.stage = None;
            report.waiting_for = None;
            self.show(report);
            change(report);
        });
        if before.name() == next.name() {
            return None;
        }
        let because = next.trouble().map(|trouble| format!(": {}", trouble.reason)).unwrap_or_default();
        Some((kind(&next), format!("{} is {}{because}", self.context.id, next.name())))
    }

    async fn announce(&self, event: Option<(EventKind, String)>) {
        if let Some((kind, message)) = event {
            self.context.note(kind, &message).await;
        }
    }

    /// Stores the event in the background, where a client waits.
    fn announce_later(&self, event: Option<(EventKind, String)>) {
        if let Some((kind, message)) = event {
            self.context.note_later(kind, message);
        }
    }

    /// Stores and then publishes a state in which no generation serves yet.
    async fn enter(&mut self, event: InstanceEvent) -> Result<(), OperationFailure> {
        let next = self.next(event)?;
        let since = self.context.shared.clock.now();
        self.context.shared.store.save_state(&self.context.id, &next, since).await?;
        self.is_late = false;
        let event = self.publish(next, since, |_| ());
        self.announce(event).await;
        Ok(())
    }

    /// Publishes a state that is already a fact, and then tries to store it.
    async fn accept(&mut self, event: InstanceEvent) -> Result<(), OperationFailure> {
        let next = self.next(event)?;
        let since = self.context.shared.clock.now();
        let event = self.publish(next.clone(), since, |_| ());
        self.store_state(&next, since).await;
        self.announce(event).await;
        Ok(())
    }

    async fn store_state(&mut self, state: &InstanceState, since: Timestamp) {
        let stored = self.context.shared.store.save_state(&self.context.id, state, since).await;
        self.is_late = stored.is_err();
        if let Err(error) = stored {
            tracing::error!(instance.id = %self.context.id, error = describe(&error), "state not stored");
        }
    }

    /// Whether the row is behind the report.
    pub(super) fn is_late(&self) -> bool {
        self.is_late
    }

    /// Stores the current state if the row is behind.
    pub(super) async fn catch_up(&mut self) {
        if self.is_late {
            let (state, since) = (self.state(), self.report.borrow().since);
            self.store_state(&state, since).await;
        }
    }

    /// Begins to bring the instance up; images and baseline come first. The state need not be stored before, because no
    /// container is made yet. If the store fails, the row must not say that an earlier daemon's containers are down.
    pub(super) async fn prepare(&mut self) -> Result<(), OperationFailure> {
        self.accept(InstanceEvent::UpRequested).await?;
        self.gate.refuse(format!("{} is starting", self.context.site.name), RETRY_AFTER);
        Ok(())
    }

    /// Records that the baseline exists and that containers are being made from it.
    pub(super) async fn start(&mut self) -> Result<(), OperationFailure> {
        self.enter(InstanceEvent::BaselineReady).await
    }

    /// Holds requests and ends the daemon's own visits; the state does not change. No write of a client that is
    /// acknowledged after this call can be lost, because none is admitted.
    pub(super) fn pause(&mut self, why: &str) {
        self.gate.hold(format!("{} {why}", self.context.site.name));
        if let Some(serving) = &mut self.serving {
            serving.visits.cancel();
        }
    }

    /// Undoes [`Self::pause`] when the serving generation was not changed.
    pub(super) fn resume(&mut self) {
        let Some(serving) = &mut self.serving else { return };
        if serving.visits.is_cancelled() {
            serving.visits = CancellationToken::new();
            let visits = serving.visits.clone();
            self.report.send_modify(|report| report.visits = visits);
        }
        match &self.cut {
            Some(reason) => self.refuse(&reason.clone()),
            None => self.open_route(),
        }
    }

    /// Returns the state that a reset begins with, for the store.
    pub(super) fn resetting(&self) -> Result<InstanceState, OperationFailure> {
        match self.state() {
            state @ (InstanceState::Starting | InstanceState::Resetting) => Ok(state),
            _ => self.next(InstanceEvent::ResetRequested),
        }
    }

    /// Takes the serving generation out of service for good, after the store has recorded that a new one is being made.
    pub(super) fn begin(
        &mut self,
        state: InstanceState,
        since: Timestamp,
        generation: u64,
    ) -> Option<ServingIncarnation> {
        self.is_late = false;
        self.announce_later(
            self.publish(state, since, |report| (report.generation, report.ended) = (generation, None)),
        );
        self.cut = None;
        self.serving.take()
    }

    /// Opens the route to a generation that is proven and recorded; returns the generation that served before. Clients
    /// could not see anything of the new generation before this call.
    pub(super) fn switch(&mut self, recorded: RecordedGeneration) -> Result<Option<Retired>, OperationFailure> {
        let RecordedGeneration { serving, since } = recorded;
        let was_well = self.state() == InstanceState::Ready;
        let event = if self.state().serves() { InstanceEvent::Swapped } else { InstanceEvent::ProbesPassed };
        let next = self.next(event)?;
        self.is_late = false;
        // This comes before the first client: a request that is admitted from now on is not covered by this operation.
        self.progress.open();
        let used = self.serving.replace(serving);
        if let Some(used) = &used {
            used.visits.cancel();
        }
        self.cut = None;
        if let Some(ServingIncarnation { incarnation, is_adopted, .. }) = &self.serving {
            match is_adopted {
                true => {
                    self.pristine.spoil(incarnation.generation);
                    self.gate.route().take_up(incarnation.generation);
                }
                false => self.pristine.mark(incarnation.generation),
            }
        }
        // The route switches in one step: it cuts every exchange with the previous generation, and nothing of that
        // generation reaches a client afterwards.
        self.open_route();
        let passed = self.context.shared.clock.now();
        self.announce_later(self.publish(next, since, |report| {
            (report.last_passed, report.ended) = (Some(passed), None);
        }));
        Ok(used.map(|serving| {
            let generation = serving.incarnation.generation;
            let was_looked_at = self.looked_at.load(Ordering::SeqCst) == generation;
            let is_known = serving.is_adopted || was_looked_at;
            let was_reached = is_known || self.gate.route().may_have_reached(generation);
            // The effects of commands that a person ran in the containers are unknown, so the containers are not
            // brought back.
            let was_well = was_well && !self.entered.has(serving.incarnation.made);
            Retired { serving, was_well, was_reached }
        }))
    }

    fn open_route(&self) {
        let entry = &self.context.site.entry;
        let Some(ServingIncarnation { incarnation, .. }) = &self.serving else { return };
        match incarnation.socket(&entry.service, entry.port) {
            Some(address) => {
                let instance = self.context.id.to_string();
                self.gate.serve(Target { address, instance, generation: incarnation.generation });
            }
            // Only a container that has ended has no address, and the probes have just passed.
            None => self.refuse("its container has no address"),
        }
    }

    fn refuse(&self, reason: &str) {
        self.gate.refuse(format!("{} is unhealthy: {reason}", self.context.site.name), RETRY_AFTER);
    }

    /// Writes the serving generation into a report, or that none serves.
    fn show(&self, report: &mut InstanceReport) {
        report.incarnation = self.serving.as_ref().map(|serving| serving.incarnation.clone());
        report.containers.clear();
        let Some(ServingIncarnation { incarnation, snapshot, visits, .. }) = &self.serving else { return };
        report.generation = incarnation.generation;
        report.snapshot = Some(snapshot.id.clone());
        report.visits = visits.clone();
        for (service, handle) in &incarnation.containers {
            let address = incarnation.addresses.get(service).copied();
            report.containers.insert(service.to_string(), (handle.0.clone(), address));
        }
    }

    /// Fails the instance after the failure of a step that ran when the serving generation had already left service, so
    /// no generation serves.
    pub(super) async fn fail(&mut self, trouble: InstanceFailure) -> Result<(), OperationFailure> {
        self.gate.refuse(format!("{} has failed: {}", self.context.site.name, trouble.reason), RETRY_AFTER);
        self.leave();
        self.accept(InstanceEvent::StepFailed(trouble)).await
    }

    /// Begins to take the instance down.
    pub(super) async fn stop(&mut self) -> Result<(), OperationFailure> {
        self.gate.refuse(format!("{} is going down", self.context.site.name), RETRY_AFTER);
        self.leave();
        self.accept(InstanceEvent::DownRequested).await
    }

    /// Records that all objects of the instance have been removed.
    pub(super) async fn removed(&mut self) -> Result<(), OperationFailure> {
        self.enter(InstanceEvent::Removed).await
    }

    fn leave(&mut self) {
        if let Some(serving) = self.serving.take() {
            serving.visits.cancel();
        }
        self.pristine.clear();
        self.cut = None;
    }

    /// Closes the route because a container of the serving generation does not run: clients receive 503 until it does.
    pub(super) fn cut(&mut self, reason: &str) {
        self.cut = Some(reason.to_owned());
        self.refuse(reason);
    }

    /// Opens the route again because the containers run again.
    pub(super) fn mend(&mut self) {
        if self.cut.take().is_some() {
            self.open_route();
        }
    }

    /// Changes the state according to the failure that the probes of the serving generation report, or to its absence.
    pub(super) async fn judge(&mut self, trouble: Option<InstanceFailure>) {
        let state = self.state();
        let event = match trouble {
            // The instance is already in this state.
            Some(trouble) if state.trouble() == Some(&trouble) => return,
            Some(trouble) => InstanceEvent::ProbesFailed(trouble),
            None if matches!(state, InstanceState::Unhealthy(_)) => InstanceEvent::Recovered,
            None => return,
        };
        if let Err(refused) = self.accept(event).await {
            tracing::error!(instance.id = %self.context.id, error = describe(&refused), "a round of probes was misread");
        }
    }

    /// Records the digest that a later comparison of the serving generation took.
    pub(super) fn prove(&mut self, proven: Option<Taken>) {
        if let Some(serving) = &mut self.serving {
            serving.proven = proven;
        }
    }

    /// Replaces the addresses of the serving generation, whose containers were started again.
    pub(super) fn readdress(&mut self, incarnation: Incarnation) {
        let Some(serving) = &mut self.serving else { return };
        serving.incarnation = incarnation;
        self.report.send_modify(|report| self.show(report));
    }

    /// Discards the recorded traffic after a reset that left the serving generation unchanged, so that earlier clients'
    /// requests do not count as the next client's.
    pub(super) fn forget_recorded(&self) {
        self.gate.route().forget_recorded();
    }

    /// Gives the port back; the containers stay for the next daemon.
    pub(super) async fn close(self) {
        self.gate.route().clone().close().await;
    }
}

/// Publishes a description of the step that is running.
pub(super) fn tell(report: &channel::Sender<InstanceReport>, stage: &str) {
    report.send_modify(|report| report.stage = Some(stage.to_owned()));
}

/// The kind of the event that announces a state.
fn kind(state: &InstanceState) -> EventKind {
    match state {
        InstanceState::Down => EventKind::InstanceDown,
        InstanceState::Preparing => EventKind::InstancePreparing,
        InstanceState::Starting => EventKind::InstanceStarting,
        InstanceState::Ready => EventKind::InstanceReady,
        InstanceState::Unhealthy(_) => EventKind::InstanceUnhealthy,
        InstanceState::Resetting => EventKind::InstanceResetting,
        InstanceState::Stopping => EventKind::InstanceStopping,
        InstanceState::Failed(_) => EventKind::InstanceFailed,
    }
}
