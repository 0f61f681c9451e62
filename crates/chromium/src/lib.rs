//! Headless Chromium: processes that are confined and end with the daemon, and the commands that they obey.
//!
//! ```text
//!   start ──► launch: a process that dies with the daemon, in a cage (bwrap, a control group) or in a container
//!     └─────► Cdp: commands, replies and events, over a pipe (transport) that no other process can open
//! ```
//! The callers open pages: locators (`arenad_locators::js`) read single values, and the browsers of episodes
//! (`arenad_agent_browser`) obey agents. Start reading at [`start`].

mod cage;
mod cdp;
mod cgroup;
mod container;
mod launch;
mod peer;
mod shown;
mod transport;

pub use cdp::{Cdp, CdpError, CdpEvent, CdpEvents};
pub use launch::{BrowserProcess, NoBrowser, end_remains, start, try_browser};
pub use peer::belongs_to;
pub use shown::{end_shown, start_shown};
pub use transport::{IncomingMessages, MESSAGE_MAX, OutgoingMessages, pipe};
