//! Workers that are started in advance, because starting a program takes longer than answering most questions.
//!
//! A spare is used once, like any other worker, so that data of one site never meets data of another. There is at most
//! one spare for each kind of worker in recent use. The next one is started when the previous one has answered.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::program;

/// The time after which an unused spare ends.
const IDLE: Duration = Duration::from_secs(60);

static SPARES: Mutex<BTreeMap<&'static str, Spare>> = Mutex::new(BTreeMap::new());

fn spares() -> MutexGuard<'static, BTreeMap<&'static str, Spare>> {
    SPARES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts processes on a thread of its own. The kernel kills a worker when the thread that started it ends, and threads of
/// a runtime may end before the process.
static STARTER: LazyLock<Sender<StartRequest>> = LazyLock::new(|| {
    let (sender, requests) = channel::<StartRequest>();
    std::thread::Builder::new()
        .name("workers".to_owned())
        .spawn(move || {
            for StartRequest { mut command, reply } in requests {
                let started = command.spawn();
                // The command holds the child's ends of its sockets.
                drop(command);
                // The requester waits for the reply.
                let _ = reply.send(started);
            }
        })
        .expect("a thread");
    sender
});

/// A process to be started.
struct StartRequest {
    command: Command,
    reply: Sender<io::Result<Child>>,
}

/// The process of a worker. It is killed when the value is dropped.
#[derive(Debug)]
pub(super) struct WorkerProcess(Option<Child>);

impl WorkerProcess {
    /// Starts a worker with its connection, and returns the channel to it.
    pub(super) fn start(command: &str, connection: OwnedFd) -> io::Result<(UnixStream, Self)> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        theirs.set_nonblocking(true)?;
        let mut worker = Command::new(program());
        worker
            .arg0("arenad")
            .arg(command)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(connection))
            .stdout(Stdio::from(OwnedFd::from(theirs)))
            .stderr(Stdio::null());
        let (reply, started) = channel();
        STARTER.send(StartRequest { command: worker, reply }).map_err(io::Error::other)?;
        let child = started.recv().map_err(io::Error::other)??;
        Ok((ours, Self(Some(child))))
    }

    fn is_alive(&mut self) -> bool {
        self.0.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// Kills the process if it still runs, and returns its exit status.
    pub(super) async fn ended(&mut self) -> io::Result<ExitStatus> {
        let mut child = self.0.take().ok_or(io::ErrorKind::NotFound)?;
        // Killing a process that has ended fails, which is harmless.
        let _ = child.kill();
        tokio::task::spawn_blocking(move || child.wait()).await.map_err(io::Error::other)?
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        let Some(mut child) = self.0.take() else { return };
        let _ = child.kill();
        if !matches!(child.try_wait(), Ok(Some(_))) {
            // The kernel takes a moment to free the process's memory. The caller does not wait for that.
            std::thread::spawn(move || child.wait());
        }
    }
}

/// A worker that has not been asked a question yet.
#[derive(Debug)]
pub(super) struct Spare {
    pub(super) line: UnixStream,
    /// The other end of the worker's connection.
    pub(super) connection: UnixStream,
    pub(super) running: WorkerProcess,
    number: u64,
}

impl Spare {
    fn start(command: &str) -> io::Result<Self> {
        static STARTED: AtomicU64 = AtomicU64::new(0);
        let (connection, theirs) = UnixStream::pair()?;
        connection.set_nonblocking(true)?;
        theirs.set_nonblocking(true)?;
        let (line, running) = WorkerProcess::start(command, theirs.into())?;
        Ok(Self { line, connection, running, number: STARTED.fetch_add(1, Ordering::Relaxed) })
    }

    /// Returns the existing spare if its process is alive, and otherwise starts a new one.
    pub(super) fn take(command: &str) -> io::Result<Self> {
        let kept = spares().remove(command);
        if let Some(mut kept) = kept
            && kept.running.is_alive()
        {
            return Ok(kept);
        }
        Self::start(command)
    }

    /// Starts a spare for the next caller. It ends when it has been idle for [`IDLE`], and with the caller's runtime.
    pub(super) fn prepare(command: &'static str) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            if spares().contains_key(command) {
                return;
            }
            // If this fails, the next caller starts a worker itself.
            let Ok(spare) = Self::start(command) else { return };
            let _idle = IdleSpare { command, number: spare.number };
            spares().entry(command).or_insert(spare);
            tokio::time::sleep(IDLE).await;
        });
    }
}

/// Ends a spare that is still unused when the value is dropped.
struct IdleSpare {
    command: &'static str,
    number: u64,
}

impl Drop for IdleSpare {
    fn drop(&mut self) {
        let mut spares = spares();
        let is_idle = spares.get(self.command).is_some_and(|spare| spare.number == self.number);
        let idle = if is_idle { spares.remove(self.command) } else { None };
        drop(spares);
        drop(idle);
    }
}
