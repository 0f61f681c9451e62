//! The event log: an event is appended to the store, and then listeners are notified that there is more to read.
//!
//! Listeners read the events from the store. They receive each event once, however slow they are, and no memory is used
//! for them.

use super::{DaemonStore, StoreError, StoredEvent};
use arenad_model::error::describe;
use arenad_model::event::EventKind;
use arenad_model::instance::InstanceId;
use arenad_seams::ordered_watch as watch;

/// The maximum length of a message, in bytes; some messages quote a site's logs.
const MESSAGE_MAX: usize = 64 << 10;

/// Appends events and notifies listeners. Clones share the log.
#[derive(Clone)]
pub struct EventLog {
    store: DaemonStore,
    newest: watch::Sender<i64>,
}

/// The reason why a listener cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
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

impl EventLog {
    /// Creates a log in the store.
    pub fn new(store: DaemonStore) -> Self {
        Self { store, newest: watch::Sender::new(0) }
    }

    /// Stores an event; `message` is a complete sentence.
    pub async fn note(&self, kind: EventKind, instance: Option<&InstanceId>, message: &str) {
        let message = bounded(message);
        tracing::info!(kind = kind.name(), instance.id = instance.map(tracing::field::display), "{message}");
        match self.store.append_event(kind, instance, &message).await {
            // Two events that are stored at the same time may be announced in any order.
            Ok(StoredEvent { seq, .. }) => drop(self.newest.send_if_modified(|newest| {
                let is_newer = seq > *newest;
                *newest = seq.max(*newest);
                is_newer
            })),
            Err(error) => {
                tracing::error!(error = describe(&error), "an event could not be stored")
            }
        }
    }

    /// Returns a reader of the events after `after`, without gaps.
    pub fn follow(&self, after: i64) -> EventCursor {
        EventCursor { store: self.store.clone(), newest: self.newest.subscribe(), after }
    }
}

fn bounded(message: &str) -> std::borrow::Cow<'_, str> {
    if message.len() <= MESSAGE_MAX {
        return message.into();
    }
    let end = message.floor_char_boundary(MESSAGE_MAX);
    format!("{} … (cut)", &message[..end]).into()
}

/// A position in the event log, from which reading continues.
pub struct EventCursor {
    store: DaemonStore,
    newest: watch::Receiver<i64>,
    after: i64,
}

impl EventCursor {
    /// Returns the number of the last event that was read.
    pub fn after(&self) -> i64 {
        self.after
    }

    /// Waits until there are events after the last one, and returns at most `limit` of them, oldest first.
    pub async fn next(&mut self, limit: u32) -> Result<Vec<StoredEvent>, FollowError> {
        let (store, after) = (&self.store, self.after);
        let read = || store.events_after(after, limit.max(1));
        let events = next_rows(&mut self.newest, after, read, |event| event.seq).await?;
        self.after = events.last().map_or(after, |event| event.seq);
        Ok(events)
    }
}

/// Waits until there are rows after the one with the number `after`, and returns them. `newest` announces each new row
/// after it is stored, and `read` returns the rows after `after`, oldest first.
///
/// Cancellation: no row is lost.
pub async fn next_rows<T, F>(
    newest: &mut watch::Receiver<i64>,
    after: i64,
    read: impl Fn() -> F,
    seq: impl Fn(&T) -> i64,
) -> Result<Vec<T>, FollowError>
where
    F: Future<Output = Result<Vec<T>, StoreError>>,
{
    loop {
        // The value is marked as seen before the read, so a row that is stored in between is announced again.
        newest.borrow_and_update();
        let rows = read().await?;
        if let Some(first) = rows.first().map(&seq) {
            // Rows are numbered without gaps, so a gap means that rows were pruned.
            if after > 0 && first > after + 1 {
                return Err(FollowError::Forgotten { after, next: first });
            }
            return Ok(rows);
        }
        newest.changed().await.map_err(|_| FollowError::Stopping)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Retention;

    async fn log(folder: &tempfile::TempDir) -> EventLog {
        EventLog::new(
            DaemonStore::open(&folder.path().join("arenad.db"), arenad_seams::wall_clock::WallClock::system())
                .await
                .expect("a store"),
        )
    }

    async fn note(log: &EventLog, count: usize) {
        for number in 0..count {
            log.note(EventKind::DaemonStarted, None, &number.to_string()).await;
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_past_and_what_follows_are_read_without_a_gap() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = log(&folder).await;
        note(&log, 300).await;
        let mut followed = log.follow(0);
        // Four tasks write while the earlier events are read, page by page.
        let writers: Vec<_> = (0..4)
            .map(|_| {
                let log = log.clone();
                tokio::spawn(async move { note(&log, 100).await })
            })
            .collect();
        let mut seen = Vec::new();
        while seen.len() < 700 {
            let page = followed.next(7).await.expect("events");
            assert!(page.len() <= 7);
            seen.extend(page.into_iter().map(|event| event.seq));
            tokio::task::yield_now().await;
        }
        for writer in writers {
            writer.await.expect("a writer");
        }
        assert_eq!(seen, (1..=700).collect::<Vec<i64>>());
        let waiting = tokio::time::timeout(std::time::Duration::from_millis(50), followed.next(7)).await;
        assert!(waiting.is_err(), "there is no more");
        note(&log, 1).await;
        assert_eq!(followed.next(7).await.expect("an event")[0].seq, 701);
    }

    #[tokio::test]
    async fn a_reader_that_is_too_slow_is_told_where_it_can_go_on() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = log(&folder).await;
        note(&log, 20).await;
        let mut followed = log.follow(0);
        followed.next(5).await.expect("events");
        let keep = Retention { most: 10, least: 0, age: std::time::Duration::MAX };
        log.store.prune_events(keep).await.expect("events go");
        let error = followed.next(5).await.expect_err("a gap");
        assert!(matches!(error, FollowError::Forgotten { after: 5, next: 11 }), "{error}");
        assert_eq!(log.follow(10).next(5).await.expect("events")[0].seq, 11);
        // A reader that starts at 0 receives every event that is kept.
        assert_eq!(log.follow(0).next(5).await.expect("events")[0].seq, 11);
    }

    #[test]
    fn a_long_message_is_cut_at_a_letter() {
        let cut = bounded(&"é".repeat(MESSAGE_MAX)).into_owned();
        assert!(cut.len() < MESSAGE_MAX + 20 && cut.ends_with("é … (cut)"));
        assert_eq!(bounded("short"), "short");
    }
}
