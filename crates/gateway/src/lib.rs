//! The gateway: every browser reaches every site through it, and it alone decides what a browser may still see.
//!
//! ```text
//!            public port                                            instance
//!   browser ───────────► listener ─► connection ─► forward ─► pool ───────────► site
//!                            │           │            │
//!                            └───────────┴── route ───┘
//!                                              ▲ serve, hold, refuse, close
//!                                              daemon
//! ```
//!
//! A public port is a `Route`. It serves a target, holds requests back while none is there, or refuses them; the daemon
//! switches between these, and after a switch nothing of the target of the past reaches a client (`route` argues why).
//!
//! | File | Job |
//! |---|---|
//! | `gateway` | the handles: start, open, serve, hold, refuse, close, shut down |
//! | `phase` | what a route does with requests, as a value |
//! | `route` | the switch, the registers and counters that it needs |
//! | `link` | where one client connection stands, as the switch sees it |
//! | `wire` | a TCP connection that any thread can end at once |
//! | `workers`, `listener` | threads; accepting and spreading connections over them |
//! | `connection`, `client`, `client_io` | one client connection; its bytes |
//! | `head`, `headers` | which requests are refused as ambiguous; how heads are changed on their way |
//! | `forward`, `body`, `pool`, `local` | one request; bodies; connections to the target; a route on one worker |
//! | `direct` | requests to a route that listens nowhere |
//! | `nudge` | keeps the two halves of one task from waking it for nothing |
//! | `upgrade` | WebSocket and other connections that leave HTTP |
//! | `writes` | which requests may write, and whether they may pass |
//! | `recorder`, `gather`, `recording` | keeps what passes; one request and its bodies as they pass; what was kept |
//! | `refusal` | answers of the gateway's own |
//!
//! What it does not do: it decides nothing about health, knows no leases, terminates no TLS, rewrites no bodies, caches
//! nothing, and never retries what could be done twice. HTTP/1.1 only, as the sites behind it.

mod body;
mod client;
mod client_io;
mod connection;
mod direct;
mod forward;
mod gateway;
mod gather;
mod head;
mod headers;
mod link;
mod listener;
mod local;
mod nudge;
mod phase;
mod pool;
mod recorder;
mod recording;
mod refusal;
mod route;
mod upgrade;
mod wire;
mod workers;
mod writes;

pub use direct::{Direct, DirectRequest};
pub use gateway::{Gateway, GatewaySettings, OpenError, Route};
pub use gather::BODY_MAX;
pub use phase::{HoldLimits, RouteState, Target};
pub use recorder::Recorder;
pub use recording::{AnswerHead, Exchange, Loss, Record, RecordedBody, Recording, RequestHead};
pub use route::RouteStats;
pub use writes::WriteRules;

/// Bytes that hyper may keep of one connection, in each direction.
const BUFFER_LIMIT: usize = 128 * 1024;
