//! The way to a baseline: an imported or an earlier one if it can be used, otherwise a new one, which is made from the
//! images.

use std::collections::BTreeMap;
use std::path::PathBuf;

use jiff::Timestamp;
use tokio::time::Instant;

use super::inputs::StepInputs;
use super::{BaselineError, BaselineParts, recipe, sessions, snapshot, steps};
use arenad_engine::labels::{self, Ownership};
use arenad_engine::{CpuWeight, Image};
use arenad_launch::{self as launch, Blueprint, GenerationSelector, Incarnation, Remains, SavedVolumes};
use arenad_model::ids::ServiceName;
use arenad_model::instance::InstanceId;
use arenad_model::service::{MountSpec, ServiceSpec};
use arenad_model::site::Site;
use arenad_model::snapshot::Snapshot;

/// Returns the site's baseline; makes it first if there is none for this definition and these images.
pub async fn provide(
    parts: &BaselineParts,
    id: &InstanceId,
    site: &Site,
    stage: &(dyn Fn(&str) + Send + Sync),
) -> Result<Snapshot, BaselineError> {
    // Missing data is reported before any image is pulled, because people need more time to fetch it than the steps
    // below take.
    for service in &site.services {
        if let Some(path) = missing_data(service) {
            return Err(BaselineError::NoData { service: service.name.clone(), path });
        }
    }
    let inputs = StepInputs::pack(site).await?;
    if let Some(imported) = recipe::imported(parts, id, site, &inputs).await? {
        return Ok(imported);
    }
    let mut images = BTreeMap::new();
    for service in &site.services {
        let image = parts
            .images
            .provide(parts.engine.as_ref(), &parts.turns.builds, &parts.installation, service, stage)
            .await
            .map_err(|cause| BaselineError::Image { service: service.name.clone(), cause })?;
        images.insert(service.name.clone(), image);
    }
    let key = recipe::key(site, &images, &inputs);
    if let Some(found) = parts.store.baseline(id.environment.as_str(), site.name.as_str(), &key).await?
        && snapshot::is_usable(parts, site, &found).await?
    {
        return Ok(found);
    }
    let _turn = parts.turns.boots.turn(stage).await;
    // The leftovers of an earlier attempt have the names that this attempt needs.
    let remains = Remains {
        installation: &parts.installation,
        instance: id,
        role: labels::ROLE_BUILDER,
        which: GenerationSelector::All,
    };
    let remove = || launch::remove(parts.engine.as_ref(), parts.storage.as_ref(), remains);
    parts.kept_builds.forget(id);
    remove().await?;
    let made = make(parts, id, site, &images, &inputs, key, stage).await;
    if made.is_err() && parts.kept_builds.fail(id) {
        return made;
    }
    let removed = remove().await;
    let made = made?;
    removed?;
    Ok(made)
}

/// Returns a path that a service mounts and that does not exist. Validation accepts missing paths only for data that is
/// fetched separately.
fn missing_data(service: &ServiceSpec) -> Option<PathBuf> {
    service.mounts.iter().find_map(|mount| match mount {
        MountSpec::Bind { source, .. } | MountSpec::Data { source, .. } if !source.exists() => Some(source.clone()),
        MountSpec::Bind { .. } | MountSpec::Data { .. } | MountSpec::Volume { .. } | MountSpec::Tmpfs { .. } => None,
    })
}

async fn make(
    parts: &BaselineParts,
    id: &InstanceId,
    site: &Site,
    images: &BTreeMap<ServiceName, Image>,
    inputs: &StepInputs,
    key: String,
    stage: &(dyn Fn(&str) + Send + Sync),
) -> Result<Snapshot, BaselineError> {
    let engine = parts.engine.as_ref();
    let blueprint = Blueprint {
        id,
        site,
        ownership: Ownership::of(&parts.installation, id, 0, labels::ROLE_BUILDER, ""),
        images: images.iter().map(|(service, image)| (service.clone(), image.id.clone())).collect(),
        volumes: SavedVolumes::new(),
        state: None,
        clock: site.clock.as_ref().and_then(|clock| clock.setting(None, Timestamp::now())),
        block: parts.block,
        weight: CpuWeight::Serving,
    };
    stage("baseline: starting from the image");
    let mut incarnation = blueprint.create(engine).await?;
    let deadline = Instant::now() + site.readiness.timeout;
    if let Err(cause) = launch::start(engine, site, &mut incarnation, deadline).await {
        return Err(BaselineError::Start { cause, log: parts.prober.log_tail(&incarnation, 15).await });
    }
    if let Some(setting) = &blueprint.clock
        && let Err(cause) = launch::check_clock(engine, site, &incarnation, setting).await
    {
        return Err(BaselineError::Start { cause, log: parts.prober.log_tail(&incarnation, 15).await });
    }
    configure(parts, site, &incarnation, inputs, stage).await?;
    let sessions = sessions::sign_in(parts, site, &incarnation, stage).await;
    stage("baseline: stopping cleanly");
    snapshot::stop_cleanly(parts, site, &incarnation).await?;
    stage("baseline: taking the snapshot");
    let recipe = recipe::of_images(site, images, inputs);
    let made =
        snapshot::store(parts, id, site, &incarnation, snapshot::SnapshotPurpose::Baseline { key, recipe }).await?;
    sessions::keep(parts, site, &made, &sessions).await?;
    Ok(made)
}

async fn configure(
    parts: &BaselineParts,
    site: &Site,
    incarnation: &Incarnation,
    inputs: &StepInputs,
    stage: &(dyn Fn(&str) + Send + Sync),
) -> Result<(), BaselineError> {
    let engine = parts.engine.as_ref();
    let total = site.baseline.configure.len();
    for (index, step) in site.baseline.configure.iter().enumerate() {
        stage(&format!("baseline: configuring {}/{total}: {}", index + 1, step.name));
        let tell = |attempts: u32, reason: &str| {
            let reason = reason.lines().next().unwrap_or_default().trim_end_matches(':');
            stage(&format!(
                "repeating step `{}` of the baseline: attempt {}; the previous one failed: {reason}",
                step.name,
                attempts + 1
            ));
        };
        let input = inputs.archive(index);
        if let Err(cause) = steps::configure(engine, &parts.prober, site, incarnation, step, input, &tell).await {
            let log = parts.prober.log_tail(incarnation, 15).await;
            return Err(BaselineError::Configure { step: step.name.clone(), cause: Box::new(cause), log });
        }
    }
    stage("baseline: waiting for the site");
    let waiting = |failure: &arenad_probes::ProbeFailure| stage(&format!("baseline: waiting for the site: {failure}"));
    if let Err(cause) = parts.prober.wait_ready(site, incarnation, &waiting).await {
        let log = parts.prober.log_tail(incarnation, 15).await;
        return Err(BaselineError::NotReady { cause, log });
    }
    let total = site.baseline.warm.len();
    for (index, step) in site.baseline.warm.iter().enumerate() {
        stage(&format!("baseline: warming {}/{total}: {}", index + 1, step.path));
        steps::http(&parts.prober, incarnation, step).await.map_err(|error| BaselineError::Warm(error.into()))?;
    }
    Ok(())
}
