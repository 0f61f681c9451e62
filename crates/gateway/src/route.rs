//! A route: one public port, one site, and the switch between what serves it.
//!
//! # Why nothing of the past gets through
//!
//! A change of state does, in this order, under the route's mutex: publish the new epoch, abort every connection to the old
//! target, settle every client connection (`ClientLink::expel`). It returns afterwards. Consider a worker with a request:
//!
//! 1. *It has not noted the request in the link when the change visits the link.* It notes it later, and then reads the epoch;
//!    the link's mutex orders that read after the change's write, so it sees that its target is of the past and starts again.
//! 2. *It has noted the request, and commits to the answer after the visit.* The visit expelled the request; the commit is
//!    refused and the answer dropped.
//! 3. *It committed before the visit.* The visit aborts the client's connection in the kernel, where the order of abort and
//!    write is decided by the socket's lock: written bytes that were not sent are thrown away, later writes fail.
//! 4. *The answer was complete before the visit.* Bytes of it that are still in hyper's buffer or in the kernel make the visit
//!    abort the connection; a connection with none is left alone.
//!
//! Towards the old target: requests travel only on connections in the register. One that is entered before the change is
//! aborted by it; one that is entered later is refused, because the register compares epochs under the same mutex. A connection
//! outside the register has carried no byte.

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use super::link::{ClientLink, Epoch};
use super::phase::{Command, HoldLimits, RouteState};
use super::recorder::Recorder;
use super::recording::Record;
use super::wire::Wire;
use super::writes::WriteRules;
use arenad_seams::ordered_watch as watch;

/// What a route has done so far, and what it is doing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RouteStats {
    /// Requests received, refused ones included.
    pub requests: u64,
    /// Requests that may have changed the site, sent to the generation that was served last, since it was first served.
    ///
    /// Every method but GET, HEAD and OPTIONS counts, unless the path is one that is only read, and every upgrade, because what
    /// it carries is not looked at. Errs on the side of counting: a request that was overtaken by `serve` may be counted again.
    pub unsafe_requests: u64,
    /// Whether any request can have reached the generation that was served last: whether a connection was made to it, since it
    /// was first served.
    pub is_reached: bool,
    /// The same of the generation that was served before that one.
    pub was_reached: bool,
    /// Requests whose answer has not been written to its end, held ones and tunnels included.
    ///
    /// While it is zero, a switch cuts only clients that have not fetched what was written.
    pub in_flight: u64,
    /// Requests that wait for a target.
    pub held: u64,
    /// Open client connections.
    pub connections: u64,
    /// Bytes of request bodies and tunnels sent towards targets.
    pub bytes_to_site: u64,
    /// Bytes of answer bodies and tunnels received from targets.
    pub bytes_from_site: u64,
    /// Times that a target refused a connection, closed one too early, or sent what could not be passed on.
    pub target_failures: u64,
    /// Client connections that were cut by a switch.
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

    /// A switch has cut a client's connection before it came to it.
    pub(super) fn cut_by_switch(&self) {
        self.cut.fetch_add(1, Ordering::Relaxed);
    }
}

#[derive(Debug)]
struct Register {
    state: RouteState,
    clients: HashMap<u64, Arc<ClientLink>>,
    /// Those without a wire are not sockets of ours; whoever uses them watches the epoch.
    targets: HashMap<u64, Option<Arc<Wire>>>,
    /// The generation that was served last. It stays the same while the route refuses or holds in between, and so does what is
    /// known of its clients: a container that was paused is no new one.
    generation: Option<u64>,
    /// Whether there has been a connection to that generation.
    is_reached: bool,
    /// Whether there had been one to the generation before.
    was_reached: bool,
    next_key: u64,
}

impl Register {
    fn key(&mut self) -> u64 {
        self.next_key += 1;
        self.next_key
    }
}

/// What all workers and all handles of a route share.
#[derive(Debug)]
pub(super) struct SharedRoute {
    pub(super) id: u64,
    pub(super) name: String,
    pub(super) address: SocketAddr,
    pub(super) hold: HoldLimits,
    pub(super) writes: WriteRules,
    /// Keeps what passes; none, where nothing is kept.
    pub(super) recorder: Option<Arc<Recorder>>,
    pub(super) counters: Counters,
    epoch: AtomicU64,
    is_draining: AtomicBool,
    register: Mutex<Register>,
    changed: watch::Sender<Epoch>,
    /// Is told of each generation's first connection before that is used.
    first: OnceLock<OnFirst>,
}

/// Is told of a generation.
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
        record: Record,
    ) -> Arc<Self> {
        let state =
            RouteState::Refusing { reason: "nothing serves it yet".to_owned(), retry_after: Duration::from_secs(1) };
        Arc::new(Self {
            id,
            name: name.to_owned(),
            address,
            hold,
            writes,
            recorder: (record != Record::Nothing).then(|| Arc::new(Recorder::new(record))),
            counters: Counters::default(),
            epoch: AtomicU64::new(1),
            is_draining: AtomicBool::new(false),
            register: Mutex::new(Register {
                state,
                clients: HashMap::new(),
                targets: HashMap::new(),
                generation: None,
                is_reached: false,
                was_reached: false,
                next_key: 0,
            }),
            changed: watch::Sender::new(1),
            first: OnceLock::new(),
        })
    }

    // Every critical section leaves the register whole at each step, so a panic inside one is no reason to stop.
    fn register(&self) -> MutexGuard<'_, Register> {
        self.register.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn epoch(&self) -> Epoch {
        self.epoch.load(Ordering::SeqCst)
    }

    pub(super) fn state(&self) -> (Epoch, RouteState) {
        let register = self.register();
        (self.epoch(), register.state.clone())
    }

    /// Returns a receiver of epochs. An epoch is announced last of all, when workers may already act on it.
    pub(super) fn changes(&self) -> watch::Receiver<Epoch> {
        self.changed.subscribe()
    }

    /// Changes the state; see the module's comment for what is true when this returns.
    pub(super) fn change(&self, command: Command) -> bool {
        let mut register = self.register();
        let Some(next) = register.state.after(command) else {
            return false;
        };
        if let RouteState::Serving { target } = &next {
            // Before the epoch: a request that sees the new target is counted and recorded after this.
            if register.generation.replace(target.generation) != Some(target.generation) {
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
        let cut = register.clients.values().filter(|client| client.expel(epoch)).count();
        // Still under the mutex, or two changes could be announced in the wrong order.
        self.changed.send_replace(epoch);
        drop(register);
        self.counters.cut.fetch_add(cut as u64, Ordering::Relaxed);
        true
    }

    /// Enters a client connection, unless the limit is reached.
    pub(super) fn enter_client(self: &Arc<Self>, link: Arc<ClientLink>, most: usize) -> Option<ClientEntry> {
        let mut register = self.register();
        if register.clients.len() >= most {
            return None;
        }
        let key = register.key();
        register.clients.insert(key, link);
        Some(ClientEntry { route: Arc::clone(self), key })
    }

    /// Enters a connection to the target of `epoch`, unless that is of the past.
    pub(super) fn enter_target(self: &Arc<Self>, epoch: Epoch, wire: Option<Arc<Wire>>) -> Option<TargetEntry> {
        let mut register = self.register();
        if self.epoch() != epoch {
            return None;
        }
        let key = register.key();
        register.targets.insert(key, wire);
        let is_first = !std::mem::replace(&mut register.is_reached, true);
        // Under the mutex: nobody else has a connection before this returns.
        if let (true, Some(first), Some(generation)) = (is_first, self.first.get(), register.generation) {
            (first.0)(generation);
        }
        Some(TargetEntry { route: Arc::clone(self), key, epoch })
    }

    /// Has `told` told of each generation's first connection, before anything is sent on that; once per route.
    pub(super) fn on_first(&self, told: impl Fn(u64) + Send + Sync + 'static) {
        let _ = self.first.set(OnFirst(Box::new(told)));
    }

    /// Takes a place among the held requests, unless all are taken.
    pub(super) fn enter_held(&self) -> Option<HeldPlace<'_>> {
        let taken = self
            .counters
            .held
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |held| (held < self.hold.requests).then_some(held + 1));
        taken.ok().map(|_| HeldPlace { route: self })
    }

    /// Whether every answer is to be its connection's last.
    pub(super) fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Relaxed)
    }

    /// Lets what is going on end, and nothing begin.
    pub(super) fn drain(&self) {
        self.is_draining.store(true, Ordering::SeqCst);
        self.each_client(ClientLink::close_if_idle);
    }

    pub(super) fn each_client(&self, act: impl Fn(&ClientLink)) {
        for client in self.register().clients.values() {
            act(client);
        }
    }

    pub(super) fn connections(&self) -> usize {
        self.register().clients.len()
    }

    pub(super) fn stats(&self) -> RouteStats {
        let counters = &self.counters;
        let read = |counter: &AtomicU64| counter.load(Ordering::SeqCst);
        // Locked once, and let go of before anything else: in the expression below it would be held to its end.
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

/// A client connection in the register; leaves it when dropped.
#[derive(Debug)]
pub(super) struct ClientEntry {
    route: Arc<SharedRoute>,
    key: u64,
}

impl Drop for ClientEntry {
    fn drop(&mut self) {
        self.route.register().clients.remove(&self.key);
    }
}

/// A connection to a target in the register; leaves it when dropped.
#[derive(Debug)]
pub(super) struct TargetEntry {
    route: Arc<SharedRoute>,
    key: u64,
    pub(super) epoch: Epoch,
}

impl Drop for TargetEntry {
    fn drop(&mut self) {
        // Taken out under the mutex, dropped after it: the last owner of a connection closes it.
        let wire = self.route.register().targets.remove(&self.key);
        drop(wire);
    }
}

/// A place among the held requests; given back when dropped.
#[derive(Debug)]
pub(super) struct HeldPlace<'a> {
    route: &'a SharedRoute,
}

impl Drop for HeldPlace<'_> {
    fn drop(&mut self) {
        self.route.counters.held.fetch_sub(1, Ordering::SeqCst);
    }
}
