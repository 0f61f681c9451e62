//! The state that the parts of one client connection share on their worker: its reader, its requests, its responses.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio_rustls::rustls::ServerConfig;

use super::access::EpisodeAccess;
use super::authority::HostPort;
use super::directory::ProxyCredentials;
use super::head::HeadFault;
use super::headers::ConnectionOrigin;
use super::link::{ClientLink, ExchangeLink};
use super::local::InFlight;
use super::pool::Upgraded;

/// One client connection on its worker.
pub(super) struct ClientConnection {
    pub(super) link: Arc<ClientLink>,
    pub(super) origin: ConnectionOrigin,
    /// Number of heads that the reader has let through; the first has number 1.
    delivered: Cell<u64>,
    /// Number of requests that hyper has handed over. It lags behind `delivered` by the heads that hyper has read
    /// ahead.
    handled: Cell<u64>,
    /// Whether the reader has the beginning of a head but not its end.
    has_begun_head: Cell<bool>,
    /// Number of the head that was replaced because it was refused, and the reason.
    fault: Cell<Option<(u64, HeadFault)>>,
    /// Number of the head from which on the reader no longer knows where messages end.
    blind_from: Cell<Option<u64>>,
    /// Whether the listener is closing, so that every response must be the last on its connection.
    draining: Arc<AtomicBool>,
    /// The request whose response has been given to hyper and may not have been written yet.
    answered: RefCell<Option<AnsweredRequest>>,
    /// The parts of routes in the connection whose response may still be in hyper's buffer.
    unflushed: RefCell<Vec<Arc<ExchangeLink>>>,
    /// The use of the connection after the response under way.
    continuation: RefCell<Option<Continuation>>,
}

/// The use of a connection that leaves HTTP, or begins it anew, after a response.
pub(super) enum Continuation {
    /// Both ends switch to another protocol; holds the target's side.
    Upgraded(Upgraded, InFlight),
    /// Requests to one site follow.
    SiteTunnel(SiteTunnel),
    /// Requests to one site follow in TLS.
    TlsTunnel(TlsTunnel),
}

/// A tunnel to a site, in which requests are parsed.
pub(super) struct SiteTunnel {
    /// The credentials of every request in the tunnel.
    pub(super) credentials: ProxyCredentials,
    pub(super) place: HostPort,
    /// Whether the requests have arrived in TLS, which the gateway has ended.
    pub(super) is_tls: bool,
}

/// A tunnel to a site that is reached by TLS.
pub(super) struct TlsTunnel {
    pub(super) tunnel: SiteTunnel,
    pub(super) server: Arc<ServerConfig>,
    /// The access of the episode, which cuts the connection when it is revoked.
    pub(super) access: EpisodeAccess,
}

/// A request that has been answered, as counted by its route; `None` if it belonged to no route.
struct AnsweredRequest {
    _visit: Option<InFlight>,
}

impl ClientConnection {
    pub(super) fn new(
        link: Arc<ClientLink>,
        peer: SocketAddr,
        local: SocketAddr,
        draining: Arc<AtomicBool>,
    ) -> Rc<Self> {
        Rc::new(Self {
            link,
            draining,
            origin: ConnectionOrigin::new(peer, local),
            delivered: Cell::new(0),
            handled: Cell::new(0),
            has_begun_head: Cell::new(false),
            fault: Cell::new(None),
            blind_from: Cell::new(None),
            answered: RefCell::new(None),
            unflushed: RefCell::default(),
            continuation: RefCell::new(None),
        })
    }

    /// Records that the reader has the beginning of a head. The head's time limit starts now, or when the response
    /// under way has been written.
    pub(super) fn begin_head(&self) {
        self.has_begun_head.set(true);
        if self.link.owes_head() {
            self.link.awaits_head(true);
        }
    }

    /// Records that the reader has let a head through. `blind` means that the reader cannot tell the next head from
    /// this one's body.
    pub(super) fn deliver(&self, blind: bool) {
        let number = self.delivered.get() + 1;
        self.delivered.set(number);
        self.has_begun_head.set(false);
        if blind {
            self.blind_from.set(Some(number));
        }
        self.link.has_head();
    }

    /// Records that the next head that the reader lets through stands for a refused one.
    pub(super) fn refuse(&self, fault: HeadFault) {
        self.fault.set(Some((self.delivered.get() + 1, fault)));
        self.deliver(true);
    }

    /// Begins the next request. Returns the fault of its head, if it has one.
    pub(super) fn begin_answer(&self) -> Option<HeadFault> {
        let number = self.handled.get() + 1;
        self.handled.set(number);
        // If the previous response is still in hyper's buffer, the ledger tracks that; the note here would be taken for
        // this response's.
        self.answered.take();
        self.link.has_head();
        self.fault.get().filter(|(at, _)| *at == number).map(|(_, fault)| fault)
    }

    /// Returns whether the current response must be the last on the connection.
    pub(super) fn is_last_answer(&self) -> bool {
        self.draining.load(Ordering::Relaxed) || self.blind_from.get().is_some_and(|from| from <= self.handled.get())
    }

    /// Records that the response of a route is about to be given to hyper.
    pub(super) fn begin_writing(&self, exchange: &Arc<ExchangeLink>) {
        self.unflushed.borrow_mut().push(Arc::clone(exchange));
    }

    /// Records that hyper has received the whole response to a request.
    pub(super) fn end_answer(&self, visit: Option<InFlight>) {
        self.answered.replace(Some(AnsweredRequest { _visit: visit }));
    }

    /// Sets the use of the connection after the response under way.
    pub(super) fn continue_with(&self, continuation: Continuation) {
        self.continuation.replace(Some(continuation));
    }

    pub(super) fn take_continuation(&self) -> Option<Continuation> {
        self.continuation.take()
    }

    /// Prepares for the requests inside a tunnel, which follow the answer to CONNECT.
    pub(super) fn enter_tunnel(&self) {
        self.blind_from.set(None);
    }

    /// Records that hyper has given all bytes to the kernel.
    pub(super) fn flushed(&self) {
        let answered = self.answered.take();
        if answered.is_some() {
            self.unflushed.borrow_mut().drain(..).for_each(|exchange| exchange.flushed());
            self.link.awaits_head(self.has_begun_head.get());
        }
        // Dropped last: once no request is in flight, other code may rely on the connections being idle.
        drop(answered);
    }
}
