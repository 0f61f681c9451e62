//! The gateway: every browser reaches every site through it, and it alone decides which responses a browser receives.
//!
//! ```text
//!            public port                                            instance
//!   browser ───────────► listener ─► connection ─► forward ─► pool ───────────► site
//!                            │           │            │
//!                            └───────────┴── route ───┘
//!                                              ▲ serve, hold, refuse, close
//!                                              daemon
//!                                              ▼ decides on each request, revokes access
//!                            ┌─────────── directory, access
//!           episode proxy    │                        │
//!   client ────────────► listener ─► connection ─► proxied ─► forward ─► …
//! ```
//!
//! A public port is a `Route`. It serves a target, holds requests while it has no target, or refuses them. The daemon
//! switches between these states. After a switch, no byte of the previous target reaches a client (`route` argues why).
//!
//! The episode proxy is one port for the clients of all episodes. The credentials and the host of each request lead to
//! a route, by the decision of the daemon's directory. When the daemon revokes the access of an episode, no byte of a
//! response reaches the episode's client any more, and no request of it reaches a site.
//!
//! | File | Job |
//! |---|---|
//! | `gateway` | the handles: start, open, serve, hold, refuse, close, shut down |
//! | `directory`, `access` | the daemon's decisions about requests to the proxy; their revocation |
//! | `proxy`, `proxied` | a port of the proxy; one request to it |
//! | `slot_port`, `slotted` | the own port of a slot, for clients without a proxy; one request to it |
//! | `guests` | the connections of clients that belong to no route: of the proxy and of slots' own ports |
//! | `authority`, `alias` | hosts and credentials as clients write them; sites under other addresses |
//! | `address_table`, `mapped_body`, `decoder` | addresses of sites in text; bodies in which they are replaced; compressed bodies |
//! | `tls` | tunnels to recorded sites, in which the gateway ends TLS |
//! | `egress` | hosts outside of the arena: which of their addresses may be reached |
//! | `phase` | the state of a route as a value: serving, holding, refusing, closed |
//! | `route` | the switch, and the registers and counters that it needs |
//! | `link` | the exchange under way on one client connection, as the switch sees it |
//! | `wire` | a TCP connection that any thread can end at once |
//! | `workers`, `listener` | threads; accepting connections and spreading them over the threads |
//! | `connection`, `client`, `client_io` | one client connection; its bytes |
//! | `head`, `headers` | detection of ambiguous requests; changes to heads as they are forwarded |
//! | `forward`, `body`, `pool`, `local` | one request; bodies; connections to the target; a route on one worker |
//! | `direct` | requests to a route without a socket |
//! | `nudge` | suppresses wake-ups between the two halves of one task |
//! | `upgrade` | WebSocket and other upgraded connections |
//! | `writes` | which requests may write, and whether they are refused |
//! | `recorder`, `gather`, `recording` | the traffic log; one request and its bodies in transit; the recorded values |
//! | `episode_recorder` | the recording of one episode, which the daemon keeps |
//! | `refusal` | responses that the gateway itself generates |
//!
//! The own port of a slot is a third way in, for clients without a proxy: the connection stands for the credentials, and
//! addresses in responses are replaced by those of the episode's slots.
//!
//! The gateway makes no decisions about health, does not know episodes, ends TLS only for recorded sites, caches nothing,
//! and never retries a request that could take effect twice. It speaks HTTP/1.1 only, as do the sites behind it.
//!
//! The crate depends only on `seams`. Start reading at `gateway.rs`, then `route.rs`.

mod access;
mod address_table;
mod alias;
mod authority;
mod body;
mod client;
mod client_io;
mod connection;
mod decoder;
mod direct;
mod directory;
mod egress;
mod episode_recorder;
mod forward;
mod gateway;
mod gather;
mod guests;
mod head;
mod headers;
mod link;
mod listener;
mod local;
mod mapped_body;
mod nudge;
mod phase;
mod pool;
mod proxied;
mod proxy;
mod recorder;
mod recording;
mod refusal;
mod route;
mod slot_port;
mod slotted;
mod tls;
mod upgrade;
mod wire;
mod workers;
mod writes;

pub use access::EpisodeAccess;
pub use direct::{Direct, DirectRequest};
pub use directory::{ProxyCredentials, ProxyDecision, ProxyDirectory, ProxyRefusal, ProxySite};
pub use episode_recorder::{EndedExchange, EpisodeRecorder, ExchangeKeeper, UnfinishedExchange};
pub use gateway::{Gateway, GatewaySettings, OpenError, Route};
pub use gather::BODY_MAX;
pub use phase::{HoldLimits, RouteState, Target};
pub use proxy::{Proxy, ProxyClient, ProxyPort, ProxyStats};
pub use recorder::Recorder;
pub use recording::{AnswerHead, Exchange, Loss, RecordedBody, Recording, RecordingFilter, RequestHead};
pub use route::RouteStats;
pub use slot_port::{OtherPlace, OtherSite, SlotLease, SlotPort, SlotPortDecision, SlotPortDirectory, SlotPortSite};
pub use writes::WriteRules;

/// Maximum number of bytes that hyper buffers for one connection, in each direction.
const BUFFER_LIMIT: usize = 128 * 1024;
