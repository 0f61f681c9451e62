//! The sites, the limits and the names of the property test.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{MOST_OPEN, PREPARATION, QUOTA, REMEMBERED, SITES, WAITING, WAITING_OF_OWNER};
use crate::episode::fence::TokenHash;
use crate::episode::ids::EpisodeId;
use crate::episode::life::LONGEST_TTL;
use crate::episode::queue::{OwnerQuotas, QueueLimits};
use crate::episode::registry::{EpisodeLimits, EpisodeRegistry};
use crate::episode::request::SiteCapacity;
use crate::ids::{EnvironmentName, SiteId, SiteName};
use crate::instance::InstanceId;

pub(super) fn id(number: usize) -> EpisodeId {
    EpisodeId::from_random([u8::try_from(number).expect("few episodes"); 10])
}

pub(super) fn token(number: usize) -> TokenHash {
    TokenHash::new([u8::try_from(number).expect("few episodes"); 32])
}

pub(super) fn number_of(id: &EpisodeId) -> usize {
    usize::from_str_radix(&id.as_str()[3..5], 16).expect("hexadecimal")
}

pub(super) fn site(name: &str) -> SiteId {
    SiteId { environment: EnvironmentName::parse("mini").expect("valid"), site: SiteName::parse(name).expect("valid") }
}

pub(super) fn new_registry() -> EpisodeRegistry {
    let mut registry = EpisodeRegistry::new(EpisodeLimits {
        queue: QueueLimits { waiting: WAITING, waiting_of_owner: WAITING_OF_OWNER },
        quotas: OwnerQuotas { default: QUOTA, by_owner: BTreeMap::new() },
        open: MOST_OPEN,
        ttl: LONGEST_TTL,
        preparation: Duration::from_secs(PREPARATION),
        remembered: REMEMBERED,
        remember_for: Duration::from_secs(100),
    });
    registry.offer_site(site("wiki"), SiteCapacity::Shared);
    for (name, max, by_name_only) in SITES {
        registry.offer_site(site(name), SiteCapacity::Slots { max, by_name_only });
    }
    registry
}

pub(super) fn all_slots() -> Vec<InstanceId> {
    let of_site = |(name, max, _): (&str, u32, u32)| {
        let SiteId { environment, site } = site(name);
        (1..=max).map(move |number| InstanceId { environment: environment.clone(), site: site.clone(), number })
    };
    SITES.into_iter().flat_map(of_site).collect()
}
