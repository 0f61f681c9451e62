//! The further slots of sites: instances with numbers above 1, without public ports.
//!
//! They exist as long as their site is up, and come and go with the requests for episodes (`slots/scale`). They are made
//! from the baseline of slot 1, so that is made first.

use std::sync::Arc;

use super::down::all_down;
use super::ports::{hold_limits, record, write_rules};
use super::{EnvironmentError, EnvironmentRegistry};
use crate::slots::is_public;
use arenad_instance::InstanceHandle;
use arenad_model::error::describe;
use arenad_model::ids::SiteId;
use arenad_model::instance::{InstanceId, InstanceState};
use arenad_model::request_queue::{InstanceRequest, Purpose, Want};
use arenad_model::site::Site;
use arenad_store::StoreError;

impl EnvironmentRegistry {
    /// Begins to make a further slot of a site that is up. It is offered to episodes once it equals its baseline.
    pub(crate) async fn add_further(&self, slot: &InstanceId) -> Result<(), EnvironmentError> {
        let _turn = self.change.lock().await;
        let Some(site) = self.site_of(&slot.site_id()).filter(|_| !self.has_driver(slot)) else { return Ok(()) };
        self.shared.store.want_instance(slot).await?;
        self.begin_further(slot, site, Purpose::Client).await
    }

    /// Returns the definition of a site that is up.
    fn site_of(&self, site: &SiteId) -> Option<Arc<Site>> {
        self.read(|running| {
            let running = running.get(site.environment.as_str())?;
            running.instances.contains_key(&site.site).then_some(())?;
            running.definition.sites.iter().find(|known| known.name == site.site).cloned().map(Arc::new)
        })
    }

    async fn begin_further(
        &self,
        slot: &InstanceId,
        site: Arc<Site>,
        purpose: Purpose,
    ) -> Result<(), EnvironmentError> {
        let row = self.shared.store.instance(slot).await?;
        let gateway = &self.shared.gateway;
        let route =
            gateway.open_without_port(hold_limits(&site), write_rules(&site), record(&site), site.name.as_str());
        let instance = self.spawn(slot.clone(), site.clone(), route, row);
        instance.ask_for(InstanceRequest { want: Want::Up, purpose }).await?;
        self.offer(&instance, &site).await;
        self.changed.send_replace(());
        Ok(())
    }

    /// Removes a further slot if it is free.
    pub(crate) async fn retire_further(&self, slot: &InstanceId) -> Result<(), EnvironmentError> {
        let _turn = self.change.lock().await;
        let Some(instance) = self.slot(slot) else { return Ok(()) };
        // A slot that has been reserved meanwhile is kept.
        if self.episodes.retire_slot(slot.clone()).await.is_err() {
            return Ok(());
        }
        let removed = self.remove_slots(vec![instance]).await;
        if removed.is_err()
            && let (Some(instance), Some(site)) = (self.slot(slot), self.site_of(&slot.site_id()))
        {
            self.keep_further(&instance, &site).await;
        }
        removed
    }

    /// Removes all further slots of sites that have been withdrawn from episodes.
    ///
    /// Errors: [`EnvironmentError::NotDown`] if a slot is left.
    pub(super) async fn remove_further(&self, firsts: &[InstanceHandle]) -> Result<(), EnvironmentError> {
        let is_meant =
            |slot: &InstanceId| !is_public(slot) && firsts.iter().any(|first| first.id.site_id() == slot.site_id());
        let meant = self.slots.instances().into_iter().filter(|instance| is_meant(&instance.id));
        self.remove_slots(meant.collect()).await?;
        self.remove_undriven(firsts).await
    }

    /// Offers a further slot again that could not be removed. It is brought back to its baseline like after an episode,
    /// which makes its containers again.
    async fn keep_further(&self, instance: &InstanceHandle, site: &Site) {
        self.want_again(&instance.id).await;
        self.offer(instance, site).await;
    }

    /// Records that an instance stays up. If that fails, the next daemon does not restore it.
    async fn want_again(&self, slot: &InstanceId) {
        if let Err(error) = self.shared.store.want_instance(slot).await {
            tracing::warn!(instance.id = %slot, error = describe(&error), "{slot} stays up, and a new daemon leaves it down");
        }
    }

    /// Offers sites to episodes again that were withdrawn, and stay up because a slot could not be removed.
    pub(super) async fn offer_again(&self, firsts: &[InstanceHandle]) {
        for first in firsts {
            let id = first.id.site_id();
            let Some(site) = self.site_of(&id) else { continue };
            self.want_again(&first.id).await;
            self.offer(first, &site).await;
            let of_site = |instance: &InstanceHandle| !is_public(&instance.id) && instance.id.site_id() == id;
            for instance in self.slots.instances().into_iter().filter(of_site) {
                self.keep_further(&instance, &site).await;
            }
        }
    }

    /// Offers a site to episodes again that was withdrawn and that its `down` left half way. People decide whether it comes
    /// up again, and from then on episodes get it as well.
    pub(super) async fn offer_remains(&self, first: &InstanceHandle) {
        let Some(site) = self.site_of(&first.id.site_id()) else { return };
        // Nothing that an episode has left in it can serve again.
        if first.with_report(|report| matches!(report.state, InstanceState::Down | InstanceState::Failed(_))) {
            self.slots.give_to_people(&first.id);
        }
        self.offer(first, &site).await;
    }

    /// Removes the containers of further slots of sites that have no driver, because an earlier daemon began to remove
    /// them.
    async fn remove_undriven(&self, firsts: &[InstanceHandle]) -> Result<(), EnvironmentError> {
        for first in firsts {
            for row in self.shared.store.instances(first.id.environment.as_str()).await? {
                let is_meant = row.id.site_id() == first.id.site_id() && !is_public(&row.id);
                if is_meant && !self.has_driver(&row.id) {
                    self.remove_remains(&row.id).await?;
                }
            }
        }
        Ok(())
    }

    async fn remove_slots(&self, slots: Vec<InstanceHandle>) -> Result<(), EnvironmentError> {
        let removed = self.remove_instances(slots).await?;
        all_down(removed.left.into_iter().map(|(slot, failure)| (slot.to_string(), failure)).collect())
    }

    /// Restores the further slots of sites that are up. Episodes of an earlier daemon may have them.
    pub(super) async fn restore_further(&self) -> Result<(), StoreError> {
        for stored in self.shared.store.environments().await? {
            for row in self.shared.store.instances(&stored.name).await? {
                let is_missing = row.desired_up && !is_public(&row.id) && !self.has_driver(&row.id);
                let Some(site) = self.site_of(&row.id.site_id()).filter(|_| is_missing) else { continue };
                if self.shared.store.other_engine_of(&row.id).await?.is_some() {
                    continue;
                }
                if let Err(error) = self.begin_further(&row.id, site, Purpose::Restore).await {
                    tracing::warn!(instance.id = %row.id, error = describe(&error), "{} is not restored", row.id);
                }
            }
        }
        Ok(())
    }
}
