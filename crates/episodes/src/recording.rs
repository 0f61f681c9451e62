//! From a batch of changes to one transaction, and what follows it.
//!
//! ```text
//!   settle ──► check_commit ──► transaction ──► commit, switch ──► publish ──► cut, recycle, prepare ──► answers
//!                                   └─ fails ──► grants are void, answers say so; ends wait for the next attempt
//! ```
//! A grant is recorded before its commit, and an end after the registry has ended the episode, but before anyone can see
//! it. A slot is recycled only after the end is recorded: if the daemon crashed in between, the next one would continue
//! the episode on a slot whose content is gone.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::error::EpisodeError;
use crate::keeper::{EpisodeKeeper, StoreOutage, Withdrawal};
use crate::pending::Effect;
use crate::published::PublishedEpisode;
use arenad_model::episode::ending::VoidReason;
use arenad_model::episode::ids::EpisodeId;
use arenad_model::episode::registry::{EndCause, RegisteredEpisode};
use arenad_model::episode::{EpisodeState, EpisodeStatus};
use arenad_model::error::describe;
use arenad_store::{
    EpisodeChanges, EpisodePart, NewEpisodeEvent, Retention, StoreError, StoredEpisode, StoredEpisodeLife, StoredSlot,
};

/// The pause after a failure of the store.
const RETRY: Duration = Duration::from_secs(1);
/// The number of events after which old ones are deleted.
const PRUNE_EVERY: u64 = 512;
/// The events that are kept for followers.
const KEPT_EVENTS: Retention = Retention { most: 20_000, least: 2_000, age: Duration::from_secs(7 * 24 * 3600) };

impl EpisodeKeeper {
    /// Settles the registry, and records and executes the result, until nothing is left to do.
    pub(crate) async fn settle_and_record(&mut self) {
        let mut has_failed = false;
        loop {
            let now = self.now();
            self.settle(now);
            let commits = self.commits(now);
            if commits.is_empty() && !self.pending.has_rows() {
                // Nothing waits for the store any more.
                self.outage = None;
                self.follow(Vec::new());
                if self.pending.has_rows() || !self.pending.effects.is_empty() || !self.prepared.is_empty() {
                    continue;
                }
                return;
            }
            match self.store.record_episodes(&self.changes(&commits, now)).await {
                Ok(newest) => {
                    self.outage = None;
                    has_failed = false;
                    self.commit(&commits, now, newest);
                }
                Err(error) => {
                    let has_commits = !commits.is_empty();
                    self.refuse(commits, error);
                    // A grant that cannot be recorded is given back at once, if the store allows it.
                    if !has_commits || std::mem::replace(&mut has_failed, true) {
                        return;
                    }
                }
            }
            self.prune().await;
        }
    }

    /// Returns the changes as they are to be written.
    fn changes(&self, commits: &[(EpisodeId, RegisteredEpisode)], now: Duration) -> EpisodeChanges {
        let is_commit = |id: &EpisodeId| commits.iter().find(|(committed, _)| committed == id);
        let mut written = Vec::new();
        for (id, part) in &self.pending.written {
            let (part, episode) = match is_commit(id) {
                Some((_, committed)) => (part.with(EpisodePart::Slots), Some(committed)),
                None => (*part, self.registry.get(id)),
            };
            let stored = episode.and_then(|episode| self.stored(id, episode, now));
            written.extend(stored.map(|stored| (part, stored)));
        }
        let others = commits.iter().filter(|(id, _)| self.pending.written.iter().all(|(known, _)| known != id));
        for (id, episode) in others {
            written.extend(self.stored(id, episode, now).map(|stored| (EpisodePart::Slots, stored)));
        }
        let mut events = self.pending.events.clone();
        let active = |(id, _): &(EpisodeId, RegisteredEpisode)| NewEpisodeEvent {
            episode: id.clone(),
            status: EpisodeStatus::Active,
            ending: None,
        };
        events.extend(commits.iter().map(active));
        let is_durable = self.pending.is_durable || !commits.is_empty();
        EpisodeChanges { forgotten: self.pending.forgotten.clone(), written, events, is_durable }
    }

    fn stored(&self, id: &EpisodeId, episode: &RegisteredEpisode, now: Duration) -> Option<StoredEpisode> {
        let note = self.notes.get(id)?;
        let life = match episode.life.state() {
            EpisodeState::Ended(ending) => {
                let at = note.ended_at.unwrap_or_else(|| self.clock.now());
                StoredEpisodeLife::Ended { ending: ending.clone(), at }
            }
            _ => StoredEpisodeLife::Live(episode.life.stored(now)?),
        };
        Some(StoredEpisode {
            id: id.clone(),
            request: episode.request.clone(),
            tokens: episode.tokens.clone(),
            slots: self.stored_slots(id, episode),
            life,
            asked_at: note.asked_at,
            granted_at: note.granted_at,
        })
    }

    fn stored_slots(&self, id: &EpisodeId, episode: &RegisteredEpisode) -> Vec<StoredSlot> {
        let noted = self.notes.get(id).map(|note| note.slots.as_slice()).unwrap_or_default();
        let slots = episode.slots.iter().map(|slot| {
            let generation = noted.iter().find(|noted| noted.instance == *slot).and_then(|noted| noted.generation);
            StoredSlot { instance: slot.clone(), generation }
        });
        slots.collect()
    }

    /// Follows a transaction that was recorded: clients can reach the episodes that it committed, and are told of
    /// everything else.
    fn commit(&mut self, commits: &[(EpisodeId, RegisteredEpisode)], now: Duration, newest: Option<i64>) {
        self.events += self.pending.events.len() as u64 + commits.len() as u64;
        let mut changed: Vec<EpisodeId> = self.pending.written.drain(..).map(|(id, _)| id).collect();
        let forgotten = std::mem::take(&mut self.pending.forgotten);
        self.pending.events.clear();
        self.pending.asked.clear();
        self.pending.is_durable = false;
        let mut failed = Vec::new();
        for (id, _) in commits {
            if let Some(note) = self.notes.get_mut(id) {
                note.status = EpisodeStatus::Active;
            }
            // Not refused: nothing has changed since the same commit was checked at the same time.
            let committed = self.registry.commit(id, now).map_err(|refusal| describe(&refusal));
            let switched =
                committed.map_err(|detail| VoidReason::StoreFailed { detail }).and_then(|()| self.switch(id));
            changed.retain(|known| known != id);
            match switched {
                Ok(()) => changed.push(id.clone()),
                Err(reason) => failed.push((id.clone(), reason)),
            }
        }
        let mut published: Vec<(EpisodeId, Option<PublishedEpisode>)> = Vec::new();
        published.extend(forgotten.into_iter().map(|id| (id, None)));
        published.extend(changed.iter().filter_map(|id| Some((id.clone(), Some(self.published_of(id)?)))));
        self.published.publish(published);
        self.newest.send_modify(|last| *last = newest.unwrap_or(*last));
        self.follow(failed);
    }

    /// Executes the effects of changes that are recorded, and answers their callers.
    fn follow(&mut self, failed: Vec<(EpisodeId, VoidReason)>) {
        for effect in std::mem::take(&mut self.pending.effects) {
            match effect {
                Effect::Freeze(episode) => self.freeze(&episode),
                Effect::Unfreeze(episode) => {
                    survive(&episode, "unfreezing an episode", || self.slots.unfreeze(&episode));
                }
                Effect::Cut { episode, ending, slots } => {
                    survive(&episode, "cutting an episode off", || self.slots.cut(&episode, &ending, &slots));
                }
                Effect::Recycle(order) => self.recycle(order),
                Effect::Prepare(grant) => self.prepare(&grant),
            }
        }
        self.pending.answer(None);
        for (id, reason) in failed {
            // Refused only if the episode has ended.
            let _ = self.end(&id, EndCause::Failed(reason));
        }
        let work = &self.work;
        let is_over = |withdrawal: &mut Withdrawal| {
            withdrawal.is_recorded = true;
            !work.is_busy(&withdrawal.scope)
        };
        for withdrawal in self.withdrawals.extract_if(.., is_over) {
            // A caller that has gone away needs no answer.
            let _ = withdrawal.reply.send(Ok(()));
        }
    }

    /// Ends the requests of an episode that is frozen.
    pub(crate) fn freeze(&self, id: &EpisodeId) {
        survive(id, "ending the requests of a frozen episode", || self.slots.freeze(id));
    }

    /// Opens the routes to an episode.
    pub(crate) fn switch(&self, id: &EpisodeId) -> Result<(), VoidReason> {
        let slots = self.leased_slots(id);
        let all = self.notes.get(id).map(|note| note.slots.as_slice()).unwrap_or_default();
        let Some(episode) = self.registry.get(id) else { return Ok(()) };
        let failed = |slot: &StoredSlot, detail: &str| {
            Err(VoidReason::InstanceFailed { slot: slot.instance.clone(), detail: detail.to_owned() })
        };
        if let Some(first) = all.first().filter(|_| slots.len() < all.len()) {
            return failed(first, "the generation that the episode got is not known");
        }
        let switched = catch_unwind(AssertUnwindSafe(|| self.slots.switch(id, &episode.request, &slots)));
        match (switched, all.first()) {
            (Ok(switched), _) => switched,
            (Err(_), Some(first)) => {
                failed(first, "arenad made a mistake when it opened the routes; its log has the place")
            }
            (Err(_), None) => {
                tracing::error!(episode.id = %id, "episode {id} goes on without a record: its beginning panicked");
                Ok(())
            }
        }
    }

    /// Returns an episode as it is published.
    pub(crate) fn published_of(&self, id: &EpisodeId) -> Option<PublishedEpisode> {
        let (episode, note) = self.registry.get(id).zip(self.notes.get(id))?;
        Some(PublishedEpisode {
            registered: episode.clone(),
            slots: self.stored_slots(id, episode),
            asked_at: note.asked_at,
            granted_at: note.granted_at,
            ended_at: note.ended_at,
        })
    }

    /// Follows a transaction that was not recorded.
    fn refuse(&mut self, commits: Vec<(EpisodeId, RegisteredEpisode)>, error: StoreError) {
        let detail = describe(&error);
        if self.outage.is_none() {
            tracing::error!(error = detail, "episodes were not recorded");
        }
        let error = Arc::new(error);
        self.outage = Some(StoreOutage { error: error.clone(), retry_at: Instant::now() + RETRY });
        self.pending.answer(Some(&error));
        for withdrawal in self.withdrawals.extract_if(.., |withdrawal| !withdrawal.is_recorded) {
            // A caller that has gone away needs no answer.
            let _ = withdrawal.reply.send(Err(EpisodeError::Store(error.clone())));
        }
        // Refused only if the episode has ended already.
        for (id, _) in commits {
            let _ = self.end(&id, EndCause::Failed(VoidReason::StoreFailed { detail: detail.clone() }));
        }
        for id in std::mem::take(&mut self.pending.asked) {
            let _ = self.end(&id, EndCause::Release);
        }
    }

    /// Deletes old events from time to time.
    async fn prune(&mut self) {
        if self.events < PRUNE_EVERY {
            return;
        }
        self.events = 0;
        if let Err(error) = self.store.prune_episode_events(KEPT_EVENTS).await {
            tracing::warn!(error = describe(&error), "old events of episodes remain");
        }
    }
}

/// Does work on the slots of an episode. A panic is logged, and the others are served on.
fn survive(episode: &EpisodeId, doing: &str, work: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(work)).is_err() {
        tracing::error!(episode.id = %episode, "{doing} panicked: {episode}");
    }
}
