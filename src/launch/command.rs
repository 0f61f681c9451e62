//! Commands in the containers of an incarnation.

use super::Incarnation;
use crate::domain::site::ExecStep;
use crate::engine::{Engine, EngineError};

/// How many lines of what a command said are kept for people.
const LINES: usize = 5;

/// Why a command did not do what it was to do.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// Its service has no container.
    #[error("service {0} has no container")]
    NoContainer(String),
    /// The engine could not run it.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// It ended with something else than 0.
    #[error("`{command}` ended with code {code}:\n    {said}")]
    Failed {
        /// The command.
        command: String,
        /// How it ended.
        code: i64,
        /// The last lines of what it said.
        said: String,
    },
}

/// Runs a command that must end with 0.
pub async fn run(engine: &dyn Engine, incarnation: &Incarnation, step: &ExecStep) -> Result<(), CommandError> {
    let Some(handle) = incarnation.containers.get(&step.service) else {
        return Err(CommandError::NoContainer(step.service.to_string()));
    };
    let output = engine.exec(handle, &step.command, step.user.as_deref(), step.timeout).await?;
    if output.code == 0 {
        return Ok(());
    }
    let said = if output.stderr.trim().is_empty() { &output.stdout } else { &output.stderr };
    let lines: Vec<&str> = said.trim().lines().collect();
    let said = lines[lines.len().saturating_sub(LINES)..].join("\n    ");
    Err(CommandError::Failed { command: step.command.join(" "), code: output.code, said })
}
