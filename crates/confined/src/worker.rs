//! The parent's side: a worker that is asked one thing after the other.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::process::Stdio;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::{TcpStream, UnixStream};
use tokio::process::{Child, Command};
use tokio_util::codec::{Framed, LengthDelimitedCodec};

use super::{Folder, program};

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
    child: Child,
    /// Whether somebody stopped waiting for an answer: the next one would be theirs.
    is_spent: bool,
}

impl Worker {
    /// Starts one that serves a hidden command, and hands it a connection that there is already.
    pub fn speaking(command: &str, connection: OwnedFd) -> Result<Self, WorkerError> {
        Self::started(command, connection).map_err(WorkerError::Start)
    }

    /// Connects to a server, and starts one that speaks to it.
    pub async fn connected(command: &str, address: SocketAddr) -> Result<Self, WorkerError> {
        let dialed = async { TcpStream::connect(address).await?.into_std() }.await;
        Self::speaking(command, dialed.map_err(WorkerError::Unreachable)?.into())
    }

    /// Starts one that has a folder, which is its own from now on, and nothing else of the file system.
    pub fn within(command: &str, folder: &Folder) -> Result<Self, WorkerError> {
        Self::speaking(command, folder.hand_over().map_err(WorkerError::Start)?)
    }

    /// Has one do a single thing, without any connection, within a time.
    pub async fn job<A: DeserializeOwned>(
        command: &str,
        question: &impl Serialize,
        limit: Duration,
    ) -> Result<A, WorkerError> {
        let nothing = std::fs::File::open("/dev/null").map_err(WorkerError::Start)?;
        Self::speaking(command, nothing.into())?.once(question, limit).await
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

    fn started(command: &str, connection: OwnedFd) -> std::io::Result<Self> {
        let (ours, theirs) = StdStream::pair()?;
        ours.set_nonblocking(true)?;
        theirs.set_nonblocking(true)?;
        let child = Command::new(program())
            .arg0("arenad")
            .arg(command)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(connection))
            .stdout(Stdio::from(OwnedFd::from(theirs)))
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let codec = LengthDelimitedCodec::builder().max_frame_length(ANSWER_MAX).new_codec();
        Ok(Self { line: Framed::new(UnixStream::from_std(ours)?, codec), child, is_spent: false })
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
        serde_json::from_slice(&answer).map_err(|error| WorkerError::Answer(error.to_string()))
    }

    async fn ended(&mut self) -> WorkerError {
        // It has closed its end, so it ends; if it does not, it is told to.
        let _ = self.child.start_kill();
        WorkerError::Ended(self.child.wait().await.map_or_else(|error| error.to_string(), |status| status.to_string()))
    }
}
