//! Baselines: made once from the images, kept as snapshots, reused until the definition or an image changes.
//!
//! The steps: start from the image, configure, wait for the readiness probes, warm, stop the writers, stop the
//! containers cleanly, commit. An unfinished baseline consists of containers with the role `builder` only. Its row is
//! written last, so after a crash at any point reconciliation removes everything that is left.
//!
//! | File | Job |
//! |---|---|
//! | `provide` | the search for a baseline that can be used, and the steps of making one |
//! | `images` | builds and pulls of images, each at most once at a time |
//! | `recipe` | the identities of a baseline on one host and between hosts; the search for an imported baseline |
//! | `inputs` | the folders whose content the configuration's commands get |
//! | `steps`, `sessions` | the configuration, the requests that warm a site, the log-ins |
//! | [`snapshot`] | the taking, checking and removing of snapshots, of baselines and by name |
//! | `kept` | the containers of failed baselines that are kept for inspection |
//! | `turns` | the limits on builds and boots |
//!
//! The driver of an instance calls [`provide()`] before it makes containers, and [`snapshot::store`] when a client asks
//! for a snapshot. The daemon removes snapshots. The crate does not decide when a baseline or a snapshot is needed.
//!
//! The crate depends on `launch`, `probes`, `accounts`, `build-context` and `store`. Start reading at [`provide()`], then
//! `snapshot.rs`.

mod images;
mod inputs;
mod kept;
mod provide;
mod recipe;
pub mod sessions;
pub mod snapshot;
pub mod steps;
mod turns;

use std::path::PathBuf;
use std::sync::Arc;

use self::steps::StepError;
use arenad_build_context::ContextError;
use arenad_engine::{Engine, EngineError};
use arenad_launch::{CommandError, LaunchError, RemoveError};
use arenad_model::cause::Cause;
use arenad_model::error::describe;
use arenad_model::ids::ServiceName;
use arenad_model::subnet::Subnet;
use arenad_probes::{NotReady, Prober};
use arenad_seams::wall_clock::WallClock;
use arenad_storage::{Storage, StorageError};
use arenad_store::{DaemonStore, EventLog, StoreError};

pub use images::{ImageCoordinator, ImageError};
pub use kept::KeptBuilds;
pub use provide::provide;
pub use turns::{ConcurrencyLimit, Turns};

/// The parts of the daemon by which baselines are made and snapshots are taken, checked and removed.
pub struct BaselineParts {
    /// The container engine, which all instances share.
    pub engine: Arc<dyn Engine>,
    /// The time of day, which dates snapshots.
    pub clock: WallClock,
    /// The database of snapshots and sessions.
    pub store: DaemonStore,
    /// The event log of all instances.
    pub events: EventLog,
    /// Runs the probes of sites, and makes the requests that configure and warm them.
    pub prober: Prober,
    /// Builds and pulls images, each at most once at a time.
    pub images: ImageCoordinator,
    /// The containers of failed baselines that are kept for inspection.
    pub kept_builds: KeptBuilds,
    /// The id of the installation, which labels everything that it creates in the engine.
    pub installation: String,
    /// The folder of archives of snapshots' volumes.
    pub volumes: PathBuf,
    /// The state root that keeps the sites' stores; `None` if the system does not support one.
    pub storage: Option<Storage>,
    /// The address range from which the networks of instances are taken.
    pub block: Subnet,
    /// Limits concurrent builds and boots.
    pub turns: Arc<Turns>,
}

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
    /// The folder whose content a configuration step gets cannot be read.
    #[error("read the input of configure step `{step}`")]
    Input {
        /// The name of the step in the definition.
        step: String,
        /// The file or folder at fault.
        #[source]
        cause: ContextError,
    },
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
    pub fn cause(&self) -> Option<Cause> {
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
            Self::Input { .. } | Self::KeptElsewhere { .. } | Self::NotClean { .. } => None,
        }
    }
}
