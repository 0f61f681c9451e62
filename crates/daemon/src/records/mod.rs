//! The records of episodes: the requests of their clients, on disk as they go.
//!
//! ```text
//!   gateway ── ended exchange ──► RecordQueue ──► RecordTask ──► RecordWriter ──► STATE/records/EPISODE/exchanges.jsonl
//!      ▲                                              │                                        │
//!      └── the end of the response ◄── written ───────┘                       RecordContent ◄──┘ ──► HAR
//! ```
//! The guarantees of a record:
//!
//! - An exchange is in the file before its client has read the response to its end, so it survives a `kill -9` of the
//!   daemon. A failure of the host may lose the last seconds of a record that is not closed.
//! - Secrets are removed before anything is written ([`traffic::secrets`](crate::traffic)).
//! - The record of a fork begins with the requests of the episode that it comes from, up to the moment of the fork.
//! - A record is bounded, its beginning included. When it becomes full, the bodies of further responses are left out
//!   first, then whole exchanges. The record says what was left out, and the HAR repeats it as `lacks`.
//!
//! Records outlive their episodes, and are removed by age and by the size of all of them.
//!
//! | File | Job |
//! |---|---|
//! | `mod` | the records that are being written, and how the others are found |
//! | `keeper` | the queue and the task of one record |
//! | `writer` | exchanges become lines, within the limits |
//! | `beginning` | the beginnings of the records of forks |
//! | `line`, `file` | the format; appending lines, with a torn end cut off |
//! | `reader` | a record as a HAR |
//! | `retention` | removal of old records |
//! | `steps` | the steps of agents, beside the record |

mod beginning;
mod file;
mod keeper;
mod line;
mod reader;
mod retention;
mod steps;
mod writer;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::beginning::KeptBeginnings;
pub(crate) use self::beginning::RecordBeginning;
use self::keeper::{RecordQueue, RecordTask, RecordWork};
use self::line::VERSION;
pub(crate) use self::line::{RecordHead, RecordedSite};
use self::reader::RecordContent;
pub(crate) use self::reader::RecordError;
pub(crate) use self::retention::found;
pub(crate) use self::steps::AddStepError;
use self::writer::RecordWriter;
use arenad_gateway::{EpisodeRecorder, RecordingFilter};
use arenad_model::episode::ids::{EpisodeId, RecordBeginningId};
use arenad_model::proxy_address::{ARENA_DOMAIN, common_url, own_url};
use arenad_model::record_retention::RecordRetention;
use arenad_model::site::{RecordedRequests, Site};
use arenad_seams::wall_clock::WallClock;
use arenad_telemetry::supervised::supervised;

/// The name of the file in the folder of a record.
const FILE: &str = "exchanges.jsonl";

/// The maximum size of a record, in bytes.
const RECORD_MAX: u64 = 64 << 20;

/// The longest wait for the first line of an episode that has just begun, and for the last requests of one that has just
/// ended.
const WRITE_LIMIT: Duration = Duration::from_secs(3);

/// The records of all episodes.
pub(crate) struct EpisodeRecords(Arc<SharedRecords>);

struct SharedRecords {
    folder: PathBuf,
    retention: RecordRetention,
    clock: WallClock,
    tasks: TaskTracker,
    shutdown: CancellationToken,
    /// The records that are being written.
    live: Mutex<BTreeMap<EpisodeId, LiveRecord>>,
    beginnings: Arc<KeptBeginnings>,
    /// Held while a step is written.
    step_writer: Mutex<()>,
}

/// A record that is being written.
struct LiveRecord {
    recorder: Arc<EpisodeRecorder>,
    work: mpsc::UnboundedSender<RecordWork>,
    missed: Arc<AtomicU64>,
    beginning: Option<RecordBeginningId>,
    /// Cancelled when the episode has ended.
    end: CancellationToken,
    /// Cancelled when the first line is written.
    opened: CancellationToken,
    /// Cancelled when nothing is written any more.
    closed: CancellationToken,
}

impl EpisodeRecords {
    /// Names the folder of the records, which is created when it is needed.
    pub(crate) fn new(
        folder: PathBuf,
        retention: RecordRetention,
        clock: WallClock,
        tasks: TaskTracker,
        shutdown: CancellationToken,
    ) -> Self {
        let beginnings = Arc::new(KeptBeginnings::new(&folder));
        let (live, step_writer) = (Mutex::default(), Mutex::default());
        Self(Arc::new(SharedRecords { folder, retention, clock, tasks, shutdown, live, beginnings, step_writer }))
    }

    /// Begins or continues the record of an episode whose clients are about to reach its sites. `beginning` are the requests
    /// that a fork takes over. The call does not block.
    pub(crate) fn begin(
        &self,
        episode: &EpisodeId,
        environment: &str,
        records: RecordedRequests,
        beginning: Option<&RecordBeginningId>,
        sites: Vec<RecordedSite>,
    ) {
        let filter = match records {
            RecordedRequests::Nothing => return,
            RecordedRequests::Writes => RecordingFilter::Writes,
            RecordedRequests::All => RecordingFilter::All,
        };
        let shared = &self.0;
        let head = RecordHead {
            version: VERSION,
            episode: episode.to_string(),
            environment: environment.to_owned(),
            records: records.name().to_owned(),
            since: shared.clock.now(),
            sites,
        };
        let (path, kept) = (shared.path(episode), beginning.map(|id| shared.beginnings.path(id)));
        let writer = RecordWriter::new(path, kept, head, RECORD_MAX, shared.clock.clone());
        let missed = writer.missed().clone();
        let (sender, work) = mpsc::unbounded_channel();
        let queue = RecordQueue { sender: sender.clone(), missed: missed.clone() };
        let recorder = Arc::new(EpisodeRecorder::new(filter, Box::new(queue)));
        let (end, closed) = (CancellationToken::new(), CancellationToken::new());
        let live = LiveRecord {
            recorder: recorder.clone(),
            work: sender,
            missed,
            beginning: beginning.cloned(),
            end: end.clone(),
            opened: writer.opened().clone(),
            closed: closed.clone(),
        };
        let mut table = shared.live();
        if table.contains_key(episode) {
            return;
        }
        table.insert(episode.clone(), live);
        drop(table);
        let task = RecordTask { writer, work, recorder, end, shutdown: shared.shutdown.clone() };
        let (shared, episode) = (shared.clone(), episode.clone());
        self.0.tasks.spawn(async move {
            // A panic is in the log already.
            let _ = supervised(task.run()).await;
            shared.live().remove(&episode);
            closed.cancel();
            retention::remove_old(shared).await;
        });
    }

    /// Returns the recorder of an episode that runs, if it is recorded.
    pub(crate) fn recorder(&self, episode: &EpisodeId) -> Option<Arc<EpisodeRecorder>> {
        let live = self.0.live();
        live.get(episode).filter(|live| !live.end.is_cancelled()).map(|live| live.recorder.clone())
    }

    /// Ends the record of an episode whose clients have been cut off. The call does not block.
    pub(crate) fn end(&self, episode: &EpisodeId) {
        if let Some(live) = self.0.live().get(episode) {
            live.end.cancel();
        }
    }

    /// Keeps the requests of a running episode up to now, as the beginning of the records of its forks. A failure is logged,
    /// and the records of the forks say that their beginning is missing.
    ///
    /// Cancellation: the file is removed later.
    pub(crate) async fn fork(&self, parent: ForkedEpisode<'_>) -> RecordBeginning {
        let beginning = RecordBeginning::new(self.0.beginnings.clone());
        if let Err(error) = self.write_beginning(&parent, beginning.path()).await {
            let episode = parent.id;
            tracing::warn!(episode.id = %episode, %error, "the record of episode {episode} could not be forked");
        }
        beginning
    }

    async fn write_beginning(&self, parent: &ForkedEpisode<'_>, to: PathBuf) -> io::Result<()> {
        if parent.records == RecordedRequests::Nothing {
            let at = self.0.clock.now();
            let head = RecordHead {
                version: VERSION,
                episode: parent.id.to_string(),
                environment: parent.environment.to_owned(),
                records: parent.records.name().to_owned(),
                since: parent.since,
                sites: Vec::new(),
            };
            return blocking(move || beginning::write_silent(&to, head, at)).await;
        }
        let is_over = || io::Error::other("its record is closed");
        let (reply, forked) = oneshot::channel();
        let work = self.0.live().get(parent.id).map(|live| live.work.clone()).ok_or_else(is_over)?;
        work.send(RecordWork::Fork { to, reply }).map_err(|_| is_over())?;
        forked.await.map_err(|_| is_over())?
    }

    /// Waits until a beginning would outlive a failure of the host. A failure is logged.
    pub(crate) async fn sync(&self, beginning: &RecordBeginning) {
        let (kept, id) = (self.0.beginnings.clone(), beginning.id().clone());
        match blocking(move || kept.sync(&id)).await {
            Ok(()) => {}
            // It could not be written, which is in the log already.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => tracing::warn!(%error, "the beginning of a record is not on disk yet"),
        }
    }

    /// Returns the beginnings on disk that no record is being made from, whether or not forks need them.
    pub(crate) async fn beginnings(&self) -> io::Result<BTreeSet<RecordBeginningId>> {
        let kept = self.0.beginnings.clone();
        blocking(move || kept.unpinned()).await
    }

    /// Removes beginnings that no episode needs which has not ended.
    pub(crate) async fn remove_beginnings(&self, mut unneeded: BTreeSet<RecordBeginningId>) -> io::Result<()> {
        // An episode that has just ended may not have taken its beginning over yet.
        unneeded.retain(|id| self.0.live().values().all(|live| live.beginning.as_ref() != Some(id)));
        let kept = self.0.beginnings.clone();
        blocking(move || unneeded.iter().try_for_each(|id| kept.remove(id))).await
    }

    /// Returns the record of an episode as the text of a HAR, or `None` if there is none. An episode that has just
    /// begun is waited for until its first line is written, and one that has just ended until its last requests are.
    ///
    /// Errors: the file cannot be read.
    pub(crate) async fn har(&self, episode: &EpisodeId) -> Result<Option<String>, RecordError> {
        let due = self.0.live().get(episode).map(|live| {
            let due = if live.end.is_cancelled() { &live.closed } else { &live.opened };
            due.clone()
        });
        if let Some(due) = due {
            let _ = tokio::time::timeout(WRITE_LIMIT, due.cancelled()).await;
        }
        // Before the file is read: a request that is written in between is found in both and shown once.
        let live = {
            let live = self.0.live();
            live.get(episode).map(|live| (live.recorder.under_way(), live.missed.load(Ordering::Relaxed)))
        };
        let is_live = live.is_some();
        let (under_way, missed) = live.unwrap_or_default();
        let path = self.0.path(episode);
        let read = tokio::task::spawn_blocking(move || {
            let mut content = RecordContent::read(&path)?;
            content.add_missed(missed);
            Ok::<_, RecordError>(content.har(&under_way, RECORD_MAX))
        });
        match read.await {
            Ok(Ok(har)) => Ok(Some(har)),
            // The first line could not be written yet.
            Ok(Err(RecordError::Head)) if is_live => Ok(None),
            Ok(Err(RecordError::Io(error))) if error.kind() == ErrorKind::NotFound => Ok(None),
            Ok(Err(error)) => Err(error),
            Err(panic) => Err(RecordError::Io(std::io::Error::other(panic))),
        }
    }

    /// Removes the records that are too old or have no room any more.
    pub(crate) async fn remove_old(&self) {
        retention::remove_old(self.0.clone()).await;
    }
}

impl SharedRecords {
    // Every change is one insertion or removal, so a panic leaves a valid table.
    fn live(&self) -> MutexGuard<'_, BTreeMap<EpisodeId, LiveRecord>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn folder_of(&self, episode: &EpisodeId) -> PathBuf {
        self.folder.join(episode.as_str())
    }

    fn path(&self, episode: &EpisodeId) -> PathBuf {
        self.folder_of(episode).join(FILE)
    }
}

/// An episode that is being forked.
pub(crate) struct ForkedEpisode<'a> {
    pub(crate) id: &'a EpisodeId,
    pub(crate) environment: &'a str,
    /// The requests of it that are recorded.
    pub(crate) records: RecordedRequests,
    /// The time at which its clients could reach its sites.
    pub(crate) since: Timestamp,
}

/// Runs work on a thread that may block.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

/// Returns a site as it is recorded. `slot` is the id of the instance and its generation, for a site that the episode has
/// a slot of.
pub(crate) fn recorded_site(site: &Site, slot: Option<(String, u64)>) -> RecordedSite {
    let aliases = site.public.aliases.iter().map(|alias| format!("http://{alias}"));
    let public =
        ["localhost", "127.0.0.1", site.public.host.as_str()].map(|host| format!("http://{host}:{}", site.public.port));
    let with_port = format!("http://{}.{ARENA_DOMAIN}:{}", site.name, site.public.port);
    let mut urls = vec![own_url(site), common_url(site)];
    let others = public.into_iter().chain([with_port]).chain(aliases);
    for url in others.map(|origin| format!("{origin}{}", site.public.path)) {
        if !urls.contains(&url) {
            urls.push(url);
        }
    }
    let (instance, generation) = slot.unzip();
    RecordedSite { site: site.name.to_string(), variable: site.public.variable.clone(), instance, generation, urls }
}

#[cfg(test)]
mod tests;
