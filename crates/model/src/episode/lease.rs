//! The slots and their leases. Every change of a slot names the lease that it is for, and a change for another lease is
//! refused, so that late work for an earlier episode cannot reach a later one.
//!
//! ```text
//!            reserve              commit
//!      Free ─────────► Reserved ─────────► Leased        all slots of the lease at once, or none
//!       ▲  ◄───────────┘  │                  │
//!       │   give_back,    │ give_back,       │ give_back
//!       │   unchanged     ▼ changed          │
//!       └──────────── Recycling ◄────────────┘
//!         recycled        ▲
//!                         └─ add: a new slot is made like one that is recycled
//! ```
//! A slot is free only if it is proven to equal its baseline. The work that makes a slot free again has a number, its
//! turn, and only the latest turn of a slot counts.

use std::collections::BTreeMap;
use std::time::Duration;

use super::ids::EpisodeId;
use crate::instance::InstanceId;

/// One attempt to make a slot free. Numbers are never used twice while the daemon runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecycleTurn(u64);

/// The state of a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SlotState {
    /// The slot equals its baseline, is ready, and belongs to no lease.
    Free {
        /// The time since when the slot has been free.
        since: Duration,
    },
    /// The slot is being prepared for a lease. No client reaches it.
    Reserved {
        /// The lease that the slot is for.
        lease: EpisodeId,
        /// Whether the preparation changed the slot, so that it must be recycled if the lease comes to nothing.
        is_changed: bool,
        /// Whether the slot was proven to equal its starting point.
        is_prepared: bool,
        /// The time since when the slot has been free.
        since: Duration,
    },
    /// The slot belongs to an episode.
    Leased {
        /// The lease that the slot belongs to.
        lease: EpisodeId,
    },
    /// The slot is being made, or brought back to its baseline.
    Recycling {
        /// The attempt that can make the slot free.
        turn: RecycleTurn,
        /// The lease after which the slot is recycled.
        after: Option<EpisodeId>,
    },
}

impl SlotState {
    /// Returns the state's name in tables and JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Free { .. } => "free",
            Self::Reserved { .. } => "reserved",
            Self::Leased { .. } => "leased",
            Self::Recycling { .. } => "recycling",
        }
    }

    /// Returns the lease that the slot is reserved for or belongs to.
    pub fn lease(&self) -> Option<&EpisodeId> {
        match self {
            Self::Reserved { lease, .. } | Self::Leased { lease } => Some(lease),
            Self::Free { .. } | Self::Recycling { .. } => None,
        }
    }
}

/// The work that makes a slot free again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecycleOrder {
    /// The slot to bring back to its baseline.
    pub slot: InstanceId,
    /// The number of this attempt, which the report of its end must name.
    pub turn: RecycleTurn,
    /// The lease that had the slot before.
    pub after: Option<EpisodeId>,
}

/// The reason why a change of slots is refused. Nothing has changed then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SlotRefusal {
    /// The slot was removed, or never existed.
    #[error("there is no slot {0}")]
    UnknownSlot(InstanceId),
    /// The slot exists already.
    #[error("the slot {0} exists")]
    Exists(InstanceId),
    /// The slot belongs to a lease, or is being recycled.
    #[error("the slot {slot} is {state}, not free")]
    NotFree {
        /// The slot that was asked for.
        slot: InstanceId,
        /// The name of its state.
        state: &'static str,
    },
    /// The change is for a lease that does not have the slot.
    #[error("the slot {slot} does not belong to {lease}")]
    OtherLease {
        /// The slot that was to be changed.
        slot: InstanceId,
        /// The lease that the change was for.
        lease: EpisodeId,
    },
    /// The slot was given to the episode already, so its preparation is over.
    #[error("the slot {0} is in use by its episode")]
    InUse(InstanceId),
    /// A slot of the lease is not prepared yet.
    #[error("the slot {0} is not prepared")]
    NotPrepared(InstanceId),
    /// The report is of an attempt that does not count any more.
    #[error("the slot {0} is not being recycled by this attempt")]
    OtherTurn(InstanceId),
}

/// All slots of a daemon with their states.
#[derive(Debug, Clone, Default)]
pub struct SlotBoard {
    slots: BTreeMap<InstanceId, SlotState>,
    turns: u64,
}

impl SlotBoard {
    fn next_turn(&mut self) -> RecycleTurn {
        self.turns += 1;
        RecycleTurn(self.turns)
    }

    /// Returns the slots in order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = (&InstanceId, &SlotState)> {
        self.slots.iter()
    }

    /// Returns the state of a slot.
    pub fn state(&self, slot: &InstanceId) -> Option<&SlotState> {
        self.slots.get(slot)
    }

    /// Returns the lease whose client can reach the slot. There is none during the preparation.
    pub fn lease_of(&self, slot: &InstanceId) -> Option<&EpisodeId> {
        match self.slots.get(slot)? {
            SlotState::Leased { lease } => Some(lease),
            SlotState::Free { .. } | SlotState::Reserved { .. } | SlotState::Recycling { .. } => None,
        }
    }

    /// Returns the slots that are reserved for a lease or belong to it.
    pub fn slots_of(&self, lease: &EpisodeId) -> Vec<InstanceId> {
        let is_its = |(_, state): &(&InstanceId, &SlotState)| state.lease() == Some(lease);
        self.slots.iter().filter(is_its).map(|(slot, _)| slot.clone()).collect()
    }

    /// Adds a slot, which is to be made.
    ///
    /// Errors: [`SlotRefusal::Exists`].
    pub fn add(&mut self, slot: InstanceId) -> Result<RecycleOrder, SlotRefusal> {
        if self.slots.contains_key(&slot) {
            return Err(SlotRefusal::Exists(slot));
        }
        Ok(self.recycle(slot, None))
    }

    /// Adds a slot that an episode has since before a restart of the daemon.
    ///
    /// Errors: [`SlotRefusal::Exists`].
    pub fn restore_lease(&mut self, slot: InstanceId, lease: EpisodeId) -> Result<(), SlotRefusal> {
        if self.slots.contains_key(&slot) {
            return Err(SlotRefusal::Exists(slot));
        }
        self.slots.insert(slot, SlotState::Leased { lease });
        Ok(())
    }

    /// Adds a slot that an episode had when the daemon restarted during its preparation, and that is to be recycled.
    ///
    /// Errors: [`SlotRefusal::Exists`].
    pub fn restore_recycling(&mut self, slot: InstanceId, after: EpisodeId) -> Result<RecycleOrder, SlotRefusal> {
        if self.slots.contains_key(&slot) {
            return Err(SlotRefusal::Exists(slot));
        }
        Ok(self.recycle(slot, Some(after)))
    }

    fn recycle(&mut self, slot: InstanceId, after: Option<EpisodeId>) -> RecycleOrder {
        let turn = self.next_turn();
        self.slots.insert(slot.clone(), SlotState::Recycling { turn, after: after.clone() });
        RecycleOrder { slot, turn, after }
    }

    fn free(&self, slot: &InstanceId) -> Result<Duration, SlotRefusal> {
        match self.slots.get(slot).ok_or_else(|| SlotRefusal::UnknownSlot(slot.clone()))? {
            SlotState::Free { since } => Ok(*since),
            other => Err(SlotRefusal::NotFree { slot: slot.clone(), state: other.name() }),
        }
    }

    /// Removes a free slot, so that it can be given to no episode. The caller then removes its instance.
    ///
    /// Errors: [`SlotRefusal::UnknownSlot`] and [`SlotRefusal::NotFree`].
    pub fn retire(&mut self, slot: &InstanceId) -> Result<(), SlotRefusal> {
        self.free(slot)?;
        self.slots.remove(slot);
        Ok(())
    }

    /// Removes a slot that belongs to no lease although it may not be free, because its site is taken down.
    ///
    /// Errors: [`SlotRefusal::UnknownSlot`], and [`SlotRefusal::NotFree`] if the slot belongs to a lease.
    pub fn take_down(&mut self, slot: &InstanceId) -> Result<(), SlotRefusal> {
        let state = self.slots.get(slot).ok_or_else(|| SlotRefusal::UnknownSlot(slot.clone()))?;
        if state.lease().is_some() {
            return Err(SlotRefusal::NotFree { slot: slot.clone(), state: state.name() });
        }
        self.slots.remove(slot);
        Ok(())
    }

    /// Reserves slots for a lease: all of them, or none.
    ///
    /// Errors: [`SlotRefusal::UnknownSlot`] and [`SlotRefusal::NotFree`] for the first slot that is not free.
    pub fn reserve(&mut self, lease: &EpisodeId, slots: &[InstanceId]) -> Result<(), SlotRefusal> {
        let free: Vec<Duration> = slots.iter().map(|slot| self.free(slot)).collect::<Result<_, _>>()?;
        for (slot, since) in slots.iter().zip(free) {
            let reserved = SlotState::Reserved { lease: lease.clone(), is_changed: false, is_prepared: false, since };
            self.slots.insert(slot.clone(), reserved);
        }
        Ok(())
    }

    /// Notes that the preparation is about to change the slot. Must be called before the first change.
    ///
    /// Errors: [`SlotRefusal::UnknownSlot`], [`SlotRefusal::OtherLease`] and [`SlotRefusal::InUse`].
    pub fn note_changing(&mut self, slot: &InstanceId, lease: &EpisodeId) -> Result<(), SlotRefusal> {
        let (is_changed, is_prepared) = self.reserved(slot, lease)?;
        // A slot that changes again must be proven again.
        (*is_changed, *is_prepared) = (true, false);
        Ok(())
    }

    /// Notes that the slot was proven to equal its starting point.
    ///
    /// Errors: [`SlotRefusal::UnknownSlot`], [`SlotRefusal::OtherLease`] and [`SlotRefusal::InUse`].
    pub fn note_prepared(&mut self, slot: &InstanceId, lease: &EpisodeId) -> Result<(), SlotRefusal> {
        *self.reserved(slot, lease)?.1 = true;
        Ok(())
    }

    /// Returns whether the slot was changed and whether it is prepared, if it is reserved for the lease.
    fn reserved(&mut self, slot: &InstanceId, lease: &EpisodeId) -> Result<(&mut bool, &mut bool), SlotRefusal> {
        let state = self.slots.get_mut(slot).ok_or_else(|| SlotRefusal::UnknownSlot(slot.clone()))?;
        if state.lease() != Some(lease) {
            return Err(SlotRefusal::OtherLease { slot: slot.clone(), lease: lease.clone() });
        }
        match state {
            SlotState::Reserved { is_changed, is_prepared, .. } => Ok((is_changed, is_prepared)),
            _ => Err(SlotRefusal::InUse(slot.clone())),
        }
    }

    /// Whether [`Self::commit`] would succeed, for a caller that first records the commit in the store.
    ///
    /// Errors: as [`Self::commit`].
    pub fn check_commit(&self, lease: &EpisodeId, slots: &[InstanceId]) -> Result<(), SlotRefusal> {
        for slot in slots {
            match self.slots.get(slot) {
                None => return Err(SlotRefusal::UnknownSlot(slot.clone())),
                Some(SlotState::Reserved { lease: holder, is_prepared, .. }) if holder == lease => {
                    if !is_prepared {
                        return Err(SlotRefusal::NotPrepared(slot.clone()));
                    }
                }
                Some(SlotState::Leased { lease: holder }) if holder == lease => {
                    return Err(SlotRefusal::InUse(slot.clone()));
                }
                Some(_) => return Err(SlotRefusal::OtherLease { slot: slot.clone(), lease: lease.clone() }),
            }
        }
        Ok(())
    }

    /// Gives slots that are prepared for a lease to its episode: all of them, or none.
    ///
    /// Errors: [`SlotRefusal::UnknownSlot`], [`SlotRefusal::OtherLease`], [`SlotRefusal::NotPrepared`] and
    /// [`SlotRefusal::InUse`] for the first slot that the episode cannot get.
    pub fn commit(&mut self, lease: &EpisodeId, slots: &[InstanceId]) -> Result<(), SlotRefusal> {
        self.check_commit(lease, slots)?;
        for slot in slots {
            self.slots.insert(slot.clone(), SlotState::Leased { lease: lease.clone() });
        }
        Ok(())
    }

    /// Takes all slots of a lease back, however far it got. Slots that the preparation did not change are free at once;
    /// the others are to be recycled in the order that is returned.
    pub fn give_back(&mut self, lease: &EpisodeId) -> Vec<RecycleOrder> {
        let mut orders = Vec::new();
        for slot in self.slots_of(lease) {
            match self.slots.get(&slot) {
                Some(SlotState::Reserved { is_changed: false, since, .. }) => {
                    let since = *since;
                    self.slots.insert(slot, SlotState::Free { since });
                }
                _ => orders.push(self.recycle(slot, Some(lease.clone()))),
            }
        }
        orders
    }

    /// Makes a slot free after it was proven to equal its baseline.
    ///
    /// Errors: [`SlotRefusal::UnknownSlot`], and [`SlotRefusal::OtherTurn`] if the report is of an earlier attempt.
    pub fn note_recycled(&mut self, slot: &InstanceId, turn: RecycleTurn, now: Duration) -> Result<(), SlotRefusal> {
        match self.slots.get(slot).ok_or_else(|| SlotRefusal::UnknownSlot(slot.clone()))? {
            SlotState::Recycling { turn: current, .. } if *current == turn => {
                self.slots.insert(slot.clone(), SlotState::Free { since: now });
                Ok(())
            }
            _ => Err(SlotRefusal::OtherTurn(slot.clone())),
        }
    }

    /// Begins another attempt for a slot that belongs to no lease, because its instance failed while it was free, or
    /// because the last attempt failed.
    ///
    /// Errors: [`SlotRefusal::UnknownSlot`], and [`SlotRefusal::NotFree`] if the slot belongs to a lease: then the
    /// episode is failed, which gives the slot back.
    pub fn recycle_again(&mut self, slot: &InstanceId) -> Result<RecycleOrder, SlotRefusal> {
        let after = match self.slots.get(slot).ok_or_else(|| SlotRefusal::UnknownSlot(slot.clone()))? {
            SlotState::Free { .. } => None,
            SlotState::Recycling { after, .. } => after.clone(),
            other => return Err(SlotRefusal::NotFree { slot: slot.clone(), state: other.name() }),
        };
        Ok(self.recycle(slot.clone(), after))
    }
}

#[cfg(test)]
mod tests;
