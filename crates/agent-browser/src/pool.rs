//! The processes that the browsers of episodes share.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::error::BrowserFault;
use arenad_chromium::{BrowserProcess, Cdp};

/// The most episodes in one process. A process that dies takes them with it, and its control group has a limit of
/// memory and processes for all of them.
const SEATS: usize = 12;

/// The largest message of a browser, in bytes: the accessibility tree of the largest page that is observed
/// ([`crate::observe`]), with a margin. A longer one ends the process's connection, and with it the browsers of all its
/// episodes.
const MESSAGE_MAX: usize = 256 << 20;

/// Time after which a process without episodes is ended.
const IDLE: Duration = Duration::from_secs(120);

/// The processes in which browsers of episodes run. They are started as they are needed.
pub struct BrowserPool {
    folder: PathBuf,
    running: Arc<Mutex<Running>>,
}

#[derive(Default)]
struct Running {
    processes: Vec<Arc<SharedProcess>>,
    /// The number of processes that were started, which names their folders.
    started: u64,
}

struct SharedProcess {
    cdp: Cdp,
    /// The process, or `None` if arenad did not start the browser.
    process: Option<BrowserProcess>,
    folder: PathBuf,
    last_used: std::sync::Mutex<Instant>,
}

impl SharedProcess {
    /// Returns the number of its episodes, given the reference of the pool.
    fn seats(self: &Arc<Self>) -> usize {
        Arc::strong_count(self) - 1
    }

    fn last_used(&self) -> Instant {
        *self.last_used.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// A place for one browser in a process.
pub struct BrowserSeat {
    process: Arc<SharedProcess>,
    running: Arc<Mutex<Running>>,
}

impl BrowserSeat {
    /// Returns the user of the browser's processes, as the host sees it; `None` if it is not known.
    pub fn user(&self) -> Option<u32> {
        self.process.process.as_ref().map(BrowserProcess::user)
    }

    pub(crate) fn cdp(&self) -> &Cdp {
        &self.process.cdp
    }
}

impl Drop for BrowserSeat {
    fn drop(&mut self) {
        *self.process.last_used.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Instant::now();
        let running = Arc::clone(&self.running);
        // Without a runtime the daemon has ended, and the process with it.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            tokio::time::sleep(IDLE).await;
            let mut running = running.lock().await;
            running.processes.retain(|process| process.seats() > 0 || process.last_used().elapsed() < IDLE);
        });
    }
}

/// Ends the processes that a killed daemon has left in the folder of its pool.
pub fn end_remains(folder: &Path) {
    let folders = folder.read_dir().into_iter().flatten().flatten();
    for folder in folders {
        arenad_chromium::end_remains(&folder.path());
        // If the rest stays, the next browser of that number empties it.
        let _ = std::fs::remove_dir_all(folder.path());
    }
}

impl BrowserPool {
    /// Creates a pool without processes, whose files will be in `folder`.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder, running: Arc::default() }
    }

    /// Reserves a place for a browser, and starts a process if none has room.
    ///
    /// Errors: `NotStarted` with the reason and the remedy.
    pub async fn seat(&self) -> Result<BrowserSeat, BrowserFault> {
        let mut running = self.running.lock().await;
        if let Some(seat) = self.free_seat_in(&mut running) {
            return Ok(seat);
        }
        running.started += 1;
        let folder = self.folder.join(running.started.to_string());
        let started = arenad_chromium::start(&folder, MESSAGE_MAX).await;
        let (cdp, process) = started.map_err(|none| BrowserFault::NotStarted(none.to_string()))?;
        let last_used = std::sync::Mutex::new(Instant::now());
        let process = Arc::new(SharedProcess { cdp, process, folder, last_used });
        running.processes.push(Arc::clone(&process));
        Ok(BrowserSeat { process, running: Arc::clone(&self.running) })
    }

    /// Reserves a place for a browser in a process that runs. Returns `None` if none has room.
    pub async fn free_seat(&self) -> Option<BrowserSeat> {
        self.free_seat_in(&mut *self.running.lock().await)
    }

    fn free_seat_in(&self, running: &mut Running) -> Option<BrowserSeat> {
        running.processes.retain(|process| !process.cdp.is_gone());
        // The fullest one, so that others become empty and end.
        let room = running.processes.iter().filter(|process| process.seats() < SEATS).max_by_key(|it| it.seats());
        room.map(|process| BrowserSeat { process: Arc::clone(process), running: Arc::clone(&self.running) })
    }

    /// Returns the number of processes, and that of browsers in them.
    pub async fn counts(&self) -> (usize, usize) {
        let running = self.running.lock().await;
        (running.processes.len(), running.processes.iter().map(SharedProcess::seats).sum())
    }

    /// Ends all processes and waits until they are gone.
    pub async fn close(&self) {
        let processes = std::mem::take(&mut self.running.lock().await.processes);
        let folders: Vec<PathBuf> = processes.iter().map(|process| process.folder.clone()).collect();
        drop(processes);
        // If a process remains, the next daemon ends it.
        let ended = move || folders.iter().for_each(|folder| arenad_chromium::end_remains(folder));
        let _ = tokio::task::spawn_blocking(ended).await;
    }
}
