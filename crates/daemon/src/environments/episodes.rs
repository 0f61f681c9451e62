//! The sites as episodes see them: offered while they are up, withdrawn before they go down.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{EnvironmentError, EnvironmentRegistry, RunningEnvironment};
use crate::proxy::ProxyAccess;
use crate::records::EpisodeRecords;
use crate::slots::{self, EpisodeCopy, ForkError, SlotView, capacity};
use arenad_episodes::{EpisodeError, EpisodeView};
use arenad_gateway::Route;
use arenad_instance::{self as instance, InstanceHandle, RouteGate};
use arenad_model::episode::lease::SlotRefusal;
use arenad_model::episode::request::SiteCapacity;
use arenad_model::error::describe;
use arenad_model::ids::{SiteId, SiteName};
use arenad_model::instance::InstanceId;
use arenad_model::site::{RecordedRequests, Site};
use arenad_store::StoredInstance;

impl EnvironmentRegistry {
    /// Starts the driver of an instance, adds it to the slots, and watches it for its episodes.
    pub(super) fn spawn(
        &self,
        id: InstanceId,
        site: Arc<Site>,
        route: Route,
        stored: Option<StoredInstance>,
    ) -> InstanceHandle {
        let gate = RouteGate::new(route, self.slots.access(&id));
        let pool = self.pools.of(&self.shared, &id, &site);
        let instance = instance::spawn(&self.shared, id, site, gate, stored, pool);
        self.slots.enter(instance.clone());
        let watch = slots::watch(self.slots.clone(), self.episodes.clone(), instance.id.clone(), instance.changes());
        let shutdown = self.shared.shutdown.clone();
        self.shared.tasks.spawn(async move { shutdown.run_until_cancelled(watch).await });
        instance
    }

    /// Offers a site, and the slot of an instance that exists. The definition of the site may be newer than the
    /// instance's, because the number of slots can change while the site is up.
    pub(super) async fn offer(&self, instance: &InstanceHandle, site: &Site) {
        let (slot, capacity) = (instance.id.clone(), capacity(site));
        let offered = async {
            self.episodes.offer_site(slot.site_id(), capacity).await?;
            if capacity == SiteCapacity::Shared { Ok(()) } else { self.episodes.add_slot(slot.clone()).await }
        };
        match offered.await {
            // An episode has it since before a restart, or the site was offered before.
            Ok(()) | Err(EpisodeError::Slot(SlotRefusal::Exists(_))) | Err(EpisodeError::Stopping) => {}
            Err(error) => {
                tracing::error!(instance.id = %slot, error = describe(&error), "{slot} is not offered to episodes");
            }
        }
    }

    /// Ends the episodes that have or want a site, before its instance is removed.
    pub(super) async fn withdraw(&self, slot: &InstanceId) {
        match self.episodes.withdraw_site(slot.site_id()).await {
            Ok(()) | Err(EpisodeError::Stopping) => {}
            Err(error) => tracing::warn!(error = describe(&error), "the episodes of {} are void", slot.site_id()),
        }
    }

    /// Refuses to make instances anew that episodes have.
    pub(super) fn insist_on_no_lease(
        &self,
        changed: &BTreeMap<SiteName, InstanceHandle>,
    ) -> Result<(), EnvironmentError> {
        let is_changed = |slot: &InstanceId| changed.values().any(|instance| instance.id.site_id() == slot.site_id());
        let mut slots = self.slots.instances().into_iter().filter(|instance| is_changed(&instance.id));
        let held = slots.find_map(|instance| Some((instance.id.clone(), instance.holder()?)));
        held.map_or(Ok(()), |(instance, episode)| Err(EnvironmentError::Leased { instance, episode }))
    }

    /// Returns the access of the clients of episodes through the episode proxy.
    pub(crate) fn proxy_access(&self) -> &Arc<ProxyAccess> {
        self.slots.proxy_access()
    }

    /// Copies the state of all slots of an episode for its forks, and its record if they are recorded.
    pub(crate) async fn copy_episode(
        &self,
        view: &EpisodeView,
        records: RecordedRequests,
    ) -> Result<EpisodeCopy, ForkError> {
        self.slots.copy_episode(view, records).await
    }

    /// Begins to remove copies that no fork needs.
    pub(crate) fn remove_copies(&self) {
        self.shared.tasks.spawn(slots::remove_copies(self.slots.clone()));
    }

    /// Returns the records of episodes.
    pub(crate) fn records(&self) -> &Arc<EpisodeRecords> {
        self.slots.records()
    }

    /// Begins to make and remove further slots.
    pub(crate) fn keep_slot_numbers(self: &Arc<Self>) {
        let (shared, slots, episodes) = (self.shared.clone(), self.slots.clone(), self.episodes.clone());
        self.shared.tasks.spawn(slots::keep_numbers(shared, slots, episodes, self.clone()));
    }

    /// Returns the sites that may have, or still have, several slots, with their definitions.
    pub(crate) fn sites_of_several_slots(&self) -> Vec<(SiteId, Site)> {
        self.read(|running| {
            let of_environment = |environment: &RunningEnvironment| {
                let definition = &environment.definition;
                let sites = definition.sites.iter().filter_map(|site| {
                    let id = SiteId { environment: definition.name.clone(), site: site.name.clone() };
                    (site.slots.max > 1 || self.slots.has_further(&id)).then(|| (id, site.clone()))
                });
                sites.collect::<Vec<_>>()
            };
            running.values().flat_map(of_environment).collect()
        })
    }

    /// Returns a receiver that is told when an environment comes up, changes or goes down, and when a further slot is
    /// made.
    pub(crate) fn changes(&self) -> tokio::sync::watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Returns the slots of a site that have instances, by number.
    pub(crate) fn slots_of(&self, site: &SiteId) -> Vec<SlotView> {
        self.slots.of_site(site)
    }

    /// Returns the instances of all slots.
    pub(crate) fn instances(&self) -> Vec<InstanceHandle> {
        self.slots.instances()
    }

    /// Returns the instance of a slot, if it exists.
    pub fn slot(&self, slot: &InstanceId) -> Option<InstanceHandle> {
        self.slots.instance(slot)
    }
}
