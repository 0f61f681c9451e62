//! Emptying the state root's trash, to which each reset moves the discarded state. Objects that cannot be removed are
//! tried again at increasing intervals. A backlog is reported once, and again whenever its size has doubled.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use arenad_instance::shared::SharedParts;
use arenad_model::error::describe;
use arenad_model::event::EventKind;
use arenad_storage::Storage;

/// The pause between two rounds.
const EVERY: Duration = Duration::from_secs(5);

/// The longest pause after failed rounds.
const LONGEST: Duration = Duration::from_secs(300);

/// The duration of a round after which the remaining trash is measured.
const SLOW: Duration = Duration::from_secs(30);

/// The smallest backlog that is reported while removal works, in bytes.
const MUCH: u64 = 4 << 30;

/// Empties the trash periodically until the daemon ends.
pub(super) async fn empty(shared: Arc<SharedParts>, storage: Storage) {
    let mut backlog = Backlog::default();
    loop {
        let begun = Instant::now();
        let emptied = storage.empty_trash().await;
        // Measuring walks through the whole trash, so it is done only if a round was slow or failed.
        let bytes = match &emptied {
            Ok(_) if begun.elapsed() < SLOW => 0,
            _ => storage.trash_usage().await.map_or(0, |usage| usage.allocated_bytes),
        };
        let failure = emptied.err().map(|error| describe(&error));
        if let Some((kind, message)) = backlog.note(failure.as_deref(), bytes) {
            shared.events.note(kind, None, &message).await;
        }
        tokio::select! {
            biased;
            () = shared.shutdown.cancelled() => return,
            () = tokio::time::sleep(backlog.pause()) => {}
        }
    }
}

/// The state of the trash that could not be removed.
#[derive(Debug, Default)]
struct Backlog {
    /// The number of rounds that have failed in succession.
    failures: u32,
    /// The size of the backlog when it was last reported, in bytes; `None` if there is no reported backlog.
    told: Option<u64>,
}

impl Backlog {
    /// Records the result of a round and returns the event to report, if any.
    fn note(&mut self, failure: Option<&str>, bytes: u64) -> Option<(EventKind, String)> {
        self.failures = if failure.is_some() { self.failures.saturating_add(1) } else { 0 };
        if failure.is_none() && bytes < MUCH {
            let told = self.told.take()?;
            return Some((
                EventKind::TrashEmptied,
                format!("the state root's trash was emptied; it had held {} MiB", told >> 20),
            ));
        }
        if self.told.is_some_and(|told| bytes < told.max(1).saturating_mul(2)) {
            return None;
        }
        self.told = Some(bytes);
        let held = format!("it holds {} MiB", bytes >> 20);
        Some(match failure {
            Some(failure) => {
                (EventKind::TrashStuck, format!("the state root's trash could not be emptied ({held}): {failure}"))
            }
            None => (EventKind::TrashGrows, format!("the state root's trash grows faster than it is emptied ({held})")),
        })
    }

    fn pause(&self) -> Duration {
        (EVERY * 2_u32.saturating_pow(self.failures.min(10))).min(LONGEST).max(EVERY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_told_once_and_again_when_it_has_doubled() {
        let mut backlog = Backlog::default();
        assert_eq!(backlog.note(None, 0), None);
        assert_eq!(backlog.pause(), EVERY);
        let (kind, message) = backlog.note(Some("no"), 10 << 20).expect("news");
        assert_eq!(
            (kind, message.contains("10 MiB") && message.ends_with(": no")),
            (EventKind::TrashStuck, true),
            "{message}"
        );
        for _ in 0..100 {
            assert_eq!(backlog.note(Some("no"), 19 << 20), None);
        }
        assert_eq!(backlog.pause(), LONGEST);
        assert_eq!(backlog.note(Some("no"), 20 << 20).expect("news").0, EventKind::TrashStuck);
        assert_eq!(backlog.note(None, 0).expect("news").0, EventKind::TrashEmptied);
        assert_eq!((backlog.note(None, 0), backlog.pause()), (None, EVERY));
    }

    #[test]
    fn one_that_fills_faster_than_it_is_emptied_is_told() {
        let mut backlog = Backlog::default();
        assert_eq!(backlog.note(None, MUCH - 1), None);
        assert_eq!(backlog.note(None, MUCH).expect("news").0, EventKind::TrashGrows);
        assert_eq!(backlog.note(None, MUCH + 1), None);
        assert_eq!(backlog.note(None, MUCH * 2).expect("news").0, EventKind::TrashGrows);
    }
}
