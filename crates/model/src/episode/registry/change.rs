//! The changes of a registry: their causes, their consequences, and the reasons for which they are refused.

use std::time::Duration;

use crate::episode::EpisodeRefusal;
use crate::episode::ending::{EpisodeEnding, VoidReason};
use crate::episode::ids::EpisodeId;
use crate::episode::lease::{RecycleOrder, SlotRefusal};
use crate::episode::life::HoldId;
use crate::episode::queue::Grant;
use crate::ids::{EnvironmentName, SiteId};

/// The answer to a request for an episode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedEpisode {
    /// The id of the new episode, or of the known one.
    pub id: EpisodeId,
    /// Whether the episode existed already, because the request has the owner and the key of an earlier one.
    pub is_known: bool,
}

/// An episode that ended, and the work on its slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedEpisode {
    /// The episode, whose connections and visits must be cut.
    pub id: EpisodeId,
    /// How the episode ended.
    pub ending: EpisodeEnding,
    /// The slots that must be brought back to their baselines. The others are free already.
    pub recycle: Vec<RecycleOrder>,
}

/// The changes that time, free slots and free quotas bring about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SettledEpisodes {
    /// The episodes whose deadline has passed.
    pub ended: Vec<EndedEpisode>,
    /// The episodes whose slots are now to be prepared.
    pub granted: Vec<Grant>,
}

/// A change that does not end an episode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EpisodeChange {
    /// [`EpisodeLife::heartbeat`](crate::episode::life::EpisodeLife::heartbeat).
    Heartbeat(Option<Duration>),
    /// [`EpisodeLife::hold`](crate::episode::life::EpisodeLife::hold).
    Hold(HoldId),
    /// [`EpisodeLife::freeze`](crate::episode::life::EpisodeLife::freeze).
    Freeze,
    /// [`EpisodeLife::unfreeze`](crate::episode::life::EpisodeLife::unfreeze).
    Unfreeze,
    /// [`EpisodeLife::begin_evaluation`](crate::episode::life::EpisodeLife::begin_evaluation).
    BeginEvaluation(Duration),
    /// [`EpisodeLife::end_evaluation`](crate::episode::life::EpisodeLife::end_evaluation).
    EndEvaluation,
}

/// The cause for which an episode is to end before its deadline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EndCause {
    /// [`EpisodeLife::release`](crate::episode::life::EpisodeLife::release).
    Release,
    /// [`EpisodeLife::close_hold`](crate::episode::life::EpisodeLife::close_hold).
    HoldClosed(HoldId),
    /// [`EpisodeLife::fail`](crate::episode::life::EpisodeLife::fail).
    Failed(VoidReason),
}

/// The consequence of the failure of a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SlotFailure {
    /// The slot belonged to an episode, which is void now.
    Void(EndedEpisode),
    /// The slot belonged to no episode, and is to be recycled.
    Recycle(RecycleOrder),
    /// The slot is unknown, or its episode is about to end anyway.
    Nothing,
}

/// The sites that are withdrawn from episodes, because they are taken down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WithdrawalScope {
    /// All sites of an environment.
    Environment(EnvironmentName),
    /// One site of an environment.
    Site(SiteId),
}

impl WithdrawalScope {
    /// Whether a site is among them.
    pub fn includes(&self, site: &SiteId) -> bool {
        match self {
            Self::Environment(environment) => site.environment == *environment,
            Self::Site(one) => site == one,
        }
    }
}

/// The reason why prepared slots are not given to an episode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommitRefusal {
    /// The episode is not being prepared any more.
    #[error(transparent)]
    Episode(#[from] EpisodeRefusal),
    /// A slot is not prepared, or does not belong to the episode any more.
    #[error(transparent)]
    Slot(#[from] SlotRefusal),
}
