//! Ways of bringing an instance back to its snapshot.
//!
//! A strategy does the work on containers; when it may be done, what the gateway does meanwhile and what a failure means
//! is the instance driver's business. Called by the driver alone, one at a time per instance. *Recreate* is always
//! correct and the reference that any faster way is checked against.

mod control;
mod covered;
mod recreate;
mod rewind;

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

/// Why a reset failed. Whatever it left behind belongs to the generation of its blueprint and is removed by the caller.
#[derive(Debug, thiserror::Error)]
pub enum ResetError {
    /// The new containers could not be made or started.
    #[error("make the containers of the new generation")]
    Launch(#[from] LaunchError),
    /// They could not be started, or ended at once.
    #[error("start the containers of the new generation")]
    Start {
        /// Why.
        #[source]
        cause: LaunchError,
        /// The last lines of the containers' logs.
        log: String,
    },
    /// They did not become ready.
    #[error("wait for the site")]
    NotReady {
        /// Why.
        #[source]
        cause: NotReady,
        /// The last lines of the containers' logs.
        log: String,
    },
    /// What writes to the stores could not be stopped or started.
    #[error("stop and start what writes to the stores")]
    Writers(#[source] CommandError),
    /// The state root refused something.
    #[error("put the snapshot's state back")]
    State(#[source] StorageError),
    /// The old containers could not be removed.
    #[error("remove the containers of the old generation")]
    Remove(#[source] RemoveError),
    /// The site has written to what a rewind does not bring back.
    #[error("{}", coverage::told(.0))]
    Uncovered(Vec<Gap>),
    /// What the containers have written outside of the stores could not be looked at.
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

    /// Returns the cause, if a person can do something specific about it. What the containers' logs say is not asked.
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

/// Where the time of a reset went. Stages may overlap.
#[derive(Debug, Default)]
pub struct Stages(Mutex<Vec<(&'static str, Duration)>>);

impl Stages {
    /// Runs a stage and notes how long it took.
    pub async fn time<T>(&self, stage: &'static str, work: impl Future<Output = T>) -> T {
        let begun = Instant::now();
        let value = work.await;
        self.note(stage, begun.elapsed());
        value
    }

    /// Notes a stage.
    pub fn note(&self, stage: &'static str, took: Duration) {
        if let Ok(mut stages) = self.0.lock() {
            stages.push((stage, took));
        }
    }

    /// The stages in the order in which they ended.
    pub fn list(&self) -> Vec<(&'static str, Duration)> {
        self.0.lock().map(|stages| stages.clone()).unwrap_or_default()
    }
}

/// The inputs for making an instance's containers anew.
pub struct ResetContext<'a> {
    /// The engine.
    pub engine: &'a dyn Engine,
    /// Keeps the state of the site's stores, where there is a state root.
    pub storage: Option<&'a Storage>,
    /// Looks whether the site is ready.
    pub prober: &'a Prober,
    /// What the new generation is made from.
    pub blueprint: Blueprint<'a>,
    /// The generations that are not in the way, by the labels of their containers: the new one, and standbys.
    pub keep: &'a [u64],
    /// Where the time goes.
    pub stages: &'a Stages,
    /// Is told what is being done.
    pub stage: &'a (dyn Fn(&str) + Send + Sync),
    /// Is told why the site is not ready yet.
    pub waiting: &'a (dyn Fn(&ProbeFailure) + Send + Sync),
}
