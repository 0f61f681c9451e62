//! The state that the parts of one client connection share on their worker: its reader, its requests, its responses.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use super::head::HeadFault;
use super::headers::ConnectionOrigin;
use super::link::ClientLink;
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
    /// The request whose response has been given to hyper and may not have been written yet.
    answered: RefCell<Option<InFlight>>,
    /// The target's side of a connection that both ends have switched to another protocol.
    pub(super) upgraded: RefCell<Option<(Upgraded, InFlight)>>,
}

impl ClientConnection {
    pub(super) fn new(link: Arc<ClientLink>, peer: SocketAddr, local: SocketAddr) -> Rc<Self> {
        Rc::new(Self {
            link,
            origin: ConnectionOrigin::new(peer, local),
            delivered: Cell::new(0),
            handled: Cell::new(0),
            has_begun_head: Cell::new(false),
            fault: Cell::new(None),
            blind_from: Cell::new(None),
            answered: RefCell::new(None),
            upgraded: RefCell::new(None),
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
        self.blind_from.get().is_some_and(|from| from <= self.handled.get())
    }

    /// Records that hyper has received the whole response to a request.
    pub(super) fn end_answer(&self, visit: InFlight) {
        self.answered.replace(Some(visit));
    }

    /// Records that hyper has given all bytes to the kernel.
    pub(super) fn flushed(&self) {
        let answered = self.answered.take();
        if answered.is_some() {
            self.link.flushed(self.has_begun_head.get());
        }
        // Dropped last: once no request is in flight, other code may rely on the connections being idle.
        drop(answered);
    }
}
