//! The clients of a port that leads to no route by itself: the port of the episode proxy, and the own ports of slots.
//!
//! A decision about each request names the route and the access of the episode. The client is therefore a guest of the
//! route, and its connection belongs to the port.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::header::CONNECTION;
use http::{HeaderValue, Response};
use tokio::sync::oneshot;

use super::access::{AccessEntry, EpisodeAccess};
use super::body::AnswerBody;
use super::client::ClientConnection;
use super::directory::ProxyRefusal;
use super::link::{ClientLink, ExchangeLink};
use super::proxy::ProxyStats;
use super::refusal::{RefusalResponse, RefusalSubject};
use super::route::{ClientEntry, SharedRoute};

/// Number of exchanges of a connection from which on those that have ended are removed.
const EXCHANGES_KEPT: usize = 16;

/// The state that all workers share of a port whose clients are guests of routes.
pub(super) struct GuestPort {
    pub(super) address: SocketAddr,
    requests: AtomicU64,
    refused: AtomicU64,
    is_draining: Arc<AtomicBool>,
    clients: Mutex<GuestClients>,
}

#[derive(Default)]
struct GuestClients {
    links: HashMap<u64, Arc<ClientLink>>,
    next_key: u64,
    is_closed: bool,
}

impl GuestPort {
    pub(super) fn new(address: SocketAddr) -> Self {
        Self {
            address,
            requests: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            is_draining: Arc::default(),
            clients: Mutex::default(),
        }
    }

    // Every critical section leaves the clients consistent at each step.
    fn clients(&self) -> MutexGuard<'_, GuestClients> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a client connection, unless the limit is reached or the port is closed.
    pub(super) fn enter_client(self: &Arc<Self>, link: Arc<ClientLink>, most: usize) -> Option<GuestClientEntry> {
        let mut clients = self.clients();
        if clients.is_closed || clients.links.len() >= most {
            return None;
        }
        clients.next_key += 1;
        let key = clients.next_key;
        clients.links.insert(key, link);
        Some(GuestClientEntry { port: Arc::clone(self), key })
    }

    pub(super) fn each_client(&self, act: impl Fn(&ClientLink)) {
        for client in self.clients().links.values() {
            act(client);
        }
    }

    pub(super) fn connections(&self) -> usize {
        self.clients().links.len()
    }

    pub(super) fn count_request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn stats(&self) -> ProxyStats {
        ProxyStats {
            connections: self.connections() as u64,
            requests: self.requests.load(Ordering::SeqCst),
            refused: self.refused.load(Ordering::SeqCst),
        }
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

    /// Cuts all connections, and those that a worker has accepted and not entered yet.
    pub(super) fn close(&self) {
        self.clients().is_closed = true;
        self.drain();
        self.each_client(ClientLink::cut);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.clients().is_closed
    }

    /// Builds the response to a request that has no route.
    pub(super) fn own(
        &self,
        client: &ClientConnection,
        refusal: &RefusalResponse,
        subject: RefusalSubject<'_>,
        wants_html: bool,
    ) -> Response<AnswerBody> {
        self.refused.fetch_add(1, Ordering::Relaxed);
        let (mut parts, text) = refusal.answer(subject, wants_html).into_parts();
        if client.is_last_answer() {
            parts.headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        client.end_answer(None);
        Response::from_parts(parts, AnswerBody::Own(Some(text)))
    }
}

/// A client connection in the register of a port; dropping it removes the entry.
pub(super) struct GuestClientEntry {
    port: Arc<GuestPort>,
    key: u64,
}

impl Drop for GuestClientEntry {
    fn drop(&mut self) {
        // Removed under the mutex and dropped after it, because dropping the last owner closes the connection.
        let removed = self.port.clients().links.remove(&self.key);
        drop(removed);
    }
}

/// The listener of a port, until it is closed.
#[derive(Debug)]
pub(super) struct PortListener {
    pub(super) stop: oneshot::Sender<()>,
    pub(super) finished: oneshot::Receiver<()>,
}

impl PortListener {
    /// Stops listening: when this returns, the port is free.
    pub(super) async fn end(self) {
        // Both calls fail only if the worker has ended, and the listener with it.
        let _ = self.stop.send(());
        let _ = self.finished.await;
    }
}

/// A handle to the listener, which all handles of a port share. It is empty if the port is closed or has no socket.
pub(super) type SharedListener = Arc<Mutex<Option<PortListener>>>;

/// Stops listening: when this returns, the port is free.
pub(super) async fn unlisten(listener: &SharedListener) {
    let listening = listener.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(listener) = listening {
        listener.end().await;
    }
}

/// The parts that routes have in one client connection.
pub(super) struct GuestExchanges {
    client: Rc<ClientConnection>,
    exchanges: RefCell<Vec<GuestExchange>>,
}

/// The part that one route has in the connection for one episode. It stays registered after a response, because bytes
/// of the response may still be on their way.
struct GuestExchange {
    link: Arc<ExchangeLink>,
    route: Arc<SharedRoute>,
    access: EpisodeAccess,
    _route_entry: ClientEntry,
    _access_entry: AccessEntry,
}

impl GuestExchanges {
    pub(super) fn new(client: Rc<ClientConnection>) -> Self {
        Self { client, exchanges: RefCell::default() }
    }

    /// Returns the part that the route has in the connection for the episode, and registers it if it is new.
    ///
    /// Errors: the access has been revoked.
    pub(super) fn enter(
        &self,
        route: &Arc<SharedRoute>,
        access: &EpisodeAccess,
    ) -> Result<Arc<ExchangeLink>, ProxyRefusal> {
        let mut exchanges = self.exchanges.borrow_mut();
        let known = exchanges.iter().find(|known| Arc::ptr_eq(&known.route, route) && known.access.is_same(access));
        if let Some(known) = known {
            return Ok(Arc::clone(&known.link));
        }
        if exchanges.len() >= EXCHANGES_KEPT {
            exchanges.retain(|known| !known.link.is_quiet());
        }
        let link = Arc::new(ExchangeLink::new(Arc::clone(&self.client.link)));
        let access_entry = access.enter(Arc::clone(&link))?;
        exchanges.push(GuestExchange {
            link: Arc::clone(&link),
            route: Arc::clone(route),
            access: access.clone(),
            _route_entry: route.enter_guest(Arc::clone(&link)),
            _access_entry: access_entry,
        });
        Ok(link)
    }
}
