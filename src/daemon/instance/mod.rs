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
mod context;
mod driver;
mod failure;
mod looks;
mod making;
mod operations;
mod pool;
mod reset;
mod round;
mod service;
mod spare;
mod standbys;
mod watch;
mod writes;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot, watch as channel};
use tokio_util::sync::CancellationToken;

use super::gateway::{Recorder, Recording};
use super::pristine::Pristine;
use super::store::{StoredInstance, StoredSnapshot, StoredWrites};
use crate::domain::instance::{InstanceId, InstanceState, Trouble};
use crate::domain::request_queue::{Request, Want};
use crate::domain::site::Site;
use crate::engine::EngineEvent;
use crate::launch::Incarnation;

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
        snapshot: Option<Box<StoredSnapshot>>,
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

    /// One with its other end.
    #[cfg(test)]
    pub(crate) fn for_tests(operation: &str) -> (Self, channel::Sender<Option<Outcome>>) {
        let (end, done) = channel::channel(None);
        (Self { operation: operation.to_owned(), joined: false, done }, end)
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

struct Message {
    request: Request,
    reply: oneshot::Sender<Result<Ticket, AskError>>,
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
    pristine: Arc<Pristine>,
}

impl InstanceHandle {
    /// Makes a client's request; the answer comes when it has been admitted, not when it is done.
    pub async fn ask(&self, want: Want) -> Result<Ticket, AskError> {
        self.ask_for(Request::of_client(want)).await
    }

    /// Makes a request on anybody's behalf.
    pub async fn ask_for(&self, request: Request) -> Result<Ticket, AskError> {
        let (reply, answer) = oneshot::channel();
        self.inbox.try_send(Message { request, reply }).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => AskError::Full { instance: self.id.to_string() },
            mpsc::error::TrySendError::Closed(_) => AskError::Stopping,
        })?;
        answer.await.map_err(|_| AskError::Stopping)?
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

    /// Takes note that a generation is about to be visited past the gateway, by a locator or a log-in of ours: it is not as untouched as one that nobody asked.
    pub fn note_look(&self, generation: u64) {
        // One that comes late does not hide a later one.
        self.looked_at.fetch_max(generation, Ordering::SeqCst);
        self.pristine.spoil(generation);
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
