//! The episode proxy: one port, through which the clients of all episodes reach the sites of their own episodes.
//!
//! ```text
//!   client ──► gateway's proxy ──► EpisodeDirectory ──► fence (episodes) ──► addresses (definition)
//!                    ▲                                        └──► route of the slot, or of the shared site
//!                    └── revokes ── ProxyAccess ◄── slots: an episode is frozen, or has ended
//! ```
//! The gateway asks the directory about every request. The directory keeps nothing but the access of each live episode,
//! which the gateway needs to end the requests that are under way.
//!
//! | File | Job |
//! |---|---|
//! | `directory` | decides where a request goes, by its credentials and its host |
//! | `access` | the access of the live episodes, and why no request outlives it |
//! | `port` | opens the port |

mod access;
mod directory;
mod port;

pub(crate) use access::{ProxyAccess, ended, frozen};
pub use directory::EpisodeDirectory;
pub(crate) use directory::admitted;
pub(crate) use port::open;
