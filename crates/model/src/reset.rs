//! The ways and the outcomes of resets.

/// The way in which a reset was done, as it is stored and shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResetWay {
    /// The site is only read, and it equals its snapshot.
    Keep,
    /// The site was proven to equal its snapshot.
    Untouched,
    /// A standby took over.
    Swap,
    /// The containers were brought back in place.
    Rewind,
    /// New containers were created from the snapshot.
    Recreate,
}

impl ResetWay {
    const ALL: [Self; 5] = [Self::Keep, Self::Untouched, Self::Swap, Self::Rewind, Self::Recreate];

    /// Returns the name in tables, JSON and the store.
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

/// The outcome of a reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResetOutcome {
    /// The instance equals its snapshot.
    Done,
    /// A step of the reset failed.
    Failed,
    /// A `down` request cancelled the reset.
    Cancelled,
    /// The daemon crashed during the reset.
    Interrupted,
}

impl ResetOutcome {
    const ALL: [Self; 4] = [Self::Done, Self::Failed, Self::Cancelled, Self::Interrupted];

    /// Returns the name in tables, JSON and the store.
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
