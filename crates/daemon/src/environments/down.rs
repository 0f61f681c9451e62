//! The way down: sites are withdrawn from episodes, and their instances and drivers are removed.

use std::sync::Arc;

use super::{EnvironmentError, EnvironmentRegistry};
use crate::slots::is_public;
use crate::stranded::Stranded;
use arenad_engine::labels;
use arenad_instance::{InstanceHandle, OperationOutcome};
use arenad_launch::{GenerationSelector, Remains, RemoveError};
use arenad_model::error::describe;
use arenad_model::event::EventKind;
use arenad_model::instance::{InstanceFailure, InstanceId};
use arenad_model::request_queue::Want;
use arenad_model::site::Site;

impl EnvironmentRegistry {
    /// Takes the named sites down, or all if none is named, and waits for the end. With `purge`, it also removes their
    /// snapshots and the images built for them.
    pub(crate) async fn down(&self, name: &str, sites: &[String], purge: bool) -> Result<(), EnvironmentError> {
        let _turn = self.change.lock().await;
        if let Some(stranded) = self.stranded.get(name) {
            return self.remove_stranded(&stranded, sites, purge).await;
        }
        let handles = self.choose(name, sites)?;
        let RemovedInstances { gone, left } = self.take_down(handles).await?;
        // A daemon without environments may stop before its own search.
        self.slots.remove_unused_copies().await;
        if purge {
            self.purge(name, &gone).await?;
        }
        let is_empty = self.read(|running| running.get(name).is_none_or(|running| running.instances.is_empty()));
        if is_empty {
            self.shared.store.forget_environment(name).await?;
            self.write(|running| running.remove(name));
            let message = format!("environment {name} is down");
            self.shared.events.note(EventKind::EnvironmentDown, None, &message).await;
        }
        let left = left.into_iter().map(|(slot, trouble)| (slot.site.to_string(), trouble)).collect();
        all_down(left)
    }

    /// Withdraws sites from episodes, and takes their slots down. Sites that stay are offered to episodes again.
    pub(super) async fn take_down(&self, firsts: Vec<InstanceHandle>) -> Result<RemovedInstances, EnvironmentError> {
        for first in &firsts {
            self.withdraw(&first.id).await;
        }
        let ids: Vec<InstanceId> = firsts.iter().map(|first| first.id.clone()).collect();
        // The handles are moved, because a driver ends when its last handle is gone.
        let removed = async move {
            self.remove_further(&firsts).await?;
            self.remove_instances(firsts).await
        };
        let removed = match removed.await {
            Ok(removed) => removed,
            Err(error) => {
                // The sites stay up. Slots that episodes had are brought back to their baselines.
                let stay: Vec<InstanceHandle> = ids.iter().filter_map(|id| self.slot(id)).collect();
                self.offer_again(&stay).await;
                return Err(error);
            }
        };
        for (slot, _) in &removed.left {
            if let Some(first) = self.slot(slot) {
                self.offer_remains(&first).await;
            }
        }
        Ok(removed)
    }

    /// Takes instances down, and waits until their drivers have ended.
    ///
    /// Errors: the store did not record that they should be down, and all of them are as before.
    pub(super) async fn remove_instances(
        &self,
        instances: Vec<InstanceHandle>,
    ) -> Result<RemovedInstances, EnvironmentError> {
        for instance in &instances {
            self.shared.store.unwant_instance(&instance.id).await?;
        }
        let mut removed = RemovedInstances::default();
        let mut tickets = Vec::new();
        for instance in instances {
            match instance.ask(Want::Down).await {
                Ok(ticket) => tickets.push((instance, ticket)),
                Err(refused) => removed.left.push((instance.id, left(describe(&refused)))),
            }
        }
        for (instance, ticket) in tickets {
            match not_done(ticket.wait().await) {
                Some(trouble) => removed.left.push((instance.id.clone(), trouble)),
                None => {
                    removed.gone.push(instance.site.clone());
                    self.dismiss(instance).await;
                }
            }
        }
        Ok(removed)
    }

    /// Drops the handle of a driver, and waits until the driver has ended and its port is free.
    pub(super) async fn dismiss(&self, handle: InstanceHandle) {
        let id = &handle.id;
        if is_public(id) {
            self.write(|running| running.get_mut(id.environment.as_str())?.instances.remove(&id.site));
            self.slot_ports.close_site(&id.environment, &id.site).await;
        }
        self.slots.leave(id);
        let mut changes = handle.changes();
        drop(handle);
        while changes.changed().await.is_ok() {}
    }

    /// Removes all objects of an instance that has no driver, and of slot 1 all generations of the site, whose slots have no
    /// drivers either.
    pub(super) async fn remove_remains(&self, id: &InstanceId) -> Result<(), RemoveError> {
        let which = GenerationSelector::All;
        for role in [labels::ROLE_BUILDER, labels::ROLE_INSTANCE] {
            if role == labels::ROLE_BUILDER || is_public(id) {
                let installation = &self.shared.installation;
                self.shared.remove(Remains { installation, instance: id, role, which }).await?;
            }
        }
        Ok(())
    }

    /// Removes the remains of sites that have no driver.
    async fn remove_stranded(
        &self,
        stranded: &Stranded,
        sites: &[String],
        purge: bool,
    ) -> Result<(), EnvironmentError> {
        let is_meant = |site: &str| sites.is_empty() || sites.iter().any(|named| named == site);
        let meant = stranded.instances.iter().map(|row| &row.id).filter(|id| is_meant(id.site.as_str()));
        for id in meant {
            if is_public(id) {
                self.withdraw(id).await;
            }
            self.shared.store.unwant_instance(id).await?;
            self.remove_remains(id).await?;
            // Containers on another engine are still there. When that engine is back, they must not serve again.
            self.shared.store.disown_serving(id).await?;
            // The mark of a slot that an episode has had stays until its containers cannot serve again.
            self.slots.leave(id);
        }
        if purge {
            let defined = stranded.definition.iter().flat_map(|definition| &definition.sites);
            let gone: Vec<Arc<Site>> =
                defined.filter(|site| is_meant(site.name.as_str())).map(|site| Arc::new(site.clone())).collect();
            self.purge(&stranded.name, &gone).await?;
        }
        if stranded.instances.iter().all(|row| is_meant(row.id.site.as_str())) {
            self.shared.store.forget_environment(&stranded.name).await?;
            self.stranded.forget(&stranded.name);
        } else {
            let mut rest = stranded.clone();
            rest.instances.retain(|row| !is_meant(row.id.site.as_str()));
            self.stranded.forget(&stranded.name);
            self.stranded.keep(rest);
        }
        Ok(())
    }
}

/// The result of taking instances down.
#[derive(Default)]
pub(super) struct RemovedInstances {
    /// The sites of the instances that are down.
    pub(super) gone: Vec<Arc<Site>>,
    /// The instances that are not down, with the reason.
    pub(super) left: Vec<(InstanceId, InstanceFailure)>,
}

/// Returns an error if anything is not down.
pub(super) fn all_down(left: Vec<(String, InstanceFailure)>) -> Result<(), EnvironmentError> {
    if left.is_empty() { Ok(()) } else { Err(EnvironmentError::NotDown(left)) }
}

/// Returns the reason why a site is not down; `None` only if the `down` operation completed.
fn not_done(outcome: OperationOutcome) -> Option<InstanceFailure> {
    match outcome {
        OperationOutcome::Done { .. } => None,
        OperationOutcome::Failed(trouble) => Some(trouble),
        OperationOutcome::Superseded => Some(left("something else was asked for".to_owned())),
        OperationOutcome::Stopped => Some(left("the daemon ended before it was done".to_owned())),
    }
}

/// Describes a site that is not down for this reason.
fn left(reason: String) -> InstanceFailure {
    InstanceFailure { reason, hint: "`arenad down` again takes down what is left".to_owned() }
}
