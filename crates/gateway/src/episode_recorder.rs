//! The recording of one episode's requests, which leave the gateway as they end.
//!
//! ```text
//!   Track ── ended exchange ──► ExchangeKeeper (the daemon) ──► disk
//!     │                                  │
//!     └── the end of the response ◄──────┘ receipt: the exchange is kept
//! ```
//! The gateway withholds the end of a response until its exchange is kept, so a client that has read a response to its
//! end finds the exchange in the record, whatever happens to the daemon afterwards. An exchange whose client goes away
//! early is handed over as well.
//!
//! The bodies and heads that are in transit or wait for the keeper are bounded. When their room is used up, bodies are
//! left out, and then whole exchanges, of which the keeper is told.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::Method;
use tokio::sync::oneshot;

use super::recording::{Exchange, RecordingFilter, RequestHead};

/// Limit for the heads and bodies of one episode that are in transit or wait for the keeper, in bytes.
const ROOM: usize = 16 << 20;

/// Keeps the exchanges of one episode outside of the gateway.
pub trait ExchangeKeeper: Send + Sync + 'static {
    /// Takes over an exchange that has ended. The end of its response is withheld until the value is dropped, so it must
    /// be dropped in any case, and soon. The call must not block.
    fn keep(&self, ended: EndedExchange);

    /// Notes that an exchange was not recorded because too many others were under way. The call must not block.
    fn leave_out(&self);
}

/// A bounded number of bytes, of which requests in transit take their share.
#[derive(Debug)]
pub(super) struct BodyRoom {
    taken: AtomicUsize,
    limit: usize,
}

impl BodyRoom {
    pub(super) fn new(limit: usize) -> Self {
        Self { taken: AtomicUsize::new(0), limit }
    }

    /// Takes room. Returns false if not enough is left.
    pub(super) fn take(&self, bytes: usize) -> bool {
        let taken = self.taken.fetch_add(bytes, Ordering::Relaxed);
        let is_taken = taken + bytes <= self.limit;
        if !is_taken {
            self.give(bytes);
        }
        is_taken
    }

    /// Releases room that `take` returned true for.
    pub(super) fn give(&self, bytes: usize) {
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
    }

    #[cfg(test)]
    pub(super) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }
}

/// Records the requests of one episode: those through the episode proxy, and those to the routes that it has.
pub struct EpisodeRecorder {
    records: RecordingFilter,
    keeper: Box<dyn ExchangeKeeper>,
    room: Arc<BodyRoom>,
    under_way: Mutex<BTreeMap<u64, UnfinishedExchange>>,
    next: AtomicU64,
}

impl fmt::Debug for EpisodeRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EpisodeRecorder").field("records", &self.records).finish_non_exhaustive()
    }
}

/// A request that was sent to a site and is not kept yet.
#[derive(Clone)]
pub struct UnfinishedExchange {
    /// The name of the site; `None` for a host outside of the arena.
    pub site: Option<String>,
    /// Head of the request, as the client sent it.
    pub request: Arc<RequestHead>,
}

// Any part of the traffic may be a secret.
impl fmt::Debug for UnfinishedExchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnfinishedExchange").field("site", &self.site).finish_non_exhaustive()
    }
}

impl EpisodeRecorder {
    /// Creates a recorder that hands the selected exchanges over to `keeper`.
    pub fn new(records: RecordingFilter, keeper: Box<dyn ExchangeKeeper>) -> Self {
        let room = Arc::new(BodyRoom::new(ROOM));
        Self { records, keeper, room, under_way: Mutex::default(), next: AtomicU64::new(0) }
    }

    // Every change is one insertion or removal, so a panic leaves a valid table.
    fn table(&self) -> MutexGuard<'_, BTreeMap<u64, UnfinishedExchange>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the requests that were sent to a site and are not kept yet, in the order in which they were sent.
    pub fn under_way(&self) -> Vec<UnfinishedExchange> {
        self.table().values().cloned().collect()
    }

    pub(super) fn includes(&self, method: &Method) -> bool {
        self.records.includes(method)
    }

    pub(super) fn room(&self) -> &Arc<BodyRoom> {
        &self.room
    }

    /// Enters a request that is about to be sent. Returns its number, or `None` if there is no room for it.
    pub(super) fn enter(&self, site: Option<&str>, exchange: &Exchange) -> Option<u64> {
        if !self.room.take(exchange.bytes()) {
            self.keeper.leave_out();
            return None;
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let unfinished = UnfinishedExchange { site: site.map(str::to_owned), request: Arc::clone(&exchange.request) };
        self.table().insert(number, unfinished);
        Some(number)
    }

    /// Hands an exchange over to the keeper. `room` is the number of bytes that it has taken.
    pub(super) fn end(
        self: &Arc<Self>,
        number: u64,
        site: Option<String>,
        exchange: Exchange,
        room: usize,
    ) -> KeptReceipt {
        let (kept, receipt) = oneshot::channel();
        let recorder = Arc::clone(self);
        self.keeper.keep(EndedExchange { site, exchange, recorder, number, room, _kept: kept });
        receipt
    }
}

/// Resolves, with an error that means nothing, when an exchange is kept.
pub(super) type KeptReceipt = oneshot::Receiver<()>;

/// An exchange that has ended. Its client reads the end of the response when the value is dropped.
pub struct EndedExchange {
    /// The name of the site; `None` for a host outside of the arena.
    pub site: Option<String>,
    /// The request and its response.
    pub exchange: Exchange,
    recorder: Arc<EpisodeRecorder>,
    number: u64,
    room: usize,
    _kept: oneshot::Sender<()>,
}

impl fmt::Debug for EndedExchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndedExchange").field("site", &self.site).finish_non_exhaustive()
    }
}

impl Drop for EndedExchange {
    fn drop(&mut self) {
        self.recorder.room.give(self.room);
        // Dropped after the lock, because the head may have its last owner here.
        let finished = self.recorder.table().remove(&self.number);
        drop(finished);
    }
}
