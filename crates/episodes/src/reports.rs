//! The ends of work on slots, and the announcements of preparations.

use crate::keeper::EpisodeKeeper;
use crate::pending::Effect;
use crate::slots::{ChangeNote, PreparedSlot};
use crate::work::{FinishedJob, JobResult, SlotJob};
use arenad_model::episode::ending::VoidReason;
use arenad_model::episode::ids::EpisodeId;
use arenad_model::episode::lease::{RecycleOrder, SlotState};
use arenad_model::episode::registry::{EndCause, SlotFailure};
use arenad_model::instance::InstanceId;

impl EpisodeKeeper {
    pub(crate) fn note_changing(&mut self, note: ChangeNote) {
        let noted = self.registry.note_changing(&note.slot, &note.episode);
        // A preparation that was cancelled needs no answer.
        let _ = note.reply.send(noted);
    }

    /// Handles the end of a piece of work, and begins the next one for the slot.
    pub(crate) fn finish(&mut self, finished: FinishedJob) {
        let FinishedJob { slot, result } = finished;
        let next = self.work.clear(&slot);
        match result {
            JobResult::Prepared { lease, result } => self.finish_preparation(&slot, &lease, result),
            JobResult::Recycled { order, result } => self.finish_recycling(order, result),
            JobResult::Cancelled => {}
        }
        match next {
            Some(SlotJob::Recycle(order)) => self.recycle(order),
            Some(SlotJob::Prepare(preparation)) => {
                let state = self.registry.board().state(&slot);
                if state.and_then(SlotState::lease) == Some(&preparation.episode) {
                    self.work.begin(SlotJob::Prepare(preparation));
                }
            }
            None => {}
        }
    }

    fn finish_preparation(&mut self, slot: &InstanceId, lease: &EpisodeId, result: Result<PreparedSlot, VoidReason>) {
        match result {
            Ok(PreparedSlot { generation }) => {
                // Refused if the episode has ended, which has given the slot back.
                if self.registry.note_prepared(slot, lease).is_err() {
                    return;
                }
                let slots = self.notes.get_mut(lease).into_iter().flat_map(|note| &mut note.slots);
                if let Some(prepared) = slots.into_iter().find(|known| known.instance == *slot) {
                    prepared.generation = Some(generation);
                }
                if self.registry.check_commit(lease, self.now()).is_ok() {
                    self.prepared.push(lease.clone());
                }
            }
            Err(reason) => {
                // A preparation that failed may have changed the slot without an announcement, so the slot is recycled.
                if self.registry.note_changing(slot, lease).is_ok() {
                    // Refused if the time for the preparation is over, which ends the episode as well.
                    let _ = self.end(lease, EndCause::Failed(reason));
                }
            }
        }
    }

    /// Begins to recycle a slot, unless the order has been superseded.
    pub(crate) fn recycle(&mut self, order: RecycleOrder) {
        if self.is_current(&order) {
            self.work.begin(SlotJob::Recycle(order));
        }
    }

    fn is_current(&self, order: &RecycleOrder) -> bool {
        match self.registry.board().state(&order.slot) {
            Some(SlotState::Recycling { turn, .. }) => *turn == order.turn,
            _ => false,
        }
    }

    fn finish_recycling(&mut self, order: RecycleOrder, result: Result<(), VoidReason>) {
        if !self.is_current(&order) {
            return;
        }
        let now = self.now();
        self.work.note_recycled(&order.slot, result.is_ok());
        match result {
            // Not refused, because the attempt is the current one.
            Ok(()) => drop(self.registry.note_recycled(&order.slot, order.turn, now)),
            Err(reason) => {
                tracing::warn!(instance.id = %order.slot, "{} was not recycled: {reason}", order.slot);
                if let SlotFailure::Recycle(again) = self.registry.fail_slot(&order.slot, reason, now) {
                    self.pending.effects.push(Effect::Recycle(again));
                }
            }
        }
    }
}
