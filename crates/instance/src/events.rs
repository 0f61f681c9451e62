//! The event log: appended to the store first, then listeners are told that there is more to read.
//!
//! Listeners read the events from the store, whatever they have missed meanwhile, so none is lost or told twice, however slow
//! they are, and nothing is kept for them.

use arenad_seams::ordered_watch as watch;
use arenad_store::{Store, StoredEvent};

/// How long a message may be, in bytes: some quote what a site has logged.
const MESSAGE_MAX: usize = 64 << 10;

/// Appends events and tells listeners.
#[derive(Clone)]
pub struct EventLog {
    store: Store,
    newest: watch::Sender<i64>,
}

/// Why events could not be followed any further.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// The next ones have been forgotten.
    #[error("the events after {after} are not kept any more; the next one is {next}")]
    Forgotten {
        /// The last one that was read.
        after: i64,
        /// The oldest one that is kept.
        next: i64,
    },
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] arenad_store::StoreError),
    /// The daemon stops.
    #[error("the daemon is stopping")]
    Stopping,
}

impl EventLog {
    /// A log on top of the store.
    pub fn new(store: Store) -> Self {
        Self { store, newest: watch::Sender::new(0) }
    }

    /// Notes that something happened. `kind` is a stable word, `message` a sentence that reads alone.
    pub async fn note(&self, kind: &str, instance: Option<&str>, message: &str) {
        let message = bounded(message);
        tracing::info!(kind, instance.id = instance, "{message}");
        match self.store.append_event(kind, instance, &message).await {
            // Two that end at the same time may tell of it in any order.
            Ok(StoredEvent { seq, .. }) => drop(self.newest.send_if_modified(|newest| {
                let is_newer = seq > *newest;
                *newest = seq.max(*newest);
                is_newer
            })),
            Err(error) => {
                tracing::error!(error = arenad_model::error::describe(&error), "an event could not be stored")
            }
        }
    }

    /// Reads the events after `after`, without a gap.
    pub fn follow(&self, after: i64) -> Followed {
        Followed { store: self.store.clone(), newest: self.newest.subscribe(), after }
    }
}

fn bounded(message: &str) -> std::borrow::Cow<'_, str> {
    if message.len() <= MESSAGE_MAX {
        return message.into();
    }
    let end = message.floor_char_boundary(MESSAGE_MAX);
    format!("{} … (cut)", &message[..end]).into()
}

/// A place in the event log, from which it is read on.
pub struct Followed {
    store: Store,
    newest: watch::Receiver<i64>,
    after: i64,
}

impl Followed {
    /// The last event that was read.
    pub fn after(&self) -> i64 {
        self.after
    }

    /// Waits until there are events after the last one, and returns at most `limit` of them, oldest first.
    pub async fn next(&mut self, limit: u32) -> Result<Vec<StoredEvent>, FollowError> {
        loop {
            // Marked as seen before reading: an event that comes in between is told of again.
            self.newest.borrow_and_update();
            let events = self.store.events_after(self.after, limit.max(1)).await?;
            if let (Some(first), Some(last)) = (events.first(), events.last()) {
                // Numbers are given out without a gap, so a gap is what has been forgotten.
                if self.after > 0 && first.seq > self.after + 1 {
                    return Err(FollowError::Forgotten { after: self.after, next: first.seq });
                }
                self.after = last.seq;
                return Ok(events);
            }
            self.newest.changed().await.map_err(|_| FollowError::Stopping)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arenad_store::Retention;

    async fn log(folder: &tempfile::TempDir) -> EventLog {
        EventLog::new(
            Store::open(&folder.path().join("arenad.db"), arenad_seams::wall_clock::WallClock::system())
                .await
                .expect("a store"),
        )
    }

    async fn note(log: &EventLog, count: usize) {
        for number in 0..count {
            log.note("test", None, &number.to_string()).await;
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_past_and_what_follows_are_read_without_a_gap() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = log(&folder).await;
        note(&log, 300).await;
        let mut followed = log.follow(0);
        // Four write at once while the past is read, page by page.
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
        // Who asks for everything gets everything that is kept.
        assert_eq!(log.follow(0).next(5).await.expect("events")[0].seq, 11);
    }

    #[test]
    fn a_long_message_is_cut_at_a_letter() {
        let cut = bounded(&"é".repeat(MESSAGE_MAX)).into_owned();
        assert!(cut.len() < MESSAGE_MAX + 20 && cut.ends_with("é … (cut)"));
        assert_eq!(bounded("short"), "short");
    }
}
