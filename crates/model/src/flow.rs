//! Rate limiting of notices. The first notice of a source is passed on at once. Further ones are collected during a
//! pause and then passed on together, each kind once. However often a source repeats itself, the number of its notices
//! in a pause is at most the number of kinds.

use std::collections::BTreeMap;
use std::time::Duration;

/// The rate limiter, with the sources whose pause has not ended. `now` is always a time on a monotonic clock.
#[derive(Debug)]
pub struct Calm<K, T> {
    pause: Duration,
    sources: BTreeMap<K, NoticeSource<T>>,
}

#[derive(Debug)]
struct NoticeSource<T> {
    /// The time at which the collected notices are passed on.
    due: Duration,
    waiting: Vec<T>,
}

impl<K: Ord + Clone, T: PartialEq> Calm<K, T> {
    /// Creates a rate limiter whose pauses have this length.
    pub fn new(pause: Duration) -> Self {
        Self { pause, sources: BTreeMap::new() }
    }

    /// Adds a notice, and returns it if it must be passed on at once.
    pub fn take(&mut self, source: K, notice: T, now: Duration) -> Option<T> {
        match self.sources.get_mut(&source) {
            Some(known) => {
                // Only the last of several equal notices is kept, so that they are in the order of their last
                // occurrence.
                known.waiting.retain(|waiting| *waiting != notice);
                known.waiting.push(notice);
                None
            }
            None => {
                self.sources.insert(source, NoticeSource { due: now + self.pause, waiting: Vec::new() });
                Some(notice)
            }
        }
    }

    /// Returns the next time at which [`Self::pass`] has work, or `None` if no pause is running.
    pub fn due(&self) -> Option<Duration> {
        self.sources.values().map(|source| source.due).min()
    }

    /// Returns the notices whose pause has ended, source by source, and forgets the sources that had none.
    pub fn pass(&mut self, now: Duration) -> Vec<T> {
        let mut passed = Vec::new();
        let pause = self.pause;
        self.sources.retain(|_, source| {
            if source.due > now {
                return true;
            }
            let waited = std::mem::take(&mut source.waiting);
            let goes_on = !waited.is_empty();
            passed.extend(waited);
            source.due = now + pause;
            goes_on
        });
        passed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE: Duration = Duration::from_millis(100);

    fn at(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn the_first_goes_at_once_and_what_repeats_goes_once_in_a_pause() {
        let mut calm = Calm::new(PAUSE);
        assert_eq!(calm.take("a", "pause", at(0)), Some("pause"));
        for millis in 1..90 {
            let notice = if millis % 2 == 0 { "pause" } else { "unpause" };
            assert_eq!(calm.take("a", notice, at(millis)), None);
        }
        assert_eq!(calm.take("b", "die", at(50)), Some("die"), "another source");
        assert_eq!(calm.due(), Some(at(100)));
        assert!(calm.pass(at(99)).is_empty());
        assert_eq!(calm.pass(at(100)), ["pause", "unpause"], "each once, the last one last");
        assert_eq!(calm.take("a", "die", at(110)), None, "it goes on");
        assert_eq!(calm.pass(at(200)), ["die"]);
        assert!(calm.pass(at(300)).is_empty());
        assert_eq!(calm.due(), None, "who is silent is forgotten");
        assert_eq!(calm.take("a", "start", at(301)), Some("start"));
    }

    #[test]
    fn a_flood_passes_as_much_as_there_are_kinds() {
        let mut calm = Calm::new(PAUSE);
        let mut passed = 0;
        for micros in 0..1_000_000_u64 {
            let now = Duration::from_micros(micros);
            passed += usize::from(calm.take(1, micros % 3, now).is_some());
            passed += calm.pass(now).len();
        }
        assert!(passed <= 1 + 3 * 10, "{passed}");
    }
}
