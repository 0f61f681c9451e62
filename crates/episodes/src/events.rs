//! The events of episodes, which followers read from the store. They receive each event once, however slow they are.

use arenad_seams::ordered_watch as watch;
use arenad_store::{DaemonStore, StoreError, StoredEpisodeEvent};

/// The reason why a follower cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum FollowEpisodesError {
    /// The store no longer keeps the next events.
    #[error("the events after {after} are not kept any more; the next one is {next}")]
    Forgotten {
        /// The number of the last event that was read.
        after: i64,
        /// The number of the oldest event that is kept.
        next: i64,
    },
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The daemon is stopping, so no further event is to be expected.
    #[error("the daemon is stopping")]
    Stopping,
}

/// A position among the events of all episodes, from which reading continues.
pub struct EpisodeEventCursor {
    pub(crate) store: DaemonStore,
    pub(crate) newest: watch::Receiver<i64>,
    pub(crate) after: i64,
}

impl EpisodeEventCursor {
    /// Returns the number of the last event that was read.
    pub fn after(&self) -> i64 {
        self.after
    }

    /// Waits until there are events after the last one, and returns at most `limit` of them, oldest first. A store that
    /// failed may have recorded an event twice.
    ///
    /// Cancellation: no event is lost.
    pub async fn next(&mut self, limit: u32) -> Result<Vec<StoredEpisodeEvent>, FollowEpisodesError> {
        loop {
            // The value is marked as seen before the read, so an event that is stored in between is announced again.
            self.newest.borrow_and_update();
            let events = self.store.episode_events_after(self.after, limit.max(1)).await?;
            if let (Some(first), Some(last)) = (events.first(), events.last()) {
                // Events are numbered without gaps, so a gap means that events were pruned.
                if self.after > 0 && first.seq > self.after + 1 {
                    return Err(FollowEpisodesError::Forgotten { after: self.after, next: first.seq });
                }
                self.after = last.seq;
                return Ok(events);
            }
            self.newest.changed().await.map_err(|_| FollowEpisodesError::Stopping)?;
        }
    }
}
