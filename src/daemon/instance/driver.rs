//! The driver task: takes requests in, works on one at a time, watches the site in between.
//!
//! While an operation runs the inbox is still read, so a request that joins, waits or supersedes is answered at once.
//! An operation is superseded by cancelling it between two awaits; what it had made by then bears the labels of its
//! generation and goes with the next removal.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::{mpsc, oneshot, watch as channel};
use tokio_util::sync::CancellationToken;

use super::core::Core;
use super::{AskError, INBOX, InstanceHandle, Message, Outcome, Ticket};
use crate::daemon::gateway::Route;
use crate::daemon::shared::Shared;
use crate::daemon::store::StoredInstance;
use crate::domain::instance::InstanceId;
use crate::domain::request_queue::{Admission, Request, RequestQueue};
use crate::domain::site::Site;

/// One operation and who waits for it.
struct Operation {
    id: String,
    name: Option<String>,
    done: channel::Sender<Option<Outcome>>,
}

impl Operation {
    fn new(name: Option<String>) -> Self {
        Self { id: format!("{:016x}", rand::random::<u64>()), name, done: channel::channel(None).0 }
    }

    fn ticket(&self, joined: bool) -> Ticket {
        Ticket { operation: self.id.clone(), joined, done: self.done.subscribe() }
    }
}

/// Starts the driver of an instance that exists as `stored` says, or not yet.
pub fn spawn(
    shared: &Arc<Shared>,
    id: InstanceId,
    site: Arc<Site>,
    route: Route,
    stored: Option<StoredInstance>,
) -> InstanceHandle {
    let (inbox, messages) = mpsc::channel(INBOX);
    let recorder = route.recorder();
    let core = Core::new(shared.clone(), id.clone(), site.clone(), route, stored);
    let (report, looked_at) = (core.subscribe(), core.looked_at.clone());
    let driver = Driver {
        shutdown: shared.shutdown.child_token(),
        core,
        messages,
        queue: RequestQueue::default(),
        current: None,
        next: None,
    };
    shared.tasks.spawn(driver.run());
    InstanceHandle { id, site, inbox, report, recorder, looked_at }
}

struct Driver {
    core: Core,
    messages: mpsc::Receiver<Message>,
    queue: RequestQueue,
    current: Option<Operation>,
    next: Option<Operation>,
    shutdown: CancellationToken,
}

impl Driver {
    /// Runs until the daemon stops or the last handle is gone.
    async fn run(mut self) {
        loop {
            let Some(request) = self.queue.current() else {
                let message = tokio::select! {
                    () = self.shutdown.cancelled() => break,
                    message = self.messages.recv() => message,
                    happened = self.core.next_happening() => {
                        if let Some(request) = self.core.attend_to(happened).await {
                            // Nobody waits for what the driver asks of itself.
                            self.admit(request, None, oneshot::channel().0, None);
                        }
                        continue;
                    }
                };
                match message {
                    Some(Message::Ask { request, name, reply }) => self.admit(request, name, reply, None),
                    Some(Message::Engine(event)) => self.core.heard(&event),
                    None => break,
                }
                continue;
            };
            let Some(operation) = self.current.take() else {
                self.queue.finish();
                continue;
            };
            let outcome = self.work(request, &operation).await;
            // Nobody waiting is fine.
            operation.done.send_replace(Some(outcome));
            if self.shutdown.is_cancelled() {
                break;
            }
            self.queue.finish();
            self.current = self.next.take();
        }
        self.core.close().await;
    }

    /// Works on one request while taking others in.
    async fn work(&mut self, request: Request, operation: &Operation) -> Outcome {
        let cancel = self.shutdown.child_token();
        let is_open = self.core.is_open.clone();
        let core_id = self.core.id.to_string();
        let Self { core, messages, queue, next, .. } = self;
        let work = core.perform(request, &operation.id, operation.name.as_deref(), &cancel);
        let mut work = std::pin::pin!(work);
        loop {
            let message = tokio::select! {
                biased;
                outcome = &mut work => return outcome,
                message = messages.recv() => message,
            };
            match message {
                Some(Message::Ask { request, name, reply }) => {
                    // Nobody joins what leads elsewhere.
                    if is_open.load(Ordering::SeqCst) || (operation.name.is_some() && request == Request::Reset) {
                        queue.open();
                    }
                    if request == Request::Reset && name.is_some() {
                        let doing = queue.current().map_or("idle", request_name).to_owned();
                        let _ = reply.send(Err(AskError::Busy { instance: core_id.clone(), doing }));
                        continue;
                    }
                    admit(queue, operation, next, request, name, reply, &cancel);
                }
                // The operation looks for itself.
                Some(Message::Engine(_)) => {}
                // Nobody can ask any more, but what was begun is brought to its end.
                None => return work.await,
            }
        }
    }

    fn admit(
        &mut self,
        request: Request,
        name: Option<String>,
        reply: oneshot::Sender<Result<Ticket, AskError>>,
        refusal: Option<AskError>,
    ) {
        if let Some(refusal) = refusal.or_else(|| self.core.refuses(request)) {
            let _ = reply.send(Err(refusal));
            return;
        }
        let operation = Operation::new(name);
        // The queue is idle here, so it always says to start.
        self.queue.admit(request);
        let _ = reply.send(Ok(operation.ticket(false)));
        self.current = Some(operation);
    }
}

/// Takes a request in while another is being worked on.
fn admit(
    queue: &mut RequestQueue,
    current: &Operation,
    next: &mut Option<Operation>,
    request: Request,
    name: Option<String>,
    reply: oneshot::Sender<Result<Ticket, AskError>>,
    cancel: &CancellationToken,
) {
    let ticket = match queue.admit(request) {
        Admission::JoinCurrent => Ok(current.ticket(true)),
        Admission::JoinNext => Ok(next.get_or_insert_with(|| Operation::new(name)).ticket(true)),
        admission @ (Admission::Wait | Admission::Supersede | Admission::Start) => {
            let operation = Operation::new(name);
            let ticket = operation.ticket(false);
            if let Some(replaced) = next.replace(operation) {
                replaced.done.send_replace(Some(Outcome::Superseded));
            }
            if admission == Admission::Supersede {
                cancel.cancel();
            }
            Ok(ticket)
        }
        Admission::Busy => Err(AskError::Busy {
            instance: "the site".to_owned(),
            doing: queue.current().map_or("idle", request_name).to_owned(),
        }),
    };
    let _ = reply.send(ticket);
}

fn request_name(request: Request) -> &'static str {
    match request {
        Request::Up => "coming up",
        Request::Reset | Request::ResetIfDirty => "resetting",
        Request::Down => "going down",
        Request::Take => "taking a snapshot",
    }
}
