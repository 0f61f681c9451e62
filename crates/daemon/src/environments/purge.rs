//! Removing the snapshots and built images of sites that are down.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{EnvironmentError, EnvironmentRegistry};
use crate::imports;
use arenad_baseline::snapshot;
use arenad_engine::{Image, labels};
use arenad_model::site::Site;

impl EnvironmentRegistry {
    pub(super) async fn purge(&self, environment: &str, sites: &[Arc<Site>]) -> Result<(), EnvironmentError> {
        let engine = self.shared.engine.as_ref();
        for stored in self.shared.store.snapshots().await? {
            if sites.iter().any(|site| stored.is_of(environment, site.name.as_str())) {
                snapshot::remove(&self.shared.baselines, &stored).await?;
            }
        }
        let still_needed: BTreeSet<String> = self.read(|running| {
            let handles = running.values().flat_map(|running| running.instances.values());
            handles.flat_map(|handle| handle.site.services.iter().map(|service| service.image.clone())).collect()
        });
        let built = sites.iter().flat_map(|site| &site.services).filter(|service| service.build.is_some());
        let mut tags: BTreeSet<String> = built.map(|service| service.image.clone()).collect();
        tags.retain(|tag| !still_needed.contains(tag));
        // An installation with snapshots may come up again and need its images. An installation without snapshots no
        // longer exists.
        let snapshots = engine.images(labels::ROLE, Some(labels::ROLE_SNAPSHOT)).await?;
        let others: BTreeSet<String> =
            snapshots.iter().filter_map(owner).filter(|owner| *owner != self.shared.installation).collect();
        for tag in tags {
            if let Some(image) = engine.image(&tag).await?
                && owner(&image).is_none_or(|owner| !others.contains(&owner))
            {
                remove_unused(engine, &image.id).await?;
            }
        }
        if still_needed.is_empty() { self.purge_images().await } else { Ok(()) }
    }

    /// Removes all snapshots and all images that were built here; refused while any environment is up.
    pub(crate) async fn purge_all(&self) -> Result<(), EnvironmentError> {
        let turn = self.change.lock().await;
        let up: Vec<String> = self.read(|running| running.keys().cloned().collect());
        if !up.is_empty() {
            return Err(EnvironmentError::StillUp(up));
        }
        for stored in self.shared.store.snapshots().await? {
            snapshot::remove(&self.shared.baselines, &stored).await?;
        }
        imports::give_up_all(&self.shared).await?;
        self.purge_images().await?;
        drop(turn);
        // Images on which later snapshots were based have become orphans now.
        self.reconcile(true).await;
        Ok(())
    }

    /// Removes the images that this installation built, once no environment that needs them is up.
    async fn purge_images(&self) -> Result<(), EnvironmentError> {
        let engine = self.shared.engine.as_ref();
        let ours = &self.shared.installation;
        // Snapshots inherit the labels of the image they were taken from, but have rows of their own.
        for image in engine.images(labels::INSTALLATION, Some(ours)).await? {
            let is_built = image.labels.contains_key(labels::BUILD_INPUTS) && !image.labels.contains_key(labels::ROLE);
            if is_built {
                remove_unused(engine, &image.id).await?;
            }
        }
        // Stages of multi-stage builds belong to no installation: they stay as long as another installation may build
        // on them. The base image under all stages is not arenad's: scripts/base-image.sh made it.
        let all = engine.images(labels::INSTALLATION, None).await?;
        if all.iter().filter_map(owner).any(|owner| owner != *ours) {
            return Ok(());
        }
        for image in engine.images(labels::BUILD_STAGE, None).await? {
            remove_unused(engine, &image.id).await?;
        }
        Ok(())
    }
}

/// Returns the id of the installation that an image belongs to.
fn owner(image: &Image) -> Option<String> {
    image.labels.get(labels::INSTALLATION).cloned()
}

async fn remove_unused(engine: &dyn arenad_engine::Engine, id: &str) -> Result<(), arenad_engine::EngineError> {
    match engine.remove_image(id).await {
        // Another program's container or image needs it, so it is not removed.
        Err(arenad_engine::EngineError::Conflict { .. }) => Ok(()),
        result => result,
    }
}
