//! Resets: the ways in which they are done, and how they end.

/// The way by which a reset was done, as it is stored and shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResetWay {
    /// The site is only read, and as its snapshot.
    Keep,
    /// The site is proven to be as its snapshot.
    Untouched,
    /// A standby took over.
    Swap,
    /// The containers were brought back in place.
    Rewind,
    /// New containers were made.
    Recreate,
}

impl ResetWay {
    const ALL: [Self; 5] = [Self::Keep, Self::Untouched, Self::Swap, Self::Rewind, Self::Recreate];

    /// Returns the word in tables, JSON and the store.
    pub fn name(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Untouched => "untouched",
            Self::Swap => "swap",
            Self::Rewind => "rewind",
            Self::Recreate => "recreate",
        }
    }

    /// Returns the way of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|way| way.name() == name)
    }
}

/// How a reset ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResetOutcome {
    /// The instance is as its snapshot.
    Done,
    /// A step of the reset failed.
    Failed,
    /// A `down` took its place.
    Cancelled,
    /// The daemon crashed meanwhile.
    Interrupted,
}

impl ResetOutcome {
    const ALL: [Self; 4] = [Self::Done, Self::Failed, Self::Cancelled, Self::Interrupted];

    /// Returns the word in tables, JSON and the store.
    pub fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
        }
    }

    /// Returns the outcome of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_read_back() {
        for way in ResetWay::ALL {
            assert_eq!(ResetWay::named(way.name()), Some(way));
        }
        for outcome in ResetOutcome::ALL {
            assert_eq!(ResetOutcome::named(outcome.name()), Some(outcome));
        }
        assert_eq!((ResetWay::named("Swap"), ResetOutcome::named("")), (None, None));
    }
}
