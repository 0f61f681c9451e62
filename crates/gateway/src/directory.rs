//! The seam between the episode proxy and the daemon: the daemon knows episodes, their tokens and their slots.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use tokio_rustls::rustls::ServerConfig;

use super::access::EpisodeAccess;
use super::gateway::Route;

/// The credentials of one request: the id of an episode, and its token.
#[derive(Clone, PartialEq, Eq)]
pub struct ProxyCredentials {
    /// The user name, which is the id of an episode.
    pub episode: String,
    /// The password, which is the token of the episode.
    pub token: String,
}

impl fmt::Debug for ProxyCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxyCredentials").field("episode", &self.episode).finish_non_exhaustive()
    }
}

/// The place to which a request of an episode may go.
#[derive(Debug, Clone)]
pub enum ProxyDecision {
    /// The host is a site of the episode.
    Site(ProxySite),
    /// The host is outside of the arena, and the environment allows it.
    External(EpisodeAccess),
    /// The request goes nowhere.
    Refused(ProxyRefusal),
}

/// A site of an episode.
#[derive(Debug, Clone)]
pub struct ProxySite {
    /// The route of the slot that the episode has.
    pub route: Route,
    /// The host and port that the site was made for, such as `localhost:7770`.
    pub canonical: String,
    /// The only generation that may answer; `None` for sites that all episodes share.
    pub generation: Option<u64>,
    /// The access of the episode: the same one for all of its requests until it is revoked.
    pub access: EpisodeAccess,
    /// The TLS server at the address, if it is one of `https`; its certificates are made for the host. Only recorded
    /// sites have one.
    pub tls: Option<Arc<ServerConfig>>,
}

/// The reason for which a request goes nowhere.
///
/// Reasons complete a sentence about the episode, such as "it was released by its client".
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProxyRefusal {
    /// The episode does not exist, or the token does not open it. Answered 407.
    Credentials,
    /// The episode has ended. Answered 407, because no other episode's data may answer.
    Ended {
        /// The cause of the end.
        reason: String,
    },
    /// The episode cannot use its sites at present: it has no slots yet, or is frozen. Answered 503.
    Unavailable {
        /// The state of the episode.
        reason: String,
        /// Time after which the client should try again, sent as `Retry-After`.
        retry_after: Duration,
    },
    /// The host is neither a site of the episode nor allowed by its environment. Answered 403.
    Outside {
        /// Addresses that the episode can reach, such as `http://shopping.arena.test`.
        reachable: Vec<String>,
    },
}

/// Knows which episode credentials open, and where the hosts of its environment lead.
pub trait ProxyDirectory: Send + Sync + 'static {
    /// Decides on a request for `http://host:port`.
    ///
    /// `host` is in lower case, without brackets and without the dot of the root. The call must not block: it runs on
    /// the thread that serves the client, once for each request and once for each address of another site in its
    /// `Origin` and `Referer`.
    fn resolve(&self, credentials: &ProxyCredentials, host: &str, port: u16) -> ProxyDecision;

    /// Notes that a request was refused because its host is outside of what the credentials open. In contrast to
    /// `resolve`, it is called once for each such request. The call must not block.
    fn refused_outside(&self, _credentials: &ProxyCredentials, _method: &Method, _host: &str, _port: u16) {}
}
