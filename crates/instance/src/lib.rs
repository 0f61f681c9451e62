//! Instances: one driver task each, asked through a handle, heard through a watch channel.
//!
//! The driver is the only writer: the API, the engine's events and the environments only enqueue. What it publishes
//! carries state and generation together, so no reader ever pairs one with another's.
//!
//! | File | Job |
//! |---|---|
//! | `driver` | admits requests, runs one operation at a time, watches the site in between |
//! | `operations` | the operations: up, down, take, and what a failed one leaves |
//! | `reset` | the steps of a reset, from its plan to the switch |
//! | `service` | state, route and serving generation, which change together |
//! | `pool`, `standbys`, `making`, `looks` | the members of the pool; what is done with them, and in the background |
//! | `adoption` | what an earlier daemon left |
//! | `watch`, `round`, `writes` | probes of what serves; writes to sites that are only read |

mod adoption;
pub mod baseline;
mod context;
mod driver;
mod engine_in_use;
pub mod events;
mod failure;
pub mod health_log;
mod looks;
pub mod machine;
mod making;
mod operations;
mod pool;
pub mod pristine;
pub mod proof;
mod reset;
mod round;
mod service;
pub mod shared;
mod spare;
mod standby_error;
mod standbys;
pub mod turns;
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
use arenad_gateway::{Recorder, Recording};
use arenad_launch::Incarnation;
use arenad_model::instance::{InstanceId, InstanceState, Trouble};
use arenad_model::request_queue::{Request, Want};
use arenad_model::site::Site;
use arenad_model::snapshot::Snapshot;
use arenad_seams::ordered_watch as channel;
use arenad_store::{StoredInstance, StoredWrites};

pub use driver::spawn;
pub use pool::StandbyReport;

/// What an instance says of itself.
#[derive(Debug, Clone)]
pub struct Report {
    /// What it is doing.
    pub state: InstanceState,
    /// Since when.
    pub since: Timestamp,
    /// What is being done right now, while something is.
    pub stage: Option<String>,
    /// The last probe failure while readiness is awaited, or while watching misses it.
    pub waiting_for: Option<String>,
    /// The generation of the containers that serve, or that are being made.
    pub generation: u64,
    /// The snapshot that it starts from.
    pub snapshot: Option<String>,
    /// The containers: service, engine id, address.
    pub containers: BTreeMap<String, (String, Option<IpAddr>)>,
    /// The same, for whoever is to look into them.
    pub incarnation: Option<Incarnation>,
    /// When its probes last passed.
    pub last_passed: Option<Timestamp>,
    /// What is ready to take over, or is being made ready.
    pub standbys: StandbyReport,
    /// What is known of writes to a site that is only read.
    pub writes: Option<StoredWrites>,
    /// Cancelled when the serving generation leaves service: the daemon's own visits to it end.
    pub visits: CancellationToken,
}

impl Report {
    /// The report of an instance that does not run, as far as its row tells.
    fn of_nothing(stored: Option<&StoredInstance>) -> Self {
        Self {
            state: InstanceState::Down,
            since: stored.map_or_else(Timestamp::now, |stored| stored.since),
            stage: None,
            waiting_for: None,
            generation: stored.map_or(0, |stored| stored.generation),
            snapshot: stored.and_then(|stored| stored.snapshot.clone()),
            containers: BTreeMap::new(),
            last_passed: None,
            incarnation: None,
            standbys: StandbyReport::default(),
            writes: None,
            visits: CancellationToken::new(),
        }
    }
}

/// How an operation ended.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// As asked for.
    Done {
        /// From the request to its end.
        took: Duration,
        /// The snapshot that was taken, if that was asked.
        snapshot: Option<Box<Snapshot>>,
    },
    /// Not.
    Failed(Trouble),
    /// A `down` took its place before it came to its end.
    Superseded,
    /// The daemon ended before it did.
    Stopped,
}

/// A place to hear how an operation ends.
#[derive(Debug, Clone)]
pub struct Ticket {
    /// The operation's id; of a reset, its id in the store.
    pub operation: String,
    /// Whether someone else had asked for it already.
    pub joined: bool,
    done: channel::Receiver<Option<Outcome>>,
}

impl Ticket {
    /// Waits for the end.
    pub async fn wait(mut self) -> Outcome {
        match self.done.wait_for(Option::is_some).await {
            Ok(outcome) => outcome.clone().unwrap_or(Outcome::Stopped),
            Err(_) => Outcome::Stopped,
        }
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        self.done.borrow().is_some() || self.done.has_changed().is_err()
    }

    /// A place at an operation whose end is sent into `done`.
    pub fn new(operation: String, joined: bool, done: channel::Receiver<Option<Outcome>>) -> Self {
        Self { operation, joined, done }
    }
}

/// Why a request was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// The instance is busy with something that cannot be joined.
    #[error("{instance} is busy: {doing}")]
    Busy {
        /// The instance.
        instance: String,
        /// What it is doing.
        doing: &'static str,
    },
    /// The instance is not up.
    #[error("{instance} is {state}")]
    NotUp {
        /// The instance.
        instance: String,
        /// What it is.
        state: &'static str,
    },
    /// Too many requests wait for it.
    #[error("too many requests wait for {instance}")]
    Full {
        /// The instance.
        instance: String,
    },
    /// The daemon is stopping.
    #[error("the daemon is stopping")]
    Stopping,
}

/// One letter to a driver.
enum Message {
    /// A request to admit.
    Ask {
        /// The request.
        request: Request,
        /// Gets the ticket, or the refusal.
        reply: oneshot::Sender<Result<Ticket, AskError>>,
    },
    /// Asks whether the driver still reads its inbox.
    Ping(oneshot::Sender<()>),
}

/// How many requests may wait to be admitted; the driver admits them at once, whatever it does.
const INBOX: usize = 64;
/// How many events of the engine may wait. They are hints: the next round of probes finds what a lost one told.
const EVENTS: usize = 64;

/// A driver's address.
#[derive(Clone)]
pub struct InstanceHandle {
    /// The instance.
    pub id: InstanceId,
    /// Its definition.
    pub site: Arc<Site>,
    inbox: mpsc::Sender<Message>,
    events: mpsc::Sender<EngineEvent>,
    report: channel::Receiver<Report>,
    recorder: Option<Arc<Recorder>>,
    looked_at: Arc<AtomicU64>,
    entered: Entered,
    pristine: Arc<Pristine>,
}

/// The containers that somebody has run commands in by hand, by the generation that they were made for. They are never brought
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
    /// Makes a client's request; the answer comes when it has been admitted, not when it is done.
    pub async fn ask(&self, want: Want) -> Result<Ticket, AskError> {
        self.ask_for(Request::of_client(want)).await
    }

    /// Makes a request on anybody's behalf.
    pub async fn ask_for(&self, request: Request) -> Result<Ticket, AskError> {
        let (reply, answer) = oneshot::channel();
        self.inbox.try_send(Message::Ask { request, reply }).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => AskError::Full { instance: self.id.to_string() },
            mpsc::error::TrySendError::Closed(_) => AskError::Stopping,
        })?;
        answer.await.map_err(|_| AskError::Stopping)?
    }

    /// Whether the driver reads its inbox: false where it has ended, or where its inbox is full. A driver that is stuck never
    /// answers, so the caller sets the deadline.
    pub async fn is_attended(&self) -> bool {
        let (reply, answer) = oneshot::channel();
        self.inbox.try_send(Message::Ping(reply)).is_ok() && answer.await.is_ok()
    }

    /// Passes on what happened to one of its containers. Where too many events wait it is lost: the next round of probes finds
    /// the same. Events never take a request's place.
    pub fn tell(&self, event: EngineEvent) {
        let _ = self.events.try_send(event);
    }

    /// What the instance says of itself now.
    pub fn report(&self) -> Report {
        self.report.borrow().clone()
    }

    /// Looks at what the instance says of itself now, where a copy would be too much; it must not be kept across an `await`.
    pub fn with_report<T>(&self, look: impl FnOnce(&Report) -> T) -> T {
        look(&self.report.borrow())
    }

    /// Takes note that a generation is about to be visited past the gateway, by a locator or a log-in of ours: it is not as untouched as one that nobody asked.
    pub fn note_look(&self, generation: u64) {
        // One that comes late does not hide a later one.
        self.looked_at.fetch_max(generation, Ordering::SeqCst);
        self.pristine.spoil(generation);
    }

    /// Takes note that somebody is about to run commands in the containers that were made for this generation.
    pub fn note_entry(&self, made: u64) {
        self.entered.note(made);
    }

    /// Whether somebody has run commands in the containers that serve.
    pub fn was_entered(&self) -> bool {
        self.report.borrow().incarnation.as_ref().is_some_and(|incarnation| self.entered.has(incarnation.made))
    }

    /// What passed through its public port since its generation began; `None` where nothing is recorded, or nothing serves yet.
    pub fn recording(&self) -> Option<Recording> {
        self.recorder.as_ref()?.recording()
    }

    /// Hears of every change.
    pub fn changes(&self) -> channel::Receiver<Report> {
        self.report.clone()
    }
}
