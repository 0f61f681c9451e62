//! From a grant to the preparation of its slots, and to the commit.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::keeper::EpisodeKeeper;
use crate::pending::Effect;
use crate::slots::{ChangePermit, LeasedSlot, SlotPreparation};
use crate::work::SlotJob;
use arenad_model::episode::ids::EpisodeId;
use arenad_model::episode::lease::SlotState;
use arenad_model::episode::queue::Grant;
use arenad_model::episode::registry::RegisteredEpisode;
use arenad_store::{EpisodePart, StoredSlot};

impl EpisodeKeeper {
    /// Ends the episodes whose deadline has passed, and grants the requests whose turn it is.
    pub(crate) fn settle(&mut self, now: Duration) {
        let settled = self.registry.settle(now);
        self.note_ended(settled.ended);
        for grant in settled.granted {
            if let Some(note) = self.notes.get_mut(&grant.episode) {
                note.granted_at = Some(self.clock.now());
                let granted = grant.slots.iter().map(|slot| StoredSlot { instance: slot.clone(), generation: None });
                note.slots = granted.collect();
            }
            self.touch(&grant.episode, EpisodePart::Slots);
            self.pending.effects.push(Effect::Prepare(grant));
        }
    }

    /// Begins to prepare all slots of an episode at the same time.
    pub(crate) fn prepare(&mut self, grant: &Grant) {
        let id = &grant.episode;
        if grant.slots.is_empty() {
            self.prepared.push(id.clone());
        }
        for slot in &grant.slots {
            let Some(episode) = self.registry.get(id) else { return };
            // The episode may have ended since the grant.
            if self.registry.board().state(slot).and_then(SlotState::lease) != Some(id) {
                return;
            }
            let want = episode.request.sites.iter().find(|want| want.site == slot.site_id());
            let start = want.map(|want| want.start.clone()).unwrap_or_default();
            let (slot, episode, notes) = (slot.clone(), id.clone(), self.changing.0.clone());
            let withdrawn = CancellationToken::new();
            let permit = ChangePermit { slot: slot.clone(), episode: episode.clone(), notes, withdrawn };
            self.work.begin(SlotJob::Prepare(SlotPreparation { slot, start, episode, permit }));
        }
    }

    /// Returns the slots of an episode whose generations are known.
    pub(crate) fn leased_slots(&self, id: &EpisodeId) -> Vec<LeasedSlot> {
        let Some(note) = self.notes.get(id) else { return Vec::new() };
        let leased =
            |slot: &StoredSlot| Some(LeasedSlot { instance: slot.instance.clone(), generation: slot.generation? });
        note.slots.iter().filter_map(leased).collect()
    }

    /// Returns the episodes that are now to be committed, as they are after the commit.
    pub(crate) fn commits(&mut self, now: Duration) -> Vec<(EpisodeId, RegisteredEpisode)> {
        let mut commits: Vec<(EpisodeId, RegisteredEpisode)> = Vec::new();
        for id in std::mem::take(&mut self.prepared) {
            // Refused if a slot is missing, or if the episode has ended or is about to.
            if self.registry.check_commit(&id, now).is_err() || commits.iter().any(|(known, _)| *known == id) {
                continue;
            }
            let Some(mut episode) = self.registry.get(&id).cloned() else { continue };
            if episode.life.activate(now).is_ok() {
                commits.push((id, episode));
            }
        }
        commits
    }
}
