//! Where a request to the own port of a slot goes.

use std::sync::Arc;
use std::time::Duration;

use super::board::SlotKnowledge;
use crate::proxy::admitted;
use crate::slots::{capacity, is_public};
use arenad_episodes::EpisodeView;
use arenad_gateway::{
    OtherPlace, OtherSite, ProxyRefusal, SlotLease, SlotPortDecision, SlotPortDirectory, SlotPortSite,
};
use arenad_model::episode::fence::FenceDecision;
use arenad_model::episode::ids::EpisodeId;
use arenad_model::episode::request::SiteCapacity;
use arenad_model::instance::InstanceId;
use arenad_model::proxy_address::{canonical, own_host, own_url};
use arenad_model::site::{BodyAddresses, Environment, Site};

/// The `Retry-After` of refusals that end soon.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// Decides on the requests to the port of one slot.
pub(super) struct SlotDirectory {
    slot: InstanceId,
    knowledge: Arc<SlotKnowledge>,
}

impl SlotDirectory {
    pub(super) fn new(slot: InstanceId, knowledge: Arc<SlotKnowledge>) -> Self {
        Self { slot, knowledge }
    }

    fn shown(&self) -> String {
        format!("slot {} of {}", self.slot.number, self.slot.site)
    }

    fn no_lease(&self) -> SlotPortDecision {
        let reason = match self.knowledge.episodes.lease_of(&self.slot) {
            Some(_) => "an episode got it after this connection began: open another connection".to_owned(),
            None => format!("no episode has {} at present", self.shown()),
        };
        SlotPortDecision::NoLease { reason, retry_after: RETRY_AFTER }
    }

    /// Refuses a request whose host names an episode that does not have the slot.
    fn other_lease(&self, named: &EpisodeId) -> SlotPortDecision {
        let reason = match self.knowledge.episodes.admit_lease(named) {
            FenceDecision::Ended(ending) => format!("episode {named} has ended ({ending})"),
            _ => format!("episode {named} does not have {}", self.shown()),
        };
        SlotPortDecision::OtherLease { reason }
    }

    fn decide(&self, id: &EpisodeId, host: &str, port: u16) -> Result<SlotPortDecision, ProxyRefusal> {
        let unavailable =
            |reason: &str| ProxyRefusal::Unavailable { reason: reason.to_owned(), retry_after: RETRY_AFTER };
        let SlotKnowledge { slots, episodes, .. } = self.knowledge.as_ref();
        let access = slots.proxy_access().admitted(id, || admitted(&episodes.admit_lease(id)))?;
        let view = episodes.get(id).map_err(|_| ProxyRefusal::Credentials)?;
        let own = view.slots.iter().find(|slot| slot.instance == self.slot);
        let lost = || unavailable(&format!("it has lost {}", self.shown()));
        let generation = own.and_then(|slot| slot.generation).ok_or_else(lost)?;
        let definition = self.knowledge.definition(&self.slot.environment);
        let definition = definition.ok_or_else(|| unavailable("its environment is not up yet"))?;
        let site = definition.sites.iter().find(|site| site.name == self.slot.site).ok_or_else(lost)?;
        let ports = site.ports.ok_or_else(lost)?;
        let canonical = canonical(site, &definition.host);
        let is_canonical = host == definition.host.to_ascii_lowercase() && port == site.public.port;
        if ports.bodies == BodyAddresses::Unmappable && !is_canonical {
            return Ok(SlotPortDecision::Unmappable { instead: self.instead(site) });
        }
        let instance = slots.instance(&self.slot);
        let instance = instance.ok_or_else(|| unavailable(&format!("{} is not up yet", self.shown())))?;
        Ok(SlotPortDecision::Site(SlotPortSite {
            route: instance.route(),
            canonical,
            generation: Some(generation),
            access,
            others: others(&definition, site, &view),
            maps_bodies: ports.bodies == BodyAddresses::Mapped,
        }))
    }

    /// Returns the way to a site that has no usable port of its own.
    fn instead(&self, site: &Site) -> String {
        match self.knowledge.proxy.get() {
            Some(server) => format!("use {} through the episode proxy {server}", own_url(site)),
            None => "use the episode proxy, which this daemon does not offer at present".to_owned(),
        }
    }
}

impl SlotPortDirectory for SlotDirectory {
    fn lease(&self) -> Option<SlotLease> {
        self.knowledge.episodes.lease_of(&self.slot).map(|id| SlotLease(id.to_string()))
    }

    fn resolve(&self, lease: Option<&SlotLease>, host: &str, port: u16) -> SlotPortDecision {
        let lease: Option<EpisodeId> = lease.and_then(|lease| lease.0.parse().ok());
        let named: Option<EpisodeId> = host.split('.').next().and_then(|label| label.parse().ok());
        match (lease, named) {
            (lease, Some(named)) if lease.as_ref() != Some(&named) => self.other_lease(&named),
            (None, _) => self.no_lease(),
            (Some(id), _) => self.decide(&id, host, port).unwrap_or_else(SlotPortDecision::Refused),
        }
    }
}

/// Returns the addresses of the other sites of the environment, as far as they are not the canonical ones.
fn others(definition: &Environment, own: &Site, view: &EpisodeView) -> Vec<OtherSite> {
    let others = definition.sites.iter().filter(|site| site.name != own.name);
    let found = others.filter_map(|site| {
        let slot = view.slots.iter().find(|slot| slot.instance.site == site.name).map(|slot| &slot.instance);
        let own_port = slot.and_then(|slot| site.ports?.of(slot.number));
        let is_shared = capacity(site) == SiteCapacity::Shared;
        let place = other_place(is_shared, slot.is_some_and(is_public), own_port, &own_host(site))?;
        Some(OtherSite { canonical: canonical(site, &definition.host), place })
    });
    found.collect()
}

/// Returns the address that takes the place of a site's canonical one; `None` if that leads the client to its own slot,
/// or to a site that all episodes share.
///
/// Without a slot or a port, the canonical address would lead to another client's slot. The name through the episode
/// proxy takes its place, which no other resolver knows.
fn other_place(is_shared: bool, is_public: bool, own_port: Option<u16>, proxied: &str) -> Option<OtherPlace> {
    match own_port {
        _ if is_shared => None,
        Some(port) => Some(OtherPlace::Port(port)),
        None if is_public => None,
        None => Some(OtherPlace::Host(proxied.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_address_leads_to_a_slot_that_the_episode_does_not_have() {
        let proxied = Some(OtherPlace::Host("forum.arena.test".to_owned()));
        let place = |is_shared, is_public, port| other_place(is_shared, is_public, port, "forum.arena.test");
        assert_eq!(place(false, false, Some(17_780)), Some(OtherPlace::Port(17_780)));
        assert_eq!(place(false, true, Some(17_770)), Some(OtherPlace::Port(17_770)), "slot 1 has an own port too");
        assert_eq!(place(false, true, None), None, "the episode has the slot at the public port");
        assert_eq!(place(false, false, None), proxied, "a further slot without a port, or no slot at all");
        assert_eq!(place(true, false, None), None);
    }
}
