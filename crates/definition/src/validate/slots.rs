//! The number of slots of a site.

use super::site_context::SiteContext;
use super::support::size;
use crate::raw::environment::{RawSite, RawStrategy, RawWrites};
use crate::scope::Scope;
use arenad_model::service::MountSpec;
use arenad_model::site::SlotSpec;

/// Maximum number of slots of one site: more than any host has memory for.
const MOST_SLOTS: u32 = 100;

pub(super) fn slots(site: &SiteContext<'_>, scope: Scope<'_>, raw: &RawSite) -> SlotSpec {
    let Some(slots) = &raw.slots else { return SlotSpec::ONE };
    let bounded = |key: &str, wanted: u32| {
        if !(1..=MOST_SLOTS).contains(&wanted) {
            let message = format!("{wanted} slots of one site");
            scope.key(key).error("value", message).expected(format!("1 to {MOST_SLOTS}")).report();
        }
        wanted.clamp(1, MOST_SLOTS)
    };
    let min = bounded("min", slots.min.unwrap_or(1));
    let max = bounded("max", slots.max.unwrap_or(min));
    if max < min {
        scope.key("max").error("conflict", format!("`max` is {max}, less than `min`, which is {min}")).report();
    }
    if max > 1 {
        check_several(site, scope, raw);
    }
    SlotSpec { min, max: max.max(min), memory: size(scope.key("memory"), slots.memory.as_ref()) }
}

/// Reports the reasons why a site cannot have several instances.
fn check_several(site: &SiteContext<'_>, scope: Scope<'_>, raw: &RawSite) {
    let is_kept = raw.reset.as_ref().is_some_and(|reset| matches!(reset.strategy, Some(RawStrategy::Keep)));
    let is_read_only = raw.public.as_ref().is_some_and(|public| public.writes == Some(RawWrites::Refuse));
    if is_kept || is_read_only {
        scope
            .key_error("conflict", "several slots are wanted of a site that is only read, which all episodes share")
            .help("remove `slots`")
            .report();
    }
    let is_written = |mount: &MountSpec| matches!(mount, MountSpec::Data { read_only: false, .. });
    let services = site.names.iter().filter_map(|name| site.services.get(name.as_str())?.as_ref());
    if services.flat_map(|service| &service.spec.mounts).any(is_written) {
        scope
            .key_error("conflict", "several slots are wanted of a site that writes to a folder of the host")
            .help("mount the folder read-only, or remove `slots`")
            .report();
    }
}
