//! The parent's side: a worker that answers one question at a time.

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
use super::spare::{Spare, WorkerProcess};

/// The maximum length of an answer, in bytes. It suffices for the catalog of a database with several thousand tables,
/// and for a locator's value with every character escaped.
const ANSWER_MAX: usize = 32 << 20;

/// The reason why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The server cannot be reached.
    #[error("{0}")]
    Unreachable(std::io::Error),
    /// The worker could not be started.
    #[error("start a confined process: {0}")]
    Start(std::io::Error),
    /// The worker ended because of its limits or of the data that it received.
    #[error("the confined process ended ({0}) at what it was sent")]
    Ended(String),
    /// The worker did not answer in time.
    #[error("the confined process has no answer within {0:?}")]
    TimedOut(Duration),
    /// The worker's answer is too long or malformed.
    #[error("the confined process's answer is not understood: {0}")]
    Answer(String),
}

/// A running worker. Its process is killed when the value is dropped.
#[derive(Debug)]
pub struct Worker {
    line: Framed<UnixStream, LengthDelimitedCodec>,
    running: WorkerProcess,
    /// The task that forwards data between a spare and its server.
    bridge: Option<AbortHandle>,
    /// The command of the spare to start when this worker has answered, if this worker was a spare.
    next: Option<&'static str>,
    /// Whether a caller stopped waiting for an answer. The next answer would belong to that caller.
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
    /// Starts a worker for a hidden command, and gives it an open connection.
    pub fn speaking(command: &str, connection: OwnedFd) -> Result<Self, WorkerError> {
        let started = WorkerProcess::start(command, connection);
        started.and_then(|(line, running)| Self::of(line, running)).map_err(WorkerError::Start)
    }

    /// Connects to a server, and starts a worker that speaks to it.
    pub async fn connected(command: &str, address: SocketAddr) -> Result<Self, WorkerError> {
        let dialed = async { TcpStream::connect(address).await?.into_std() }.await;
        Self::speaking(command, dialed.map_err(WorkerError::Unreachable)?.into())
    }

    /// Connects to a server for a question or two, and uses a spare. This process forwards the data between the spare
    /// and the server without reading it.
    pub async fn connected_once(command: &'static str, address: SocketAddr) -> Result<Self, WorkerError> {
        let mut server = TcpStream::connect(address).await.map_err(WorkerError::Unreachable)?;
        let (mut worker, connection) = Self::spare(command).map_err(WorkerError::Start)?;
        let mut connection = UnixStream::from_std(connection).map_err(WorkerError::Start)?;
        let bridge = tokio::spawn(async move { tokio::io::copy_bidirectional(&mut server, &mut connection).await });
        worker.bridge = Some(bridge.abort_handle());
        Ok(worker)
    }

    /// Starts a worker that has access to a folder and to no other part of the file system. The folder belongs to the
    /// worker from now on.
    pub fn within(command: &str, folder: &Folder) -> Result<Self, WorkerError> {
        Self::speaking(command, folder.hand_over().map_err(WorkerError::Start)?)
    }

    /// Asks a worker without a connection one question, within a time limit.
    pub async fn job<A: DeserializeOwned>(
        command: &'static str,
        question: &impl Serialize,
        limit: Duration,
    ) -> Result<A, WorkerError> {
        let (worker, _) = Self::spare(command).map_err(WorkerError::Start)?;
        worker.once(question, limit).await
    }

    /// Asks a worker with a folder one question, within a time limit. See [`Worker::within`].
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

    fn of(line: StdStream, running: WorkerProcess) -> std::io::Result<Self> {
        let codec = LengthDelimitedCodec::builder().max_frame_length(ANSWER_MAX).new_codec();
        let line = Framed::new(UnixStream::from_std(line)?, codec);
        Ok(Self { line, running, bridge: None, next: None, is_spent: false })
    }

    /// Returns a spare, and the other end of its connection.
    fn spare(command: &'static str) -> std::io::Result<(Self, StdStream)> {
        let Spare { line, connection, running, .. } = Spare::take(command)?;
        let mut worker = Self::of(line, running)?;
        worker.next = Some(command);
        Ok((worker, connection))
    }

    /// Asks the worker a question. Cancellation: the worker cannot be used afterwards.
    pub async fn ask<A: DeserializeOwned>(&mut self, question: &impl Serialize) -> Result<A, WorkerError> {
        if std::mem::replace(&mut self.is_spent, true) {
            return Err(WorkerError::Answer("an earlier answer was not awaited".to_owned()));
        }
        let question = serde_json::to_vec(question).map_err(|error| WorkerError::Answer(error.to_string()))?;
        if self.line.send(Bytes::from(question)).await.is_err() {
            return Err(self.ended().await);
        }
        let answer = match self.line.next().await {
            Some(Ok(answer)) => answer,
            // The answer's frame is longer than the limit.
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
        // The worker has closed its end, so its process ends or is killed.
        let status = self.running.ended().await;
        WorkerError::Ended(status.map_or_else(|error| error.to_string(), |status| status.to_string()))
    }
}
