//! The images of services: built if the Compose file says how, pulled otherwise, each once even if several callers wait
//! for it.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use crate::inputs;
use crate::turns::ConcurrencyLimit;
use arenad_build_context::{self as context, ContextError};
use arenad_engine::{Engine, EngineError, Image, ImageBuild, labels};
use arenad_model::cause::Cause;
use arenad_model::error::describe;
use arenad_model::service::{BuildSpec, ServiceSpec};

/// The reason why an image is not available.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The inputs of the build could not be read.
    #[error("pack the build context {context}")]
    Context {
        /// The folder of the build context.
        context: PathBuf,
        /// The failure to read an input, with its path.
        #[source]
        cause: ContextError,
    },
    /// The engine could not look up, build or pull the image.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The registry could not be reached, or refused the image.
    #[error(transparent)]
    Pull(EngineError),
    /// The image comes from an archive that has not been loaded.
    #[error("find image {reference}: it is loaded from the archive {archive}, not pulled")]
    NotLoaded {
        /// The reference by which the service names the image.
        reference: String,
        /// The archive that the definition names.
        archive: String,
    },
    /// The image was pulled but does not exist.
    #[error("find image {0} after pulling it")]
    Vanished(String),
}

impl ImageError {
    /// Returns the cause, if a person can take specific action against it.
    pub(crate) fn cause(&self) -> Option<Cause> {
        match self {
            Self::Engine(error) => error.cause(),
            Self::Pull(error) => error.cause().or(Some(Cause::NotPulled)),
            Self::NotLoaded { .. } => Some(Cause::NotFetched),
            Self::Context { .. } | Self::Vanished(_) => None,
        }
    }
}

/// Builds and pulls images; concurrent requests for one image share the work.
#[derive(Default)]
pub struct ImageCoordinator {
    /// One lock for each reference: a second caller waits for the first and then finds the image.
    locks: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
}

impl ImageCoordinator {
    /// Returns the service's image; builds or pulls it first if necessary. `stage` receives a description of the work.
    ///
    /// A built image bears the installation's label, so that a purge spares the images of other installations. A caller
    /// that waits for another caller's build of the same image occupies no turn, so other images can be built
    /// meanwhile.
    pub(crate) async fn provide(
        &self,
        engine: &dyn Engine,
        turns: &ConcurrencyLimit,
        installation: &str,
        service: &ServiceSpec,
        stage: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<Image, ImageError> {
        let lock = match self.locks.lock() {
            Ok(mut locks) => locks.entry(service.image.clone()).or_default().clone(),
            Err(poisoned) => poisoned.into_inner().entry(service.image.clone()).or_default().clone(),
        };
        stage(&format!("image {}", service.image));
        let _turn = lock.lock().await;
        match &service.build {
            Some(build) => built(engine, turns, installation, &service.image, build, stage).await,
            None => pulled(engine, turns, service, stage).await,
        }
    }
}

async fn pulled(
    engine: &dyn Engine,
    turns: &ConcurrencyLimit,
    service: &ServiceSpec,
    stage: &(dyn Fn(&str) + Send + Sync),
) -> Result<Image, ImageError> {
    let reference = &service.image;
    if let Some(image) = engine.image(reference).await? {
        return Ok(image);
    }
    if let Some(archive) = &service.archive {
        return Err(ImageError::NotLoaded { reference: reference.clone(), archive: archive.clone() });
    }
    let _turn = turns.turn(stage).await;
    let pulled = engine.pull(reference, &|line| stage(&format!("pulling {reference}: {line}"))).await;
    pulled.map_err(ImageError::Pull)?;
    engine.image(reference).await?.ok_or_else(|| ImageError::Vanished(reference.to_owned()))
}

async fn built(
    engine: &dyn Engine,
    turns: &ConcurrencyLimit,
    installation: &str,
    tag: &str,
    build: &BuildSpec,
    stage: &(dyn Fn(&str) + Send + Sync),
) -> Result<Image, ImageError> {
    let spec = build.clone();
    let packed = inputs::pack_off_thread(&build.context, move || context::pack(&spec)).await;
    let packed = packed.map_err(|cause| ImageError::Context { context: build.context.clone(), cause })?;
    let before = engine.image(tag).await?;
    if let Some(image) = &before
        && image.labels.get(labels::BUILD_INPUTS) == Some(&packed.inputs)
    {
        return Ok(image.clone());
    }
    let spec = ImageBuild {
        tag,
        context: packed.archive.into(),
        dockerfile: &build.dockerfile.display().to_string(),
        args: &build.args,
        target: build.target.as_deref(),
        labels: BTreeMap::from([
            (labels::BUILD_INPUTS.to_owned(), packed.inputs),
            (labels::INSTALLATION.to_owned(), installation.to_owned()),
        ]),
    };
    let _turn = turns.turn(stage).await;
    let built = engine.build(spec, &|line| stage(&format!("building {tag}: {line}"))).await?;
    // The previous image of this tag has no name any more, and nothing else would remove it.
    if let Some(before) = before.filter(|before| before.id != built.id)
        && let Err(error) = engine.remove_image(&before.id).await
    {
        tracing::debug!(error = describe(&error), "an earlier build of {tag} is still in use");
    }
    Ok(built)
}
