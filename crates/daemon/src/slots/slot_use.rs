//! The use of a slot, and who reaches its instance meanwhile.

use arenad_instance::RouteAccess;
use arenad_model::episode::ids::EpisodeId;
use arenad_model::instance::InstanceId;

/// The use of a slot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum SlotUse {
    /// No episode has the slot. People reach slot 1 at its public port.
    #[default]
    Idle,
    /// The slot is being brought to the starting point of an episode.
    Preparing(EpisodeId),
    /// An episode has the slot.
    Leased {
        /// The episode whose clients reach the slot.
        episode: EpisodeId,
        /// The only generation that may serve the episode.
        generation: u64,
        /// Whether the episode is frozen, so that no client reaches the slot.
        is_frozen: bool,
    },
    /// The slot is being brought back to its baseline, or is about to be.
    Recycling,
}

/// Whether people reach the slot at the public port of its site when no episode has it.
pub(crate) fn is_public(slot: &InstanceId) -> bool {
    slot.number == 1
}

impl SlotUse {
    /// Returns the episode that has the slot or that it is being prepared for.
    pub(crate) fn holder(&self) -> Option<&EpisodeId> {
        match self {
            Self::Idle | Self::Recycling => None,
            Self::Preparing(episode) | Self::Leased { episode, .. } => Some(episode),
        }
    }

    /// Returns who reaches the instance of the slot.
    pub(super) fn access(&self, slot: &InstanceId) -> RouteAccess {
        let closed = |reason: String| RouteAccess::Closed { reason, episode: self.holder().cloned() };
        match self {
            Self::Idle if is_public(slot) => RouteAccess::Open,
            Self::Idle => closed(format!("no episode has {slot}")),
            Self::Preparing(episode) => closed(format!("{} is being prepared for episode {episode}", slot.site)),
            Self::Leased { episode, generation, is_frozen } => {
                RouteAccess::Leased { episode: episode.clone(), generation: *generation, is_frozen: *is_frozen }
            }
            Self::Recycling => closed(format!("{} is being reset after an episode", slot.site)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(number: u32) -> InstanceId {
        format!("mini/shop/{number}").parse().expect("a name")
    }

    #[test]
    fn people_reach_slot_1_only_while_no_episode_uses_it() {
        let episode = EpisodeId::from_random([1; 10]);
        let leased = SlotUse::Leased { episode: episode.clone(), generation: 3, is_frozen: false };
        assert_eq!(SlotUse::Idle.access(&slot(1)), RouteAccess::Open);
        for slot_use in [SlotUse::Preparing(episode.clone()), leased.clone(), SlotUse::Recycling] {
            assert_ne!(slot_use.access(&slot(1)), RouteAccess::Open, "{slot_use:?}");
        }
        assert!(matches!(SlotUse::Idle.access(&slot(2)), RouteAccess::Closed { episode: None, .. }));
        assert_eq!(leased.access(&slot(2)), RouteAccess::Leased { episode, generation: 3, is_frozen: false });
    }

    #[test]
    fn a_slot_that_is_prepared_names_its_episode() {
        let episode = EpisodeId::from_random([1; 10]);
        let access = SlotUse::Preparing(episode.clone()).access(&slot(1));
        assert!(matches!(access, RouteAccess::Closed { episode: Some(holder), .. } if holder == episode));
    }
}
