//! The operations of one instance. The driver runs one at a time. Each operation returns how it ended and leaves state,
//! route and containers consistent with each other.
//!
//! After a failed operation, the generation that served continues to serve. The instance becomes `failed` only if that
//! generation had left service for good; then all of its objects are removed.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::OperationOutcome;
use super::context::{InstanceContext, OperationProgress};
use super::failure::{self, OperationFailure};
use super::gate::RouteGate;
use super::making;
use super::reset::{Proven, RecordedGeneration, ResetParameters};
use super::service::{InstanceService, ServingIncarnation, tell};
use super::site_pool::{GivenUp, SitePool};
use super::spare::SpareClones;
use super::watch::InstanceWatch;
use crate::engine_in_use;
use crate::proof::ProofCandidate;
use arenad_baseline::{self as baseline, BaselineError, snapshot};
use arenad_digest::StoreConnections;
use arenad_engine::{CpuWeight, labels};
use arenad_launch::{self as launch, GenerationSelector, Incarnation, Remains, RemoveError};
use arenad_model::error::describe;
use arenad_model::event::EventKind;
use arenad_model::instance::{InstanceId, InstanceState};
use arenad_model::request_queue::{InstanceRequest, Purpose, Want};
use arenad_model::reset::ResetWay;
use arenad_model::snapshot::{Snapshot, SnapshotId};
use arenad_model::verify::ComparisonExtent;
use arenad_reset::ResetError;
use arenad_seams::fault::{self, Point};
use arenad_store::{NewGeneration, StoredInstance, StoredResetRequest};
use arenad_telemetry::supervised::supervised;

/// How long `down` waits for the pool's tasks and for engine calls that were in progress.
const ENDING_PATIENCE: Duration = Duration::from_secs(30);
/// The pause before an action that the store or the engine refused is tried again.
const RETRY: Duration = Duration::from_secs(5);
/// The pause between two rounds of removing the containers that cancelled calls and tasks still create.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// The parts of one instance, each of which owns its own state.
pub(super) struct Instance {
    pub(super) context: Arc<InstanceContext>,
    /// State, route and serving generation.
    pub(super) service: InstanceService,
    /// The standbys of the site, which all of its slots share, and the generations that the slots hold.
    pub(super) pool: Arc<SitePool>,
    /// The probes of the serving generation.
    pub(super) watch: InstanceWatch,
    pub(super) progress: OperationProgress,
    /// The snapshot that resets return to and that standbys are made from.
    pub(super) baseline: Option<Snapshot>,
    /// The row that an earlier daemon left, until its containers are adopted or replaced.
    pub(super) found: Option<StoredInstance>,
    /// Clones for the next rewind.
    pub(super) spare: Option<SpareClones>,
    /// The number of resets that this daemon has begun for the instance.
    pub(super) resets: u64,
    /// The part of the gateway's count of requests that may write that has been noted already.
    pub(super) requests_seen: u64,
    /// When to retry an action that the store or the engine refused.
    pub(super) retry_at: Option<Instant>,
    /// The number of consecutive times that the engine or the store did not respond when the containers of an earlier
    /// daemon were to be adopted.
    unanswered: u32,
}

/// The id of an operation, when it was requested, and when its work began.
#[derive(Clone, Copy)]
pub(super) struct OperationStart<'a> {
    pub(super) id: &'a str,
    pub(super) requested_at: Timestamp,
    pub(super) begun: Instant,
}

/// Runs a part of an operation. If the operation is cancelled, the part ends between two awaits.
pub(super) async fn unless<T>(
    cancel: &CancellationToken,
    work: impl Future<Output = T>,
) -> Result<T, OperationFailure> {
    cancel.run_until_cancelled(work).await.ok_or(OperationFailure::Superseded)
}

impl Instance {
    pub(super) fn new(
        context: Arc<InstanceContext>,
        gate: Arc<RouteGate>,
        progress: OperationProgress,
        found: Option<StoredInstance>,
        pool: Arc<SitePool>,
    ) -> Self {
        let service = InstanceService::new(context.clone(), gate.clone(), progress.clone(), found.as_ref());
        let made = found.as_ref().and_then(|found| found.serving).map(|serving| serving.made);
        pool.join(context.id.number, gate, service.subscribe(), made);
        Self {
            service,
            pool,
            watch: InstanceWatch::new(context.shared.clock.clone()),
            progress,
            baseline: None,
            found,
            spare: None,
            resets: 0,
            requests_seen: 0,
            retry_at: None,
            unanswered: 0,
            context,
        }
    }

    /// Performs a request and returns how it ended.
    pub(super) async fn perform(
        &mut self,
        request: &InstanceRequest,
        id: &str,
        requested_at: Timestamp,
        cancel: &CancellationToken,
    ) -> OperationOutcome {
        let begun = Instant::now();
        let operation = OperationStart { id, requested_at, begun };
        self.pool.begin_operation(self.context.id.number);
        // The driver receives no round's result before the operation ends, and by then the round would be out of date.
        self.watch.drop_rounds();
        // If the engine does not respond, the operation itself fails.
        if let Err(error) = engine_in_use::meet(&self.context.shared).await {
            tracing::debug!(instance.id = %self.context.id, error = describe(&error), "the engine in use is not known");
        }
        let work = supervised(Box::pin(self.attempt(request, operation, cancel))).await;
        let result = work.unwrap_or_else(|panicked| {
            self.context.note_later(EventKind::InstancePanicked, format!("{}: {panicked}", self.context.id));
            Err(panicked.into())
        });
        self.service.report().send_modify(|report| report.stage = None);
        let outcome = match result {
            Ok(snapshot) => OperationOutcome::Done { took: begun.elapsed(), snapshot },
            Err(OperationFailure::Superseded) if self.context.shared.shutdown.is_cancelled() => {
                OperationOutcome::Stopped
            }
            Err(OperationFailure::Superseded) => OperationOutcome::Superseded,
            Err(failure) => OperationOutcome::Failed(self.settle(failure).await),
        };
        self.watch_the_row();
        self.end_operation();
        outcome
    }

    /// Tells the pool what an operation has left. The pool is checked then, whatever the result is.
    pub(super) fn end_operation(&self) {
        let slot = self.context.id.number;
        let serving = self.service.serving().map(|serving| serving.incarnation.made);
        let found = || self.found.as_ref().and_then(|found| found.serving).map(|serving| serving.made);
        self.pool.note_baseline(slot, self.baseline.as_ref());
        self.pool.end_operation(slot, serving.or_else(found));
    }

    async fn attempt(
        &mut self,
        request: &InstanceRequest,
        operation: OperationStart<'_>,
        cancel: &CancellationToken,
    ) -> Result<Option<Box<Snapshot>>, OperationFailure> {
        match &request.want {
            Want::Up => Box::pin(self.up(request.purpose, cancel)).await.map(|()| None),
            Want::Reset { to } => Box::pin(self.reset_to(operation, to.as_deref(), cancel)).await.map(|()| None),
            Want::ResetIfDirty => {
                let plan = ResetParameters::new(operation, self.resets);
                Box::pin(self.reset_if_dirty(plan, cancel)).await.map(|()| None)
            }
            Want::Down => self.down().await.map(|()| None),
            Want::Take { name } => self.take(name, cancel).await.map(|snapshot| Some(Box::new(snapshot))),
            Want::Copy(order) => Box::pin(self.copy(order, cancel)).await.map(|copy| Some(Box::new(copy))),
        }
    }

    /// Makes state, route and containers consistent after a failed operation.
    async fn settle(&mut self, failure: OperationFailure) -> arenad_model::instance::InstanceFailure {
        let mut trouble = failure::of(&failure, &self.context.id);
        if self.context.shared.baselines.kept_builds.has(&self.context.id) {
            trouble.hint = failure::hint_of_kept(&trouble.hint, &self.context.id);
        }
        self.forget_missing_baseline().await;
        match self.service.state() {
            // The failed step had not touched the serving generation.
            InstanceState::Ready | InstanceState::Unhealthy(_) => self.service.resume(),
            // The failed step was the first one, or everything had been removed before it.
            InstanceState::Down | InstanceState::Failed(_) => {}
            InstanceState::Preparing | InstanceState::Starting | InstanceState::Resetting | InstanceState::Stopping => {
                let was_stopping = self.service.state() == InstanceState::Stopping;
                if let Err(refused) = self.service.fail(trouble.clone()).await {
                    tracing::error!(instance.id = %self.context.id, error = describe(&refused), "a failure was misread");
                }
                if self.found.is_some() && failure.is_transient() {
                    // Nothing was made yet: the containers that an earlier daemon left are adopted once engine and
                    // store respond.
                    self.retry_at = Some(Instant::now() + RETRY * (1 << self.unanswered.min(4)));
                    self.unanswered += 1;
                    return trouble;
                }
                self.disown().await;
                // A failed `down` has already tried to remove them; otherwise no object of a failed attempt remains. If
                // the engine is unreachable, reconciliation removes them later.
                if !was_stopping && let Err(error) = self.clear(false).await {
                    tracing::warn!(instance.id = %self.context.id, error = describe(&error), "leftovers remain");
                }
            }
        }
        trouble
    }

    /// Forgets a baseline that was removed while nothing used it; the next request provides one.
    pub(super) async fn forget_missing_baseline(&mut self) {
        let Some(known) = &self.baseline else { return };
        if matches!(self.context.shared.store.snapshot(&known.id).await, Ok(None)) {
            self.baseline = None;
        }
    }

    /// Schedules a retry if the store has refused the state.
    pub(super) fn watch_the_row(&mut self) {
        if self.service.is_late() {
            self.retry_at.get_or_insert(Instant::now() + RETRY);
        }
    }

    /// Retries the actions that the store or the engine refused; returns a request if one is needed for that.
    pub(super) async fn retry(&mut self) -> Option<Want> {
        self.retry_at = None;
        self.service.catch_up().await;
        self.watch_the_row();
        let is_left = self.found.is_some() && matches!(self.service.state(), InstanceState::Failed(_));
        is_left.then_some(Want::Up)
    }

    /// Gives up the store's claim to the containers of the last generation.
    async fn disown(&self) {
        let context = &self.context;
        if let Err(error) = context.shared.store.disown_serving(&context.id).await {
            tracing::warn!(instance.id = %context.id, error = describe(&error), "leftovers are still claimed");
        }
    }

    /// Makes the instance ready from its current baseline, unless it already is.
    async fn up(&mut self, purpose: Purpose, cancel: &CancellationToken) -> Result<(), OperationFailure> {
        if self.service.state().serves() {
            return Box::pin(self.bring_up_to_date(cancel)).await;
        }
        self.service.prepare().await?;
        // This comes before anything is built, so a failed build does not end containers that run.
        if unless(cancel, self.take_up_serving()).await?? {
            return Ok(());
        }
        let left = match purpose {
            Purpose::Restore | Purpose::Upkeep => self.left_snapshot().await?,
            Purpose::Client | Purpose::Episode => None,
        };
        self.found = None;
        let target = match left {
            Some(target) => target,
            None => {
                let prepared = unless(cancel, Box::pin(self.prepare())).await??;
                self.baseline = Some(prepared.clone());
                prepared
            }
        };
        self.service.start().await?;
        self.take_up_standbys().await?;
        let proven = unless(cancel, Box::pin(self.recreate(None, &target, ComparisonExtent::Everything))).await??;
        self.record_up(proven).await
    }

    async fn record_up(&mut self, proven: Proven) -> Result<(), OperationFailure> {
        let baseline = self.baseline.as_ref().map(|baseline| baseline.id.clone());
        let recorded = proven.record_up(&self.context, baseline.as_ref()).await.map_err(|(_, failure)| failure)?;
        self.switch(recorded)?;
        fault::reach(Point::Routed).await;
        Ok(())
    }

    /// Brings an instance that serves up to its current baseline. If the new containers can run beside the old ones, it
    /// serves until they are ready.
    async fn bring_up_to_date(&mut self, cancel: &CancellationToken) -> Result<(), OperationFailure> {
        let prepared = unless(cancel, Box::pin(self.prepare())).await??;
        let is_current = self.baseline.as_ref().is_some_and(|current| current.id == prepared.id);
        if is_current && self.service.state() == InstanceState::Ready {
            // The content is the same, but the images may be new ones: the old ones were removed, or are on an engine that
            // was in use before.
            if self.baseline.as_ref().is_some_and(|known| known.images != prepared.images) {
                self.pool.forget_failures();
            }
            self.baseline = Some(prepared);
            return Ok(());
        }
        if is_current || self.context.site.writes_host_data() {
            // The instance is unhealthy, or two sets of its containers would destroy each other's data.
            self.service.pause("is being started anew");
            self.baseline = Some(prepared.clone());
            let proven =
                unless(cancel, Box::pin(self.recreate(None, &prepared, ComparisonExtent::Everything))).await??;
            return self.record_up(proven).await;
        }
        let proven = unless(cancel, Box::pin(self.make_beside(&prepared))).await??;
        let recorded = match proven.record_up(&self.context, Some(&prepared.id)).await {
            Ok(recorded) => recorded,
            Err((proven, failure)) => {
                self.pool.reject(proven.incarnation, &prepared.id);
                return Err(failure);
            }
        };
        self.baseline = Some(prepared.clone());
        self.progress.commit();
        let retired = self.switch(recorded)?;
        self.forget_writes();
        self.retire(retired, &prepared.id);
        self.weigh_current();
        Ok(())
    }

    /// Makes containers from a new baseline beside the serving ones.
    async fn make_beside(&mut self, prepared: &Snapshot) -> Result<Proven, OperationFailure> {
        let context = &self.context;
        self.service.tell("starting from the new baseline");
        let generation = context.shared.store.begin_standby(&context.id).await?;
        self.pool.hold(context.id.number, generation);
        let (shared, id, site) = (context.shared.clone(), context.id.clone(), context.site.clone());
        let made = making::make(shared, id, site, prepared.clone(), generation, self.pool.token()).await;
        let (incarnation, proof) = made.map_err(|error| OperationFailure::Beside(error.into()))?;
        let (proof, extent) = match proof {
            Some(proof) => {
                proof.end().await;
                (Some(proof.taken().clone()), ComparisonExtent::Everything)
            }
            None => (None, ComparisonExtent::Nothing),
        };
        Ok(Proven { incarnation, snapshot: prepared.clone(), proof, extent, renewals: 0, is_standby: true })
    }

    /// Provides the images and the baseline. A further slot takes the baseline of slot 1, so that all slots of a site start
    /// from the same state even if the files that its images are built from have changed.
    pub(super) async fn prepare(&self) -> Result<Snapshot, OperationFailure> {
        if let Some(baseline) = self.baseline_of_first().await?
            && let Some(usable) = self.find_usable(&baseline).await?
        {
            return Ok(usable);
        }
        let (context, report) = (&self.context, self.service.report());
        let stage = |text: &str| tell(report, text);
        Ok(baseline::provide(&context.shared.baselines, &context.id, &context.site, &stage).await?)
    }

    /// Takes the baseline of slot 1 if this is a further slot, because `arenad up` may have given slot 1 another one.
    pub(super) async fn follow_first(&mut self) -> Result<(), OperationFailure> {
        let Some(baseline) = self.baseline_of_first().await? else { return Ok(()) };
        if self.baseline.as_ref().is_some_and(|known| known.id != baseline)
            && let Some(usable) = self.find_usable(&baseline).await?
        {
            self.baseline = Some(usable);
        }
        Ok(())
    }

    /// Returns the baseline of slot 1, if this is a further slot.
    async fn baseline_of_first(&self) -> Result<Option<SnapshotId>, OperationFailure> {
        let InstanceContext { shared, id, .. } = self.context.as_ref();
        let first = InstanceId::serving(&id.environment, &id.site);
        if first == *id {
            return Ok(None);
        }
        Ok(shared.store.instance(&first).await?.and_then(|row| row.baseline))
    }

    /// Returns a snapshot if it exists with its images and trees.
    pub(super) async fn find_usable(&self, id: &SnapshotId) -> Result<Option<Snapshot>, OperationFailure> {
        let InstanceContext { shared, site, .. } = self.context.as_ref();
        let Some(found) = shared.store.snapshot(id).await? else { return Ok(None) };
        let is_usable = snapshot::is_usable(&shared.baselines, site, &found).await;
        Ok(is_usable.map_err(|error| ResetError::Launch(error.into()))?.then_some(found))
    }

    /// Takes the serving generation out of service for good. The store knows the new generation before anything happens
    /// to the old one. Returns the number of the new generation, and the old generation if one served.
    pub(super) async fn begin_generation(
        &mut self,
        plan: Option<&ResetParameters<'_>>,
        target: &Snapshot,
        way: ResetWay,
    ) -> Result<(u64, Option<ServingIncarnation>), OperationFailure> {
        let (state, since) = (self.service.resetting()?, self.context.shared.clock.now());
        let begun = NewGeneration {
            has_new_containers: way != ResetWay::Rewind,
            snapshot: &target.id,
            state: &state,
            since,
            reset: plan.map(|plan| StoredResetRequest { id: plan.id, requested_at: plan.requested_at }),
            strategy: way,
        };
        let generation = self.context.shared.store.begin_generation(&self.context.id, &begun).await?;
        if begun.has_new_containers {
            self.pool.hold(self.context.id.number, generation);
        }
        self.watch.end();
        Ok((generation, self.service.begin(state, since, generation)))
    }

    /// Opens the route to a recorded generation and begins to watch it.
    pub(super) fn switch(
        &mut self,
        recorded: RecordedGeneration,
    ) -> Result<Option<super::service::Retired>, OperationFailure> {
        let retired = self.service.switch(recorded)?;
        self.begin_watch();
        Ok(retired)
    }

    /// Brings the instance to the snapshot with this id, or to its baseline.
    async fn reset_to(
        &mut self,
        operation: OperationStart<'_>,
        to: Option<&str>,
        cancel: &CancellationToken,
    ) -> Result<(), OperationFailure> {
        let target = match to {
            Some(id) => {
                let found = self.context.shared.store.snapshot(id).await?;
                Some(found.ok_or_else(|| OperationFailure::NoSnapshot(id.to_owned()))?)
            }
            None => None,
        };
        let plan = ResetParameters::new(operation, self.resets);
        Box::pin(self.reset(plan, target, cancel)).await
    }

    /// Removes everything that belongs to the instance.
    async fn down(&mut self) -> Result<(), OperationFailure> {
        self.service.stop().await?;
        self.watch.end();
        // This holds even if the removal fails: containers of an earlier daemon are not adopted after a `down`.
        self.found = None;
        self.context.shared.baselines.kept_builds.forget(&self.context.id);
        self.clear(true).await?;
        self.baseline = None;
        self.service.removed().await
    }

    /// Removes everything, including the containers that the pool's tasks and cancelled engine calls are still making. The
    /// standbys go with the last slot of the site.
    async fn clear(&mut self, is_down: bool) -> Result<(), RemoveError> {
        let context = self.context.clone();
        let GivenUp { generations, is_last, is_only } = self.pool.give_up(context.id.number);
        if let Some(spare) = self.spare.take() {
            spare.end().await;
        }
        // A slot that fails leaves what it does not know to reconciliation: another slot may be about to join.
        let which = if is_down && is_only { GenerationSelector::All } else { GenerationSelector::Among(&generations) };
        if is_last {
            if let Err(error) = context.shared.store.forget_standbys(&context.id).await {
                // The next daemon compares each standby with its snapshot before the standby counts.
                tracing::warn!(instance.id = %context.id, error = describe(&error), "standbys are still noted");
            }
            let deadline = Instant::now() + ENDING_PATIENCE;
            while !self.pool.has_ended(LOOK_AGAIN).await && Instant::now() < deadline {
                // A container that a task makes after this finds its network gone, or is removed in the next round.
                let _ = self.clear_once(which).await;
            }
        }
        context.shared.settle(ENDING_PATIENCE).await;
        self.clear_once(which).await
    }

    async fn clear_once(&self, which: GenerationSelector<'_>) -> Result<(), RemoveError> {
        let InstanceContext { shared, id, .. } = self.context.as_ref();
        let installation = &shared.installation;
        if !shared.baselines.kept_builds.has(id) {
            let (role, which) = (labels::ROLE_BUILDER, GenerationSelector::All);
            shared.remove(Remains { installation, instance: id, role, which }).await?;
        }
        shared.remove(Remains { installation, instance: id, role: labels::ROLE_INSTANCE, which }).await
    }

    /// Stops the instance cleanly, stores its state as a snapshot, and starts it again.
    async fn take(&mut self, name: &str, cancel: &CancellationToken) -> Result<Snapshot, OperationFailure> {
        let context = self.context.clone();
        unless(cancel, self.check_depth()).await??;
        // The site boots again afterwards, so it needs a turn. Requests are held only from the turn on, not while other
        // sites boot.
        let turn = unless(cancel, self.service.turn(&context.shared.turns.boots)).await?;
        self.service.pause("is held while a snapshot is taken");
        let (state, since) = (self.service.resetting()?, self.context.shared.clock.now());
        context.shared.store.save_state(&context.id, &state, since).await?;
        let generation = self.service.serving().map_or(0, |serving| serving.incarnation.generation);
        let Some(mut serving) = self.service.begin(state, since, generation) else {
            return Err(OperationFailure::Superseded);
        };
        self.watch.end();
        let stored = unless(cancel, self.store_snapshot(name, &serving)).await?;
        // Whether or not the snapshot was stored, the site continues with its clients' changes.
        let restarted = unless(cancel, self.restart(&mut serving.incarnation)).await?;
        if let Err(cause) = restarted {
            return Err(match stored {
                Ok(_) => cause,
                Err(failure) => OperationFailure::NotRestarted { taking: Box::new(failure), cause: Box::new(cause) },
            });
        }
        if let Ok(taken) = &stored {
            // The site equals the new snapshot, and no client has reached it since, so its digest is the snapshot's.
            let (shared, id, site) = (&context.shared, &context.id, &context.site);
            let candidate = ProofCandidate { shared, id, site, snapshot: taken, incarnation: &serving.incarnation };
            let learned = unless(cancel, candidate.prove_or_learn(&StoreConnections::passing())).await?;
            if let Err(error) = learned {
                tracing::warn!(instance.id = %id, error = describe(&error), "the new snapshot's digest is not known");
            }
        }
        drop(turn);
        let since = self.context.shared.clock.now();
        let ready = InstanceState::Ready;
        context.shared.store.save_state(&context.id, &ready, since).await?;
        // The servers were started again, so the digest from before does not describe them.
        serving.proven = None;
        serving.visits = CancellationToken::new();
        self.switch(RecordedGeneration { serving, since })?;
        stored
    }

    /// Checks that the state root can store the trees, before anything is stopped.
    pub(super) async fn check_depth(&self) -> Result<(), OperationFailure> {
        let InstanceContext { shared, id, site } = self.context.as_ref();
        let (Some(storage), Some(serving)) = (&shared.storage, self.service.serving()) else { return Ok(()) };
        for mount in launch::state_mounts(site) {
            let tree = mount.of_instance(id, serving.incarnation.made).map_err(BaselineError::from)?;
            storage.check_depth(&tree).await.map_err(BaselineError::from)?;
        }
        Ok(())
    }

    async fn store_snapshot(&self, name: &str, serving: &ServingIncarnation) -> Result<Snapshot, OperationFailure> {
        let InstanceContext { shared, id, site } = self.context.as_ref();
        self.service.tell("stopping cleanly");
        snapshot::stop_cleanly(&shared.baselines, site, &serving.incarnation)
            .await
            .map_err(OperationFailure::Snapshot)?;
        self.service.tell("taking the snapshot");
        let purpose = snapshot::SnapshotPurpose::Named { name: name.to_owned() };
        let taken = snapshot::store(&shared.baselines, id, site, &serving.incarnation, purpose).await;
        let taken = taken.map_err(OperationFailure::Snapshot)?;
        shared.store.inherit_sessions(&serving.snapshot.id, &taken.id).await?;
        Ok(taken)
    }

    /// Starts stopped containers again and waits until their probes pass.
    pub(super) async fn restart(&self, incarnation: &mut Incarnation) -> Result<(), OperationFailure> {
        let InstanceContext { shared, site, .. } = self.context.as_ref();
        self.service.tell("starting again");
        let deadline = Instant::now() + site.readiness.timeout;
        let engine = shared.engine.as_ref();
        launch::start(engine, site, incarnation, deadline).await.map_err(ResetError::Launch)?;
        if let Err(cause) = shared.prober.wait_ready(site, incarnation, &|_| {}).await {
            let log = shared.prober.log_tail(incarnation, 15).await;
            return Err(ResetError::NotReady { cause, log }.into());
        }
        // The containers may have a standby's share of the processors, which they were given when they were made.
        for handle in incarnation.containers.values() {
            if let Err(error) = engine.weigh(handle, CpuWeight::Serving).await {
                tracing::warn!(error = describe(&error), "a container keeps a standby's share of the processors");
            }
        }
        Ok(())
    }

    /// Begins to make clones for the next rewind, unless there are some.
    pub(super) fn prepare_spare(&mut self) {
        let Some(serving) = self.service.serving() else { return };
        // A fork is brought back to the baseline, and not to the copy that it starts from.
        if serving.snapshot.is_copy() {
            return;
        }
        if self.spare.as_ref().is_none_or(|spare| !spare.is_of(&serving.snapshot.id)) {
            let InstanceContext { shared, site, id, .. } = self.context.as_ref();
            self.spare = SpareClones::begin(shared, site, id, &serving.incarnation, &serving.snapshot);
        }
    }

    /// Ends the driver's work: the port is given back, the containers stay for the next daemon.
    pub(super) async fn close(self) {
        self.pool.leave(self.context.id.number);
        self.service.close().await;
    }
}
