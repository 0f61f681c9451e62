//! Resets that harnesses ask for: one request of every driver, as for `POST …/resets`, and the board of those that run
//! or have failed.
//!
//! A row of the store says that a reset runs from before the first request until after the last site was proven. If the
//! daemon ends in between, the next one finds the row, and reports the reset as failed: of some sites it was not even
//! asked for.

use std::sync::Arc;

use futures_util::future::{join_all, select_all};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::api::{Api, ApiError};
use crate::compat::subject::ResetTargets;
use arenad_api::OperationKind;
use arenad_compat::board::{BeganReset, ResetBoard, SiteReadiness};
use arenad_instance::{AskError, InstanceHandle, OperationOutcome, Ticket};
use arenad_model::error::describe;
use arenad_model::request_queue::Want;
use arenad_model::reset_scope::ResetScope;
use arenad_seams::ordered_watch as watch;
use arenad_store::{DaemonStore, StoreError};
use arenad_telemetry::supervised::supervised;

/// The failure of a reset that an earlier daemon had begun.
const INTERRUPTED: &str = "the daemon ended before all sites were reset; ask for a reset again";

/// The failure of a reset while the daemon stops. It is not stored, because the row says more.
const STOPPING: &str = "the daemon is stopping";

/// The resets that harnesses have asked for.
pub(crate) struct AskedResets {
    store: DaemonStore,
    board: watch::Sender<ResetBoard>,
    /// Held while board and store change together, so that no request comes between the last look at the board and the
    /// removal of the row.
    turn: tokio::sync::Mutex<()>,
}

/// The reason why a pass over the sites was not completed.
enum PassFailure {
    /// A driver refused the request.
    Refused(ApiError),
    /// Sites were not reset.
    Failed(String),
    /// The daemon stopped before the sites were reset.
    Stopping,
}

impl AskedResets {
    /// Returns the board with what earlier daemons have left.
    pub(crate) async fn restore(store: DaemonStore) -> Result<Self, StoreError> {
        let failures = store.interrupt_asked_resets(INTERRUPTED).await?;
        let board = watch::Sender::new(ResetBoard::with_failures(failures));
        Ok(Self { store, board, turn: tokio::sync::Mutex::default() })
    }

    /// Begins a reset in a task of its own, and returns when every driver has admitted the request.
    ///
    /// Errors: a driver refuses it. The reset has failed then.
    pub(super) async fn ask(self: &Arc<Self>, api: &Arc<Api>, targets: ResetTargets) -> Result<BeganReset, ApiError> {
        let began = self.begin(&targets.scope).await?;
        if began == BeganReset::AlreadyRunning {
            return Ok(began);
        }
        let (admitted, answer) = oneshot::channel();
        // The work runs in a task of its own, so that a client that disconnects leaves nothing half done.
        let asked = AskedRun { resets: self.clone(), api: api.clone(), targets, admitted: Some(admitted) };
        api.shared.tasks.spawn(asked.run());
        match answer.await {
            Ok(admitted) => admitted.map(|()| began),
            Err(_) => Err(ApiError::bug("the reset ended without an answer")),
        }
    }

    async fn begin(&self, scope: &ResetScope) -> Result<BeganReset, ApiError> {
        let _turn = self.turn.lock().await;
        let mut began = BeganReset::Started;
        self.board.send_modify(|board| began = board.begin(scope));
        if began == BeganReset::Started
            && let Err(error) = self.store.begin_asked_reset(scope).await
        {
            self.board.send_modify(|board| board.fail(scope, describe(&error)));
            return Err(error.into());
        }
        Ok(began)
    }

    /// Ends a reset after a pass that succeeded, unless it must have another one. Returns whether it has ended.
    async fn end(&self, scope: &ResetScope) -> Result<bool, StoreError> {
        let _turn = self.turn.lock().await;
        let mut goes_on = false;
        self.board.send_modify(|board| goes_on = board.takes_another_pass(scope));
        if !goes_on {
            self.store.complete_asked_reset(scope).await?;
            self.board.send_modify(|board| board.complete(scope));
        }
        Ok(!goes_on)
    }

    /// Waits until sites are ready or have failed, or until the deadline.
    pub(super) async fn settled(&self, api: &Api, targets: &ResetTargets, deadline: Instant) -> SiteReadiness {
        let mut board = self.board.subscribe();
        let mut reports: Vec<_> = targets.instances.iter().map(InstanceHandle::changes).collect();
        loop {
            // The board is read before the states: a reset leaves the board when its sites are ready.
            let now = board.borrow_and_update().clone();
            let states: Vec<_> = reports.iter_mut().map(|report| report.borrow_and_update().state.clone()).collect();
            let named = targets.instances.iter().map(|instance| &instance.site.name).zip(&states);
            let readiness = match (&targets.scope.site, states.as_slice()) {
                (Some(name), [state]) => now.of_site(&targets.scope, name, state),
                _ => now.of_all(&targets.scope, named),
            };
            if readiness != SiteReadiness::Ongoing {
                return readiness;
            }
            let changes = reports.iter_mut().map(|report| Box::pin(report.changed()));
            tokio::select! {
                _ = board.changed() => {}
                (changed, ..) = select_all(changes) => if changed.is_err() {
                    return SiteReadiness::Failed { reason: "a site was taken down".to_owned() };
                },
                () = tokio::time::sleep_until(deadline) => return readiness,
                () = api.stop.cancelled() => return SiteReadiness::Failed { reason: STOPPING.to_owned() },
            }
        }
    }
}

/// A reset that runs.
struct AskedRun {
    resets: Arc<AskedResets>,
    api: Arc<Api>,
    targets: ResetTargets,
    /// Receives whether all drivers have admitted the request.
    admitted: Option<oneshot::Sender<Result<(), ApiError>>>,
}

impl AskedRun {
    /// Resets the sites until no further client waits for it, and leaves the board and the row as they must be.
    async fn run(mut self) {
        let (resets, scope) = (self.resets.clone(), self.targets.scope.clone());
        let failed = match supervised(Box::pin(self.passes())).await {
            Ok(Ok(())) => return,
            Ok(Err(PassFailure::Stopping)) => {
                resets.board.send_modify(|board| board.fail(&scope, STOPPING.to_owned()));
                return;
            }
            Ok(Err(PassFailure::Failed(reason))) => reason,
            Ok(Err(PassFailure::Refused(refusal))) => {
                let reason = refusal.told();
                self.answer(Err(refusal));
                reason
            }
            Err(panicked) => panicked.to_string(),
        };
        tracing::warn!(environment = %scope.environment, slot = scope.slot, "a reset for a harness failed: {failed}");
        let _turn = resets.turn.lock().await;
        // Without this change, the row says that the reset has not ended, which the next daemon takes for a failure
        // too.
        if let Err(error) = resets.store.fail_asked_reset(&scope, &failed).await {
            tracing::warn!(error = describe(&error), "the failure of a reset could not be stored");
        }
        resets.board.send_modify(|board| board.fail(&scope, failed));
    }

    async fn passes(&mut self) -> Result<(), PassFailure> {
        let mut want = Want::RESET;
        loop {
            let tickets = self.ask_all(&want).await?;
            self.answer(Ok(()));
            self.wait_for(tickets).await?;
            let ended = self.resets.end(&self.targets.scope).await;
            if ended.map_err(|error| PassFailure::Failed(describe(&error)))? {
                return Ok(());
            }
            // The sites that the client who asked meanwhile has not written to since their turn are left as they are.
            want = Want::ResetIfDirty;
        }
    }

    fn answer(&mut self, answer: Result<(), ApiError>) {
        if let Some(admitted) = self.admitted.take() {
            // The client may have disconnected.
            let _ = admitted.send(answer);
        }
    }

    /// Makes the request to every driver. If an episode has one of the slots, no site is reset.
    async fn ask_all(&self, want: &Want) -> Result<Vec<(InstanceHandle, Ticket)>, PassFailure> {
        let refused = |error: AskError| match error {
            AskError::Stopping if self.is_stopping() => PassFailure::Stopping,
            error => PassFailure::Refused(error.into()),
        };
        for instance in &self.targets.instances {
            if let Some(episode) = instance.holder() {
                return Err(refused(AskError::Leased { instance: instance.id.clone(), episode }));
            }
        }
        let mut tickets = Vec::new();
        for instance in &self.targets.instances {
            let ticket = instance.ask(want.clone()).await.map_err(refused)?;
            let ticket = self.api.operations.remember(OperationKind::Reset, instance.id.clone(), ticket).ticket;
            tickets.push((instance.clone(), ticket));
        }
        Ok(tickets)
    }

    /// Waits for all operations, also after one has failed, so that the failure names all sites that were not reset.
    async fn wait_for(&self, tickets: Vec<(InstanceHandle, Ticket)>) -> Result<(), PassFailure> {
        let ends = tickets.into_iter().map(|(instance, ticket)| async move { (instance, ticket.wait().await) });
        let mut failures = Vec::new();
        for (instance, outcome) in join_all(ends).await {
            let site = &instance.site.name;
            match outcome {
                OperationOutcome::Done { .. } => {}
                OperationOutcome::Failed(failure) => {
                    failures.push(format!("{site} was not reset: {}; {}", failure.reason, failure.hint));
                }
                OperationOutcome::Stopped if self.is_stopping() => return Err(PassFailure::Stopping),
                OperationOutcome::Superseded | OperationOutcome::Stopped => {
                    failures.push(format!("{site} was not reset: it was taken down"));
                }
            }
        }
        if failures.is_empty() { Ok(()) } else { Err(PassFailure::Failed(failures.join("; "))) }
    }

    fn is_stopping(&self) -> bool {
        self.api.stop.is_cancelled() || self.api.shared.shutdown.is_cancelled()
    }
}
