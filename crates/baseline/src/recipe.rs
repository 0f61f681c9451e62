//! The identities of a baseline: hashes of the inputs that it is made from.
//!
//! The key contains the ids of the images. Two hosts that build the same files get images with different ids, so the
//! key identifies a baseline on one host only; the recipe, which contains the inputs of the builds, identifies it on
//! others as well.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use super::inputs::StepInputs;
use super::{BaselineError, BaselineParts, snapshot};
use arenad_build_context as context;
use arenad_engine::{Image, labels};
use arenad_model::hex::hex;
use arenad_model::ids::ServiceName;
use arenad_model::instance::InstanceId;
use arenad_model::service::ServiceSpec;
use arenad_model::site::Site;
use arenad_model::snapshot::Snapshot;

/// Returns the SHA-256 of everything that a baseline depends on: the relevant parts of the definition, the folders that
/// its commands get, and the images' ids.
pub(crate) fn key(site: &Site, images: &BTreeMap<ServiceName, Image>, steps: &StepInputs) -> String {
    let mut digest = Sha256::new();
    digest.update(&site.baseline_inputs);
    steps.add_to(&mut digest);
    for (service, image) in images {
        digest.update(format!("\0{service}={}", image.id));
    }
    hex(&digest.finalize())
}

/// Returns the recipe of a baseline that is made from these images.
pub(crate) fn of_images(site: &Site, images: &BTreeMap<ServiceName, Image>, steps: &StepInputs) -> String {
    let inputs = |service: &ServiceSpec| {
        let image = images.get(&service.name).filter(|_| service.build.is_some());
        image.and_then(|image| image.labels.get(labels::BUILD_INPUTS).cloned())
    };
    hash(site, steps, inputs)
}

/// SHA-256 of the definition's relevant parts, the folders that its commands get and, for each service, the inputs of
/// its build or else its image reference.
fn hash(site: &Site, steps: &StepInputs, inputs: impl Fn(&ServiceSpec) -> Option<String>) -> String {
    let mut digest = Sha256::new();
    digest.update(&site.baseline_inputs);
    steps.add_to(&mut digest);
    for service in &site.services {
        let made_from = inputs(service).unwrap_or_else(|| service.image.clone());
        digest.update(format!("\0{}={made_from}", service.name));
    }
    hex(&digest.finalize())
}

/// Returns an imported baseline that has the site's recipe, unless the site has a baseline of its own. It saves
/// building the images and making a baseline.
pub(crate) async fn imported(
    parts: &BaselineParts,
    id: &InstanceId,
    site: &Site,
    steps: &StepInputs,
) -> Result<Option<Snapshot>, BaselineError> {
    let known = parts.store.imported_baselines(id.environment.as_str(), site.name.as_str()).await?;
    if known.is_empty() {
        return Ok(None);
    }
    let Some(inputs) = build_inputs(site).await else { return Ok(None) };
    let recipe = hash(site, steps, |service| inputs.get(&service.name).cloned());
    for found in known.into_iter().filter(|found| found.recipe.as_ref() == Some(&recipe)) {
        if snapshot::is_usable(parts, site, &found).await? {
            return Ok(if has_own(parts, id, site, &inputs, steps).await? { None } else { Some(found) });
        }
    }
    Ok(None)
}

/// Returns the inputs of each build; `None` if a context cannot be read, which the build itself reports in more detail.
async fn build_inputs(site: &Site) -> Option<BTreeMap<ServiceName, String>> {
    let builds: Vec<_> =
        site.services.iter().filter_map(|service| Some((service.name.clone(), service.build.clone()?))).collect();
    let pack =
        move || builds.into_iter().map(|(name, build)| Some((name, context::pack(&build).ok()?.inputs))).collect();
    arenad_seams::inline::blocking(pack).await.ok()?
}

/// Whether the site has a baseline that was made on this host, from the images that exist now.
async fn has_own(
    parts: &BaselineParts,
    id: &InstanceId,
    site: &Site,
    inputs: &BTreeMap<ServiceName, String>,
    steps: &StepInputs,
) -> Result<bool, BaselineError> {
    let mut images = BTreeMap::new();
    for service in &site.services {
        let is_current = |image: &Image| {
            inputs.get(&service.name).is_none_or(|inputs| image.labels.get(labels::BUILD_INPUTS) == Some(inputs))
        };
        match parts.engine.image(&service.image).await?.filter(is_current) {
            Some(image) => images.insert(service.name.clone(), image),
            None => return Ok(false),
        };
    }
    let key = key(site, &images, steps);
    let own = parts.store.baseline(id.environment.as_str(), site.name.as_str(), &key).await?;
    match own.filter(|own| !own.is_imported) {
        Some(own) => Ok(snapshot::is_usable(parts, site, &own).await?),
        None => Ok(false),
    }
}
