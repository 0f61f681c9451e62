//! The own ports of slots, for clients without a proxy.
//!
//! Slot `n` of a site has the port `base + (n - 1) * stride`. All of these ports are opened with the site, so a port
//! must be free whether or not its slot exists.

use std::collections::BTreeMap;

use super::ValidationContext;
use super::environment::port_place;
use crate::raw::environment::{RawBodyAddresses, RawSite, RawStrategy, RawWrites};
use crate::raw::values::Port;
use crate::scope::Scope;
use arenad_model::site::{BodyAddresses, Site, SlotPorts, SlotSpec};

/// Reads the own ports of a site's slots.
pub(super) fn slot_ports(scope: Scope<'_>, raw: &RawSite, slots: SlotSpec) -> Option<SlotPorts> {
    let ports = raw.ports.as_ref()?;
    let is_kept = raw.reset.as_ref().is_some_and(|reset| matches!(reset.strategy, Some(RawStrategy::Keep)));
    let is_read_only = raw.public.as_ref().is_some_and(|public| public.writes == Some(RawWrites::Refuse));
    if is_kept || is_read_only {
        scope
            .key_error("conflict", "a site that is only read has no slots: all episodes share it at its public port")
            .help("remove `ports`")
            .report();
        return None;
    }
    let stride = ports.stride.unwrap_or(1);
    let Some(stride) = u16::try_from(stride).ok().filter(|stride| *stride > 0) else {
        scope.key("stride").error("value", format!("a stride of {stride}")).expected("1 to 65535").report();
        return None;
    };
    let bodies = match ports.bodies? {
        RawBodyAddresses::Mapped => BodyAddresses::Mapped,
        RawBodyAddresses::Unchanged => BodyAddresses::Unchanged,
        RawBodyAddresses::Unmappable => BodyAddresses::Unmappable,
    };
    let found = SlotPorts { base: ports.base.as_ref().and_then(Port::number)?, stride, bodies };
    if found.of(slots.max).is_none() {
        let fitting = (1..=slots.max).take_while(|slot| found.of(*slot).is_some()).count();
        let highest = u32::from(found.base) + (slots.max - 1) * u32::from(stride);
        scope
            .key("base")
            .error("value", format!("slot {} would have the port {highest}", slots.max))
            .expected("ports of at most 65535")
            .help(format!("{}: choose a smaller `base` or `stride`, or lower `slots.max`", fit(fitting)))
            .report();
        return None;
    }
    Some(found)
}

fn fit(slots: usize) -> String {
    let (noun, verb) = if slots == 1 { ("slot", "fits") } else { ("slots", "fit") };
    format!("{slots} {noun} {verb}")
}

/// The use of a port.
#[derive(Clone, Copy)]
struct PortUse<'a> {
    site: &'a Site,
    /// The slot whose own port it is; `None` if it is the public port of the site.
    slot: Option<u32>,
}

impl PortUse<'_> {
    fn text(self) -> String {
        match self.slot {
            Some(slot) => format!("the port of slot {slot} of the site `{}`", self.site.name),
            None => format!("the public port of the site `{}`", self.site.name),
        }
    }
}

/// Reports own ports that are used for something else as well.
pub(super) fn free_ports(context: ValidationContext<'_>, sites: &[Site]) {
    let sites_scope = context.environment.key("sites");
    let place = |used: PortUse<'_>| {
        let scope = sites_scope.key(used.site.name.as_str());
        match used.slot {
            Some(_) => scope.key("ports").key("base"),
            None => port_place(context, scope, used.site),
        }
    };
    let public = sites.iter().map(|site| (site.public.port, PortUse { site, slot: None }));
    let mut taken: BTreeMap<u16, PortUse<'_>> = public.collect();
    for site in sites {
        let Some(ports) = site.ports else { continue };
        // One report for each site: further slots are likely to meet the same site.
        for slot in 1..=site.slots.max {
            let Some(port) = ports.of(slot) else { break };
            let own = PortUse { site, slot: Some(slot) };
            let Some(other) = taken.get(&port).copied() else {
                taken.insert(port, own);
                continue;
            };
            let help = match slot {
                1 => "choose another `base`".to_owned(),
                _ => {
                    let fitting = usize::try_from(slot - 1).unwrap_or_default();
                    format!("{}: choose another `base` or `stride`, or lower `slots.max`", fit(fitting))
                }
            };
            let there = place(other);
            let message = format!("{}, {port}, is {}", own.text(), other.text());
            let draft = place(own).error("conflict", message);
            draft
                .related(there.source(), there.span(), format!("`{}` has it here", other.site.name))
                .help(help)
                .report();
            break;
        }
    }
}
