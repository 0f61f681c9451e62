//! Reports about slots, and the fence.

use std::time::Duration;

use super::{EndCause, EpisodeRegistry, SlotFailure};
use crate::episode::ending::VoidReason;
use crate::episode::fence::{self, FenceDecision, TokenHash};
use crate::episode::ids::EpisodeId;
use crate::episode::lease::{RecycleOrder, RecycleTurn, SlotRefusal};
use crate::instance::InstanceId;

impl EpisodeRegistry {
    /// Notes that the preparation of an episode is about to change one of its slots.
    ///
    /// Errors: as [`SlotBoard::note_changing`](crate::episode::lease::SlotBoard::note_changing).
    pub fn note_changing(&mut self, slot: &InstanceId, lease: &EpisodeId) -> Result<(), SlotRefusal> {
        self.board.note_changing(slot, lease)
    }

    /// Notes that a slot of an episode was proven to equal its starting point.
    ///
    /// Errors: as [`SlotBoard::note_prepared`](crate::episode::lease::SlotBoard::note_prepared).
    pub fn note_prepared(&mut self, slot: &InstanceId, lease: &EpisodeId) -> Result<(), SlotRefusal> {
        self.board.note_prepared(slot, lease)
    }

    /// Notes that a slot failed: its instance died, or its reset or proof failed.
    pub fn fail_slot(&mut self, slot: &InstanceId, reason: VoidReason, now: Duration) -> SlotFailure {
        let Some(state) = self.board.state(slot) else { return SlotFailure::Nothing };
        match state.lease().cloned() {
            Some(lease) => {
                let ended = self.end(&lease, EndCause::Failed(reason), now).unwrap_or_default();
                ended.map_or(SlotFailure::Nothing, SlotFailure::Void)
            }
            None => self.board.recycle_again(slot).map_or(SlotFailure::Nothing, SlotFailure::Recycle),
        }
    }

    /// Notes that a slot was brought back to its baseline and proven. It can be granted from now on.
    ///
    /// Errors: as [`SlotBoard::note_recycled`](crate::episode::lease::SlotBoard::note_recycled).
    pub fn note_recycled(&mut self, slot: &InstanceId, turn: RecycleTurn, now: Duration) -> Result<(), SlotRefusal> {
        self.board.note_recycled(slot, turn, now)
    }

    /// Adds a slot, which is to be made.
    ///
    /// Errors: as [`SlotBoard::add`](crate::episode::lease::SlotBoard::add).
    pub fn add_slot(&mut self, slot: InstanceId) -> Result<RecycleOrder, SlotRefusal> {
        self.board.add(slot)
    }

    /// Removes a free slot.
    ///
    /// Errors: as [`SlotBoard::retire`](crate::episode::lease::SlotBoard::retire).
    pub fn retire_slot(&mut self, slot: &InstanceId) -> Result<(), SlotRefusal> {
        self.board.retire(slot)
    }

    /// Decides on a request that a client sent through the proxy or to the API. See [`fence::admit_client`].
    pub fn admit_client(&self, id: &EpisodeId, token: &TokenHash, now: Duration) -> FenceDecision {
        fence::admit_client(self.get(id).map(|episode| (&episode.tokens, &episode.life)), token, now)
    }

    /// Decides on a visit of the daemon itself. See [`fence::admit_visitor`].
    pub fn admit_visitor(&self, id: &EpisodeId, now: Duration) -> FenceDecision {
        fence::admit_visitor(self.get(id).map(|episode| &episode.life), now)
    }
}
