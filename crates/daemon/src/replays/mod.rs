//! Replays: recorded sites, which the daemon keeps and serves under their original host names.
//!
//! ```text
//!   upload ──► spool file ──► arenad-replay reads it ──► .partial/ ──► rename ──► replays/NAME
//!                                                                                    │
//!   client ──► episode proxy ──► EpisodeDirectory ──► ReplayRegistry ──► route ──► server of the replay
//! ```
//! A replay has a route without a public port, as a slot has, so requests to it are recorded, limited and cut like all
//! others. Nothing that a client does changes it, so all clients share it. It is reached in two ways: by an episode that
//! names it, and with its own credentials, which need no episode and no environment.
//!
//! Folders that begin with a dot hold what is not complete yet, or is being removed; the next daemon removes them.
//!
//! | File | Job |
//! |---|---|
//! | `registry` | the replays: added, found, removed |
//! | `server` | answers requests to one replay |
//! | `counts` | hits, misses and refusals |

mod counts;
mod registry;
mod server;

pub use registry::ReplayRegistry;
pub(crate) use registry::{LoadedReplay, NewReplay, ReplayFailure, USER};
