//! The number of slots of each site: further ones are made when requests for episodes wait for them, and removed when
//! they have been idle. `arenad_model::episode::slots` plans the number.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::environments::EnvironmentRegistry;
use arenad_episodes::EpisodeHandle;
use arenad_instance::expected_memory;
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
    let keep = async {
        loop {
            for (id, site) in keeper.environments.sites_of_several_slots() {
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

impl SlotKeeper {
    /// Brings the number of a site's slots closer to the plan.
    async fn scale(&self, id: &SiteId, site: &Site, scale: &mut SiteScale) {
        let SiteCapacity::Slots { max, by_name_only } = capacity(site) else { return };
        // Further slots are made from the baseline that slot 1 has made.
        let first = self.slots.instance(&InstanceId::serving(&id.environment, &id.site));
        if !first.is_some_and(|first| first.with_report(|report| report.state.serves())) {
            return;
        }
        let Ok(demand) = self.episodes.demand(id.clone()).await else { return };
        let limits = SlotLimits {
            min: site.slots.min,
            max,
            memory: site.slots.memory.unwrap_or_else(|| expected_memory(site)),
            by_name_only,
            idle_timeout: IDLE_TIMEOUT,
        };
        let budget = SlotBudget {
            memory_free: self.shared.machine.free_memory(),
            memory_reserve: self.shared.memory_reserve,
            failures: scale.failures.map(|(count, at)| (count, at.elapsed())),
        };
        let plan = plan_slots(limits, &demand, &self.slots.observed(id), budget, self.slots.now());
        let is_short = matches!(plan.lack, Some(StandbyShortage::Memory { .. }));
        if is_short && !scale.is_short_of_memory {
            tracing::warn!(site.name = %id, "{id} gets no further slot: the host is short of memory");
        }
        scale.is_short_of_memory = is_short;
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
        scale.failures = match (&done, scale.failures) {
            (Ok(()), _) => None,
            (Err(_), before) => Some((before.map_or(1, |(count, _)| count.saturating_add(1)), Instant::now())),
        };
        if let Err(error) = done {
            tracing::warn!(site.name = %site, error = describe(&error), "the number of slots of {site} stays");
        }
    }
}
