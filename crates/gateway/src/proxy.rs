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
//! requests are parsed, recorded and limited like all others, WebSockets included. TLS in it is refused, except for recorded
//! sites whose directory has certificates for any host (`tls`): otherwise the gateway could neither see nor cut single
//! requests. Hosts outside of the arena are refused with 403 unless the
//! environment allows them; then CONNECT opens a tunnel for any bytes (`egress`).
//!
//! A client that cannot send credentials, as a browser cannot, gets a port of its own, which stands for them
//! ([`ProxyClient`]).
//!
//! ```text
//!   GET http://shop.test/ ──► proxied (examine, credentials, directory) ──► forward ──► site
//!   CONNECT shop.test:80  ──► the same, then requests are parsed in the tunnel
//!   CONNECT example.com:443 ► the same, then egress ──► bytes, if the environment allows the host
//! ```

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpStream;

use super::directory::{ProxyCredentials, ProxyDirectory};
use super::gateway::OpenError;
use super::guests::{self, GuestPort, SharedListener};
use super::listener;

/// A port that is reserved for the episode proxy. Connections to it wait until [`crate::Gateway::open_proxy_for`] opens it.
pub struct ProxyPort {
    pub(super) listener: std::net::TcpListener,
    pub(super) address: SocketAddr,
}

impl ProxyPort {
    /// Reserves a port; 0 selects a free one.
    ///
    /// Errors: `OpenError::PortTaken` if a socket listens on the port already.
    pub fn bind(listen: SocketAddr) -> Result<Self, OpenError> {
        let failed = |cause| OpenError::of(listen, cause);
        let listener = listener::bind(listen).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address })
    }

    /// Returns the address of the port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// The counters of a port of the episode proxy, or of a slot's own port.
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
    pub(super) port: Arc<GuestPort>,
    pub(super) directory: Arc<dyn ProxyDirectory>,
    /// The only client, if the port is for one that sends no credentials.
    pub(super) only: Option<ProxyClient>,
}

impl SharedProxy {
    pub(super) fn new(address: SocketAddr, directory: Arc<dyn ProxyDirectory>, only: Option<ProxyClient>) -> Arc<Self> {
        Arc::new(Self { port: Arc::new(GuestPort::new(address)), directory, only })
    }

    /// Whether a connection is served. It may read the kernel's table of sockets.
    pub(super) async fn admits(&self, stream: &TcpStream) -> bool {
        let Some(ProxyClient { admits, .. }) = &self.only else { return true };
        let (Ok(peer), Ok(here)) = (stream.peer_addr(), stream.local_addr()) else { return false };
        let admits = Arc::clone(admits);
        tokio::task::spawn_blocking(move || admits(peer, here)).await.unwrap_or_default()
    }
}

/// A client that has a port of the proxy for itself, because it cannot send credentials.
#[derive(Clone)]
pub struct ProxyClient {
    /// The credentials that all of its requests have.
    pub credentials: ProxyCredentials,
    /// Decides whether a connection is the client's, by the socket at the other end and the one here. It may block.
    pub admits: Arc<dyn Fn(SocketAddr, SocketAddr) -> bool + Send + Sync>,
}

/// An open port of the episode proxy. Clones are handles to the same port.
#[derive(Clone)]
pub struct Proxy {
    pub(super) shared: Arc<SharedProxy>,
    pub(super) listener: SharedListener,
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proxy").field("address", &self.local_addr()).finish_non_exhaustive()
    }
}

impl Proxy {
    /// Returns the address of the port.
    pub fn local_addr(&self) -> SocketAddr {
        self.shared.port.address
    }

    /// Returns the counters of the proxy.
    pub fn stats(&self) -> ProxyStats {
        self.shared.port.stats()
    }

    /// Releases the port and cuts all connections: when this returns, the port can be opened again.
    pub async fn close(self) {
        guests::unlisten(&self.listener).await;
        self.shared.port.close();
    }
}
