//! The events of episodes, which followers read from the store. They receive each event once, however slow they are.

use arenad_seams::ordered_watch as watch;
use arenad_store::{DaemonStore, FollowError, StoredEpisodeEvent, next_rows};

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
    pub async fn next(&mut self, limit: u32) -> Result<Vec<StoredEpisodeEvent>, FollowError> {
        let (store, after) = (&self.store, self.after);
        let read = || store.episode_events_after(after, limit.max(1));
        let events = next_rows(&mut self.newest, after, read, |event| event.seq).await?;
        self.after = events.last().map_or(after, |event| event.seq);
        Ok(events)
    }
}
