//! Words and numbers of generated inputs. They depend on a seed only, so that every run judges the same inputs.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const WORDS: [&str; 48] = [
    "harbour",
    "lantern",
    "ferry",
    "market",
    "bridge",
    "letter",
    "window",
    "garden",
    "mountain",
    "running",
    "parcels",
    "the",
    "of",
    "and",
    "with",
    "a",
    "in",
    "to",
    "for",
    "summer",
    "yellow",
    "station",
    "cooking",
    "traveller",
    "music",
    "stories",
    "happily",
    "national",
    "relation",
    "blue",
    "shoe",
    "2",
    "17",
    "1984",
    "wool",
    "paper",
    "silver",
    "quiet",
    "café",
    "naïve",
    "street",
    "rating",
    "reviews",
    "order",
    "delivery",
    "price",
    "size",
    "weather",
];

/// A source of numbers.
pub(super) struct Source(StdRng);

impl Source {
    pub(super) fn new(seed: u64) -> Self {
        Self(StdRng::seed_from_u64(seed))
    }

    /// Returns a number below a limit.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        self.0.random_range(0..limit)
    }

    pub(super) fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    pub(super) fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    pub(super) fn words(&mut self, count: usize) -> String {
        (0..count).map(|_| *self.pick(&WORDS)).collect::<Vec<_>>().join(" ")
    }
}
