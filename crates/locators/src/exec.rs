//! The output of a command in a container.
//!
//! The command has fixed arguments and no shell, but it is still a command: the author of the locator is responsible
//! for its effects.

use std::time::Duration;

use super::{FoundValue, LocateError, Scene};
use arenad_engine::docker::EXEC_OUTPUT_MAX;
use arenad_engine::{Engine, EngineError};
use arenad_model::error::describe;
use arenad_model::locator::{ExecLocator, Value};

pub(super) async fn run(
    engine: &dyn Engine,
    scene: &Scene<'_>,
    locator: &ExecLocator,
    limit: Duration,
) -> Result<FoundValue, LocateError> {
    let (service, container) = scene.container(locator.service.as_deref())?;
    let ran = format!("{service}: {}", locator.command.join(" "));
    let output = engine.exec(container, &locator.command, None, limit).await.map_err(|error| failed(&error, limit))?;
    if output.stdout.len() >= EXEC_OUTPUT_MAX {
        let limit = format!("{} KiB", EXEC_OUTPUT_MAX >> 10);
        return Err(LocateError::TooLarge { what: format!("`{ran}` printed all that is kept"), limit });
    }
    if output.code != 0 {
        let said = output.stderr.trim().lines().last().unwrap_or("it said nothing").to_owned();
        return Err(LocateError::Failed(format!("`{ran}` exited with code {}: {said}", output.code)));
    }
    // A shell's `$(…)` removes trailing line breaks as well.
    let text = output.stdout.trim_end_matches('\n').to_owned();
    Ok(FoundValue { value: Value::Text(text), ran, notes: Vec::new() })
}

/// Maps an engine error to a locator error.
pub(super) fn failed(error: &EngineError, limit: Duration) -> LocateError {
    match error {
        EngineError::TimedOut { .. } => LocateError::TimedOut { limit },
        // A container that existed a moment ago has been removed or has ended.
        EngineError::NotFound { .. } | EngineError::Conflict { .. } | EngineError::Unreachable { .. } => {
            LocateError::Unavailable(describe(error))
        }
        EngineError::Refused { status, .. } if *status >= 500 => LocateError::Unavailable(describe(error)),
        EngineError::Refused { .. } | EngineError::TooOld { .. } | EngineError::Build { .. } => {
            LocateError::Failed(describe(error))
        }
        EngineError::Broken { .. } => LocateError::Unavailable(describe(error)),
    }
}
