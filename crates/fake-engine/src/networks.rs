//! The networks and volumes of a simulated engine.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use super::errors::{conflict, not_found, refused};
use super::files::ContainerMount;
use super::world::{EngineWorld, FakeContainer, Network, Volume};
use arenad_engine::EngineError;
use arenad_model::subnet::Subnet;

impl EngineWorld {
    pub(super) fn create_network(
        &mut self,
        doing: &str,
        name: &str,
        subnet: Subnet,
        labels: BTreeMap<String, String>,
    ) -> Result<(), EngineError> {
        let networks = &self.holdings.networks;
        if networks.iter().any(|network| network.subnet.overlaps(subnet)) {
            return Err(refused(doing, 403, "Pool overlaps with other one on this address space"));
        }
        let network = Network { name: name.to_owned(), subnet, labels, foreign: BTreeMap::new() };
        self.holdings.networks.push(network);
        Ok(())
    }

    pub(super) fn network(&mut self, doing: &str, name: &str) -> Result<&mut Network, EngineError> {
        let mut named = self.holdings.networks.iter_mut().filter(|network| network.name == name);
        match (named.next(), named.next()) {
            (Some(found), None) => Ok(found),
            (None, _) => Err(not_found(doing, format!("network {name} not found"))),
            // Docker 20.10 allows two networks with the same name, and then rejects the name as ambiguous.
            (Some(_), Some(_)) => {
                let more = 2 + named.count();
                Err(refused(doing, 400, format!("network {name} is ambiguous ({more} matches found on name)")))
            }
        }
    }

    fn addresses(&self, name: &str) -> BTreeSet<Ipv4Addr> {
        let own = self.holdings.containers.values().filter_map(|container| container.addresses.get(name));
        let foreign = self.holdings.networks.iter().filter(|network| network.name == name);
        own.chain(foreign.flat_map(|network| network.foreign.values())).copied().collect()
    }

    /// Returns the lowest free address of a network.
    pub(super) fn free_address(&mut self, doing: &str, name: &str) -> Result<Ipv4Addr, EngineError> {
        let subnet = self.network(doing, name)?.subnet;
        let taken = self.addresses(name);
        let first = u32::from(subnet.gateway()) + 1;
        let is_free = |address: &Ipv4Addr| !taken.contains(address);
        let inside = |address: &Ipv4Addr| {
            // The last address of the range is the broadcast address.
            let next = Ipv4Addr::from(u32::from(*address).saturating_add(1));
            subnet.contains(Subnet::new(*address, 32)) && subnet.contains(Subnet::new(next, 32))
        };
        let found = (first..).map(Ipv4Addr::from).take_while(inside).find(is_free);
        found.ok_or_else(|| {
            refused(doing, 500, format!("no available IPv4 addresses on this network's address pools: {name}"))
        })
    }

    pub(super) fn remove_network(&mut self, doing: &str, name: &str) -> Result<(), EngineError> {
        let is_in = |container: &FakeContainer| container.addresses.contains_key(name);
        let is_foreign = |network: &Network| network.name == name && !network.foreign.is_empty();
        let is_used = self.holdings.containers.values().any(is_in) || self.holdings.networks.iter().any(is_foreign);
        if is_used {
            let message = format!("error while removing network: network {name} has active endpoints");
            return Err(refused(doing, 403, message));
        }
        self.holdings.networks.retain(|network| network.name != name);
        Ok(())
    }

    pub(super) fn remove_volume(&mut self, doing: &str, name: &str) -> Result<(), EngineError> {
        let mounts = |container: &FakeContainer| {
            container
                .mounts
                .values()
                .any(|mount| matches!(mount, ContainerMount::Volume { name: found, .. } if found == name))
        };
        if let Some((id, _)) = self.holdings.containers.iter().find(|(_, container)| mounts(container)) {
            return Err(conflict(doing, format!("remove {name}: volume is in use - [{id}]")));
        }
        self.holdings.volumes.remove(name);
        Ok(())
    }

    /// Creates a volume; an existing volume of that name is left unchanged.
    pub(super) fn create_volume(&mut self, name: &str, labels: BTreeMap<String, String>) {
        self.holdings.volumes.entry(name.to_owned()).or_insert_with(|| Volume { labels, ..Volume::default() });
    }
}
