//! What the parts of one client connection share on their worker: its reader, its requests, its answers.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use super::head::HeadFault;
use super::headers::Origin;
use super::link::ClientLink;
use super::local::InFlight;
use super::pool::Upgraded;

/// One client connection on its worker.
pub(super) struct Client {
    pub(super) link: Arc<ClientLink>,
    pub(super) origin: Origin,
    /// Heads that the reader has let through, counted from 1.
    delivered: Cell<u64>,
    /// Requests that hyper has handed over, counted from 1; behind `delivered` by what hyper has read ahead.
    handled: Cell<u64>,
    /// Whether the reader has the beginning of a head and not its end.
    has_begun_head: Cell<bool>,
    /// The head that was replaced because it was refused, and why.
    fault: Cell<Option<(u64, HeadFault)>>,
    /// The head from which on the reader no longer knows where messages end.
    blind_from: Cell<Option<u64>>,
    /// The request whose answer hyper has been given and may not have written yet.
    answered: RefCell<Option<InFlight>>,
    /// The target's side of a connection that both ends agreed to use for something else.
    pub(super) upgraded: RefCell<Option<(Upgraded, InFlight)>>,
}

impl Client {
    pub(super) fn new(link: Arc<ClientLink>, peer: SocketAddr, local: SocketAddr) -> Rc<Self> {
        Rc::new(Self {
            link,
            origin: Origin::new(peer, local),
            delivered: Cell::new(0),
            handled: Cell::new(0),
            has_begun_head: Cell::new(false),
            fault: Cell::new(None),
            blind_from: Cell::new(None),
            answered: RefCell::new(None),
            upgraded: RefCell::new(None),
        })
    }

    /// Notes that the reader has the beginning of a head. Its time begins now, or when the answer under way has been written.
    pub(super) fn begin_head(&self) {
        self.has_begun_head.set(true);
        if self.link.owes_head() {
            self.link.awaits_head(true);
        }
    }

    /// Notes that the reader let a head through; `blind`: the next one cannot be told from this one's body.
    pub(super) fn deliver(&self, blind: bool) {
        let number = self.delivered.get() + 1;
        self.delivered.set(number);
        self.has_begun_head.set(false);
        if blind {
            self.blind_from.set(Some(number));
        }
        self.link.has_head();
    }

    /// Notes that the head that the reader lets through next stands for one that was refused.
    pub(super) fn refuse(&self, fault: HeadFault) {
        self.fault.set(Some((self.delivered.get() + 1, fault)));
        self.deliver(true);
    }

    /// Begins the next request. Returns what was wrong with its head, if anything.
    pub(super) fn begin_answer(&self) -> Option<HeadFault> {
        let number = self.handled.get() + 1;
        self.handled.set(number);
        // If the previous answer is still in hyper's buffer, the ledger keeps that in mind; the note would be taken for this
        // answer's.
        self.answered.take();
        self.link.has_head();
        self.fault.get().filter(|(at, _)| *at == number).map(|(_, fault)| fault)
    }

    /// Whether the current answer must be the connection's last.
    pub(super) fn is_last_answer(&self) -> bool {
        self.blind_from.get().is_some_and(|from| from <= self.handled.get())
    }

    /// Notes that hyper has been given the whole answer to a request.
    pub(super) fn end_answer(&self, visit: InFlight) {
        self.answered.replace(Some(visit));
    }

    /// Notes that hyper has given everything to the kernel.
    pub(super) fn flushed(&self) {
        let answered = self.answered.take();
        if answered.is_some() {
            self.link.flushed(self.has_begun_head.get());
        }
        // Only now: whoever sees no request in flight may rely on the connections being idle.
        drop(answered);
    }
}
