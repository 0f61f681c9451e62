//! The reasons why a request about an episode fails.

use std::sync::Arc;
use std::time::Duration;

use arenad_model::episode::EpisodeRefusal;
use arenad_model::episode::lease::SlotRefusal;
use arenad_model::episode::request::AskRefusal;
use arenad_store::StoreError;

/// The reason why a request about an episode failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum EpisodeError {
    /// The request for an episode was refused.
    #[error(transparent)]
    Ask(#[from] AskRefusal),
    /// The state of the episode rules the request out.
    #[error(transparent)]
    Refused(#[from] EpisodeRefusal),
    /// The state of the slot rules the request out.
    #[error(transparent)]
    Slot(#[from] SlotRefusal),
    /// Too many requests about episodes wait to be handled.
    #[error("too many requests about episodes at once; try again in {} s", retry_after.as_secs())]
    Busy {
        /// The time after which another attempt makes sense, in whole seconds.
        retry_after: Duration,
    },
    /// The store did not record the change. An end takes effect once the store works again.
    #[error("record the change of an episode")]
    Store(#[source] Arc<StoreError>),
    /// The daemon is stopping.
    #[error("the daemon is stopping")]
    Stopping,
}
