//! Episodes: one run of one task by one client, on a set of sites that it has for itself.
//!
#![doc = include_str!("episode/states.md")]
//!
//! `after` is total: every pair of state and event either leads to a state or is refused with a reason. A test of this
//! module generates the diagram from `after`, and prints it if the file differs.
//!
//! An episode has exactly one lease, so the lease has the id of the episode. A slot has the id of its instance. The
//! parts of the domain are values without I/O, and the daemon's episode task owns one [`registry::EpisodeRegistry`]
//! that combines them:
//!
//! - [`life`]: the time to live, the heartbeat, the hold, and what freezes an episode
//! - [`fence`]: whether a request of an episode is admitted
//! - [`request`]: what a client asks for, and what is refused at once
//! - [`queue`]: the order of waiting requests, and the decision which of them are granted
//! - [`lease`]: the slots, and which lease each of them belongs to
//! - [`slots`]: how many slots a site should have
//! - [`registry`]: all episodes of a daemon
//!
//! Times are monotonic: a [`Duration`] since the daemon started. A jump of the wall clock neither
//! ends an episode nor prolongs it.

pub mod ending;
pub mod fence;
pub mod ids;
pub mod lease;
pub mod life;
pub mod queue;
pub mod registry;
pub mod request;
pub mod slots;

use std::time::Duration;

use ending::{EpisodeEnding, ExpiryCause, ReleaseCause, VoidReason};

/// The state of an episode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EpisodeState {
    /// The request waits for slots, and holds none.
    Queued,
    /// The episode has a slot of each of its sites, and they are being brought to their starting points.
    Preparing,
    /// The client can reach its sites.
    Active,
    /// Requests of the client are refused, so that the sites do not change while they are judged.
    Frozen,
    /// The episode is over, for good.
    Ended(EpisodeEnding),
}

/// A state without the cause of an end, in the form in which it is stored and shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EpisodeStatus {
    /// [`EpisodeState::Queued`].
    Queued,
    /// [`EpisodeState::Preparing`].
    Preparing,
    /// [`EpisodeState::Active`].
    Active,
    /// [`EpisodeState::Frozen`].
    Frozen,
    /// [`EpisodeEnding::Released`].
    Released,
    /// [`EpisodeEnding::Expired`].
    Expired,
    /// [`EpisodeEnding::Void`].
    Void,
}

impl EpisodeStatus {
    /// All states, in the order of an episode's life.
    pub const ALL: [Self; 7] =
        [Self::Queued, Self::Preparing, Self::Active, Self::Frozen, Self::Released, Self::Expired, Self::Void];

    /// Returns the state's name in tables, JSON and the store.
    pub fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Preparing => "preparing",
            Self::Active => "active",
            Self::Frozen => "frozen",
            Self::Released => "released",
            Self::Expired => "expired",
            Self::Void => "void",
        }
    }

    /// Returns the state of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }
}

impl EpisodeState {
    /// Returns the state without the cause of an end.
    pub fn status(&self) -> EpisodeStatus {
        match self {
            Self::Queued => EpisodeStatus::Queued,
            Self::Preparing => EpisodeStatus::Preparing,
            Self::Active => EpisodeStatus::Active,
            Self::Frozen => EpisodeStatus::Frozen,
            Self::Ended(EpisodeEnding::Released(_)) => EpisodeStatus::Released,
            Self::Ended(EpisodeEnding::Expired(_)) => EpisodeStatus::Expired,
            Self::Ended(EpisodeEnding::Void(_)) => EpisodeStatus::Void,
        }
    }

    /// Returns how the episode ended, if it did.
    pub fn ending(&self) -> Option<&EpisodeEnding> {
        match self {
            Self::Ended(ending) => Some(ending),
            Self::Queued | Self::Preparing | Self::Active | Self::Frozen => None,
        }
    }

    /// Whether the episode was granted and has not ended, so that it has its slots.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Preparing | Self::Active | Self::Frozen)
    }
}

/// An event in the life of an episode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EpisodeEvent {
    /// A slot of each of the sites was reserved.
    Granted,
    /// All slots equal their starting points, and one transaction gave them to the episode.
    Prepared,
    /// The client asked for a freeze, or an evaluation began.
    Frozen,
    /// The last cause of a freeze has ended.
    Unfrozen,
    /// The request waited longer than its client wanted to.
    WaitEnded,
    /// The time to live ended without a heartbeat.
    TtlEnded,
    /// The client needs the episode no longer.
    Released(ReleaseCause),
    /// The environment failed the episode.
    Failed(VoidReason),
    /// A new daemon found the episode in the store.
    DaemonRestarted,
}

/// The refusal of an event or a request that is not possible in the current state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EpisodeRefusal {
    /// The episode has no slots yet.
    #[error("the episode waits for slots")]
    Waiting,
    /// The slots of the episode are not ready yet.
    #[error("the sites of the episode are being prepared")]
    Preparing,
    /// The event belongs to an earlier part of the life.
    #[error("the episode already has its slots")]
    AlreadyGranted,
    /// There is nothing to unfreeze.
    #[error("the episode is not frozen")]
    NotFrozen,
    /// Another connection holds the episode.
    #[error("another connection holds the episode")]
    AlreadyHeld,
    /// The connection does not hold the episode.
    #[error("the connection does not hold the episode")]
    NotHeld,
    /// The time of the episode is over, and its end is about to be recorded.
    #[error("the time of the episode is over")]
    Overdue,
    /// The episode is over.
    #[error("the episode has ended: {0}")]
    Ended(EpisodeEnding),
    /// A heartbeat would extend the time to live by more than is allowed.
    #[error("the time to live is at most {} s on this daemon", most.as_secs())]
    TtlTooLong {
        /// The longest time that is allowed.
        most: Duration,
    },
    /// The episode was never registered, or ended so long ago that it was forgotten.
    #[error("the episode is unknown")]
    Unknown,
}

impl EpisodeState {
    /// Returns the state that follows an event.
    ///
    /// Errors: [`EpisodeRefusal::Ended`] for every event after the end; [`EpisodeRefusal::Waiting`] and
    /// [`EpisodeRefusal::Preparing`] for events that come too early; [`EpisodeRefusal::AlreadyGranted`] for events that
    /// come too late; [`EpisodeRefusal::NotFrozen`].
    pub fn after(&self, event: EpisodeEvent) -> Result<Self, EpisodeRefusal> {
        use EpisodeEvent as E;
        use EpisodeState as S;
        let next = match (self, event) {
            (S::Ended(ending), _) => return Err(EpisodeRefusal::Ended(ending.clone())),
            (_, E::Released(cause)) => S::Ended(EpisodeEnding::Released(cause)),
            (_, E::Failed(reason)) => S::Ended(EpisodeEnding::Void(reason)),
            (S::Queued, E::Granted) => S::Preparing,
            (S::Queued, E::WaitEnded) => S::Ended(EpisodeEnding::Expired(ExpiryCause::Wait)),
            (S::Queued, E::DaemonRestarted) => S::Queued,
            (S::Queued, E::Prepared | E::Frozen | E::Unfrozen | E::TtlEnded) => return Err(EpisodeRefusal::Waiting),
            (S::Preparing, E::Prepared) => S::Active,
            // The preparation died with the daemon, and nothing says how far it got.
            (S::Preparing, E::DaemonRestarted) => S::Ended(EpisodeEnding::Void(VoidReason::DaemonRestarted)),
            (S::Preparing, E::Frozen | E::Unfrozen | E::TtlEnded) => return Err(EpisodeRefusal::Preparing),
            (S::Active | S::Frozen, E::Frozen) => S::Frozen,
            (S::Active | S::Frozen, E::TtlEnded) => S::Ended(EpisodeEnding::Expired(ExpiryCause::Ttl)),
            (S::Active, E::DaemonRestarted) | (S::Frozen, E::Unfrozen) => S::Active,
            (S::Frozen, E::DaemonRestarted) => S::Frozen,
            (S::Active, E::Unfrozen) => return Err(EpisodeRefusal::NotFrozen),
            (S::Preparing, E::Granted | E::WaitEnded)
            | (S::Active | S::Frozen, E::Granted | E::Prepared | E::WaitEnded) => {
                return Err(EpisodeRefusal::AlreadyGranted);
            }
        };
        Ok(next)
    }
}

#[cfg(test)]
mod tests;
