//! Views of a registry, and the inputs of the decisions about grants and slots.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::{EpisodeRegistry, RegisteredEpisode};
use crate::episode::ids::{EpisodeId, Owner};
use crate::episode::lease::{SlotBoard, SlotState};
use crate::episode::queue::{FreeSlots, Grant, GrantOffer, QueuePlace, typical_hold};
use crate::episode::request::SiteCapacity;
use crate::episode::slots::SlotDemand;
use crate::ids::SiteId;

impl EpisodeRegistry {
    /// Returns an episode that is live, or ended and remembered.
    pub fn get(&self, id: &EpisodeId) -> Option<&RegisteredEpisode> {
        self.live.get(id).or_else(|| self.ended.get(id))
    }

    /// Returns the episodes that have not ended, in order of their ids.
    pub fn live(&self) -> impl Iterator<Item = (&EpisodeId, &RegisteredEpisode)> {
        self.live.iter()
    }

    /// Returns the remembered episodes in the order of their ends.
    pub fn ended(&self) -> impl Iterator<Item = (&EpisodeId, &RegisteredEpisode)> {
        self.endings.iter().filter_map(|id| self.ended.get_key_value(id))
    }

    /// Returns the slots with their states.
    pub fn board(&self) -> &SlotBoard {
        &self.board
    }

    /// Returns the time at which the next deadline passes, so that [`Self::settle`] must be called after it.
    pub fn next_due(&self) -> Option<Duration> {
        self.live.values().filter_map(|episode| episode.life.next_due()).min()
    }

    /// Returns the free slots of each site. Slot 1 is the last choice, because people use it at the public ports.
    pub(super) fn free_slots(&self) -> BTreeMap<SiteId, FreeSlots> {
        let mut free: BTreeMap<SiteId, FreeSlots> = BTreeMap::new();
        for (slot, state) in self.board.iter() {
            let SlotState::Free { .. } = state else { continue };
            let site = slot.site_id();
            let Some(SiteCapacity::Slots { max, by_name_only }) = self.capacities.get(&site) else { continue };
            if slot.number > *max {
                continue;
            }
            let slots = free.entry(site).or_default();
            let numbers = if slot.number <= *by_name_only { &mut slots.by_name } else { &mut slots.any };
            numbers.push(slot.number);
            numbers.sort_unstable_by_key(|number| (*number == 1, *number));
        }
        free
    }

    /// Returns the number of episodes of each owner that were granted and have not ended.
    pub(super) fn open(&self) -> BTreeMap<Owner, usize> {
        let mut open = BTreeMap::new();
        for episode in self.live.values().filter(|episode| episode.life.state().is_open()) {
            *open.entry(episode.request.owner.clone()).or_default() += 1;
        }
        open
    }

    fn with_offer<T>(&self, decide: impl FnOnce(GrantOffer<'_>) -> T) -> T {
        let (free, open) = (self.free_slots(), self.open());
        let most = self.limits.open.saturating_sub(open.values().sum());
        decide(GrantOffer { free: &free, open: &open, quotas: &self.limits.quotas, most })
    }

    pub(super) fn planned_grants(&self) -> Vec<Grant> {
        self.with_offer(|offer| self.queue.grants(offer))
    }

    /// Returns the places of all waiting requests, in order of arrival, with estimates from recent episodes.
    pub fn places(&self) -> Vec<QueuePlace> {
        let mut counts: BTreeMap<SiteId, usize> = BTreeMap::new();
        for (slot, _) in self.board.iter() {
            *counts.entry(slot.site_id()).or_default() += 1;
        }
        let hold = |(site, recent): (&SiteId, &VecDeque<Duration>)| {
            let typical = typical_hold(recent.iter().copied())?;
            Some((site.clone(), (typical, counts.get(site).copied()?)))
        };
        let holds = self.holds.iter().filter_map(hold).collect();
        self.with_offer(|offer| self.queue.places(offer, &holds))
    }

    /// Returns the estimated time until the next request leaves the queue.
    pub(super) fn next_estimate(&self) -> Option<Duration> {
        self.places().into_iter().filter_map(|place| place.estimate).min()
    }

    /// Returns the requests that wait for slots of a site and that quotas do not hold back, for
    /// [`plan_slots`](crate::episode::slots::plan_slots).
    pub fn demand(&self, site: &SiteId) -> SlotDemand {
        let mut demand = SlotDemand::default();
        let waiting = self.queue.iter().zip(self.places()).filter(|(_, place)| !place.is_over_quota);
        for want in waiting.flat_map(|(request, _)| &request.slots).filter(|want| want.site == *site) {
            match want.slot {
                Some(number) => {
                    demand.named.insert(number);
                }
                None => demand.any += 1,
            }
        }
        demand
    }
}
