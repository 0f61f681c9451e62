//! The start of the episode keeper, with the sites that should be up.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use super::DaemonSlots;
use arenad_episodes::{EpisodeHandle, EpisodeKeeperParts, RandomBytes};
use arenad_instance::shared::SharedParts;
use arenad_model::episode::queue::{OwnerQuotas, QueueLimits};
use arenad_model::episode::registry::EpisodeLimits;
use arenad_model::episode::request::SiteCapacity;
use arenad_model::ids::{SiteId, SiteName};
use arenad_model::site::Site;
use arenad_store::StoreError;

/// The most requests for episodes that wait, and the most episodes of an owner, unless the operator chooses others.
pub const DEFAULT_EPISODE_LIMIT: NonZeroUsize = NonZeroUsize::new(1_000).unwrap();
/// The longest time to live unless the operator chooses another one.
pub const DEFAULT_TTL_LIMIT: Duration = Duration::from_secs(24 * 3600);
/// The episodes at once, most of which would be on shared sites alone.
const OPEN: usize = 1_000;
/// The time in which the slots of an episode must be prepared. Some sites take minutes to boot.
const PREPARATION_LIMIT: Duration = Duration::from_secs(15 * 60);
/// The time after which an attempt to recycle a slot has failed.
const RECYCLE_LIMIT: Duration = Duration::from_secs(30 * 60);
/// The ended episodes that are remembered, and for how long.
const REMEMBERED: usize = 10_000;
const REMEMBER_FOR: Duration = Duration::from_secs(7 * 24 * 3600);

/// The limits of episodes that an operator chooses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EpisodeSettings {
    /// The most episodes that each owner has at once.
    pub quotas: OwnerQuotas,
    /// The most requests that wait.
    pub queue: QueueLimits,
    /// The longest time to live, and the longest extension by one heartbeat.
    pub ttl: Duration,
}

impl Default for EpisodeSettings {
    fn default() -> Self {
        let waiting = DEFAULT_EPISODE_LIMIT.get();
        Self {
            quotas: OwnerQuotas { default: waiting, by_owner: Default::default() },
            queue: QueueLimits { waiting, waiting_of_owner: waiting_of_owner(waiting) },
            ttl: DEFAULT_TTL_LIMIT,
        }
    }
}

/// Returns the most requests of one owner that wait unless the operator chooses another number: half of all, so that no
/// owner fills the queue alone.
pub fn waiting_of_owner(waiting: usize) -> usize {
    waiting.div_ceil(2)
}

fn limits(settings: &EpisodeSettings) -> EpisodeLimits {
    EpisodeLimits {
        queue: settings.queue,
        quotas: settings.quotas.clone(),
        open: OPEN,
        ttl: settings.ttl,
        preparation: PREPARATION_LIMIT,
        remembered: REMEMBERED,
        remember_for: REMEMBER_FOR,
    }
}

/// Returns how many episodes can use a site at once. Sites that are only read are shared.
pub(crate) fn capacity(site: &Site) -> SiteCapacity {
    if site.is_shared() {
        return SiteCapacity::Shared;
    }
    let max = site.slots.max;
    // With several slots, slot 1 is left to people and to harnesses that know the public port only.
    SiteCapacity::Slots { max, by_name_only: u32::from(max > 1) }
}

/// Restores the episodes of an earlier daemon, before the instances of its environments are brought up.
///
/// Errors: the store could not be read.
pub async fn start_episodes(
    shared: &Arc<SharedParts>,
    random: RandomBytes,
    settings: &EpisodeSettings,
) -> Result<(Arc<DaemonSlots>, EpisodeHandle), StoreError> {
    let slots = Arc::new(DaemonSlots::new(shared.clone()));
    let parts = EpisodeKeeperParts {
        store: shared.store.clone(),
        clock: shared.clock.clone(),
        random,
        slots: slots.clone(),
        limits: limits(settings),
        recycle_limit: RECYCLE_LIMIT,
        sites: sites_that_should_be_up(shared).await?,
        tasks: shared.tasks.clone(),
        shutdown: shared.shutdown.clone(),
    };
    let episodes = arenad_episodes::start(parts).await?;
    Ok((slots, episodes))
}

async fn sites_that_should_be_up(shared: &SharedParts) -> Result<Vec<(SiteId, SiteCapacity)>, StoreError> {
    let mut sites = Vec::new();
    for stored in shared.store.environments().await? {
        let rows = shared.store.instances(&stored.name).await?;
        let wanted: BTreeSet<SiteName> = rows.into_iter().filter(|row| row.desired_up).map(|row| row.id.site).collect();
        // A definition that cannot be read any more is reported when its environment is restored.
        let Ok(definition) = (shared.read_definition)(&stored) else { continue };
        let chosen = definition.sites.iter().filter(|site| wanted.contains(&site.name));
        sites.extend(chosen.map(|site| {
            let id = SiteId { environment: definition.name.clone(), site: site.name.clone() };
            (id, capacity(site))
        }));
    }
    Ok(sites)
}
