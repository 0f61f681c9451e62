//! Instances: one driver task each, asked through a handle, heard through a watch channel.
//!
//! The driver is the only writer: the API, the engine's events and the environments only enqueue. What it publishes
//! carries state and generation together, so no reader ever pairs one with another's.

mod adoption;
mod core;
mod driver;
mod looks;
mod making;
mod reset;
mod round;
mod spare;
mod standbys;
mod trouble;
mod watch;
mod writes;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot, watch as channel};

use super::gateway::{Recorder, Recording};
use super::store::{StageTime, StoredSnapshot, StoredWrites};
use crate::domain::instance::{InstanceId, InstanceState, Trouble};
use crate::domain::request_queue::Request;
use crate::domain::site::Site;
use crate::engine::EngineEvent;
use crate::launch::Incarnation;

pub use driver::spawn;
pub use standbys::StandbyReport;

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
        /// Where the time of a reset went.
        stages: Vec<StageTime>,
    },
    /// Not.
    Failed(Trouble),
    /// Something else was asked for before it came to its end.
    Superseded,
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
    /// Waits for the end. The daemon going away counts as superseded.
    pub async fn wait(mut self) -> Outcome {
        match self.done.wait_for(Option::is_some).await {
            Ok(outcome) => outcome.clone().unwrap_or(Outcome::Superseded),
            Err(_) => Outcome::Superseded,
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
        doing: String,
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

enum Message {
    Ask { request: Request, name: Option<String>, reply: oneshot::Sender<Result<Ticket, AskError>> },
    Engine(EngineEvent),
}

/// How many messages may wait for a driver.
const INBOX: usize = 64;

/// A driver's address.
#[derive(Clone)]
pub struct InstanceHandle {
    /// The instance.
    pub id: InstanceId,
    /// Its definition.
    pub site: Arc<Site>,
    inbox: mpsc::Sender<Message>,
    report: channel::Receiver<Report>,
    recorder: Option<Arc<Recorder>>,
    looked_at: Arc<AtomicU64>,
}

impl InstanceHandle {
    /// Asks for something; the answer comes when it has been taken in, not when it is done.
    pub async fn ask(&self, request: Request) -> Result<Ticket, AskError> {
        self.send(request, None).await
    }

    /// Asks for a snapshot with a name.
    pub async fn take(&self, name: String) -> Result<Ticket, AskError> {
        self.send(Request::Take, Some(name)).await
    }

    /// Asks to be brought to the snapshot of this id, which is of the site.
    pub async fn reset_to(&self, snapshot: String) -> Result<Ticket, AskError> {
        self.send(Request::Reset, Some(snapshot)).await
    }

    async fn send(&self, request: Request, name: Option<String>) -> Result<Ticket, AskError> {
        let (reply, answer) = oneshot::channel();
        self.inbox.try_send(Message::Ask { request, name, reply }).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => AskError::Full { instance: self.id.to_string() },
            mpsc::error::TrySendError::Closed(_) => AskError::Stopping,
        })?;
        answer.await.map_err(|_| AskError::Stopping)?
    }

    /// Passes on what happened to one of its containers. A full inbox loses it: the periodic look finds the same.
    pub fn tell(&self, event: EngineEvent) {
        let _ = self.inbox.try_send(Message::Engine(event));
    }

    /// What the instance says of itself now.
    pub fn report(&self) -> Report {
        self.report.borrow().clone()
    }

    /// Takes note that a generation is about to be visited past the gateway, by a locator or a log-in of ours: it is not as untouched as one that nobody asked.
    pub fn note_look(&self, generation: u64) {
        // One that comes late does not hide a later one.
        self.looked_at.fetch_max(generation, Ordering::SeqCst);
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
