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
    /// failed may have recorded an event twice. [`crate::EpisodeHandle::get`] already tells the states of these events.
    ///
    /// Cancellation: no event is lost.
    pub async fn next(&mut self, limit: u32) -> Result<Vec<StoredEpisodeEvent>, FollowError> {
        let (store, after) = (&self.store, self.after);
        let announced = self.newest.clone();
        // The store records events before they are published, and they are announced afterwards.
        let read = async || {
            let mut events = store.episode_events_after(after, limit.max(1)).await?;
            events.retain(|event| event.seq <= *announced.borrow());
            Ok(events)
        };
        let events = next_rows(&mut self.newest, after, read, |event| event.seq).await?;
        self.after = events.last().map_or(after, |event| event.seq);
        Ok(events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arenad_model::episode::EpisodeStatus;
    use arenad_model::episode::ids::EpisodeId;
    use arenad_seams::wall_clock::WallClock;
    use arenad_store::{EpisodeChanges, NewEpisodeEvent};
    use std::time::Duration;

    /// A client that has read the end of an episode and asks for the episode must be told of the end.
    #[tokio::test]
    async fn an_event_waits_until_its_state_is_published() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = DaemonStore::open(&folder.path().join("arenad.db"), WallClock::system()).await.expect("a store");
        let event = |status| NewEpisodeEvent { episode: EpisodeId::from_random([1; 10]), status, ending: None };
        let events = vec![event(EpisodeStatus::Queued), event(EpisodeStatus::Preparing)];
        store.record_episodes(&EpisodeChanges { events, ..EpisodeChanges::default() }).await.expect("recorded");
        let announced = watch::Sender::new(1);
        let mut cursor = EpisodeEventCursor { store, newest: announced.subscribe(), after: 0 };
        let read: Vec<i64> = cursor.next(10).await.expect("events").iter().map(|event| event.seq).collect();
        assert_eq!(read, [1]);
        let early = tokio::time::timeout(Duration::from_millis(500), cursor.next(10)).await;
        assert!(early.is_err(), "{early:?}");
        announced.send_modify(|newest| *newest = 2);
        let read: Vec<i64> = cursor.next(10).await.expect("events").iter().map(|event| event.seq).collect();
        assert_eq!(read, [2]);
    }
}
