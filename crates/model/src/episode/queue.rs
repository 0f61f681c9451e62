//! The queue of requests for episodes, and the decision which of them are granted.
//!
//! The requests are examined in order of arrival. A request is granted when each of its sites has more free slots than
//! earlier requests that wait for that site:
//!
//! ```text
//!   arrival   waits for      free: shop 1, forge 0, forum 1
//!   1         shop, forge    waits: forge has no free slot. It holds nothing, but it is ahead at shop and forge
//!   2         shop           waits: shop has one free slot, and one earlier request waits for shop
//!   3         forum          granted: no earlier request waits for forum
//! ```
//! So the order of arrival holds at every site, a request for other sites passes, and because a waiting request holds
//! nothing, no two requests can block each other. The first request is always ahead of all others, so it gets its slots
//! when they come free, and then the next one is the first.
//!
//! Two additions follow the same rule. A request that names a slot claims this slot alone, and requests for any slot
//! count only slots without a claim. The quota of an owner is one more thing that the owner's requests wait for: a
//! request beyond it is passed over, and is ahead of no one until another episode of the owner ends.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::ids::{EpisodeId, Owner};
use super::request::AskRefusal;
use crate::ids::SiteId;
use crate::instance::InstanceId;

mod place;

pub use place::{QueuePlace, typical_hold};

/// A slot that a request waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotWant {
    /// The site of the slot.
    pub site: SiteId,
    /// The number of the slot. `None` means any slot.
    pub slot: Option<u32>,
}

/// A request that waits for slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingRequest {
    /// The episode that the request becomes.
    pub episode: EpisodeId,
    /// The owner for whose quota the episode counts.
    pub owner: Owner,
    /// The slots, one of each site. Sites that all episodes share are left out.
    pub slots: Vec<SlotWant>,
}

/// The most episodes that an owner may have at once, waiting requests not included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnerQuotas {
    /// The quota of owners without an own one.
    pub default: usize,
    /// The quotas of single owners.
    pub by_owner: BTreeMap<Owner, usize>,
}

impl OwnerQuotas {
    /// Returns the quota of an owner.
    pub fn of(&self, owner: &Owner) -> usize {
        self.by_owner.get(owner).copied().unwrap_or(self.default)
    }
}

/// The limits of the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueLimits {
    /// The most requests that may wait.
    pub waiting: usize,
    /// The most requests of one owner that may wait, so that one owner cannot fill the queue.
    pub waiting_of_owner: usize,
}

/// The free slots of one site.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FreeSlots {
    /// The numbers that any request can get, in order of preference.
    pub any: Vec<u32>,
    /// The numbers that only requests get which name them.
    pub by_name: Vec<u32>,
}

/// Everything that grants depend on, except the requests.
#[derive(Debug, Clone, Copy)]
pub struct GrantOffer<'a> {
    /// The free slots by site.
    pub free: &'a BTreeMap<SiteId, FreeSlots>,
    /// The number of episodes of each owner that have been granted and have not ended.
    pub open: &'a BTreeMap<Owner, usize>,
    /// The quotas of the owners.
    pub quotas: &'a OwnerQuotas,
    /// The most requests that may be granted now.
    pub most: usize,
}

/// The decision to grant a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The episode that gets the slots.
    pub episode: EpisodeId,
    /// The slots, in the order of the request.
    pub slots: Vec<InstanceId>,
}

/// The part of a site's free slots that is left for the request that is being examined.
#[derive(Debug, Clone, Default)]
struct SiteLine {
    /// The free slots that no earlier request has taken or claims by number.
    free: FreeSlots,
    /// The earlier requests that wait for any slot of the site.
    ahead: usize,
}

impl SiteLine {
    /// Returns the slot that a request gets, if it gets one.
    fn pick(&self, slot: Option<u32>) -> Option<u32> {
        let has_spare = self.free.any.len() > self.ahead;
        match slot {
            None => self.free.any.first().copied().filter(|_| has_spare),
            Some(number) if self.free.by_name.contains(&number) => Some(number),
            Some(number) => (has_spare && self.free.any.contains(&number)).then_some(number),
        }
    }

    fn remove(&mut self, number: u32) {
        self.free.any.retain(|free| *free != number);
        self.free.by_name.retain(|free| *free != number);
    }

    /// Puts a request that waits ahead of all later ones.
    fn wait(&mut self, slot: Option<u32>) {
        match slot {
            None => self.ahead += 1,
            Some(number) => self.remove(number),
        }
    }
}

/// The part of an owner's quota that is left for the request that is being examined.
struct QuotaLine<'a> {
    offer: GrantOffer<'a>,
    taken: BTreeMap<&'a Owner, usize>,
}

impl<'a> QuotaLine<'a> {
    /// Takes one episode of the owner's quota, for a request that is granted or waits for slots. Returns the number of
    /// episodes by which the quota is exceeded, which is zero if it had room.
    fn take(&mut self, owner: &'a Owner) -> usize {
        let taken = match self.taken.entry(owner) {
            Entry::Occupied(taken) => taken.into_mut(),
            Entry::Vacant(none) => none.insert(self.offer.open.get(owner).copied().unwrap_or_default()),
        };
        *taken += 1;
        taken.saturating_sub(self.offer.quotas.of(owner))
    }
}

/// Decides which of the requests, which are given in order of arrival, are granted.
#[must_use]
pub fn plan_grants<'a>(waiting: impl IntoIterator<Item = &'a WaitingRequest>, offer: GrantOffer<'a>) -> Vec<Grant> {
    let mut lines: BTreeMap<&SiteId, SiteLine> = BTreeMap::new();
    let mut quotas = QuotaLine { offer, taken: BTreeMap::new() };
    let mut grants = Vec::new();
    for request in waiting {
        if grants.len() >= offer.most {
            break;
        }
        if quotas.take(&request.owner) > 0 {
            continue;
        }
        for SlotWant { site, .. } in &request.slots {
            let free = || SiteLine { free: offer.free.get(site).cloned().unwrap_or_default(), ahead: 0 };
            lines.entry(site).or_insert_with(free);
        }
        let pick = |SlotWant { site, slot }: &SlotWant| {
            let number = lines.get(site)?.pick(*slot)?;
            Some(InstanceId { environment: site.environment.clone(), site: site.site.clone(), number })
        };
        let picked: Option<Vec<InstanceId>> = request.slots.iter().map(pick).collect();
        for (index, SlotWant { site, slot }) in request.slots.iter().enumerate() {
            let Some(line) = lines.get_mut(site) else { continue };
            match &picked {
                Some(slots) => line.remove(slots[index].number),
                None => line.wait(*slot),
            }
        }
        if let Some(slots) = picked {
            grants.push(Grant { episode: request.episode.clone(), slots });
        }
    }
    grants
}

/// The requests that wait for slots, in order of arrival.
#[derive(Debug, Clone)]
pub struct EpisodeQueue {
    waiting: VecDeque<WaitingRequest>,
    limits: QueueLimits,
}

/// The shortest suggestion to try again.
const SHORTEST_RETRY: Duration = Duration::from_secs(1);
/// The longest suggestion to try again, because estimates are rough.
const LONGEST_RETRY: Duration = Duration::from_secs(60);
/// The suggestion to try again without an estimate.
const DEFAULT_RETRY: Duration = Duration::from_secs(5);

impl EpisodeQueue {
    /// Creates an empty queue.
    pub fn new(limits: QueueLimits) -> Self {
        Self { waiting: VecDeque::new(), limits }
    }

    /// Returns the requests in order of arrival.
    pub fn iter(&self) -> impl Iterator<Item = &WaitingRequest> {
        self.waiting.iter()
    }

    /// Returns the number of requests that wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether no request waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn waiting_of(&self, owner: &Owner) -> usize {
        self.waiting.iter().filter(|waiting| waiting.owner == *owner).count()
    }

    /// Whether a further request of the owner is refused.
    pub fn is_full_for(&self, owner: &Owner) -> bool {
        self.waiting.len() >= self.limits.waiting || self.waiting_of(owner) >= self.limits.waiting_of_owner
    }

    /// Appends a request. `next` is the estimated time until a request leaves the queue.
    ///
    /// Errors: [`AskRefusal::QueueFull`] and [`AskRefusal::OwnerQueueFull`], with a time to try again.
    pub fn push(&mut self, request: WaitingRequest, next: Option<Duration>) -> Result<(), AskRefusal> {
        let seconds = next.unwrap_or(DEFAULT_RETRY).as_millis().div_ceil(1000);
        let seconds = Duration::from_secs(u64::try_from(seconds).unwrap_or(u64::MAX));
        let retry_after = seconds.clamp(SHORTEST_RETRY, LONGEST_RETRY);
        if self.waiting.len() >= self.limits.waiting {
            return Err(AskRefusal::QueueFull { waiting: self.waiting.len(), retry_after });
        }
        let waiting = self.waiting_of(&request.owner);
        if waiting >= self.limits.waiting_of_owner {
            return Err(AskRefusal::OwnerQueueFull { owner: request.owner, waiting, retry_after });
        }
        self.waiting.push_back(request);
        Ok(())
    }

    /// Appends a request that was admitted before a restart of the daemon, whatever the limits are now.
    pub fn restore(&mut self, request: WaitingRequest) {
        self.waiting.push_back(request);
    }

    /// Removes a request that was granted, cancelled or waited too long. Returns whether it was in the queue.
    pub fn remove(&mut self, episode: &EpisodeId) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|waiting| waiting.episode != *episode);
        self.waiting.len() < before
    }

    /// Decides which of the requests are granted. They stay in the queue until they are removed.
    pub fn grants(&self, offer: GrantOffer<'_>) -> Vec<Grant> {
        plan_grants(&self.waiting, offer)
    }
}

#[cfg(test)]
mod tests;
