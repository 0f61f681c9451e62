//! The number of slots of each site: further ones are made when requests for episodes wait for them, and removed when
//! they have been idle. `arenad_model::episode::slots` plans the number.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::environments::EnvironmentRegistry;
use arenad_episodes::EpisodeHandle;
use arenad_instance::shared::SharedParts;
use arenad_model::episode::request::SiteCapacity;
use arenad_model::episode::slots::{SlotAction, SlotBudget, SlotLimits, plan_slots};
use arenad_model::error::describe;
use arenad_model::ids::SiteId;
use arenad_model::instance::InstanceId;
use arenad_model::pool::StandbyShortage;
use arenad_model::site::Site;

use super::{DaemonSlots, capacity};

/// The interval between two looks at the requests that wait.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The time after which an idle slot above the smallest number is removed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// The failures to make or remove slots of a site, and the last shortage that was reported.
#[derive(Default)]
struct SiteScale {
    failures: Option<(u32, Instant)>,
    is_short_of_memory: bool,
}

/// Makes and removes further slots until the daemon stops.
pub(crate) async fn keep_numbers(
    shared: Arc<SharedParts>,
    slots: Arc<DaemonSlots>,
    episodes: EpisodeHandle,
    environments: Arc<EnvironmentRegistry>,
) {
    let keeper = SlotKeeper { shared, slots, episodes, environments };
    let shutdown = keeper.shared.shutdown.clone();
    let mut scales: BTreeMap<SiteId, SiteScale> = BTreeMap::new();
    let mut changes = keeper.environments.changes();
    let keep = async {
        loop {
            let sites = keeper.environments.sites_of_several_slots();
            if sites.is_empty() {
                // The registry, and so the sender, outlives this task.
                let _ = changes.changed().await;
                continue;
            }
            for (id, site) in sites {
                keeper.scale(&id, &site, scales.entry(id.clone()).or_default()).await;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    let _: Option<()> = shutdown.run_until_cancelled(keep).await;
}

struct SlotKeeper {
    shared: Arc<SharedParts>,
    slots: Arc<DaemonSlots>,
    episodes: EpisodeHandle,
    environments: Arc<EnvironmentRegistry>,
}

impl SiteScale {
    /// Notes whether a change of the number of slots succeeded. The plan waits after failures, longer each time.
    fn note(&mut self, is_done: bool, now: Instant) {
        self.failures = match (is_done, self.failures) {
            (true, _) => None,
            (false, before) => Some((before.map_or(1, |(count, _)| count.saturating_add(1)), now)),
        };
    }

    /// Notes the obstacle to further slots, and returns whether it is to be logged: once each time that memory has
    /// become short.
    fn note_lack(&mut self, lack: Option<StandbyShortage>) -> bool {
        let was_short = self.is_short_of_memory;
        self.is_short_of_memory = matches!(lack, Some(StandbyShortage::Memory { .. }));
        self.is_short_of_memory && !was_short
    }
}

/// Returns the limits of a site's slots. There are none for a site that all episodes share.
fn limits(capacity: SiteCapacity, min: u32, memory: u64) -> Option<SlotLimits> {
    match capacity {
        SiteCapacity::Shared => None,
        SiteCapacity::Slots { max, by_name_only } => {
            Some(SlotLimits { min, max, memory, by_name_only, idle_timeout: IDLE_TIMEOUT })
        }
    }
}

impl SlotKeeper {
    /// Brings the number of a site's slots closer to the plan.
    async fn scale(&self, id: &SiteId, site: &Site, scale: &mut SiteScale) {
        let Some(limits) = limits(capacity(site), site.slots.min, site.slot_memory()) else { return };
        // Further slots are made from the baseline that slot 1 has made.
        let first = self.slots.instance(&InstanceId::serving(&id.environment, &id.site));
        if !first.is_some_and(|first| first.with_report(|report| report.state.serves())) {
            return;
        }
        let Ok(demand) = self.episodes.demand(id.clone()).await else { return };
        let budget = SlotBudget {
            memory_free: self.shared.machine.free_memory(),
            memory_reserve: self.shared.memory_reserve,
            failures: scale.failures.map(|(count, at)| (count, at.elapsed())),
        };
        let plan = plan_slots(limits, &demand, &self.slots.observed(id), budget, self.slots.now());
        if scale.note_lack(plan.lack) {
            tracing::warn!(site.name = %id, "{id} gets no further slot: the host is short of memory");
        }
        for action in plan.actions {
            self.act(id, action, scale).await;
        }
    }

    async fn act(&self, site: &SiteId, action: SlotAction, scale: &mut SiteScale) {
        let slot = |number| InstanceId { environment: site.environment.clone(), site: site.site.clone(), number };
        let done = match action {
            // Slot 1 comes and goes with its site.
            SlotAction::Add(1) | SlotAction::Retire(1) => return,
            SlotAction::Add(number) => self.environments.add_further(&slot(number)).await,
            SlotAction::Retire(number) => self.environments.retire_further(&slot(number)).await,
        };
        scale.note(done.is_ok(), Instant::now());
        if let Err(error) = done {
            tracing::warn!(site.name = %site, error = describe(&error), "the number of slots of {site} stays");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arenad_model::episode::slots::{ObservedSlot, SlotActivity, SlotDemand};

    const GIB: u64 = 1 << 30;

    /// Plans the slots of a site with one free slot and this number of requests.
    fn planned(
        scale: &SiteScale,
        memory_free: u64,
        any: u32,
        now: Instant,
    ) -> (Vec<SlotAction>, Option<StandbyShortage>) {
        let limits = limits(SiteCapacity::Slots { max: 3, by_name_only: 1 }, 1, GIB).expect("slots");
        let slots = [ObservedSlot { number: 1, activity: SlotActivity::Free { since: Duration::ZERO } }];
        let budget = SlotBudget {
            memory_free,
            memory_reserve: GIB / 2,
            failures: scale.failures.map(|(count, at)| (count, now - at)),
        };
        let demand = SlotDemand { any, ..SlotDemand::default() };
        let plan = plan_slots(limits, &demand, &slots, budget, Duration::ZERO);
        (plan.actions, plan.lack)
    }

    #[test]
    fn a_site_that_all_episodes_share_is_not_scaled() {
        assert_eq!(limits(SiteCapacity::Shared, 2, GIB), None);
        let own = limits(SiteCapacity::Slots { max: 4, by_name_only: 1 }, 2, GIB).expect("slots");
        assert_eq!((own.min, own.max, own.by_name_only, own.memory), (2, 4, 1, GIB));
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_failure_no_slot_is_made_until_the_pause_is_over() {
        let (mut scale, begun) = (SiteScale::default(), Instant::now());
        let add = |scale: &SiteScale, now| planned(scale, 4 * GIB, 1, now).0;
        assert_eq!(add(&scale, begun), [SlotAction::Add(2)]);
        scale.note(false, begun);
        assert_eq!(add(&scale, begun), []);
        let first =
            (0..600).find(|seconds| !add(&scale, begun + Duration::from_secs(*seconds)).is_empty()).expect("a try");
        let later = begun + Duration::from_secs(first);
        scale.note(false, later);
        let second =
            (0..600).find(|seconds| !add(&scale, later + Duration::from_secs(*seconds)).is_empty()).expect("a try");
        assert!(0 < first && first < second, "{first} {second}");
        scale.note(true, later);
        assert_eq!(add(&scale, later), [SlotAction::Add(2)]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_shortage_of_memory_is_logged_each_time_that_it_begins() {
        let (mut scale, now) = (SiteScale::default(), Instant::now());
        let mut look = |memory_free, any| {
            let lack = planned(&scale, memory_free, any, now).1;
            scale.note_lack(lack)
        };
        assert!(!look(4 * GIB, 1) && !look(GIB, 0), "nothing is short of what no request waits for");
        assert!(look(GIB, 1) && !look(GIB, 1));
        assert!(!look(4 * GIB, 1));
        assert!(look(GIB, 1));
    }
}
