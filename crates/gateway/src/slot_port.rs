//! The own port of a slot: a port through which clients without a proxy reach the slot that their episode has.
//!
//! Requests bear no credentials. The connection takes their place: it belongs to the lease that the slot has when the
//! gateway accepts the connection, and all of its requests are requests of that lease. After the end of the lease they
//! are answered 410 with the reason, whatever lease the slot has by then, and the connection is closed. A connection
//! that was accepted while the slot had no lease belongs to none, and its first response is its last.
//!
//! A client that opens a new connection is a client of the lease at that moment. A client that may repeat a request
//! after its episode names the episode in the host, as in `ep-0123.localhost`: the directory compares it with the lease.
//!
//! Otherwise a request takes the same way as one through the episode proxy (`proxy`): the directory decides on each
//! request anew, the access of the episode ends requests under way, and only the episode's generation may answer. The
//! site receives the headers that a client of its canonical address would send, and the addresses in its responses are
//! replaced by those of the episode's slots: in headers always (`alias`), in bodies if the site is declared so
//! (`mapped_body`).

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use super::access::EpisodeAccess;
use super::directory::ProxyRefusal;
use super::gateway::Route;
use super::guests::{self, GuestPort, SharedListener};
use super::proxy::ProxyStats;

/// The lease of a slot, by the id of the episode that has the slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotLease(pub String);

/// The decision on a request to a slot's own port.
#[derive(Debug, Clone)]
pub enum SlotPortDecision {
    /// The request may go to the slot.
    Site(SlotPortSite),
    /// The episode cannot use its sites.
    Refused(ProxyRefusal),
    /// The connection belongs to no lease. Answered 503.
    NoLease {
        /// The state of the slot.
        reason: String,
        /// Time after which the client should try again, sent as `Retry-After`.
        retry_after: Duration,
    },
    /// The request is meant for another episode than the one that has the slot. Answered 410.
    OtherLease {
        /// The reason, as a sentence about the episode that the request names.
        reason: String,
    },
    /// The site cannot be offered at another address than its own one. Answered 421.
    Unmappable {
        /// The way in which the client can reach the site.
        instead: String,
    },
}

/// The slot of an episode, as the clients of its own port reach it.
#[derive(Debug, Clone)]
pub struct SlotPortSite {
    /// The route of the slot.
    pub route: Route,
    /// The host and port that the site was made for, such as `localhost:7770`.
    pub canonical: String,
    /// The only generation that may answer; `None` if any may.
    pub generation: Option<u64>,
    /// The access of the episode: the same one for all of its requests until it is revoked.
    pub access: EpisodeAccess,
    /// The addresses of the other sites of the environment.
    pub others: Vec<OtherSite>,
    /// Whether the addresses in bodies are replaced. Those in headers always are.
    pub maps_bodies: bool,
}

/// Another site of the environment, and where the client of a slot's own port finds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherSite {
    /// The host and port that the site was made for.
    pub canonical: String,
    /// The address that takes its place.
    pub place: OtherPlace,
}

/// The address that takes the place of a canonical one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OtherPlace {
    /// A port on the host that the client uses.
    Port(u16),
    /// A host and port at which no other episode's site answers.
    Host(String),
}

/// Knows the lease of one slot, and where its requests lead.
pub trait SlotPortDirectory: Send + Sync + 'static {
    /// Returns the lease of the slot, to which a connection that is accepted now belongs. The call must not block.
    fn lease(&self) -> Option<SlotLease>;

    /// Decides on a request on a connection of a lease, for `http://host:port`.
    ///
    /// `host` is in lower case, without brackets and without the dot of the root. The call must not block: it runs on
    /// the thread that serves the client, once for each request.
    fn resolve(&self, lease: Option<&SlotLease>, host: &str, port: u16) -> SlotPortDecision;
}

/// The state that all workers and all handles of a slot's own port share.
pub(super) struct SharedSlotPort {
    pub(super) port: Arc<GuestPort>,
    /// The name of the site, for pages and logs.
    pub(super) name: String,
    pub(super) directory: Arc<dyn SlotPortDirectory>,
}

/// The own port of a slot, while it is open. Clones are handles to the same port.
#[derive(Clone)]
pub struct SlotPort {
    pub(super) shared: Arc<SharedSlotPort>,
    /// Empty from the beginning if the gateway has no sockets.
    pub(super) listener: SharedListener,
}

impl std::fmt::Debug for SlotPort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SlotPort").field("address", &self.local_addr()).finish_non_exhaustive()
    }
}

impl SlotPort {
    /// Returns the address of the port.
    pub fn local_addr(&self) -> SocketAddr {
        self.shared.port.address
    }

    /// Returns the counters of the port.
    pub fn stats(&self) -> ProxyStats {
        self.shared.port.stats()
    }

    /// Releases the port and cuts all connections: when this returns, the port can be opened again.
    pub async fn close(self) {
        guests::unlisten(&self.listener).await;
        self.shared.port.close();
    }
}
