//! The own ports of slots, for clients of episodes that take no proxy.
//!
//! ```text
//!   client ──► gateway's slot port ──► SlotDirectory ──► fence (episodes) ──► route of the slot
//!                    ▲                       ▲
//!                    └── revokes (proxy::access)  └── definitions ── SlotPortBoard ◄── environments: up, down
//! ```
//! A port is open while its site is up, whether or not the slot exists: a port that is opened in the middle of a grant
//! could be taken. It answers while an episode has the slot.
//!
//! | File | Job |
//! |---|---|
//! | `board` | the ports that are open |
//! | `directory` | decides on each request to a port |

mod board;
mod directory;

pub(crate) use board::{SlotPortBoard, UnopenedPort};
