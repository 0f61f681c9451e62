//! The places of requests in the queue, and estimates of their waits.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{EpisodeQueue, GrantOffer, QuotaLine, SiteLine, SlotWant};
use crate::episode::ids::EpisodeId;
use crate::ids::SiteId;

/// The place of a request in the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuePlace {
    /// The episode that the request becomes.
    pub episode: EpisodeId,
    /// The place among all requests, from 1.
    pub position: usize,
    /// The number of earlier requests that wait for one of the same sites, for the site where it is highest.
    pub ahead: usize,
    /// Whether the request is passed over until an episode of its owner ends.
    pub is_over_quota: bool,
    /// The estimated wait. `None` if there is nothing to estimate it from.
    pub estimate: Option<Duration>,
}

/// Returns the time that an episode typically holds a slot: the median of recent times, in any order.
pub fn typical_hold(recent: impl IntoIterator<Item = Duration>) -> Option<Duration> {
    let mut sorted: Vec<Duration> = recent.into_iter().collect();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied()
}

/// Returns the time in which `needed` slots come free, if `slots` of them are each held for `hold`.
fn wait_for(needed: usize, slots: usize, hold: Duration) -> Option<Duration> {
    let needed = u32::try_from(needed).unwrap_or(u32::MAX);
    hold.saturating_mul(needed).checked_div(u32::try_from(slots).unwrap_or(u32::MAX))
}

impl EpisodeQueue {
    /// Returns the places of all requests, in order of arrival.
    ///
    /// `holds` has the typical time that an episode holds a slot and the number of slots, by site. A request waits for
    /// the slowest of its sites, or for its owner's quota. The estimate assumes that the slots of a site come free at
    /// equal intervals; it is for people, and no decision depends on it.
    pub fn places(&self, offer: GrantOffer<'_>, holds: &BTreeMap<SiteId, (Duration, usize)>) -> Vec<QueuePlace> {
        let mut lines: BTreeMap<&SiteId, (SiteLine, BTreeMap<u32, usize>)> = BTreeMap::new();
        let mut quotas = QuotaLine { offer, taken: BTreeMap::new() };
        let mut places = Vec::new();
        for (index, request) in self.waiting.iter().enumerate() {
            let excess = quotas.take(&request.owner);
            let mut ahead = 0;
            // Zero until a site or the quota takes time; `None` if one of them cannot be estimated.
            let mut estimate = Some(Duration::ZERO);
            for SlotWant { site, slot } in &request.slots {
                let (line, named) = lines.entry(site).or_insert_with(|| {
                    let free = offer.free.get(site).cloned().unwrap_or_default();
                    (SiteLine { free, ahead: 0 }, BTreeMap::new())
                });
                let hold = holds.get(site).copied();
                let (before, needed, slots) = match slot {
                    None => (line.ahead, (line.ahead + 1).saturating_sub(line.free.any.len()), hold.map(|hold| hold.1)),
                    Some(number) => {
                        let before = named.get(number).copied().unwrap_or_default();
                        let is_free = line.pick(*slot).is_some();
                        (before, before + usize::from(!is_free), Some(1))
                    }
                };
                ahead = ahead.max(before);
                let site_wait = match (needed, hold, slots) {
                    (0, ..) => Some(Duration::ZERO),
                    (_, Some((hold, _)), Some(slots)) => wait_for(needed, slots, hold),
                    _ => None,
                };
                estimate = estimate.zip(site_wait).map(|(one, other)| one.max(other));
                if excess == 0 {
                    line.wait(*slot);
                    if let Some(number) = slot {
                        *named.entry(*number).or_default() += 1;
                    }
                }
            }
            if excess > 0 {
                let hold = request.slots.iter().filter_map(|want| holds.get(&want.site)).map(|hold| hold.0).max();
                let quota_wait = hold.and_then(|hold| wait_for(excess, offer.quotas.of(&request.owner), hold));
                estimate = estimate.zip(quota_wait).map(|(one, other)| one.max(other));
            }
            places.push(QueuePlace {
                episode: request.episode.clone(),
                position: index + 1,
                ahead,
                is_over_quota: excess > 0,
                estimate,
            });
        }
        places
    }
}
