//! Pauses and resumes the containers of an incarnation.

use std::time::Duration;

use futures_util::future::join_all;
use rustix::process::Signal;

use super::{Incarnation, first_error};
use arenad_engine::{Engine, EngineError};
use arenad_model::cause::Cause;
use arenad_model::error::describe;
use arenad_model::ids::ServiceName;

/// The reason why an incarnation could not be paused or resumed.
#[derive(Debug, thiserror::Error)]
pub enum FreezeError {
    /// The engine refused a request or is unreachable.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The container of a service was killed while it was paused, and would die when resumed.
    #[error("the container of {0} was killed while it was frozen")]
    Killed(ServiceName),
}

impl FreezeError {
    /// Returns the cause, if a person can take specific action against it.
    pub fn cause(&self) -> Option<Cause> {
        match self {
            Self::Engine(error) => error.cause(),
            Self::Killed(_) => None,
        }
    }
}

/// The pause before a second attempt to pause a container.
const AGAIN: Duration = Duration::from_secs(1);

/// Pauses all containers of an incarnation.
pub async fn freeze(engine: &dyn Engine, incarnation: &Incarnation) -> Result<(), FreezeError> {
    let all = incarnation.containers.values().map(async |handle| {
        // runc gives up if the kernel does not freeze all processes soon, which happens on busy machines.
        if let Err(error) = engine.freeze(handle).await {
            tracing::debug!(error = describe(&error), "a container is paused at the second attempt");
            tokio::time::sleep(AGAIN).await;
            engine.freeze(handle).await?;
        }
        Ok(())
    });
    Ok(first_error(join_all(all).await)?)
}

/// Resumes all containers of an incarnation.
///
/// Errors: [`FreezeError::Killed`] if a container was killed while it was paused. With the freezer of cgroup v1, such a
/// container dies only when it is resumed, and until then the kernel accepts connections for it.
pub async fn thaw(engine: &dyn Engine, incarnation: &Incarnation) -> Result<(), FreezeError> {
    for (service, handle) in &incarnation.containers {
        if engine.inspect(handle).await?.pid.is_some_and(is_to_die) {
            return Err(FreezeError::Killed(service.clone()));
        }
    }
    let all = incarnation.containers.values().map(|handle| engine.thaw(handle));
    Ok(first_error(join_all(all).await)?)
}

/// Whether SIGKILL is pending for a process. A process that no longer exists has no pending signals.
fn is_to_die(pid: u32) -> bool {
    let process = i32::try_from(pid).ok().and_then(|pid| procfs::process::Process::new(pid).ok());
    let waiting = process.and_then(|process| process.status().ok()).map(|status| status.sigpnd | status.shdpnd);
    waiting.is_some_and(|signals| signals & (1 << (Signal::KILL.as_raw() - 1)) != 0)
}
