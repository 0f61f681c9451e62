//! The environment service: one port on which trainers of OpenEnv and NeMo Gym get episodes with a browser.
//!
//! ```text
//!   client ── GET /ws ──► socket ──► session ──► episode (held by the session) ──► its browser
//!                                       └── stop ──► evaluation ──► reward
//! ```
//! A session holds its episode: when the connection is closed, the episode ends. An episode that the environment failed
//! is answered with an error and without a reward, never with a reward of 0.
//!
//! | File | Job |
//! |---|---|
//! | `port` | opens the port |
//! | `routes` | the requests by HTTP, and the tasks |
//! | `socket` | the WebSocket of a session |
//! | `session` | what the messages of a session do |
//! | `episode` | the episode of a session, from its task to its reward |
//! | `gym` | the resources server of NeMo Gym |
//! | `tasks` | native tasks, and those of benchmarks |

mod episode;
mod gym;
mod port;
mod routes;
mod session;
mod socket;
mod tasks;

pub(crate) use port::open;
pub(crate) use routes::router;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::api::Api;

/// The most sessions at once. Each has a browser while it has an episode.
const SESSIONS_MAX: usize = 64;

/// The most connections of the port: those of the sessions, and short ones.
pub(crate) const OPENENV_CONNECTIONS: usize = 256;

/// The state that the handlers share.
pub(crate) struct EnvironmentService {
    api: Arc<Api>,
    sessions: AtomicUsize,
    gym: gym::GymSessions,
}

/// A place for one session; dropping it frees the place.
struct SessionPlace(Arc<EnvironmentService>);

impl EnvironmentService {
    /// Takes a place for a session.
    ///
    /// Errors: the number of sessions, which is the limit.
    fn enter(self: &Arc<Self>) -> Result<SessionPlace, usize> {
        let entered = self
            .sessions
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |active| (active < SESSIONS_MAX).then_some(active + 1));
        entered.map(|_| SessionPlace(Arc::clone(self)))
    }
}

impl Drop for SessionPlace {
    fn drop(&mut self) {
        self.0.sessions.fetch_sub(1, Ordering::SeqCst);
    }
}
