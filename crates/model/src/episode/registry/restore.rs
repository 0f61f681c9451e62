//! The continuation of episodes by a new daemon.

use super::{EndedEpisode, EpisodeRegistry, RegisteredEpisode};
use crate::episode::EpisodeState;
use crate::episode::ids::EpisodeId;
use crate::episode::lease::SlotRefusal;

impl EpisodeRegistry {
    /// Takes up an episode that had not ended when an earlier daemon did, and whose life has been restored. Waiting
    /// requests must be given in order of arrival. Sites must be offered before, and the slots that belong to no episode
    /// are added afterwards.
    ///
    /// Returns the episode if the restart ended it. Its slots are to be recycled.
    ///
    /// Errors: [`SlotRefusal::Exists`] if another episode has one of the slots, which a store without errors excludes.
    /// Nothing has changed then.
    pub fn restore(&mut self, id: EpisodeId, episode: RegisteredEpisode) -> Result<Option<EndedEpisode>, SlotRefusal> {
        if let Some(taken) = episode.slots.iter().find(|slot| self.board.state(slot).is_some()) {
            return Err(SlotRefusal::Exists(taken.clone()));
        }
        if let EpisodeState::Ended(ending) = episode.life.state().clone() {
            let mut recycle = Vec::new();
            for slot in &episode.slots {
                recycle.push(self.board.restore_recycling(slot.clone(), id.clone())?);
            }
            self.remember(id.clone(), episode);
            return Ok(Some(EndedEpisode { id, ending, recycle }));
        }
        for slot in &episode.slots {
            self.board.restore_lease(slot.clone(), id.clone())?;
        }
        if *episode.life.state() == EpisodeState::Queued {
            self.queue.restore(self.waiting_request(&id, &episode.request));
        }
        self.restore_key(&id, &episode);
        self.live.insert(id, episode);
        Ok(None)
    }

    /// Remembers an episode that had ended before an earlier daemon did. Episodes must be given in the order of their
    /// ends.
    pub fn remember(&mut self, id: EpisodeId, episode: RegisteredEpisode) {
        self.restore_key(&id, &episode);
        self.endings.push_back(id.clone());
        self.ended.insert(id, episode);
    }

    fn restore_key(&mut self, id: &EpisodeId, episode: &RegisteredEpisode) {
        if let Some(key) = &episode.request.key {
            self.keys.insert((episode.request.owner.clone(), key.clone()), id.clone());
        }
    }
}
