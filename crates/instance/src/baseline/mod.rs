//! Baselines: made once from the images, kept as snapshots, reused until the definition or an image changes.
//!
//! The steps: start from the image, configure, wait for the readiness probes, warm, stop the writers, stop the
//! containers cleanly, commit. An unfinished baseline consists of containers with the role `builder` only. Its row is
//! written last, so after a crash at any point reconciliation removes everything that is left.

pub(crate) mod images;
pub(crate) mod kept;
mod recipe;
pub mod sessions;
pub mod snapshot;
pub(crate) mod steps;

use std::collections::BTreeMap;
use std::path::PathBuf;

use jiff::Timestamp;
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use self::images::ImageError;
use self::steps::StepError;
use super::shared::SharedParts;
use arenad_engine::labels::{self, Ownership};
use arenad_engine::{CpuWeight, EngineError, Image};
use arenad_launch::{
    self as launch, Blueprint, CommandError, GenerationSelector, Incarnation, LaunchError, Remains, RemoveError,
    SavedVolumes,
};
use arenad_model::cause::Cause;
use arenad_model::error::describe;
use arenad_model::hex::hex;
use arenad_model::ids::ServiceName;
use arenad_model::instance::InstanceId;
use arenad_model::site::{MountSpec, ServiceSpec, Site};
use arenad_model::snapshot::Snapshot;
use arenad_probes::NotReady;
use arenad_storage::StorageError;
use arenad_store::StoreError;

/// The reason why there is no baseline.
#[derive(Debug, thiserror::Error)]
pub enum BaselineError {
    /// An image is missing and could not be provided.
    #[error("provide the image of {service}")]
    Image {
        /// The service that uses the image.
        service: ServiceName,
        /// The failure to build, pull or find the image.
        #[source]
        cause: ImageError,
    },
    /// The containers could not be made.
    #[error("start the site from its images")]
    Launch(#[from] LaunchError),
    /// The engine refused a call.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The leftovers of an earlier attempt, or the builder's containers, could not be removed.
    #[error(transparent)]
    Remove(#[from] RemoveError),
    /// The state root could not store the trees.
    #[error(transparent)]
    State(#[from] StorageError),
    /// The store could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A configuration step failed.
    #[error("configure step `{step}`: {}{log}", describe(cause.as_ref()))]
    Configure {
        /// The name of the step in the definition.
        step: String,
        /// The failure of the step, with the number of attempts if there were several.
        cause: Box<StepError>,
        /// The last lines of the containers' logs.
        log: String,
    },
    /// Another engine has a named snapshot of the same content, which would be lost there.
    #[error("keep the snapshot: the engine at {endpoint} has one of the same content, named {name}, with the id {id}")]
    KeptElsewhere {
        /// The id that both snapshots have.
        id: String,
        /// The name of the snapshot on the other engine.
        name: String,
        /// The address at which the other engine last responded.
        endpoint: String,
    },
    /// Data that a service mounts does not exist: the definition says where it comes from, but it has not been fetched.
    #[error("find the data {path}, which {service} mounts")]
    NoData {
        /// The service that mounts the data.
        service: ServiceName,
        /// The missing file or folder.
        path: PathBuf,
    },
    /// The containers could not be started, ended at once, or show the wrong time.
    #[error("start the site from its images: {}{log}", describe(cause))]
    Start {
        /// The failure to start or to check the clock.
        cause: LaunchError,
        /// The last lines of the containers' logs.
        log: String,
    },
    /// The site did not become ready.
    #[error("wait for the site: {cause}{log}")]
    NotReady {
        /// The last probe failure, or how a container ended.
        cause: NotReady,
        /// The last lines of the containers' logs.
        log: String,
    },
    /// A warming request failed.
    #[error("warm the site: {}", describe(.0.as_ref()))]
    Warm(Box<StepError>),
    /// A quiesce command failed.
    #[error("bring the writers to rest: {}", describe(.0))]
    Quiesce(CommandError),
    /// A container did not stop by itself, so its writers may not have been at rest.
    #[error("stop {service} cleanly: {what}")]
    NotClean {
        /// The service of the container.
        service: ServiceName,
        /// The state of the container after the stop, as a phrase.
        what: String,
    },
}

impl BaselineError {
    /// Returns the cause, if a person can take specific action against it.
    pub(crate) fn cause(&self) -> Option<Cause> {
        match self {
            Self::Image { cause, .. } => cause.cause(),
            Self::Launch(error) => error.cause(),
            Self::Engine(error) => error.cause(),
            Self::Remove(error) => error.cause(),
            Self::State(error) => error.cause(),
            Self::Store(error) => error.cause(),
            Self::Configure { cause, log, .. } => Cause::stated_by_program(log).or_else(|| cause.cause()),
            Self::Start { cause, log } => Cause::stated_by_program(log).or_else(|| cause.cause()),
            Self::NotReady { cause, log } => Cause::stated_by_program(log).or_else(|| cause.cause()),
            Self::Warm(error) => error.cause(),
            Self::Quiesce(error) => error.cause(),
            Self::NoData { .. } => Some(Cause::NotFetched),
            Self::KeptElsewhere { .. } | Self::NotClean { .. } => None,
        }
    }
}

/// Returns the site's baseline; makes it first if there is none for this definition and these images.
pub(crate) async fn provide(
    shared: &SharedParts,
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
    if let Some(imported) = recipe::imported(shared, id, site).await? {
        return Ok(imported);
    }
    let mut images = BTreeMap::new();
    for service in &site.services {
        let image = shared
            .images
            .provide(shared.engine.as_ref(), &shared.turns.builds, &shared.installation, service, stage)
            .await
            .map_err(|cause| BaselineError::Image { service: service.name.clone(), cause })?;
        images.insert(service.name.clone(), image);
    }
    let key = key(site, &images);
    if let Some(found) = shared.store.baseline(id.environment.as_str(), site.name.as_str(), &key).await?
        && is_usable(shared, site, &found).await?
    {
        return Ok(found);
    }
    let _turn = shared.turns.boots.turn(stage).await;
    // The leftovers of an earlier attempt have the names that this attempt needs.
    let remains = Remains {
        installation: &shared.installation,
        instance: id,
        role: labels::ROLE_BUILDER,
        which: GenerationSelector::All,
    };
    shared.kept_builds.forget(id);
    shared.remove(remains).await?;
    let made = make(shared, id, site, &images, key, stage).await;
    if made.is_err() && shared.kept_builds.fail(id) {
        return made;
    }
    let removed = shared.remove(remains).await;
    let made = made?;
    removed?;
    Ok(made)
}

/// Whether the images, archives and trees that instances are made from all exist.
async fn is_usable(shared: &SharedParts, site: &Site, found: &Snapshot) -> Result<bool, EngineError> {
    Ok(snapshot::is_whole(shared, found).await? && snapshot::has_state(shared, site, found))
}

/// Returns a path that a service mounts and that does not exist. Validation accepts missing paths only for data that is
/// fetched separately.
fn missing_data(service: &ServiceSpec) -> Option<PathBuf> {
    service.mounts.iter().find_map(|mount| match mount {
        MountSpec::Bind { source, .. } | MountSpec::Data { source, .. } if !source.exists() => Some(source.clone()),
        MountSpec::Bind { .. } | MountSpec::Data { .. } | MountSpec::Volume { .. } | MountSpec::Tmpfs { .. } => None,
    })
}

/// Returns the SHA-256 of everything that a baseline depends on: the relevant parts of the definition and the images'
/// ids.
fn key(site: &Site, images: &BTreeMap<ServiceName, Image>) -> String {
    let mut digest = Sha256::new();
    digest.update(&site.baseline_inputs);
    for (service, image) in images {
        digest.update(format!("\0{service}={}", image.id));
    }
    hex(&digest.finalize())
}

async fn make(
    shared: &SharedParts,
    id: &InstanceId,
    site: &Site,
    images: &BTreeMap<ServiceName, Image>,
    key: String,
    stage: &(dyn Fn(&str) + Send + Sync),
) -> Result<Snapshot, BaselineError> {
    let engine = shared.engine.as_ref();
    let blueprint = Blueprint {
        id,
        site,
        ownership: Ownership::of(&shared.installation, id, 0, labels::ROLE_BUILDER, ""),
        images: images.iter().map(|(service, image)| (service.clone(), image.id.clone())).collect(),
        volumes: SavedVolumes::new(),
        state: None,
        clock: site.clock.as_ref().and_then(|clock| clock.setting(None, Timestamp::now())),
        block: shared.block,
        weight: CpuWeight::Serving,
    };
    stage("baseline: starting from the image");
    let mut incarnation = blueprint.create(engine).await?;
    let deadline = Instant::now() + site.readiness.timeout;
    if let Err(cause) = launch::start(engine, site, &mut incarnation, deadline).await {
        return Err(BaselineError::Start { cause, log: shared.prober.log_tail(&incarnation, 15).await });
    }
    if let Some(setting) = &blueprint.clock
        && let Err(cause) = launch::check_clock(engine, site, &incarnation, setting).await
    {
        return Err(BaselineError::Start { cause, log: shared.prober.log_tail(&incarnation, 15).await });
    }
    configure(shared, site, &incarnation, stage).await?;
    let sessions = sessions::sign_in(shared, site, &incarnation, stage).await;
    stage("baseline: stopping cleanly");
    snapshot::stop_cleanly(shared, site, &incarnation).await?;
    stage("baseline: taking the snapshot");
    let recipe = recipe::of_images(site, images);
    let made =
        snapshot::store(shared, id, site, &incarnation, snapshot::SnapshotPurpose::Baseline { key, recipe }).await?;
    sessions::keep(shared, site, &made, &sessions).await?;
    Ok(made)
}

async fn configure(
    shared: &SharedParts,
    site: &Site,
    incarnation: &Incarnation,
    stage: &(dyn Fn(&str) + Send + Sync),
) -> Result<(), BaselineError> {
    let engine = shared.engine.as_ref();
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
        if let Err(cause) = steps::configure(engine, &shared.prober, site, incarnation, step, &tell).await {
            let log = shared.prober.log_tail(incarnation, 15).await;
            return Err(BaselineError::Configure { step: step.name.clone(), cause: Box::new(cause), log });
        }
    }
    stage("baseline: waiting for the site");
    let waiting = |failure: &arenad_probes::ProbeFailure| stage(&format!("baseline: waiting for the site: {failure}"));
    if let Err(cause) = shared.prober.wait_ready(site, incarnation, &waiting).await {
        let log = shared.prober.log_tail(incarnation, 15).await;
        return Err(BaselineError::NotReady { cause, log });
    }
    let total = site.baseline.warm.len();
    for (index, step) in site.baseline.warm.iter().enumerate() {
        stage(&format!("baseline: warming {}/{total}: {}", index + 1, step.path));
        steps::http(&shared.prober, incarnation, step).await.map_err(|error| BaselineError::Warm(error.into()))?;
    }
    Ok(())
}
