//! The compatible server: one port on which harnesses reset sites by the protocols that they know.
//!
//! ```text
//!   BrowserGym ──► answer ──► subject: which instances ──► resets ──► drivers (as for `POST …/resets`)
//!                    │                                        │ ▲
//!                    └── /status: waits for ── ResetBoard ◄────┘ └── store: survives the daemon
//! ```
//! The crate `compat` decides what a request means, whether it is answered, and in which words.
//!
//! | File | Job |
//! |---|---|
//! | `port` | opens the port |
//! | `answer` | answers requests of the reset server and of the reset form |
//! | `env_ctrl` | answers requests of env-ctrl |
//! | `subject` | the instances that a request is about |
//! | `resets` | performs resets, and keeps the board |

mod answer;
mod env_ctrl;
mod port;
mod resets;
mod subject;

pub(crate) use answer::router;
pub(crate) use port::open;
pub(crate) use resets::AskedResets;
