//! Incarnations whose processes do not move.

use futures_util::future::join_all;
use rustix::process::Signal;

use super::{Incarnation, first_error};
use arenad_engine::{Engine, EngineError};
use arenad_model::cause::Cause;
use arenad_model::ids::ServiceName;

/// Why an incarnation could not be frozen, or does not go on.
#[derive(Debug, thiserror::Error)]
pub enum FreezeError {
    /// The engine refused or is gone.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The container of a service is about to die.
    #[error("the container of {0} was killed while it was frozen")]
    Killed(ServiceName),
}

impl FreezeError {
    /// Returns the cause, if a person can do something specific about it.
    pub fn cause(&self) -> Option<Cause> {
        match self {
            Self::Engine(error) => error.cause(),
            Self::Killed(_) => None,
        }
    }
}

/// Freezes all containers of an incarnation.
pub async fn freeze(engine: &dyn Engine, incarnation: &Incarnation) -> Result<(), FreezeError> {
    let all = incarnation.containers.values().map(|handle| engine.freeze(handle));
    Ok(first_error(join_all(all).await)?)
}

/// Lets all containers of an incarnation go on. One that was killed meanwhile would only die now (so it is with the freezer of
/// cgroup v1), and the kernel accepts connections for it until it has.
pub async fn thaw(engine: &dyn Engine, incarnation: &Incarnation) -> Result<(), FreezeError> {
    for (service, handle) in &incarnation.containers {
        if engine.inspect(handle).await?.pid.is_some_and(is_to_die) {
            return Err(FreezeError::Killed(service.clone()));
        }
    }
    let all = incarnation.containers.values().map(|handle| engine.thaw(handle));
    Ok(first_error(join_all(all).await)?)
}

/// Whether SIGKILL waits for a process. Nothing waits for what is gone.
fn is_to_die(pid: u32) -> bool {
    let process = i32::try_from(pid).ok().and_then(|pid| procfs::process::Process::new(pid).ok());
    let waiting = process.and_then(|process| process.status().ok()).map(|status| status.sigpnd | status.shdpnd);
    waiting.is_some_and(|signals| signals & (1 << (Signal::KILL.as_raw() - 1)) != 0)
}
