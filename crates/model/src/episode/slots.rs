//! Planning of the number of a site's slots. The plan is a pure function, like that of the standbys in [`crate::pool`]:
//! the daemon observes the slots, requests a plan, and executes it.
//!
//! ```text
//!   more requests wait than slots come free ──► add one        up to max, within the memory
//!   a slot above min is idle for a while    ──► retire it      the highest number first
//!   the host runs short of memory           ──► retire an idle slot above min at once
//! ```
//! A slot that is recycled is soon free again, so it counts as one that comes free. One slot of a site is made at a
//! time, so that its actual use of memory is visible before the next decision.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::pool::{StandbyShortage, retry_pause};

/// The limits of the slots of one site, from its definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotLimits {
    /// The slots that exist even if no request waits.
    pub min: u32,
    /// The number of slots that the site never exceeds.
    pub max: u32,
    /// The memory that one slot is expected to use, in bytes.
    pub memory: u64,
    /// The number of slots, from 1, that only requests get which name them.
    pub by_name_only: u32,
    /// The time after which an idle slot above `min` is retired.
    pub idle_timeout: Duration,
}

/// The occupation of a slot, in the terms of the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotActivity {
    /// The slot is being made.
    Making,
    /// The slot is being brought back to its baseline.
    Recycling,
    /// The slot belongs to no lease.
    Free {
        /// The time since when the slot has been free.
        since: Duration,
    },
    /// The slot is reserved for a lease, or belongs to one.
    Busy,
}

/// One slot of the site, as observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObservedSlot {
    /// The number among the slots of the site, from 1.
    pub number: u32,
    /// The occupation of the slot.
    pub activity: SlotActivity,
}

/// The requests that wait for slots of the site, and may be granted by quota.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SlotDemand {
    /// The number of requests that wait for any slot.
    pub any: u32,
    /// The numbers of the slots that requests wait for by name.
    pub named: BTreeSet<u32>,
}

/// The resources that further slots may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotBudget {
    /// The unused memory of the host, in bytes.
    pub memory_free: u64,
    /// The memory that slots must leave unused, in bytes.
    pub memory_reserve: u64,
    /// The number of consecutive failures to make a slot of the site, and the time since the last one.
    pub failures: Option<(u32, Duration)>,
}

/// A change of the number of slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotAction {
    /// Make the slot of this number.
    Add(u32),
    /// Remove the slot of this number. The slot may have been reserved meanwhile, and is kept then.
    Retire(u32),
}

/// The next changes, and the obstacle to further slots.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SlotPlan {
    /// The changes, in order of execution.
    pub actions: Vec<SlotAction>,
    /// The reason why no slot is added although requests wait for one.
    pub lack: Option<StandbyShortage>,
}

/// Plans the next changes.
#[must_use]
pub fn plan_slots(
    limits: SlotLimits,
    demand: &SlotDemand,
    slots: &[ObservedSlot],
    budget: SlotBudget,
    now: Duration,
) -> SlotPlan {
    let mut plan = SlotPlan::default();
    let wanted = wanted(limits, demand, slots);
    let existing: BTreeSet<u32> = slots.iter().map(|slot| slot.number).collect();
    let is_making = slots.iter().any(|slot| slot.activity == SlotActivity::Making);
    if let Some(number) = wanted.difference(&existing).next() {
        match lack(limits, budget) {
            None if !is_making => plan.actions.push(SlotAction::Add(*number)),
            None => {}
            some => plan.lack = some,
        }
    }
    let has_pressure = budget.memory_free < budget.memory_reserve;
    let surplus = slots.iter().filter(|slot| !wanted.contains(&slot.number));
    let mut idle: Vec<(u32, Duration)> = surplus
        .filter_map(|slot| match slot.activity {
            SlotActivity::Free { since } => Some((slot.number, now.saturating_sub(since))),
            SlotActivity::Making | SlotActivity::Recycling | SlotActivity::Busy => None,
        })
        .collect();
    idle.sort_unstable_by(|one, other| other.cmp(one));
    // Under pressure one slot goes at a time, because the memory of the last one may not be free yet.
    let mut may_press = has_pressure;
    for (number, idle) in idle {
        let is_beyond = number > limits.max;
        if is_beyond || idle >= limits.idle_timeout || std::mem::take(&mut may_press) {
            plan.actions.push(SlotAction::Retire(number));
        }
    }
    plan
}

/// Returns the numbers of the slots that should exist.
fn wanted(limits: SlotLimits, demand: &SlotDemand, slots: &[ObservedSlot]) -> BTreeSet<u32> {
    let is_in_use = |slot: &&ObservedSlot| slot.activity == SlotActivity::Busy;
    let mut wanted: BTreeSet<u32> = slots.iter().filter(is_in_use).map(|slot| slot.number).collect();
    wanted.extend(demand.named.iter().filter(|number| (1..=limits.max).contains(*number)));
    // The claims above are not available to requests for any slot, so those need further ones: first slots that exist,
    // because they cost nothing, then new numbers from below.
    let mut left = demand.any;
    let anyone = limits.by_name_only + 1..=limits.max;
    let existing = slots.iter().map(|slot| slot.number).filter(|number| anyone.contains(number));
    let mut candidates: Vec<u32> = existing.collect();
    candidates.sort_unstable();
    candidates.extend(anyone);
    for number in candidates {
        if left == 0 {
            break;
        }
        left -= u32::from(wanted.insert(number));
    }
    for number in 1..=limits.min.min(limits.max) {
        wanted.insert(number);
    }
    wanted
}

fn lack(limits: SlotLimits, budget: SlotBudget) -> Option<StandbyShortage> {
    if let Some(left) = budget.failures.and_then(|(failures, since)| retry_pause(failures, since)) {
        return Some(StandbyShortage::Pause(left));
    }
    let needed = limits.memory.saturating_add(budget.memory_reserve);
    (budget.memory_free < needed).then_some(StandbyShortage::Memory { needed, free: budget.memory_free })
}

#[cfg(test)]
mod tests;
