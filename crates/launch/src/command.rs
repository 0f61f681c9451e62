//! Runs the commands that a site defines in the containers of an incarnation.

use bytes::Bytes;

use super::Incarnation;
use arenad_engine::{Engine, EngineError};
use arenad_model::cause::Cause;
use arenad_model::configure::ExecStep;

/// The number of last lines of each output stream that an error message shows.
const LINES: usize = 5;

/// The reason why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The service that the step names has no container.
    #[error("service {0} has no container")]
    NoContainer(String),
    /// The engine could not run it.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The command exited with a code other than 0.
    #[error("`{command}` exited with code {code}{said}")]
    Failed {
        /// The program and its arguments, joined by spaces.
        command: String,
        /// The exit code, never 0.
        code: i64,
        /// The last lines of both of its streams.
        said: String,
    },
}

impl CommandError {
    /// Returns the cause, if a person can take specific action against it.
    pub fn cause(&self) -> Option<Cause> {
        match self {
            Self::NoContainer(_) => None,
            Self::Engine(error) => error.cause(),
            Self::Failed { said, .. } => Cause::stated_by_program(said),
        }
    }
}

/// Runs a command in the container of its service.
///
/// Errors: [`CommandError::Failed`] if the exit code is not 0.
pub async fn run(engine: &dyn Engine, incarnation: &Incarnation, step: &ExecStep) -> Result<(), CommandError> {
    run_with_input(engine, incarnation, step, None).await
}

/// Does the same as [`run`], with bytes on the command's standard input.
pub async fn run_with_input(
    engine: &dyn Engine,
    incarnation: &Incarnation,
    step: &ExecStep,
    input: Option<Bytes>,
) -> Result<(), CommandError> {
    let Some(handle) = incarnation.containers.get(&step.service) else {
        return Err(CommandError::NoContainer(step.service.to_string()));
    };
    let output = engine.exec_with_input(handle, &step.command, step.user.as_deref(), input, step.timeout).await?;
    if output.code == 0 {
        return Ok(());
    }
    let said = said(&output.stdout, &output.stderr);
    Err(CommandError::Failed { command: step.command.join(" "), code: output.code, said })
}

/// Returns the last lines of both streams, because programs print the reason for a failure to either.
fn said(stdout: &str, stderr: &str) -> String {
    let streams = [("stdout", stdout.trim()), ("stderr", stderr.trim())];
    let streams: Vec<String> =
        streams.into_iter().filter(|(_, text)| !text.is_empty()).map(|(name, text)| tail(name, text)).collect();
    if streams.is_empty() { " and printed nothing".to_owned() } else { format!(":{}", streams.concat()) }
}

fn tail(name: &str, text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let kept = &lines[lines.len().saturating_sub(LINES)..];
    let heading = match lines.len() > kept.len() {
        true => format!("{name}, the last {LINES} of {} lines", lines.len()),
        false => name.to_owned(),
    };
    format!("\n    {heading}:\n      {}", kept.join("\n      "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_streams_are_shown_by_their_ends() {
        assert_eq!(said("", " \n"), " and printed nothing");
        assert_eq!(said("no such table\n", ""), ":\n    stdout:\n      no such table");
        let long: String = (1..=7).map(|line| format!("{line}\n")).collect();
        let expected = ":\n    stdout, the last 5 of 7 lines:\n      3\n      4\n      5\n      6\n      7\n    stderr:\n      why";
        assert_eq!(said(&long, "why"), expected);
    }
}
