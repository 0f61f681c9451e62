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
    let bodies = match ports.bodies {
        Some(RawBodyAddresses::Mapped) | None => BodyAddresses::Mapped,
        Some(RawBodyAddresses::Unchanged) => BodyAddresses::Unchanged,
        Some(RawBodyAddresses::Unmappable) => BodyAddresses::Unmappable,
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
enum PortUse<'a> {
    /// The public port of a site.
    Public(&'a Site),
    /// The own port of a slot.
    Slot(&'a Site, u32),
    /// The port of the reset server of harnesses.
    ResetServer,
}

impl PortUse<'_> {
    fn text(self) -> String {
        match self {
            Self::Public(site) => format!("the public port of the site `{}`", site.name),
            Self::Slot(site, slot) => format!("the port of slot {slot} of the site `{}`", site.name),
            Self::ResetServer => "the port of the reset server of harnesses".to_owned(),
        }
    }

    /// Returns the place in the files that gives the port this use, and a remark about it. `None` for a default.
    fn place(self, context: ValidationContext<'_>) -> Option<(Scope<'_>, String)> {
        let sites = context.environment.key("sites");
        match self {
            Self::Public(site) => {
                let place = port_place(context, sites.key(site.name.as_str()), site);
                Some((place, format!("`{}` has it here", site.name)))
            }
            Self::Slot(site, _) => {
                let place = sites.key(site.name.as_str()).key("ports").key("base");
                Some((place, format!("`{}` has it here", site.name)))
            }
            Self::ResetServer if context.environment.has("reset_port") => {
                Some((context.environment.key("reset_port"), "the reset server has it here".to_owned()))
            }
            Self::ResetServer => None,
        }
    }
}

/// Reports own ports that are used for something else as well. The episode proxy and the API are not known here: their
/// ports are the daemon's.
pub(super) fn free_ports(context: ValidationContext<'_>, sites: &[Site]) {
    let mut taken = BTreeMap::from([(context.reset_port, PortUse::ResetServer)]);
    taken.extend(sites.iter().map(|site| (site.public.port, PortUse::Public(site))));
    for site in sites {
        let Some(ports) = site.ports else { continue };
        // One report for each site: further slots are likely to meet the same site.
        for slot in 1..=site.slots.max {
            let Some(port) = ports.of(slot) else { break };
            let own = PortUse::Slot(site, slot);
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
            let Some((here, _)) = own.place(context) else { break };
            let mut draft = here.error("conflict", format!("{}, {port}, is {}", own.text(), other.text()));
            if let Some((there, remark)) = other.place(context) {
                draft = draft.related(there.source(), there.span(), remark);
            }
            draft.help(help).report();
            break;
        }
    }
}
