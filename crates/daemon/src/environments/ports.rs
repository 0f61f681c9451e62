//! The public ports of sites, and the own ports of their slots.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use globset::{GlobBuilder, GlobSetBuilder};

use super::error::TakenPort;
use super::{EnvironmentError, EnvironmentRegistry};
use crate::slot_ports::UnopenedPort;
use arenad_gateway::{HoldLimits, OpenError, RecordingFilter, Route, WriteRules};
use arenad_model::error::describe;
use arenad_model::ids::SiteName;
use arenad_model::instance::InstanceId;
use arenad_model::site::{Environment, RecordedRequests, Site};

impl EnvironmentRegistry {
    /// Opens the public ports of all the sites, or of none if one fails, before any container of them is started.
    pub(super) async fn open_ports(
        &self,
        definition: &Environment,
        sites: &[&Site],
    ) -> Result<BTreeMap<SiteName, Route>, EnvironmentError> {
        let mut routes = BTreeMap::new();
        let mut taken = Vec::new();
        for site in sites {
            let address = SocketAddr::new(definition.listen, site.public.port);
            let hold = hold_limits(site);
            let (rules, record) = (write_rules(site), record(site));
            match self.shared.gateway.open(address, hold, rules, record, site.name.as_str()) {
                Ok(route) => {
                    routes.insert(site.name.clone(), route);
                }
                Err(error) => {
                    let owner = self.owner(address, &error).await;
                    taken.push(TakenPort { site: site.name.to_string(), address, owner });
                }
            }
        }
        if taken.is_empty() {
            return Ok(routes);
        }
        for route in routes.into_values() {
            route.close().await;
        }
        Err(EnvironmentError::PortsTaken(taken))
    }
}

impl EnvironmentRegistry {
    /// Opens the own ports of the sites' slots, or none if one fails. Returns the slots whose ports it has opened.
    pub(super) async fn open_slot_ports(
        &self,
        definition: &Environment,
        sites: &[&Site],
    ) -> Result<Vec<InstanceId>, EnvironmentError> {
        let unopened = match self.slot_ports.open(definition, sites).await {
            Ok(opened) => return Ok(opened),
            Err(unopened) => unopened,
        };
        let mut taken = Vec::new();
        for UnopenedPort { slot, address, error } in unopened {
            let owner = self.owner(address, &error).await;
            taken.push(TakenPort { site: slot.to_string(), address, owner });
        }
        Err(EnvironmentError::PortsTaken(taken))
    }

    /// Returns the program that uses a port, or the reason why the port cannot be opened.
    async fn owner(&self, address: SocketAddr, error: &OpenError) -> String {
        match error {
            OpenError::PortTaken { .. } => match self.own_use(address.port()) {
                Some(own) => format!("this daemon, as {own}"),
                None => self.shared.machine.port_owner(self.shared.engine.as_ref(), address).await,
            },
            error => describe(error),
        }
    }

    /// Returns the use that this daemon makes of a port, if sites that are up or the episode proxy have it.
    fn own_use(&self, port: u16) -> Option<String> {
        let of_sites = self.read(|running| {
            running.values().find_map(|environment| {
                let sites = environment.definition.sites.iter();
                let up = sites.filter(|site| environment.instances.contains_key(&site.name));
                up.filter_map(|site| use_of(site, port))
                    .next()
                    .map(|found| format!("{found} of {}", environment.definition.name))
            })
        });
        of_sites.or_else(|| self.slot_ports.is_proxy(port).then(|| "the episode proxy".to_owned()))
    }
}

/// Returns the use that a site makes of a port.
fn use_of(site: &Site, port: u16) -> Option<String> {
    if site.public.port == port {
        return Some(format!("the public port of {}", site.name));
    }
    let ports = site.ports?;
    let slot = (1..=site.slots.max).find(|slot| ports.of(*slot) == Some(port))?;
    Some(format!("the port of slot {slot} of {}", site.name))
}

pub(super) fn hold_limits(site: &Site) -> HoldLimits {
    HoldLimits { requests: site.reset.hold_requests, timeout: site.reset.hold_timeout }
}

/// Returns the gateway's rules for requests that may write to a site.
pub(super) fn write_rules(site: &Site) -> WriteRules {
    let mut reads = GlobSetBuilder::new();
    // Validation has compiled each pattern; a pattern that did not compile would count as a write.
    for pattern in &site.public.reads {
        if let Ok(glob) = GlobBuilder::new(pattern).literal_separator(true).build() {
            reads.add(glob);
        }
    }
    WriteRules { is_refused: site.public.refuses_writes, reads: reads.build().unwrap_or_default() }
}

pub(super) fn record(site: &Site) -> RecordingFilter {
    match site.public.recorded {
        RecordedRequests::Nothing => RecordingFilter::Nothing,
        RecordedRequests::Writes => RecordingFilter::Writes,
        RecordedRequests::All => RecordingFilter::All,
    }
}
