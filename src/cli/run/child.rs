//! The command of `arenad run`, as a process.

use std::collections::BTreeMap;
use std::io::{ErrorKind, IsTerminal};
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use super::signals::WrapperSignal;
use crate::cli::exit_code;
use crate::cli::failure::CommandFailure;

/// The time that a command has to end after a signal, before it is killed.
const GRACE: Duration = Duration::from_secs(10);

/// A command that runs. It is killed when the value is dropped.
pub struct RunningChild(Child);

impl RunningChild {
    /// Starts a command. `has_input` is whether it reads this process's standard input.
    pub fn start(
        command: &[String],
        variables: &BTreeMap<String, String>,
        has_input: bool,
    ) -> Result<Self, CommandFailure> {
        let Some((program, arguments)) = command.split_first() else {
            return Err(CommandFailure::usage("there is no command to run"));
        };
        let mut command = Command::new(program);
        command.args(arguments).envs(variables).kill_on_drop(true);
        if !has_input {
            command.stdin(Stdio::null());
        }
        match command.spawn() {
            Ok(child) => Ok(Self(child)),
            Err(error) => {
                let code = match error.kind() {
                    ErrorKind::NotFound => exit_code::COMMAND_NOT_FOUND,
                    _ => exit_code::COMMAND_NOT_RUN,
                };
                let error = anyhow::Error::from(error).context(format!("run {program}"));
                Err(CommandFailure::new(code, error))
            }
        }
    }

    /// Waits for the command's end, and returns its exit code.
    ///
    /// Cancellation: the command keeps running.
    pub async fn ended(&mut self) -> Result<u8, CommandFailure> {
        Ok(code(self.0.wait().await.context("wait for the command")?))
    }

    /// Passes a signal that this process received on to the command, and waits for its end.
    pub async fn interrupt(&mut self, signal: WrapperSignal) -> Result<u8, CommandFailure> {
        match signal {
            // The terminal has sent Ctrl-C to the command as well.
            WrapperSignal::Interrupt if std::io::stdin().is_terminal() => {}
            WrapperSignal::Interrupt => self.send(Signal::INT),
            WrapperSignal::Terminate => self.send(Signal::TERM),
            WrapperSignal::HangUp => self.send(Signal::HUP),
        }
        self.end_within_grace().await
    }

    /// Asks the command to end, and kills it if it takes too long.
    pub async fn end(&mut self) {
        self.send(Signal::TERM);
        // The outcome of a command that was ended is of no interest.
        let _ = self.end_within_grace().await;
    }

    async fn end_within_grace(&mut self) -> Result<u8, CommandFailure> {
        if let Ok(ended) = tokio::time::timeout(GRACE, self.ended()).await {
            return ended;
        }
        self.0.kill().await.context("kill the command")?;
        self.ended().await
    }

    fn send(&self, signal: Signal) {
        let pid = self.0.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // The command may have ended just now.
            let _ = kill_process(pid, signal);
        }
    }
}

/// Returns an exit code as shells do: 128 and the number of the signal that ended a process.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| Some(128 + status.signal()?));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(exit_code::FAILED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_those_of_a_shell() {
        assert_eq!(code(ExitStatus::from_raw(7 << 8)), 7);
        assert_eq!(code(ExitStatus::from_raw(9)), 137);
    }

    #[tokio::test]
    async fn a_command_that_does_not_exist_is_told_apart() {
        let start = |program: &str| RunningChild::start(&[program.to_owned()], &BTreeMap::new(), false);
        assert_eq!(start("/nowhere/to/be-found").err().expect("no program").code, exit_code::COMMAND_NOT_FOUND);
        assert_eq!(start("/").err().expect("a folder").code, exit_code::COMMAND_NOT_RUN);
        let variables = BTreeMap::from([("ARENAD_EPISODE".to_owned(), "ep".to_owned())]);
        let words = ["/bin/sh", "-c", "test \"$ARENAD_EPISODE\" = ep && exit 9"].map(str::to_owned);
        let mut child = RunningChild::start(&words, &variables, false).expect("a shell");
        assert_eq!(child.ended().await.expect("a code"), 9);
    }
}
