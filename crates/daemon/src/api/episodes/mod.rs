//! Endpoints of episodes: leases on a slot of each of several sites.
//!
//! A handler turns the request into a call of the [`EpisodeHandle`](arenad_episodes::EpisodeHandle), and shows the
//! result. Nothing is decided here.
//!
//! | File | Endpoints |
//! |---|---|
//! | `start` | `POST /v1/episodes` |
//! | `fork` | forks, and episodes that start from another one |
//! | `life` | one episode, all of them, the queue, heartbeat, freeze, end |
//! | `streams` | hold, events |
//! | `evaluate` | evaluations, on the episode's own slots |
//! | `certify` | the certificates of evaluations |
//! | `changes` | the changes that the episode made, and looks to compare with |
//! | `slots` | sessions, values and traffic of the episode's slots; how other files find those slots |
//! | `browser` | the browser of an episode |
//! | `observations` | the steps of the episode's agent |
//! | `service` | episodes for the sessions of the environment service |
//! | `token` | the endpoints that an episode's token opens over TCP |
//! | `refusal`, `shown` | errors and episodes in their JSON |

mod browser;
mod certify;
mod changes;
mod evaluate;
mod fork;
mod life;
mod observations;
mod refusal;
pub(crate) mod service;
mod shown;
mod slots;
mod start;
mod streams;
mod token;

pub(super) use self::browser::{
    RESET_BYTES_MAX, browser, browser_elements, browser_reset, browser_snapshot, browser_step, close_browser,
};
pub(super) use self::changes::{changes, keep_look, looks};
pub(super) use self::evaluate::{begin, evaluate};
pub(super) use self::fork::fork;
pub(super) use self::life::{end, freeze, heartbeat, list, one, queue, unfreeze};
pub(super) use self::observations::{STEP_BYTES_MAX, observations, observe};
pub(super) use self::slots::{har, locate, log_in, storage_state};
pub(super) use self::start::start;
pub(super) use self::streams::{all_events, events, hold};
pub(super) use self::token::opens;

use axum::http::StatusCode;

use super::error::ApiError;
use arenad_model::episode::ids::EpisodeId;

/// Parses an id from the address of a request.
fn id(text: &str) -> Result<EpisodeId, ApiError> {
    text.parse().map_err(|error: arenad_model::episode::ids::InvalidEpisodeId| {
        ApiError::new(StatusCode::NOT_FOUND, "unknown_episode", error.to_string())
            .hint("list the episodes with `arenad episode ls --all`")
    })
}
