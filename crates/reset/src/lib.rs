//! Ways of bringing an instance back to its snapshot.
//!
//! A strategy works on containers. The driver of the instance decides when a reset is allowed, what the gateway does
//! meanwhile and what a failure means. The driver is the only caller and runs one strategy at a time per instance.
//! *Recreate* is always correct; every faster strategy is tested against it.
//!
//! The crate depends on `launch`, `digest`, `probes` and `storage`. Start reading at `recreate.rs`, then `rewind.rs`.

mod control;
mod covered;
mod recreate;
mod rewind;
mod writers;

use std::sync::Mutex;
use std::time::Duration;

use tokio::time::Instant;

use arenad_engine::Engine;
use arenad_launch::{Blueprint, CommandError, InsideError, LaunchError, RemoveError};
use arenad_model::cause::Cause;
use arenad_model::coverage::{self, Gap};
use arenad_probes::{NotReady, ProbeFailure, Prober};
use arenad_storage::{Storage, StorageError};

pub use covered::{check_covered, hindrance, note_pristine};
pub use recreate::{make, recreate};
pub use rewind::Rewind;
pub use writers::WriterPause;

/// The reason why a reset failed. The caller removes the leftovers, which belong to the generation of the blueprint.
#[derive(Debug, thiserror::Error)]
pub enum ResetError {
    /// The containers could not be created, found or restarted.
    #[error("make the containers of the new generation")]
    Launch(#[from] LaunchError),
    /// The new containers could not be started, ended at once, or show the wrong time.
    #[error("start the containers of the new generation")]
    Start {
        /// The failure to start or to check the clock.
        #[source]
        cause: LaunchError,
        /// The last lines of the containers' logs.
        log: String,
    },
    /// The containers did not become ready.
    #[error("wait for the site")]
    NotReady {
        /// The last probe failure, or how a container ended.
        #[source]
        cause: NotReady,
        /// The last lines of the containers' logs.
        log: String,
    },
    /// The writers of the stores could not be stopped or started.
    #[error("stop and start what writes to the stores")]
    Writers(#[source] CommandError),
    /// The state root could not clone or exchange the stores' trees.
    #[error("put the snapshot's state back")]
    State(#[source] StorageError),
    /// The old containers could not be removed.
    #[error("remove the containers of the old generation")]
    Remove(#[source] RemoveError),
    /// The site has written to places that a rewind does not restore.
    #[error("{}", coverage::told(.0))]
    Uncovered(Vec<Gap>),
    /// The containers could not be inspected outside of their stores.
    #[error("compare what lies outside of the stores")]
    Inside(#[from] InsideError),
}

impl ResetError {
    /// Returns the last lines of the containers' logs, or nothing if the containers did not get so far.
    pub fn log(&self) -> &str {
        match self {
            Self::Start { log, .. } | Self::NotReady { log, .. } => log,
            _ => "",
        }
    }

    /// Returns the cause, if a person can take specific action against it. The containers' logs are not considered.
    pub fn cause(&self) -> Option<Cause> {
        match self {
            Self::Launch(error) | Self::Start { cause: error, .. } => error.cause(),
            Self::NotReady { cause, .. } => cause.cause(),
            Self::Writers(error) => error.cause(),
            Self::State(error) => error.cause(),
            Self::Remove(error) => error.cause(),
            Self::Inside(error) => error.cause(),
            Self::Uncovered(_) => None,
        }
    }
}

/// The durations of a reset's stages. Stages may overlap.
#[derive(Debug, Default)]
pub struct Stages(Mutex<Vec<(&'static str, Duration)>>);

impl Stages {
    /// Runs a stage and notes its duration.
    pub async fn time<T>(&self, stage: &'static str, work: impl Future<Output = T>) -> T {
        let begun = Instant::now();
        let value = work.await;
        self.note(stage, begun.elapsed());
        value
    }

    /// Adds a stage that has ended, with its duration.
    pub fn note(&self, stage: &'static str, took: Duration) {
        if let Ok(mut stages) = self.0.lock() {
            stages.push((stage, took));
        }
    }

    /// Returns the stages in the order in which they ended.
    pub fn list(&self) -> Vec<(&'static str, Duration)> {
        self.0.lock().map(|stages| stages.clone()).unwrap_or_default()
    }
}

/// Everything that the creation of new containers needs.
pub struct ResetContext<'a> {
    /// The engine that runs the containers.
    pub engine: &'a dyn Engine,
    /// The state root that keeps the site's stores, if there is one.
    pub storage: Option<&'a Storage>,
    /// Runs the probes that tell whether the site is ready.
    pub prober: &'a Prober,
    /// The site, the snapshot and the identity of the new generation.
    pub blueprint: Blueprint<'a>,
    /// The generations that the new one replaces, by the labels of their containers.
    pub old: &'a [u64],
    /// Receives the duration of each stage.
    pub stages: &'a Stages,
    /// Called with a description of each stage as it begins.
    pub stage: &'a (dyn Fn(&str) + Send + Sync),
    /// Called with each probe failure while the site is not ready yet.
    pub waiting: &'a (dyn Fn(&ProbeFailure) + Send + Sync),
}
