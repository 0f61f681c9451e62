//! Emptying the state root's trash: each reset leaves the state of the past there. What cannot be removed is tried again,
//! less and less often, and told: once, and again whenever it has doubled.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use arenad_instance::shared::Shared;
use arenad_model::error::describe;
use arenad_storage::Storage;

/// The pause between two rounds.
const EVERY: Duration = Duration::from_secs(5);

/// The longest pause after rounds that failed.
const LONGEST: Duration = Duration::from_secs(300);

/// A round that takes longer is followed by a look at how much is left.
const SLOW: Duration = Duration::from_secs(30);

/// Less than this is not worth telling while it is being removed, in bytes.
const MUCH: u64 = 4 << 30;

/// Empties the trash again and again, until the daemon ends.
pub(super) async fn empty(shared: Arc<Shared>, storage: Storage) {
    let mut backlog = Backlog::default();
    loop {
        let begun = Instant::now();
        let emptied = storage.empty_trash().await;
        // Measuring walks through all of it, so it is done where something is wrong.
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

/// What is known of what could not be removed.
#[derive(Debug, Default)]
struct Backlog {
    /// How many rounds have failed, one after the other.
    failures: u32,
    /// How much there was when it was told last, in bytes; none if all is well.
    told: Option<u64>,
}

impl Backlog {
    /// Takes note of a round, and says what is to be told of it.
    fn note(&mut self, failure: Option<&str>, bytes: u64) -> Option<(&'static str, String)> {
        self.failures = if failure.is_some() { self.failures.saturating_add(1) } else { 0 };
        if failure.is_none() && bytes < MUCH {
            let told = self.told.take()?;
            return Some(("trash.emptied", format!("the state root's trash is emptied: it held {} MiB", told >> 20)));
        }
        if self.told.is_some_and(|told| bytes < told.max(1).saturating_mul(2)) {
            return None;
        }
        self.told = Some(bytes);
        let held = format!("it holds {} MiB", bytes >> 20);
        Some(match failure {
            Some(failure) => ("trash.stuck", format!("the state root's trash could not be emptied, {held}: {failure}")),
            None => ("trash.grows", format!("the state root's trash fills faster than it is emptied: {held}")),
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
        assert_eq!((kind, message.contains("10 MiB") && message.ends_with(": no")), ("trash.stuck", true), "{message}");
        for _ in 0..100 {
            assert_eq!(backlog.note(Some("no"), 19 << 20), None);
        }
        assert_eq!(backlog.pause(), LONGEST);
        assert_eq!(backlog.note(Some("no"), 20 << 20).expect("news").0, "trash.stuck");
        assert_eq!(backlog.note(None, 0).expect("news").0, "trash.emptied");
        assert_eq!((backlog.note(None, 0), backlog.pause()), (None, EVERY));
    }

    #[test]
    fn one_that_fills_faster_than_it_is_emptied_is_told() {
        let mut backlog = Backlog::default();
        assert_eq!(backlog.note(None, MUCH - 1), None);
        assert_eq!(backlog.note(None, MUCH).expect("news").0, "trash.grows");
        assert_eq!(backlog.note(None, MUCH + 1), None);
        assert_eq!(backlog.note(None, MUCH * 2).expect("news").0, "trash.grows");
    }
}
