//! Commands in the containers of an incarnation.

use super::Incarnation;
use arenad_engine::{Engine, EngineError};
use arenad_model::site::ExecStep;

/// How many lines of each stream of a command are kept for people.
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
    #[error("`{command}` ended with code {code}{said}")]
    Failed {
        /// The command.
        command: String,
        /// How it ended.
        code: i64,
        /// The last lines of both of its streams.
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
    let said = said(&output.stdout, &output.stderr);
    Err(CommandError::Failed { command: step.command.join(" "), code: output.code, said })
}

/// The last lines of both streams: programs print reasons to either.
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
