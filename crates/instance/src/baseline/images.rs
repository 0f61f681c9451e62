//! The images of services: built where the Compose file says how, pulled otherwise, each once however many wait for it.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use crate::turns::Bound;
use arenad_build_context::{self as context, ContextError};
use arenad_engine::{Engine, EngineError, Image, ImageBuild, labels};
use arenad_model::cause::Cause;
use arenad_model::error::describe;
use arenad_model::site::{BuildSpec, ServiceSpec};

/// Why an image is not there.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The build's inputs could not be read.
    #[error("pack the build context {context}")]
    Context {
        /// The folder.
        context: PathBuf,
        /// What went wrong.
        #[source]
        cause: ContextError,
    },
    /// The engine could not look up, build or pull it.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The registry could not be reached, or does not hand it out.
    #[error(transparent)]
    Pull(EngineError),
    /// It comes from an archive, and nobody has loaded it.
    #[error("find image {reference}: it is loaded from the archive {archive}, not pulled")]
    NotLoaded {
        /// The image.
        reference: String,
        /// The archive.
        archive: String,
    },
    /// It was pulled and is still not there.
    #[error("find image {0} after pulling it")]
    Vanished(String),
}

impl ImageError {
    /// Returns the cause, if a person can do something specific about it.
    pub fn cause(&self) -> Option<Cause> {
        match self {
            Self::Engine(error) => error.cause(),
            Self::Pull(error) => error.cause().or(Some(Cause::NotPulled)),
            Self::NotLoaded { .. } => Some(Cause::NotFetched),
            Self::Context { .. } | Self::Vanished(_) => None,
        }
    }
}

/// Provides images.
#[derive(Default)]
pub struct Images {
    /// One lock for each reference: the second who wants an image waits for the first and then finds it.
    locks: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
}

impl Images {
    /// Returns the service's image, building or pulling it first if need be. `stage` is told what is going on. What is
    /// built bears the installation's label, so that a purge leaves alone what another installation has built.
    /// Who waits for another's build of the same image takes no turn meanwhile: other images are built beside it.
    pub async fn provide(
        &self,
        engine: &dyn Engine,
        turns: &Bound,
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
    turns: &Bound,
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
    turns: &Bound,
    installation: &str,
    tag: &str,
    build: &BuildSpec,
    stage: &(dyn Fn(&str) + Send + Sync),
) -> Result<Image, ImageError> {
    let spec = build.clone();
    let packed = arenad_seams::inline::blocking(move || context::pack(&spec)).await;
    let unreadable = |cause| ImageError::Context { context: build.context.clone(), cause };
    let packed = match packed {
        Ok(packed) => packed.map_err(unreadable)?,
        Err(panicked) => {
            let cause = std::io::Error::other(panicked);
            return Err(unreadable(ContextError::Read { path: build.context.clone(), cause }));
        }
    };
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
    // The image that had the tag until now has no name any more, and would lie there for ever.
    if let Some(before) = before.filter(|before| before.id != built.id)
        && let Err(error) = engine.remove_image(&before.id).await
    {
        tracing::debug!(error = describe(&error), "an earlier build of {tag} is still in use");
    }
    Ok(built)
}
