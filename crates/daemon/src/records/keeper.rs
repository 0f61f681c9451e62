//! From the gateway to the file: the queue of the exchanges of one episode, and the task that writes them.
//!
//! The task ends a moment after the episode, when its last requests have ended, or with the daemon. The gateway withholds
//! the end of each response until its exchange is written, which bounds the queue.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::writer::RecordWriter;
use arenad_gateway::{EndedExchange, EpisodeRecorder, ExchangeKeeper};

/// The number of exchanges that are written in one go.
const BATCH: usize = 64;
/// The time in which the requests that the end of an episode has cut off come to their own ends.
const LAST_REQUESTS: Duration = Duration::from_secs(1);
/// The pause between two looks whether they have.
const TICK: Duration = Duration::from_millis(10);

/// Work on a record, in the order in which it is done.
pub(super) enum RecordWork {
    /// An exchange is to be written.
    Write(EndedExchange),
    /// The record so far is to be written to a file, as the beginning of the records of forks.
    Fork { to: PathBuf, reply: oneshot::Sender<io::Result<()>> },
}

/// The gateway's end of the queue.
pub(super) struct RecordQueue {
    pub(super) sender: UnboundedSender<RecordWork>,
    pub(super) missed: Arc<AtomicU64>,
}

impl ExchangeKeeper for RecordQueue {
    fn keep(&self, ended: EndedExchange) {
        // Fails if the record is closed. The exchange is dropped then, which releases its response.
        if self.sender.send(RecordWork::Write(ended)).is_err() {
            self.leave_out();
        }
    }

    fn leave_out(&self) {
        self.missed.fetch_add(1, Ordering::Relaxed);
    }
}

impl RecordWork {
    fn execute(self, writer: &mut RecordWriter, recorder: &EpisodeRecorder) {
        match self {
            Self::Write(ended) => writer.write(ended.site.as_deref(), &ended.exchange),
            Self::Fork { to, reply } => {
                // Exactly the requests that are not in the file: each leaves the table when it has been written.
                let forked = writer.fork(&to, &recorder.under_way());
                // Fails if the request for the fork was given up. Its file is removed later.
                let _ = reply.send(forked);
            }
        }
    }
}

/// The task that writes one record.
pub(super) struct RecordTask {
    pub(super) writer: RecordWriter,
    pub(super) work: UnboundedReceiver<RecordWork>,
    pub(super) recorder: Arc<EpisodeRecorder>,
    /// Cancelled when the episode has ended.
    pub(super) end: CancellationToken,
    /// Cancelled when the daemon stops.
    pub(super) shutdown: CancellationToken,
}

impl RecordTask {
    /// Writes exchanges until the episode or the daemon has ended.
    pub(super) async fn run(self) {
        let Self { writer, mut work, recorder, end, shutdown } = self;
        let writer = Arc::new(Mutex::new(writer));
        on_writer(&writer, |writer| {
            writer.open();
        })
        .await;
        let mut batch = Vec::new();
        let mut closes_at: Option<Instant> = None;
        loop {
            tokio::select! {
                biased;
                received = work.recv_many(&mut batch, BATCH) => {
                    if received == 0 {
                        break;
                    }
                    let (batch, recorder) = (std::mem::take(&mut batch), recorder.clone());
                    on_writer(&writer, move |writer| {
                        for work in batch {
                            work.execute(writer, &recorder);
                        }
                    })
                    .await;
                }
                () = has_ended(&end, &shutdown), if closes_at.is_none() => {
                    closes_at = Some(Instant::now() + LAST_REQUESTS);
                }
                () = tokio::time::sleep(TICK), if closes_at.is_some() => {
                    let is_late = closes_at.is_some_and(|at| at <= Instant::now());
                    if is_late || recorder.under_way().is_empty() {
                        work.close();
                    }
                }
            }
        }
        on_writer(&writer, RecordWriter::close).await;
    }
}

async fn has_ended(end: &CancellationToken, shutdown: &CancellationToken) {
    tokio::select! {
        () = end.cancelled() => {}
        () = shutdown.cancelled() => {}
    }
}

/// Runs work on a thread that may block. A panic loses the exchanges of the work, which are counted, and nothing else.
async fn on_writer(writer: &Arc<Mutex<RecordWriter>>, work: impl FnOnce(&mut RecordWriter) + Send + 'static) {
    let shared = writer.clone();
    let done = tokio::task::spawn_blocking(move || work(&mut shared.lock().unwrap_or_else(PoisonError::into_inner)));
    if let Err(error) = done.await {
        tracing::error!(%error, "writing a record panicked");
        writer.lock().unwrap_or_else(PoisonError::into_inner).missed().fetch_add(1, Ordering::Relaxed);
    }
}
