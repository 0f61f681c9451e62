//! All episodes of a daemon: their lives, the queue and the slots, which change together.
//!
//! One task of the daemon owns the registry. It applies each request and each report, writes the result in one
//! transaction, and then executes it:
//!
//! ```text
//!   ask ──► settle ──► grants ──► note_changing, note_prepared per slot ──► check_commit, store, commit, switch routes
//!              │                     └─ one fails ──► end (failed) ──► recycle orders of all slots
//!              └────► ended ──► cut connections ──► recycle ──► note_recycled ──► settle
//! ```
//! [`EpisodeRegistry::settle`] is called after every change, and at [`EpisodeRegistry::next_due`].

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::EpisodeRefusal;
use super::ending::{EpisodeEnding, VoidReason};
use super::fence::{EpisodeTokens, TokenHash};
use super::ids::{EpisodeId, IdempotencyKey, Owner};
use super::lease::SlotBoard;
use super::life::EpisodeLife;
use super::queue::{EpisodeQueue, OwnerQuotas, QueueLimits, SlotWant, WaitingRequest};
use super::request::{AskRefusal, EpisodeRequest, SiteCapacity, check};
use crate::ids::SiteId;
use crate::instance::InstanceId;

mod change;
mod reports;
mod restore;
mod view;

pub use change::{
    AskedEpisode, CommitRefusal, EndCause, EndedEpisode, EpisodeChange, SettledEpisodes, SlotFailure, WithdrawalScope,
};

/// The limits of a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EpisodeLimits {
    /// The limits of the queue.
    pub queue: QueueLimits,
    /// The most episodes that each owner may have at once.
    pub quotas: OwnerQuotas,
    /// The most episodes at once. Episodes on shared sites alone take no slot, so slots do not bound their number.
    pub open: usize,
    /// The longest time to live that a request or a heartbeat may ask for. Episodes of an earlier daemon keep theirs.
    pub ttl: Duration,
    /// The time in which the slots of an episode must be prepared.
    pub preparation: Duration,
    /// The most ended episodes that are remembered, to tell late requests how their episode ended.
    pub remembered: usize,
    /// The time for which an ended episode is remembered.
    pub remember_for: Duration,
}

/// An episode with its request, its tokens, its life and its slots.
#[derive(Debug, Clone)]
pub struct RegisteredEpisode {
    /// The request that the episode came from.
    pub request: Arc<EpisodeRequest>,
    /// The tokens that open the episode.
    pub tokens: EpisodeTokens,
    /// The state and its times.
    pub life: EpisodeLife,
    /// The slots in the order of the request, without shared sites. They are kept after the end, for the record, and
    /// belong to other episodes then.
    pub slots: Vec<InstanceId>,
    /// The time of the grant.
    pub granted_at: Option<Duration>,
}

/// All episodes of a daemon.
#[derive(Debug, Clone)]
pub struct EpisodeRegistry {
    limits: EpisodeLimits,
    capacities: BTreeMap<SiteId, SiteCapacity>,
    board: SlotBoard,
    queue: EpisodeQueue,
    live: BTreeMap<EpisodeId, RegisteredEpisode>,
    ended: BTreeMap<EpisodeId, RegisteredEpisode>,
    /// The ended episodes in the order of their ends.
    endings: VecDeque<EpisodeId>,
    keys: BTreeMap<(Owner, IdempotencyKey), EpisodeId>,
    /// The times for which recent episodes had a slot of each site, from old to new.
    holds: BTreeMap<SiteId, VecDeque<Duration>>,
}

/// The number of recent episodes of a site by which waits are estimated.
const RECENT_HOLDS: usize = 32;

impl EpisodeRegistry {
    /// Creates a registry without episodes, sites and slots.
    pub fn new(limits: EpisodeLimits) -> Self {
        Self {
            queue: EpisodeQueue::new(limits.queue),
            limits,
            capacities: BTreeMap::new(),
            board: SlotBoard::default(),
            live: BTreeMap::new(),
            ended: BTreeMap::new(),
            endings: VecDeque::new(),
            keys: BTreeMap::new(),
            holds: BTreeMap::new(),
        }
    }

    /// Offers a site to episodes, or changes its capacity.
    pub fn offer_site(&mut self, site: SiteId, capacity: SiteCapacity) {
        self.capacities.insert(site, capacity);
    }

    /// Registers a request. `id` and `token` are new and random. A repeated request gets its earlier episode, which
    /// `token` opens as well.
    pub fn ask(
        &mut self,
        id: EpisodeId,
        request: EpisodeRequest,
        token: TokenHash,
        now: Duration,
    ) -> Result<AskedEpisode, AskRefusal> {
        if let Some(key) = &request.key
            && let Some(known) = self.keys.get(&(request.owner.clone(), key.clone())).cloned()
            && let Some(episode) = self.live.get_mut(&known).or_else(|| self.ended.get_mut(&known))
        {
            if !episode.request.is_repeated_by(&request) {
                return Err(AskRefusal::KeyReused(known));
            }
            episode.tokens.add(token);
            return Ok(AskedEpisode { id: known, is_known: true });
        }
        if self.get(&id).is_some() {
            return Err(AskRefusal::IdTaken(id));
        }
        check(&request, &self.capacities)?;
        if self.limits.quotas.of(&request.owner) == 0 {
            return Err(AskRefusal::NoQuota(request.owner));
        }
        if request.terms.ttl() > self.limits.ttl {
            return Err(AskRefusal::TtlTooLong { most: self.limits.ttl });
        }
        let next = if self.queue.is_full_for(&request.owner) { self.next_estimate() } else { None };
        self.queue.push(self.waiting_request(&id, &request), next)?;
        if let Some(key) = &request.key {
            self.keys.insert((request.owner.clone(), key.clone()), id.clone());
        }
        let request = Arc::new(request);
        let life = EpisodeLife::queued(request.terms, now);
        let tokens = EpisodeTokens::new(token);
        self.live.insert(id.clone(), RegisteredEpisode { request, tokens, life, slots: Vec::new(), granted_at: None });
        Ok(AskedEpisode { id, is_known: false })
    }

    fn waiting_request(&self, id: &EpisodeId, request: &EpisodeRequest) -> WaitingRequest {
        let takes_slot = |site: &SiteId| self.capacities.get(site) != Some(&SiteCapacity::Shared);
        let slots = request.sites.iter().filter(|want| takes_slot(&want.site));
        let slots = slots.map(|want| SlotWant { site: want.site.clone(), slot: want.slot }).collect();
        WaitingRequest { episode: id.clone(), owner: request.owner.clone(), slots }
    }

    /// Ends the episodes whose deadline has passed, forgets old ones, and grants the requests whose turn it is.
    pub fn settle(&mut self, now: Duration) -> SettledEpisodes {
        let mut settled = SettledEpisodes { ended: self.expire(now), granted: Vec::new() };
        for grant in self.planned_grants() {
            if self.board.reserve(&grant.episode, &grant.slots).is_err() {
                continue;
            }
            self.queue.remove(&grant.episode);
            if let Some(episode) = self.live.get_mut(&grant.episode)
                && episode.life.grant(self.limits.preparation, now).is_ok()
            {
                episode.slots.clone_from(&grant.slots);
                episode.granted_at = Some(now);
                settled.granted.push(grant);
            } else {
                // Unreachable: requests in the queue are queued. Their slots must not be lost in any case.
                let _ = self.board.give_back(&grant.episode);
            }
        }
        settled
    }

    /// Ends the episodes whose deadline has passed.
    fn expire(&mut self, now: Duration) -> Vec<EndedEpisode> {
        let mut ended = Vec::new();
        for id in self.live_ids(|episode| episode.life.is_expired(now)) {
            if let Some(ending) = self.live.get_mut(&id).and_then(|episode| episode.life.expire(now)) {
                ended.push(self.conclude(&id, ending));
            }
        }
        self.forget(now);
        ended
    }

    fn live_ids(&self, is_wanted: impl Fn(&RegisteredEpisode) -> bool) -> Vec<EpisodeId> {
        self.live.iter().filter(|(_, episode)| is_wanted(episode)).map(|(id, _)| id.clone()).collect()
    }

    /// Moves an episode whose life has ended to the ended ones, and takes its slots back.
    fn conclude(&mut self, id: &EpisodeId, ending: EpisodeEnding) -> EndedEpisode {
        self.queue.remove(id);
        let recycle = self.board.give_back(id);
        if let Some(episode) = self.live.remove(id) {
            if let Some((ended, granted)) = episode.life.ended_at().zip(episode.granted_at) {
                self.note_hold(&episode.slots, ended.saturating_sub(granted));
            }
            self.ended.insert(id.clone(), episode);
            self.endings.push_back(id.clone());
        }
        EndedEpisode { id: id.clone(), ending, recycle }
    }

    fn note_hold(&mut self, slots: &[InstanceId], hold: Duration) {
        for slot in slots {
            let recent = self.holds.entry(slot.site_id()).or_default();
            recent.push_back(hold);
            if recent.len() > RECENT_HOLDS {
                recent.pop_front();
            }
        }
    }

    /// Forgets episodes that ended long ago, and the oldest if there are too many.
    fn forget(&mut self, now: Duration) {
        while let Some(oldest) = self.endings.front() {
            let ended_at = self.ended.get(oldest).and_then(|episode| episode.life.ended_at());
            let is_old = ended_at.is_none_or(|at| at + self.limits.remember_for < now);
            if !is_old && self.endings.len() <= self.limits.remembered {
                break;
            }
            let Some(id) = self.endings.pop_front() else { break };
            if let Some(RegisteredEpisode { request, .. }) = self.ended.remove(&id)
                && let Some(key) = &request.key
            {
                self.keys.remove(&(request.owner.clone(), key.clone()));
            }
        }
    }

    /// Whether [`Self::commit`] would succeed, for a caller that first records the commit in the store.
    ///
    /// Errors: as [`Self::commit`].
    pub fn check_commit(&self, id: &EpisodeId, now: Duration) -> Result<(), CommitRefusal> {
        let episode = self.live.get(id).ok_or_else(|| self.absent(id))?;
        episode.life.clone().activate(now)?;
        Ok(self.board.check_commit(id, &episode.slots)?)
    }

    /// Gives an episode all of its prepared slots. Clients may reach them from now on.
    ///
    /// Errors: nothing has changed if the episode is not being prepared any more, or if one of its slots is not
    /// prepared.
    pub fn commit(&mut self, id: &EpisodeId, now: Duration) -> Result<(), CommitRefusal> {
        self.check_commit(id, now)?;
        let absent = self.absent(id);
        let episode = self.live.get_mut(id).ok_or(absent)?;
        self.board.commit(id, &episode.slots)?;
        Ok(episode.life.activate(now)?)
    }

    /// Changes an episode that goes on.
    ///
    /// Errors: as the method of [`EpisodeLife`], [`EpisodeRefusal::TtlTooLong`] and [`EpisodeRefusal::Unknown`].
    pub fn change(&mut self, id: &EpisodeId, change: EpisodeChange, now: Duration) -> Result<(), EpisodeRefusal> {
        let absent = self.absent(id);
        let life = &mut self.live.get_mut(id).ok_or(absent)?.life;
        match change {
            EpisodeChange::Heartbeat(Some(extension)) if extension > self.limits.ttl => {
                Err(EpisodeRefusal::TtlTooLong { most: self.limits.ttl })
            }
            EpisodeChange::Heartbeat(extension) => life.heartbeat(extension, now),
            EpisodeChange::Hold(connection) => life.hold(connection, now),
            EpisodeChange::Freeze => life.freeze(now),
            EpisodeChange::Unfreeze => life.unfreeze(now),
            EpisodeChange::BeginEvaluation(limit) => life.begin_evaluation(limit, now),
            EpisodeChange::EndEvaluation => life.end_evaluation(now),
        }
    }

    /// Ends an episode and returns it.
    ///
    /// Errors: as the method of [`EpisodeLife`], and [`EpisodeRefusal::Unknown`].
    pub fn end(
        &mut self,
        id: &EpisodeId,
        cause: EndCause,
        now: Duration,
    ) -> Result<Option<EndedEpisode>, EpisodeRefusal> {
        let absent = self.absent(id);
        let life = &mut self.live.get_mut(id).ok_or(absent)?.life;
        match cause {
            EndCause::Release => life.release(now)?,
            EndCause::HoldClosed(connection) => life.close_hold(connection, now)?,
            EndCause::Failed(reason) => life.fail(reason, now)?,
        }
        let Some(ending) = life.state().ending().cloned() else { return Ok(None) };
        let ended = self.conclude(id, ending);
        self.forget(now);
        Ok(Some(ended))
    }

    /// Returns the refusal for an episode that is not live.
    fn absent(&self, id: &EpisodeId) -> EpisodeRefusal {
        let ending = self.ended.get(id).and_then(|episode| episode.life.state().ending());
        ending.map_or(EpisodeRefusal::Unknown, |ending| EpisodeRefusal::Ended(ending.clone()))
    }

    /// Withdraws sites: their episodes and waiting requests are void, and the sites and their slots are removed.
    pub fn withdraw(&mut self, scope: &WithdrawalScope, now: Duration) -> Vec<EndedEpisode> {
        // Episodes whose deadline has passed expire, because they ended before the environment did.
        let mut ended = self.expire(now);
        let is_its = |episode: &RegisteredEpisode| episode.request.sites.iter().any(|want| scope.includes(&want.site));
        for id in self.live_ids(is_its) {
            let cause = EndCause::Failed(VoidReason::EnvironmentDown);
            ended.extend(self.end(&id, cause, now).unwrap_or_default());
        }
        self.capacities.retain(|site, _| !scope.includes(site));
        self.holds.retain(|site, _| !scope.includes(site));
        let slots: Vec<InstanceId> = self.board.iter().map(|(slot, _)| slot.clone()).collect();
        for slot in slots.iter().filter(|slot| scope.includes(&slot.site_id())) {
            // Refused only for slots of a live episode, and the sites have none left.
            let _ = self.board.take_down(slot);
        }
        ended
    }
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
