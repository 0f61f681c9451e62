//! The parent's side: a worker that is asked one thing after the other.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::{TcpStream, UnixStream};
use tokio::task::AbortHandle;
use tokio_util::codec::{Framed, LengthDelimitedCodec};

use super::Folder;
use super::spare::{Running, Spare};

/// The longest answer, in bytes: the catalog of a database with some thousand tables, or a locator's value in its worst form.
const ANSWER_MAX: usize = 32 << 20;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// Nobody can be reached there.
    #[error("{0}")]
    Unreachable(std::io::Error),
    /// It could not be started.
    #[error("start a confined process: {0}")]
    Start(std::io::Error),
    /// It ended: by its limits, or by what it was sent.
    #[error("the confined process ended ({0}) at what it was sent")]
    Ended(String),
    /// It takes too long.
    #[error("the confined process has no answer within {0:?}")]
    TimedOut(Duration),
    /// Its answer is too long, or none.
    #[error("the confined process's answer is not understood: {0}")]
    Answer(String),
}

/// A running worker; killed when it goes.
#[derive(Debug)]
pub struct Worker {
    line: Framed<UnixStream, LengthDelimitedCodec>,
    running: Running,
    /// Carries what a spare and its server say to each other.
    bridge: Option<AbortHandle>,
    /// The kind of worker to start when this one has answered, if it was a spare.
    next: Option<&'static str>,
    /// Whether somebody stopped waiting for an answer: the next one would be theirs.
    is_spent: bool,
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let Some(bridge) = self.bridge.take() {
            bridge.abort();
        }
    }
}

impl Worker {
    /// Starts one that serves a hidden command, and hands it a connection that there is already.
    pub fn speaking(command: &str, connection: OwnedFd) -> Result<Self, WorkerError> {
        let started = Running::start(command, connection);
        started.and_then(|(line, running)| Self::of(line, running)).map_err(WorkerError::Start)
    }

    /// Connects to a server, and starts one that speaks to it.
    pub async fn connected(command: &str, address: SocketAddr) -> Result<Self, WorkerError> {
        let dialed = async { TcpStream::connect(address).await?.into_std() }.await;
        Self::speaking(command, dialed.map_err(WorkerError::Unreachable)?.into())
    }

    /// Connects to a server, and has a spare speak to it, for a question or two: what they say to each other is carried from one to
    /// the other here, unread.
    pub async fn connected_once(command: &'static str, address: SocketAddr) -> Result<Self, WorkerError> {
        let mut server = TcpStream::connect(address).await.map_err(WorkerError::Unreachable)?;
        let (mut worker, connection) = Self::spare(command).map_err(WorkerError::Start)?;
        let mut connection = UnixStream::from_std(connection).map_err(WorkerError::Start)?;
        let bridge = tokio::spawn(async move { tokio::io::copy_bidirectional(&mut server, &mut connection).await });
        worker.bridge = Some(bridge.abort_handle());
        Ok(worker)
    }

    /// Starts one that has a folder, which is its own from now on, and nothing else of the file system.
    pub fn within(command: &str, folder: &Folder) -> Result<Self, WorkerError> {
        Self::speaking(command, folder.hand_over().map_err(WorkerError::Start)?)
    }

    /// Has one do a single thing, without any connection, within a time.
    pub async fn job<A: DeserializeOwned>(
        command: &'static str,
        question: &impl Serialize,
        limit: Duration,
    ) -> Result<A, WorkerError> {
        let (worker, _) = Self::spare(command).map_err(WorkerError::Start)?;
        worker.once(question, limit).await
    }

    /// The same with a folder: see [`Worker::within`].
    pub async fn job_within<A: DeserializeOwned>(
        command: &str,
        folder: &Folder,
        question: &impl Serialize,
        limit: Duration,
    ) -> Result<A, WorkerError> {
        Self::within(command, folder)?.once(question, limit).await
    }

    async fn once<A: DeserializeOwned>(mut self, question: &impl Serialize, limit: Duration) -> Result<A, WorkerError> {
        let answer = tokio::time::timeout(limit, self.ask(question)).await;
        answer.unwrap_or(Err(WorkerError::TimedOut(limit)))
    }

    fn of(line: StdStream, running: Running) -> std::io::Result<Self> {
        let codec = LengthDelimitedCodec::builder().max_frame_length(ANSWER_MAX).new_codec();
        let line = Framed::new(UnixStream::from_std(line)?, codec);
        Ok(Self { line, running, bridge: None, next: None, is_spent: false })
    }

    /// A spare, and the other end of its connection.
    fn spare(command: &'static str) -> std::io::Result<(Self, StdStream)> {
        let Spare { line, connection, running, .. } = Spare::take(command)?;
        let mut worker = Self::of(line, running)?;
        worker.next = Some(command);
        Ok((worker, connection))
    }

    /// Asks something. Given up half way, the worker answers nobody any more.
    pub async fn ask<A: DeserializeOwned>(&mut self, question: &impl Serialize) -> Result<A, WorkerError> {
        if std::mem::replace(&mut self.is_spent, true) {
            return Err(WorkerError::Answer("nobody waited for an earlier one".to_owned()));
        }
        let question = serde_json::to_vec(question).map_err(|error| WorkerError::Answer(error.to_string()))?;
        if self.line.send(Bytes::from(question)).await.is_err() {
            return Err(self.ended().await);
        }
        let answer = match self.line.next().await {
            Some(Ok(answer)) => answer,
            // A frame that is too long.
            Some(Err(error)) if error.kind() == std::io::ErrorKind::InvalidData => {
                return Err(WorkerError::Answer(error.to_string()));
            }
            Some(Err(_)) | None => return Err(self.ended().await),
        };
        self.is_spent = false;
        if let Some(command) = self.next.take() {
            Spare::prepare(command);
        }
        serde_json::from_slice(&answer).map_err(|error| WorkerError::Answer(error.to_string()))
    }

    async fn ended(&mut self) -> WorkerError {
        // It has closed its end, so it ends; if it does not, it is told to.
        let status = self.running.ended().await;
        WorkerError::Ended(status.map_or_else(|error| error.to_string(), |status| status.to_string()))
    }
}
