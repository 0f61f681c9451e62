//! Errors of the tasks that make, adopt, and bring back standbys, and of swaps.

use std::time::Duration;

use crate::proof::ProofError;
use arenad_baseline::steps::StepError;
use arenad_engine::EngineError;
use arenad_launch::{FreezeError, LaunchError, RemoveError};
use arenad_model::cause::Cause;
use arenad_probes::ProbeFailure;
use arenad_reset::ResetError;

/// The reason why a standby is not ready or could not take over.
#[derive(Debug, thiserror::Error)]
pub(super) enum StandbyError {
    /// The pool was abandoned before the task had called the engine.
    #[error("the site went down")]
    GivenUp,
    /// The task that worked on the standby panicked.
    #[error("its task broke off: {0}")]
    BrokenOff(String),
    /// The containers that an earlier daemon had recorded do not exist.
    #[error("its containers are gone")]
    Gone,
    /// The stores of its snapshot are part of images, so it cannot be rewound.
    #[error("its stores are not in the state root")]
    NoState,
    /// The container of its entry has no address.
    #[error("it has no address")]
    NoAddress,
    /// Its entry refused the connection.
    #[error("it does not answer: {0}")]
    NoConnection(String),
    /// Its entry did not accept a connection in time.
    #[error("it does not answer: no connection within {0:?}")]
    NoConnectionWithin(Duration),
    /// A readiness probe failed until the time was up.
    #[error("{0}")]
    Probe(ProbeFailure),
    /// A request that fills its caches failed.
    #[error(transparent)]
    Warm(#[from] StepError),
    /// The engine refused a call.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// Its containers could not be resumed.
    #[error(transparent)]
    Thaw(#[from] FreezeError),
    /// Its containers or their addresses could not be found.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// It could not be made or rewound.
    #[error(transparent)]
    Reset(#[from] ResetError),
    /// It differs from its snapshot, or could not be compared with it.
    #[error(transparent)]
    Proof(#[from] ProofError),
    /// It could not be removed.
    #[error(transparent)]
    Remove(#[from] RemoveError),
}

impl StandbyError {
    /// Returns the cause, if a person can take specific action against it.
    pub(super) fn cause(&self) -> Option<Cause> {
        match self {
            Self::Probe(failure) => failure.cause,
            Self::Warm(error) => error.cause(),
            Self::Engine(error) => error.cause(),
            Self::Thaw(error) => error.cause(),
            Self::Launch(error) => error.cause(),
            Self::Reset(error) => error.cause(),
            Self::Proof(error) => error.cause(),
            Self::Remove(error) => error.cause(),
            Self::GivenUp
            | Self::BrokenOff(_)
            | Self::Gone
            | Self::NoState
            | Self::NoAddress
            | Self::NoConnection(_)
            | Self::NoConnectionWithin(_) => None,
        }
    }
}
