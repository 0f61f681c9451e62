//! The own ports of slots that are open.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use super::directory::SlotDirectory;
use crate::slots::DaemonSlots;
use arenad_episodes::EpisodeHandle;
use arenad_gateway::{OpenError, SlotPort};
use arenad_instance::shared::SharedParts;
use arenad_model::ids::{EnvironmentName, SiteId, SiteName};
use arenad_model::instance::InstanceId;
use arenad_model::site::{Environment, Site};

/// The knowledge by which requests to the ports are decided.
pub(super) struct SlotKnowledge {
    pub(super) slots: Arc<DaemonSlots>,
    pub(super) episodes: EpisodeHandle,
    environments: RwLock<BTreeMap<EnvironmentName, Arc<Environment>>>,
    /// The address of the episode proxy, if there is one.
    pub(super) proxy: OnceLock<String>,
}

impl SlotKnowledge {
    /// Returns the definition with which an environment was brought up.
    pub(super) fn definition(&self, environment: &EnvironmentName) -> Option<Arc<Environment>> {
        // Every change is one insertion, so a panic leaves a valid map.
        self.environments.read().unwrap_or_else(PoisonError::into_inner).get(environment).cloned()
    }
}

/// The own ports of slots that are open, with their slots.
pub(crate) struct SlotPortBoard {
    shared: Arc<SharedParts>,
    knowledge: Arc<SlotKnowledge>,
    open: Mutex<BTreeMap<InstanceId, SlotPort>>,
}

/// An own port that cannot be opened.
pub(crate) struct UnopenedPort {
    pub(crate) slot: InstanceId,
    pub(crate) address: SocketAddr,
    pub(crate) error: OpenError,
}

impl SlotPortBoard {
    pub(crate) fn new(shared: Arc<SharedParts>, slots: Arc<DaemonSlots>, episodes: EpisodeHandle) -> Self {
        let (environments, proxy) = (RwLock::default(), OnceLock::new());
        let knowledge = Arc::new(SlotKnowledge { slots, episodes, environments, proxy });
        Self { shared, knowledge, open: Mutex::default() }
    }

    // Every change is one insertion or removal, so a panic leaves a valid map.
    fn open_ports(&self) -> MutexGuard<'_, BTreeMap<InstanceId, SlotPort>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the address of the episode proxy, which explanations name.
    pub(crate) fn set_proxy(&self, server: &str) {
        // A daemon has one proxy, which is set once.
        let _ = self.knowledge.proxy.set(server.to_owned());
    }

    /// Returns whether the episode proxy listens on a port of this number.
    pub(crate) fn is_proxy(&self, port: u16) -> bool {
        let proxy = self.knowledge.proxy.get();
        proxy.and_then(|server| server.rsplit_once(':')?.1.parse().ok()) == Some(port)
    }

    /// Sets the definition by which requests are decided from now on.
    pub(crate) fn define(&self, definition: &Environment) {
        let mut environments = self.knowledge.environments.write().unwrap_or_else(PoisonError::into_inner);
        environments.insert(definition.name.clone(), Arc::new(definition.clone()));
    }

    /// Opens the ports that the sites are to have, and closes those that they had under an earlier definition. Returns
    /// the slots whose ports it has opened.
    ///
    /// Errors: the ports that cannot be opened; then none is.
    pub(crate) async fn open(
        &self,
        definition: &Environment,
        sites: &[&Site],
    ) -> Result<Vec<InstanceId>, Vec<UnopenedPort>> {
        let wanted: BTreeMap<InstanceId, SocketAddr> = sites.iter().flat_map(|site| wanted(definition, site)).collect();
        let is_chosen =
            |slot: &InstanceId| slot.environment == definition.name && sites.iter().any(|site| site.name == slot.site);
        self.close_where(|slot, address| is_chosen(slot) && wanted.get(slot) != Some(&address)).await;
        let (mut opened, mut unopened) = (Vec::new(), Vec::new());
        for (slot, address) in wanted {
            if self.open_ports().contains_key(&slot) {
                continue;
            }
            let directory = SlotDirectory::new(slot.clone(), self.knowledge.clone());
            match self.shared.gateway.open_slot_port(address, Arc::new(directory), slot.site.as_str()) {
                Ok(port) => {
                    self.open_ports().insert(slot.clone(), port);
                    opened.push(slot);
                }
                Err(error) => unopened.push(UnopenedPort { slot, address, error }),
            }
        }
        if unopened.is_empty() {
            return Ok(opened);
        }
        self.close(&opened).await;
        Err(unopened)
    }

    /// Closes the ports of slots.
    pub(crate) async fn close(&self, slots: &[InstanceId]) {
        self.close_where(|slot, _| slots.contains(slot)).await;
    }

    /// Closes the ports of all slots of a site.
    pub(crate) async fn close_site(&self, environment: &EnvironmentName, site: &SiteName) {
        let id = SiteId { environment: environment.clone(), site: site.clone() };
        self.close_where(|slot, _| slot.site_id() == id).await;
    }

    async fn close_where(&self, is_meant: impl Fn(&InstanceId, SocketAddr) -> bool) {
        let mut closed = Vec::new();
        self.open_ports().retain(|slot, port| {
            let stays = !is_meant(slot, port.local_addr());
            if !stays {
                closed.push(port.clone());
            }
            stays
        });
        for port in closed {
            port.close().await;
        }
    }
}

/// Returns the own ports that a site is to have.
fn wanted(definition: &Environment, site: &Site) -> BTreeMap<InstanceId, SocketAddr> {
    let Some(ports) = site.ports else { return BTreeMap::new() };
    let slot = |number| InstanceId { environment: definition.name.clone(), site: site.name.clone(), number };
    let found = (1..=site.slots.max)
        .filter_map(|number| Some((slot(number), SocketAddr::new(definition.listen, ports.of(number)?))));
    found.collect()
}
