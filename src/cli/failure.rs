//! The failure of a command: message, causes, hint and exit code.

use super::exit_code;
use arenad_api::episodes::ReportedEnding;
use arenad_api::{EpisodeStatus, Problem};

/// The failure of a command, as it is printed.
#[derive(Debug)]
pub struct CommandFailure {
    /// The error, with its causes.
    pub error: anyhow::Error,
    /// The action that may fix the failure.
    pub hint: Option<String>,
    /// The exit code of the process.
    pub code: u8,
    /// Whether the failure is an answer of the daemon, and not one to reach it.
    pub is_answer: bool,
}

impl CommandFailure {
    /// Creates a failure with this exit code.
    pub fn new(code: u8, error: impl Into<anyhow::Error>) -> Self {
        Self { error: error.into(), hint: None, code, is_answer: false }
    }

    /// Creates the failure of an invalid command line.
    pub fn usage(message: impl std::fmt::Display) -> Self {
        Self::new(exit_code::USAGE, anyhow::anyhow!("{message}"))
    }

    /// Creates the failure of a wait that Ctrl-C ended.
    pub fn interrupted() -> Self {
        Self::new(exit_code::INTERRUPTED, anyhow::anyhow!("interrupted"))
    }

    /// Adds a hint to the failure.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Prints the failure on standard error as one JSON object, for commands with `--json`.
    ///
    /// Shape: `{"error", "causes": […], "hint", "exit_code"}`.
    pub fn print_json(&self) {
        let causes: Vec<String> = self.error.chain().skip(1).map(ToString::to_string).collect();
        let error = self.error.to_string();
        errln!(
            "{}",
            serde_json::json!({ "error": error, "causes": causes, "hint": self.hint, "exit_code": self.code })
        );
    }

    /// Prints the failure on standard error. A cause that the message already contains is not repeated.
    pub fn print(&self) {
        errln!("error: {}", self.error);
        let mut said = self.error.to_string();
        for cause in self.error.chain().skip(1) {
            let cause = cause.to_string();
            if !said.contains(&cause) {
                errln!("caused by: {cause}");
                said.push_str(&cause);
            }
        }
        if let Some(hint) = &self.hint {
            errln!("hint: {hint}");
        }
    }
}

impl<E: Into<anyhow::Error>> From<E> for CommandFailure {
    fn from(error: E) -> Self {
        Self::new(exit_code::FAILED, error)
    }
}

/// Converts an error of the API.
pub fn from_problem(problem: Problem) -> CommandFailure {
    let code = match problem.code.as_str() {
        "definition"
        | "bad_request"
        | "bad_name"
        | "unknown_site"
        | "unknown_service"
        | "unknown_snapshot"
        | "ambiguous"
        | "unknown_environment"
        | "which_environment"
        | "unknown_account"
        | "bad_locator"
        | "bad_task"
        | "unknown_helper"
        | "unknown_task"
        | "other_task"
        | "not_begun"
        | "no_login"
        | "unknown_episode"
        | "unknown_slot"
        | "unknown_replay"
        | "broken_recording"
        | "no_recording"
        | "only_by_name"
        | "shared_site"
        | "key_reused" => exit_code::USAGE,
        "busy" | "full" | "stopping" | "no_slot" | "queue_full" | "not_active" | "already_held" => exit_code::BUSY,
        "void" => exit_code::VOID,
        _ => exit_code::FAILED,
    };
    let mut failure = CommandFailure::new(code, anyhow::anyhow!("{}", problem.detail));
    failure.is_answer = true;
    match problem.hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// Returns the failure of a command whose episode has ended.
pub fn of_ending(episode: &str, ending: &ReportedEnding) -> CommandFailure {
    let (code, hint) = match (ending.state, ending.code.as_str()) {
        (EpisodeStatus::Void, _) => {
            (exit_code::VOID, Some("repeat the episode: the environment failed it, and not its client"))
        }
        (EpisodeStatus::Expired, "wait") => (exit_code::BUSY, Some("wait longer; `arenad queue` shows the requests")),
        _ => (exit_code::FAILED, None),
    };
    let failure = CommandFailure::new(code, anyhow::anyhow!("episode {episode} has ended: {}", ending.reason));
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_tells_why_an_episode_ended() {
        let code = |state, code: &str| {
            let ending = ReportedEnding { state, code: code.to_owned(), reason: String::new(), slot: None };
            of_ending("ep-1", &ending).code
        };
        assert_eq!(code(EpisodeStatus::Void, "container_died"), exit_code::VOID);
        assert_eq!(code(EpisodeStatus::Expired, "wait"), exit_code::BUSY);
        assert_eq!(code(EpisodeStatus::Expired, "ttl"), exit_code::FAILED);
        assert_eq!(code(EpisodeStatus::Released, "client"), exit_code::FAILED);
    }
}
