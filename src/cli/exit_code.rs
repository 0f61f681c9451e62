//! Exit codes. Scripts rely on them; every change is listed in CHANGELOG.md.

/// The command succeeded; for `check` and `eval`, the agent accomplished the task.
pub const OK: u8 = 0;
/// The command failed; standard error states the reason. `verify`: an instance differs; standard output states the
/// differences. `doctor`: there is a problem; standard output states it.
pub const FAILED: u8 = 1;
/// The command line or a definition file is invalid; nothing was changed.
pub const USAGE: u8 = 2;
/// `status`: a site is not ready, or no daemon runs.
pub const NOT_READY: u8 = 3;
/// Another operation must finish first.
pub const BUSY: u8 = 4;
/// `check`, `eval`: the agent did not accomplish the task.
pub const NOT_DONE: u8 = 5;
/// `check`, `eval`: there is no verdict, because the environment failed, a judge is missing, or the check is not
/// supported.
pub const UNDECIDED: u8 = 6;
/// `verdict verify`: the signature does not belong to the certificate and the trusted key.
pub const BAD_SIGNATURE: u8 = 7;
/// `verdict verify`: the evidence of the certificate leads to another verdict.
pub const OTHER_VERDICT: u8 = 8;
/// The episode is void: the environment failed it, so that its result means nothing. The code is that of a temporary
/// failure in `sysexits.h`, which few programs use, because `run` also ends with the codes of commands.
pub const VOID: u8 = 75;
/// `--wait-timeout` expired; the work continues in the background.
pub const TIMED_OUT: u8 = 124;
/// `run`: the command cannot be run.
pub const COMMAND_NOT_RUN: u8 = 126;
/// `run`: the command does not exist.
pub const COMMAND_NOT_FOUND: u8 = 127;
/// Ctrl-C was pressed; the work continues in the background. `images`: the work has stopped, and the next call
/// continues it.
pub const INTERRUPTED: u8 = 130;
