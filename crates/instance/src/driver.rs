//! The driver task: admits requests, works on one operation at a time, watches the site in between.
//!
//! The driver reads its inbox at all times, so every request is admitted or refused at once. An operation is cancelled
//! by dropping it between two awaits. Calls to the engine and the state root that have begun by then still come to
//! their end; `down`, the only request that cancels, waits for them before it looks for leftovers.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::context::{InstanceContext, OperationProgress};
use super::gate::RouteGate;
use super::operations::Instance;
use super::site_pool::SitePool;
use super::{AskError, DriverMessage, EVENTS, INBOX, InstanceHandle, OperationOutcome, Ticket};
use crate::shared::SharedParts;
use arenad_engine::EngineEvent;
use arenad_model::event::EventKind;
use arenad_model::instance::{InstanceFailure, InstanceId};
use arenad_model::request_queue::{InstanceRequest, Purpose, RequestQueue, RequestRefusal};
use arenad_model::site::Site;
use arenad_seams::ordered_watch as channel;
use arenad_store::StoredInstance;
use arenad_telemetry::supervised::{Panicked, supervised};

/// The pause after a panic of the driver.
const PAUSE: Duration = Duration::from_secs(1);

/// An operation and the channel through which its callers learn how it ended.
#[derive(Clone)]
struct TrackedOperation {
    id: String,
    requested_at: Timestamp,
    done: channel::Sender<Option<OperationOutcome>>,
}

impl TrackedOperation {
    fn new(requested_at: Timestamp) -> Self {
        Self { id: format!("{:016x}", rand::random::<u64>()), requested_at, done: channel::channel(None).0 }
    }

    fn ticket(&self, joined: bool) -> Ticket {
        Ticket::new(self.id.clone(), joined, self.done.subscribe())
    }

    fn end(&self, outcome: OperationOutcome) {
        self.done.send_replace(Some(outcome));
    }
}

/// Starts the driver of an instance, in the state from `stored` if the store knows the instance. `pool` is the pool of its
/// site.
pub fn spawn(
    shared: &Arc<SharedParts>,
    id: InstanceId,
    site: Arc<Site>,
    gate: RouteGate,
    stored: Option<StoredInstance>,
    pool: Arc<SitePool>,
) -> InstanceHandle {
    let (inbox, messages) = mpsc::channel(INBOX);
    let (events, happened) = mpsc::channel(EVENTS);
    let gate = Arc::new(gate);
    let recorder = gate.route().recorder();
    let context = Arc::new(InstanceContext { shared: shared.clone(), id: id.clone(), site: site.clone() });
    let progress = OperationProgress::default();
    let instance = Instance::new(context.clone(), gate.clone(), progress.clone(), stored, pool.clone());
    let (report, looked_at, entered) =
        (instance.service.subscribe(), instance.service.looked_at(), instance.service.entered());
    let pristine = instance.service.pristine();
    let desk = DriverQueue { context, queue: RequestQueue::default(), progress, messages };
    let driver = Driver { shutdown: shared.shutdown.child_token(), instance, desk, events: happened };
    shared.tasks.spawn(driver.run());
    InstanceHandle { id, site, inbox, events, report, recorder, looked_at, entered, pristine, gate, pool }
}

struct Driver {
    instance: Instance,
    desk: DriverQueue,
    events: mpsc::Receiver<EngineEvent>,
    shutdown: CancellationToken,
}

/// The inbox and the queue, which stay in use while an operation runs.
struct DriverQueue {
    context: Arc<InstanceContext>,
    queue: RequestQueue<TrackedOperation>,
    progress: OperationProgress,
    messages: mpsc::Receiver<DriverMessage>,
}

impl Driver {
    /// Runs until the daemon stops or the last handle is gone.
    async fn run(mut self) {
        loop {
            match supervised(Box::pin(self.step())).await {
                Ok(true) => {}
                Ok(false) => break,
                Err(panicked) => self.survive(&panicked).await,
            }
        }
        self.instance.close().await;
    }

    /// Continues after a panic outside of an operation's own work. The next probes determine the state of the site, and
    /// the next reset restores it.
    async fn survive(&mut self, panicked: &Panicked) {
        let id = &self.desk.context.id;
        self.desk.context.note_later(EventKind::InstancePanicked, format!("{id}: {panicked}"));
        if let Some((_, operation)) = self.desk.queue.current() {
            let hint = format!("`arenad reset {}` brings it back", id.site);
            operation.end(OperationOutcome::Failed(InstanceFailure { reason: panicked.to_string(), hint }));
            self.desk.finish(&self.instance);
            self.instance.end_operation();
        }
        // A panic that repeats at once would fill the log.
        tokio::time::sleep(PAUSE).await;
    }

    /// Performs the next operation or handles the next message or event; returns false when the driver is to end.
    async fn step(&mut self) -> bool {
        if let Some((request, operation)) = self.desk.queue.current() {
            let (request, operation) = (request.clone(), operation.clone());
            let outcome = Box::pin(self.work(&request, &operation)).await;
            operation.end(outcome);
            if self.shutdown.is_cancelled() {
                return false;
            }
            self.desk.finish(&self.instance);
            return true;
        }
        tokio::select! {
            biased;
            () = self.shutdown.cancelled() => false,
            message = self.desk.messages.recv() => match message {
                // No operation runs, so the result, which tells whether to cancel it, is not needed.
                Some(message) => {
                    self.desk.admit(message, &self.instance.service.state());
                    true
                }
                None => false,
            },
            Some(event) = self.events.recv() => {
                self.instance.heard(&event);
                true
            }
            happened = self.instance.next_happening() => {
                if let Some(want) = self.instance.attend_to(happened).await {
                    let request = InstanceRequest { want, purpose: Purpose::Upkeep };
                    // No client waits for this request.
                    let message = DriverMessage::Ask { request, reply: oneshot::channel().0 };
                    self.desk.admit(message, &self.instance.service.state());
                }
                true
            }
        }
    }

    /// Works on one operation, and admits requests meanwhile.
    async fn work(&mut self, request: &InstanceRequest, operation: &TrackedOperation) -> OperationOutcome {
        let cancel = self.shutdown.child_token();
        let Self { instance, desk, .. } = self;
        desk.progress.restart();
        let state = instance.service.subscribe();
        let mut work = Box::pin(instance.perform(request, &operation.id, operation.requested_at, &cancel));
        loop {
            let message = tokio::select! {
                biased;
                outcome = &mut work => return outcome,
                message = desk.messages.recv() => message,
            };
            match message {
                Some(message) => {
                    let state = state.borrow().state.clone();
                    if desk.admit(message, &state) {
                        cancel.cancel();
                    }
                }
                // No handle is left, but the operation that has begun is completed.
                None => return work.await,
            }
        }
    }
}

impl DriverQueue {
    /// Admits a request or refuses it; returns whether the current operation is to be cancelled.
    fn admit(&mut self, message: DriverMessage, state: &arenad_model::instance::InstanceState) -> bool {
        let (request, reply) = match message {
            DriverMessage::Ask { request, reply } => (request, reply),
            DriverMessage::Ping(reply) => {
                // If the caller has gone away, there is nothing to do.
                let _ = reply.send(());
                return false;
            }
        };
        self.queue.note_cover(self.progress.cover());
        match self.queue.admit(request, state, || TrackedOperation::new(self.context.shared.clock.now())) {
            Ok(admitted) => {
                admitted.superseded.iter().for_each(|operation| operation.end(OperationOutcome::Superseded));
                // The operation runs even if the caller has gone away.
                let _ = reply.send(Ok(admitted.operation.ticket(admitted.is_joined)));
                admitted.cancels_current
            }
            Err(refusal) => {
                let _ = reply.send(Err(self.error(refusal)));
                false
            }
        }
    }

    /// Begins the next operation that the instance's state allows, and fails those before it.
    fn finish(&mut self, instance: &Instance) {
        for (operation, refusal) in self.queue.finish(&instance.service.state()) {
            let reason = self.error(refusal).to_string();
            let hint = format!("bring it up first with `arenad up {}`", self.context.id.environment);
            operation.end(OperationOutcome::Failed(InstanceFailure { reason, hint }));
        }
    }

    fn error(&self, refusal: RequestRefusal) -> AskError {
        let instance = self.context.id.clone();
        match refusal {
            RequestRefusal::NotUp { state } => AskError::NotUp { instance, state },
            RequestRefusal::Busy { doing } => AskError::Busy { instance, doing },
            RequestRefusal::Full => AskError::Full { instance },
        }
    }
}
