//! A route: one public port, one site, and the switch between targets.
//!
//! # Why no byte of a previous target gets through
//!
//! A change of state performs three steps under the route's mutex, in this order: it publishes the new epoch, aborts
//! every connection to the old target, and settles every client connection (`ExchangeLink::expel`). Then it returns. A
//! worker with a request is in one of four situations:
//!
//! 1. *It has not noted the request in the link when the change visits the link.* It notes the request later and then
//!    reads the epoch. The link's mutex orders that read after the change's write, so the worker sees that its target
//!    is outdated and starts again.
//! 2. *It has noted the request, and commits to the response after the visit.* The visit expelled the request, so the
//!    commit is refused and the response is dropped.
//! 3. *It committed before the visit.* The visit aborts the client's connection in the kernel, where the socket's lock
//!    orders the abort and each write: written bytes that have not been sent are discarded, and later writes fail.
//! 4. *The response was complete before the visit.* If bytes of it are still in hyper's buffer or in the kernel, the
//!    visit aborts the connection; otherwise it leaves the connection alone.
//!
//! Requests travel to the old target only on connections in the register. The change aborts a connection that was
//! entered before it. A connection that is entered later is refused, because the register compares epochs under the
//! same mutex. A connection outside the register has carried no byte.

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use super::gather::RecordedEpisode;
use super::link::{ClientLink, Epoch, ExchangeLink};
use super::phase::{HoldLimits, RouteCommand, RouteState};
use super::recorder::Recorder;
use super::recording::RecordingFilter;
use super::wire::SharedWriteHalf;
use super::writes::WriteRules;
use arenad_seams::ordered_watch as watch;

/// The counters of a route.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RouteStats {
    /// Number of requests received, including refused ones.
    pub requests: u64,
    /// Number of requests that may have changed the site, sent to the most recently served generation since it was
    /// first served.
    ///
    /// Every method except GET, HEAD and OPTIONS counts, unless the path is one that is declared to be only read. Every
    /// upgrade counts, because its content is not inspected. The count errs on the high side: a request that was
    /// overtaken by `serve` may be counted again.
    pub unsafe_requests: u64,
    /// Whether a request can have reached the most recently served generation: true if a connection to it has been made
    /// since it was first served.
    pub is_reached: bool,
    /// Whether a request can have reached the generation that was served before that one.
    pub was_reached: bool,
    /// Number of requests whose response has not been written completely, including held requests and tunnels.
    ///
    /// While it is zero, a switch cuts only clients that have not yet received the bytes written to them.
    pub in_flight: u64,
    /// Number of requests that wait for a target.
    pub held: u64,
    /// Number of open client connections to the public port.
    pub connections: u64,
    /// Number of bytes of request bodies and tunnels sent to targets.
    pub bytes_to_site: u64,
    /// Number of bytes of response bodies and tunnels received from targets.
    pub bytes_from_site: u64,
    /// Number of times that a target refused a connection, closed one too early, or sent a response that could not be
    /// forwarded.
    pub target_failures: u64,
    /// Number of client connections that were cut by a switch.
    pub cut: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) requests: AtomicU64,
    pub(super) unsafe_requests: AtomicU64,
    pub(super) in_flight: AtomicU64,
    pub(super) bytes_to_site: AtomicU64,
    pub(super) bytes_from_site: AtomicU64,
    target_failures: AtomicU64,
    cut: AtomicU64,
    held: AtomicUsize,
}

impl Counters {
    pub(super) fn target_failed(&self) {
        self.target_failures.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a client connection that was cut because a switch had broken the connection to its target.
    pub(super) fn cut_by_switch(&self) {
        self.cut.fetch_add(1, Ordering::Relaxed);
    }
}

#[derive(Debug)]
struct Register {
    state: RouteState,
    /// The connections to the public port.
    clients: HashMap<u64, Arc<ExchangeLink>>,
    /// The connections to the episode proxy that have used the route. They belong to the proxy, which limits and closes
    /// them, and may use other routes as well.
    guests: HashMap<u64, Arc<ExchangeLink>>,
    /// Entries without a wire are not sockets of the gateway; the caller of `enter_target` watches the epoch instead.
    targets: HashMap<u64, Option<Arc<SharedWriteHalf>>>,
    /// The most recently served generation. It does not change while the route refuses or holds in between, and neither
    /// does the knowledge about its clients: a container that was paused is still the same container.
    generation: Option<u64>,
    /// Whether a connection to that generation has been made.
    is_reached: bool,
    /// The generation that was served before that one.
    previous: Option<u64>,
    /// Whether a connection to the generation before that one has been made.
    was_reached: bool,
    next_key: u64,
}

impl Register {
    fn key(&mut self) -> u64 {
        self.next_key += 1;
        self.next_key
    }
}

/// The state that all workers and all handles of a route share.
#[derive(Debug)]
pub(super) struct SharedRoute {
    pub(super) id: u64,
    pub(super) name: String,
    pub(super) address: SocketAddr,
    pub(super) hold: HoldLimits,
    pub(super) writes: WriteRules,
    /// Records the traffic; `None` if nothing is recorded.
    pub(super) recorder: Option<Arc<Recorder>>,
    /// Records the requests to the public port for the episode that has the route.
    episode: Mutex<Option<RecordedEpisode>>,
    pub(super) counters: Counters,
    epoch: AtomicU64,
    is_draining: Arc<AtomicBool>,
    register: Mutex<Register>,
    changed: watch::Sender<Epoch>,
    /// Called at each generation's first connection, before that connection is used.
    first: OnceLock<OnFirst>,
}

/// A function that is called with the number of a generation.
struct OnFirst(Box<dyn Fn(u64) + Send + Sync>);

impl fmt::Debug for OnFirst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnFirst")
    }
}

impl SharedRoute {
    pub(super) fn new(
        id: u64,
        name: &str,
        address: SocketAddr,
        hold: HoldLimits,
        writes: WriteRules,
        record: RecordingFilter,
    ) -> Arc<Self> {
        let state =
            RouteState::Refusing { reason: "nothing serves it yet".to_owned(), retry_after: Duration::from_secs(1) };
        Arc::new(Self {
            id,
            name: name.to_owned(),
            address,
            hold,
            writes,
            recorder: (record != RecordingFilter::Nothing).then(|| Arc::new(Recorder::new(record))),
            episode: Mutex::default(),
            counters: Counters::default(),
            epoch: AtomicU64::new(1),
            is_draining: Arc::default(),
            register: Mutex::new(Register {
                state,
                clients: HashMap::new(),
                guests: HashMap::new(),
                targets: HashMap::new(),
                generation: None,
                is_reached: false,
                previous: None,
                was_reached: false,
                next_key: 0,
            }),
            changed: watch::Sender::new(1),
            first: OnceLock::new(),
        })
    }

    // Every critical section leaves the register consistent at each step, so a panic inside one does not invalidate it.
    fn register(&self) -> MutexGuard<'_, Register> {
        self.register.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the recorder of the episode that has the route, if it is recorded.
    pub(super) fn episode_recording(&self) -> Option<RecordedEpisode> {
        self.episode.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Records the requests to the public port for an episode, or for none.
    pub(super) fn record_for(&self, episode: Option<RecordedEpisode>) {
        *self.episode.lock().unwrap_or_else(PoisonError::into_inner) = episode;
    }

    pub(super) fn epoch(&self) -> Epoch {
        self.epoch.load(Ordering::SeqCst)
    }

    pub(super) fn state(&self) -> (Epoch, RouteState) {
        let register = self.register();
        (self.epoch(), register.state.clone())
    }

    /// Returns a receiver of epochs. An epoch is announced last, when workers may already act on it.
    pub(super) fn changes(&self) -> watch::Receiver<Epoch> {
        self.changed.subscribe()
    }

    /// Changes the state; the module comment states what holds when this returns.
    pub(super) fn change(&self, command: RouteCommand) -> bool {
        let mut register = self.register();
        let Some(next) = register.state.after(command) else {
            return false;
        };
        if let RouteState::Serving { target } = &next {
            // Before the epoch: a request that sees the new target is counted and recorded after this.
            let before = register.generation.replace(target.generation);
            if before != Some(target.generation) {
                register.previous = before;
                self.counters.unsafe_requests.store(0, Ordering::SeqCst);
                register.was_reached = std::mem::take(&mut register.is_reached);
            }
            if let Some(recorder) = &self.recorder {
                recorder.serve(target.generation);
            }
        }
        register.state = next;
        let epoch = self.epoch() + 1;
        self.epoch.store(epoch, Ordering::SeqCst);
        for target in register.targets.values().flatten() {
            target.abort();
        }
        let clients = register.clients.values().chain(register.guests.values());
        let cut = clients.filter(|client| client.expel(epoch)).count();
        // The mutex is still held: otherwise two changes could be announced in the wrong order.
        self.changed.send_replace(epoch);
        drop(register);
        self.counters.cut.fetch_add(cut as u64, Ordering::Relaxed);
        true
    }

    /// Registers a client connection, unless the limit is reached.
    pub(super) fn enter_client(self: &Arc<Self>, link: Arc<ExchangeLink>, most: usize) -> Option<ClientEntry> {
        let mut register = self.register();
        if register.clients.len() >= most {
            return None;
        }
        let key = register.key();
        register.clients.insert(key, link);
        Some(ClientEntry { route: Arc::clone(self), key })
    }

    /// Registers a connection to the episode proxy whose request goes to this route.
    pub(super) fn enter_guest(self: &Arc<Self>, link: Arc<ExchangeLink>) -> ClientEntry {
        let mut register = self.register();
        let key = register.key();
        register.guests.insert(key, link);
        ClientEntry { route: Arc::clone(self), key }
    }

    /// Registers a connection to the target of `epoch`, unless the route has moved on to a later epoch.
    pub(super) fn enter_target(
        self: &Arc<Self>,
        epoch: Epoch,
        wire: Option<Arc<SharedWriteHalf>>,
    ) -> Option<TargetEntry> {
        let mut register = self.register();
        if self.epoch() != epoch {
            return None;
        }
        let key = register.key();
        register.targets.insert(key, wire);
        let is_first = !std::mem::replace(&mut register.is_reached, true);
        // The mutex is held, so no other request obtains a connection before the function returns.
        if let (true, Some(first), Some(generation)) = (is_first, self.first.get(), register.generation) {
            (first.0)(generation);
        }
        Some(TargetEntry { route: Arc::clone(self), key, epoch })
    }

    /// Whether a request can have reached a generation, which is assumed of all but the last two that were served.
    pub(super) fn may_have_reached(&self, generation: u64) -> bool {
        let register = self.register();
        match Some(generation) {
            last if last == register.generation => register.is_reached,
            before if before == register.previous => register.was_reached,
            _ => true,
        }
    }

    /// Registers the function that is called at each generation's first connection, before anything is sent on it; only
    /// the first registration per route takes effect.
    pub(super) fn on_first(&self, told: impl Fn(u64) + Send + Sync + 'static) {
        let _ = self.first.set(OnFirst(Box::new(told)));
    }

    /// Takes a place among the held requests, unless all places are taken.
    pub(super) fn enter_held(&self) -> Option<HeldPlace<'_>> {
        let taken = self
            .counters
            .held
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |held| (held < self.hold.requests).then_some(held + 1));
        taken.ok().map(|_| HeldPlace { route: self })
    }

    /// Returns the flag that says whether every response must be the last on its connection.
    pub(super) fn draining(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_draining)
    }

    /// Lets exchanges under way finish and closes idle connections; every further response ends its connection.
    pub(super) fn drain(&self) {
        self.is_draining.store(true, Ordering::SeqCst);
        self.each_client(ClientLink::close_if_idle);
    }

    pub(super) fn each_client(&self, act: impl Fn(&ClientLink)) {
        for client in self.register().clients.values() {
            act(&client.client);
        }
    }

    pub(super) fn connections(&self) -> usize {
        self.register().clients.len()
    }

    pub(super) fn stats(&self) -> RouteStats {
        let counters = &self.counters;
        let read = |counter: &AtomicU64| counter.load(Ordering::SeqCst);
        // The lock is released before the counters are read: inside the expression below it would be held to the end.
        let (is_reached, was_reached, connections) = {
            let register = self.register();
            (register.is_reached, register.was_reached, register.clients.len() as u64)
        };
        RouteStats {
            requests: read(&counters.requests),
            unsafe_requests: read(&counters.unsafe_requests),
            is_reached,
            was_reached,
            in_flight: read(&counters.in_flight),
            held: counters.held.load(Ordering::SeqCst) as u64,
            connections,
            bytes_to_site: read(&counters.bytes_to_site),
            bytes_from_site: read(&counters.bytes_from_site),
            target_failures: read(&counters.target_failures),
            cut: read(&counters.cut),
        }
    }
}

/// A client connection in the register; dropping it removes the entry.
#[derive(Debug)]
pub(super) struct ClientEntry {
    route: Arc<SharedRoute>,
    key: u64,
}

impl Drop for ClientEntry {
    fn drop(&mut self) {
        // Removed under the mutex and dropped after it, because dropping the last owner closes the connection.
        let removed = {
            let mut register = self.route.register();
            register.clients.remove(&self.key).or_else(|| register.guests.remove(&self.key))
        };
        drop(removed);
    }
}

/// A connection to a target in the register; dropping it removes the entry.
#[derive(Debug)]
pub(super) struct TargetEntry {
    route: Arc<SharedRoute>,
    key: u64,
    pub(super) epoch: Epoch,
}

impl Drop for TargetEntry {
    fn drop(&mut self) {
        // Removed under the mutex and dropped after it, because dropping the last owner closes the connection.
        let wire = self.route.register().targets.remove(&self.key);
        drop(wire);
    }
}

/// A place among the held requests; dropping it frees the place.
#[derive(Debug)]
pub(super) struct HeldPlace<'a> {
    route: &'a SharedRoute,
}

impl Drop for HeldPlace<'_> {
    fn drop(&mut self) {
        self.route.counters.held.fetch_sub(1, Ordering::SeqCst);
    }
}
