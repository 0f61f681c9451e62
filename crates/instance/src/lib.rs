//! Instances: each has one driver task, which receives requests through a handle and publishes reports through a watch
//! channel.
//!
//! The driver is the only writer: the API, the engine's events and the environments only enqueue. A report carries
//! state and generation together, so a reader does not combine two readings.
//!
//! | File | Job |
//! |---|---|
//! | `driver` | admits requests, runs one operation at a time, watches the site in between |
//! | `operations` | the operations `up`, `down` and `take`, and the state after a failed operation |
//! | `reset` | the steps of a reset, from its plan to the switch |
//! | `service`, `gate` | state, route and serving generation, which change together; who may reach the generation |
//! | `site_pool` | the pool of a site, which its slots share; which slot holds which generation |
//! | `pool`, `standbys`, `making`, `looks` | the members of the pool; its keeper, and the work on them |
//! | `adoption` | the takeover of containers that an earlier daemon left running |
//! | `watch`, `round`, `writes` | probes of the serving generation; writes to sites that are only read |
//!
//! The crate depends on `baseline`, `reset`, `gateway` and `store`, and on the crates below them. Start reading at
//! `driver.rs`, then `reset/mod.rs`.

mod adoption;
pub mod changes;
mod context;
mod copy;
mod driver;
mod engine_in_use;
mod failure;
mod gate;
pub mod health_log;
mod looks;
pub mod machine;
mod making;
mod operations;
mod pool;
mod pristine;
pub mod proof;
mod reset;
mod round;
mod service;
pub mod shared;
mod site_pool;
mod spare;
mod standby_error;
mod standbys;
mod watch;
mod writes;

pub use engine_in_use::{MeetError, ask, meet};

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::pristine::Pristine;
use arenad_engine::EngineEvent;
use arenad_gateway::{Recorder, Recording, Route};
use arenad_launch::Incarnation;
use arenad_model::episode::ids::EpisodeId;
use arenad_model::instance::{InstanceFailure, InstanceId, InstanceState};
use arenad_model::request_queue::{InstanceRequest, Purpose, Want};
use arenad_model::site::Site;
use arenad_model::snapshot::{Snapshot, SnapshotId};
use arenad_seams::ordered_watch as channel;
use arenad_store::{StoredInstance, StoredWrites};

pub use driver::spawn;
pub use failure::hint;
pub use gate::{RouteAccess, RouteGate, RouteSuspension};
pub use pool::StandbyReport;
pub use site_pool::{SitePool, SitePools};

/// The state of an instance at one moment, for readers outside of the driver.
#[derive(Debug, Clone)]
pub struct InstanceReport {
    /// The state of the instance, with its trouble if it has one.
    pub state: InstanceState,
    /// When the instance entered its state.
    pub since: Timestamp,
    /// The step that is running, as a phrase; `None` if no step is running.
    pub stage: Option<String>,
    /// The last probe failure, while the instance waits for readiness or a periodic probe fails.
    pub waiting_for: Option<String>,
    /// The generation of the containers that serve or are being made.
    pub generation: u64,
    /// The id of the snapshot that the generation started from.
    pub snapshot: Option<SnapshotId>,
    /// The containers of the serving generation. Shape: service to engine id and address.
    pub containers: BTreeMap<String, (String, Option<IpAddr>)>,
    /// The same containers with everything that a command or a locator needs to reach them.
    pub incarnation: Option<Incarnation>,
    /// The end of a container of the serving generation, which has not run again since.
    pub ended: Option<String>,
    /// When the shallow probes last passed, or the generation began to serve.
    pub last_passed: Option<Timestamp>,
    /// The writes that were noticed, if the site is only read.
    pub writes: Option<StoredWrites>,
    /// Cancelled when the serving generation leaves service, which ends the daemon's own visits to it.
    pub visits: CancellationToken,
}

impl InstanceReport {
    /// Returns the report of an instance without containers, from its row.
    fn of_nothing(stored: Option<&StoredInstance>) -> Self {
        Self {
            state: InstanceState::Down,
            since: stored.map_or_else(Timestamp::now, |stored| stored.since),
            stage: None,
            waiting_for: None,
            generation: stored.map_or(0, |stored| stored.generation),
            snapshot: stored.and_then(|stored| stored.snapshot.clone()),
            containers: BTreeMap::new(),
            ended: None,
            last_passed: None,
            incarnation: None,
            writes: None,
            visits: CancellationToken::new(),
        }
    }
}

/// The result of an operation.
#[derive(Debug, Clone)]
pub enum OperationOutcome {
    /// The operation reached its goal.
    Done {
        /// The time from the start of the operation to its end.
        took: Duration,
        /// The snapshot, if the operation took one.
        snapshot: Option<Box<Snapshot>>,
    },
    /// The operation failed; the state of the instance tells whether it still serves.
    Failed(InstanceFailure),
    /// A `down` cancelled the operation before it ended.
    Superseded,
    /// The daemon stopped before the operation ended.
    Stopped,
}

/// A subscription to the end of an operation.
#[derive(Debug, Clone)]
pub struct Ticket {
    /// The operation's id; for a reset, also its id in the store.
    pub operation: String,
    /// Whether the request joined an operation that another request had started.
    pub joined: bool,
    done: channel::Receiver<Option<OperationOutcome>>,
}

impl Ticket {
    /// Waits until the operation ends; returns [`OperationOutcome::Stopped`] if the driver ends first.
    pub async fn wait(mut self) -> OperationOutcome {
        match self.done.wait_for(Option::is_some).await {
            Ok(outcome) => outcome.clone().unwrap_or(OperationOutcome::Stopped),
            Err(_) => OperationOutcome::Stopped,
        }
    }

    /// Whether the operation has ended.
    pub fn has_ended(&self) -> bool {
        self.done.borrow().is_some() || self.done.has_changed().is_err()
    }

    /// Creates a ticket for an operation whose end is sent into `done`.
    pub fn new(operation: String, joined: bool, done: channel::Receiver<Option<OperationOutcome>>) -> Self {
        Self { operation, joined, done }
    }
}

/// The reason why a request was not admitted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// The instance is busy with an operation that the request cannot join.
    #[error("{instance} is busy: {doing}")]
    Busy {
        /// The name of the instance.
        instance: InstanceId,
        /// The work of the current operation, as a phrase that follows "is".
        doing: &'static str,
    },
    /// The instance is in a state that rules the request out.
    #[error("{instance} is {state}")]
    NotUp {
        /// The name of the instance.
        instance: InstanceId,
        /// The name of the state.
        state: &'static str,
    },
    /// Too many requests wait for the instance.
    #[error("too many requests wait for {instance}")]
    Full {
        /// The name of the instance.
        instance: InstanceId,
    },
    /// An episode has the slot of the instance, and only its end or a `down` may change the instance.
    #[error("{instance} belongs to episode {episode}")]
    Leased {
        /// The name of the instance.
        instance: InstanceId,
        /// The episode that has the slot, or that the slot is being prepared for.
        episode: EpisodeId,
    },
    /// The daemon is stopping.
    #[error("the daemon is stopping")]
    Stopping,
}

/// A message to a driver.
enum DriverMessage {
    /// A request to admit.
    Ask {
        /// The goal, and on whose behalf it is wanted.
        request: InstanceRequest,
        /// Receives the ticket or the refusal.
        reply: oneshot::Sender<Result<Ticket, AskError>>,
    },
    /// Asks whether the driver still reads its inbox.
    Ping(oneshot::Sender<()>),
}

/// The number of requests that may wait to be admitted. The driver admits them even while an operation runs.
const INBOX: usize = 64;
/// The number of engine events that may wait. Events are hints: if one is lost, the next round of probes finds the
/// same.
const EVENTS: usize = 64;

/// The sending side of a driver. Clones address the same driver.
#[derive(Clone)]
pub struct InstanceHandle {
    /// Identifies the instance for as long as its environment is registered.
    pub id: InstanceId,
    /// The definition of the site; it does not change while the driver lives.
    pub site: Arc<Site>,
    inbox: mpsc::Sender<DriverMessage>,
    events: mpsc::Sender<EngineEvent>,
    report: channel::Receiver<InstanceReport>,
    recorder: Option<Arc<Recorder>>,
    looked_at: Arc<AtomicU64>,
    entered: Entered,
    pristine: Arc<Pristine>,
    gate: Arc<RouteGate>,
    pool: Arc<SitePool>,
}

/// The containers in which a person has run commands, by the generation that they were made for. They are never brought
/// back in place.
#[derive(Debug, Clone, Default)]
pub(crate) struct Entered(Arc<Mutex<BTreeSet<u64>>>);

impl Entered {
    pub(crate) fn note(&self, made: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(made);
    }

    pub(crate) fn has(&self, made: u64) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&made)
    }
}

impl InstanceHandle {
    /// Makes a request on behalf of a client. The ticket arrives when the request has been admitted, not when the work
    /// is done.
    pub async fn ask(&self, want: Want) -> Result<Ticket, AskError> {
        self.ask_for(InstanceRequest::of_client(want)).await
    }

    /// Makes a request for any purpose; otherwise like [`Self::ask`].
    ///
    /// Errors: [`AskError::Leased`] for every request of a client but `down`, while an episode has the slot.
    pub async fn ask_for(&self, request: InstanceRequest) -> Result<Ticket, AskError> {
        if let Some(episode) = self.gate.holder()
            && request.purpose == Purpose::Client
            && request.want != Want::Down
        {
            return Err(AskError::Leased { instance: self.id.clone(), episode });
        }
        let (reply, answer) = oneshot::channel();
        self.inbox.try_send(DriverMessage::Ask { request, reply }).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => AskError::Full { instance: self.id.clone() },
            mpsc::error::TrySendError::Closed(_) => AskError::Stopping,
        })?;
        answer.await.map_err(|_| AskError::Stopping)?
    }

    /// Whether the driver reads its inbox: false if the driver has ended or its inbox is full. A driver that is stuck
    /// never answers, so the caller sets the deadline.
    pub async fn is_attended(&self) -> bool {
        let (reply, answer) = oneshot::channel();
        self.inbox.try_send(DriverMessage::Ping(reply)).is_ok() && answer.await.is_ok()
    }

    /// Returns the pool of the site, which all of its slots share.
    pub fn pool(&self) -> &SitePool {
        &self.pool
    }

    /// Returns the standbys of the site that are ready or are being made.
    pub fn standbys(&self) -> StandbyReport {
        self.pool.report()
    }

    /// Passes on an event of a container that may be a standby of the site.
    pub fn tell_pool(&self, event: &EngineEvent) {
        self.pool.heard(event);
    }

    /// Passes on an event of one of the instance's containers. The event is lost if too many wait; the next round of
    /// probes finds the same. Events have a queue of their own, so they never displace a request.
    pub fn tell(&self, event: EngineEvent) {
        let _ = self.events.try_send(event);
    }

    /// Returns a copy of the newest report.
    pub fn report(&self) -> InstanceReport {
        self.report.borrow().clone()
    }

    /// Reads the newest report without copying it. `look` must not block: it holds a lock that the driver needs.
    pub fn with_report<T>(&self, look: impl FnOnce(&InstanceReport) -> T) -> T {
        look(&self.report.borrow())
    }

    /// Records that a locator or a log-in of the daemon is about to visit a generation without the gateway. The
    /// generation no longer counts as untouched. The visit must end when the token is cancelled.
    ///
    /// Errors: [`AskError::Leased`] while the slot of the instance is being prepared for an episode.
    pub fn begin_visit(&self, generation: u64) -> Result<CancellationToken, AskError> {
        let visit = self.gate.begin_visit(|| {
            // A late call for an earlier generation must not hide a later one.
            self.looked_at.fetch_max(generation, Ordering::SeqCst);
            self.pristine.spoil(generation);
        });
        visit.map_err(|episode| AskError::Leased { instance: self.id.clone(), episode })
    }

    /// Records that a person is about to run commands in the containers that were made for this generation.
    pub fn note_entry(&self, made: u64) {
        self.entered.note(made);
    }

    /// Whether a person has run commands in the serving containers.
    pub fn was_entered(&self) -> bool {
        self.report.borrow().incarnation.as_ref().is_some_and(|incarnation| self.entered.has(incarnation.made))
    }

    /// Whether a generation serves that neither a client, nor the daemon's own visits, nor a person by hand has reached.
    pub fn is_untouched(&self, generation: u64) -> bool {
        self.pristine.has(generation) && !self.was_entered()
    }

    /// Returns the way to the instance. Only the gate of the instance changes the state of the route.
    pub fn route(&self) -> Route {
        self.gate.route().clone()
    }

    /// Changes who reaches the instance through its route. When this returns, no one else does, and unless the same
    /// clients have the instance as before, the daemon's own visits have been told to end.
    pub fn set_access(&self, access: RouteAccess) {
        self.gate.set_access(access);
    }

    /// Holds requests until the guard is dropped. Requests that are under way are cut, so the caller waits for a moment
    /// without any.
    pub fn suspend(&self) -> RouteSuspension {
        self.gate.suspend()
    }

    /// Returns the episode that has the slot of the instance, or that the slot is being prepared for.
    pub fn holder(&self) -> Option<EpisodeId> {
        self.gate.holder()
    }

    /// Returns the recorded traffic of the serving generation; `None` if the site has no recording or no serving
    /// generation yet.
    pub fn recording(&self) -> Option<Recording> {
        self.recorder.as_ref()?.recording()
    }

    /// Subscribes to the reports.
    pub fn changes(&self) -> channel::Receiver<InstanceReport> {
        self.report.clone()
    }
}
