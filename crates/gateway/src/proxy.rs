//! The episode proxy: a port through which every client that has an episode's credentials reaches that episode's sites.
//!
//! The proxy keeps no state about episodes. Each request is decided anew: its credentials, its host, and what the
//! daemon's directory says about both at that moment. Requests of different episodes and to different sites may
//! therefore follow one another on one connection. The directory names a route, and the request takes the way of every
//! request to that route (`forward`), with further conditions: the access of the episode (`access`), and the generation
//! that the episode has.
//!
//! An end of an episode therefore has two effects. The directory refuses all further requests, on kept connections and
//! in tunnels too, with 407 and the reason: a status that only proxies send, so that no client takes it for a response
//! of a site. The revoked access ends the requests under way: 407 if no byte of a response was forwarded, otherwise the
//! connection is reset. Requests of a live episode are held while the route holds, and are answered by the episode's
//! generation or 503.
//!
//! A site is reached under each of its addresses (`alias`), over plain HTTP. CONNECT to a site opens a tunnel in which
//! requests are parsed, recorded and limited like all others, WebSockets included; TLS in it is refused, because the
//! gateway could neither see nor cut single requests. Hosts outside of the arena are refused with 403 unless the
//! environment allows them; then CONNECT opens a tunnel for any bytes (`egress`).
//!
//! ```text
//!   GET http://shop.test/ ──► proxied (examine, credentials, directory) ──► forward ──► site
//!   CONNECT shop.test:80  ──► the same, then requests are parsed in the tunnel
//!   CONNECT example.com:443 ► the same, then egress ──► bytes, if the environment allows the host
//! ```

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::directory::ProxyDirectory;
use super::link::ClientLink;

/// The counters of a proxy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProxyStats {
    /// Number of open client connections.
    pub connections: u64,
    /// Number of requests received, including refused ones; requests inside tunnels to sites count.
    pub requests: u64,
    /// Number of requests that the proxy refused itself, before they had a route.
    pub refused: u64,
}

/// The state that all workers and all handles of a proxy share.
pub(super) struct SharedProxy {
    pub(super) address: SocketAddr,
    pub(super) directory: Arc<dyn ProxyDirectory>,
    pub(super) requests: AtomicU64,
    pub(super) refused: AtomicU64,
    is_draining: Arc<AtomicBool>,
    clients: Mutex<ProxyClients>,
}

#[derive(Default)]
struct ProxyClients {
    links: HashMap<u64, Arc<ClientLink>>,
    next_key: u64,
}

impl SharedProxy {
    pub(super) fn new(address: SocketAddr, directory: Arc<dyn ProxyDirectory>) -> Arc<Self> {
        Arc::new(Self {
            address,
            directory,
            requests: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            is_draining: Arc::default(),
            clients: Mutex::default(),
        })
    }

    // Every critical section leaves the clients consistent at each step.
    fn clients(&self) -> MutexGuard<'_, ProxyClients> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a client connection, unless the limit is reached.
    pub(super) fn enter_client(self: &Arc<Self>, link: Arc<ClientLink>, most: usize) -> Option<ProxyClientEntry> {
        let mut clients = self.clients();
        if clients.links.len() >= most {
            return None;
        }
        clients.next_key += 1;
        let key = clients.next_key;
        clients.links.insert(key, link);
        Some(ProxyClientEntry { proxy: Arc::clone(self), key })
    }

    pub(super) fn each_client(&self, act: impl Fn(&ClientLink)) {
        for client in self.clients().links.values() {
            act(client);
        }
    }

    pub(super) fn connections(&self) -> usize {
        self.clients().links.len()
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
}

/// A client connection in the register of a proxy; dropping it removes the entry.
pub(super) struct ProxyClientEntry {
    proxy: Arc<SharedProxy>,
    key: u64,
}

impl Drop for ProxyClientEntry {
    fn drop(&mut self) {
        // Removed under the mutex and dropped after it, because dropping the last owner closes the connection.
        let removed = self.proxy.clients().links.remove(&self.key);
        drop(removed);
    }
}

/// An open port of the episode proxy. Clones are handles to the same port.
#[derive(Clone)]
pub struct Proxy {
    pub(super) shared: Arc<SharedProxy>,
    pub(super) listening: Arc<Mutex<Option<ProxyListening>>>,
}

pub(super) struct ProxyListening {
    pub(super) stop: oneshot::Sender<()>,
    pub(super) finished: oneshot::Receiver<()>,
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proxy").field("address", &self.shared.address).finish_non_exhaustive()
    }
}

impl Proxy {
    /// Returns the address of the port.
    pub fn local_addr(&self) -> SocketAddr {
        self.shared.address
    }

    /// Returns the counters of the proxy.
    pub fn stats(&self) -> ProxyStats {
        ProxyStats {
            connections: self.shared.connections() as u64,
            requests: self.shared.requests.load(Ordering::SeqCst),
            refused: self.shared.refused.load(Ordering::SeqCst),
        }
    }

    /// Releases the port and cuts all connections: when this returns, the port can be opened again.
    pub async fn close(self) {
        self.unlisten().await;
        self.shared.drain();
        self.shared.each_client(ClientLink::cut);
    }

    pub(super) async fn unlisten(&self) {
        let listening = self.listening.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(ProxyListening { stop, finished }) = listening {
            // Both calls fail only if the worker has ended, and the listener with it.
            let _ = stop.send(());
            let _ = finished.await;
        }
    }
}
