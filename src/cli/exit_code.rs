//! Exit codes. Scripts rely on them; they change only with CHANGELOG.md.

/// It was done.
pub const OK: u8 = 0;
/// It failed; standard error says why. `verify`: something differs; standard output says what. `doctor`: it found a problem; standard output says which.
pub const FAILED: u8 = 1;
/// The command line or a definition file is wrong; nothing was changed.
pub const USAGE: u8 = 2;
/// `status`: something is not ready, or no daemon runs.
pub const NOT_READY: u8 = 3;
/// Something else is going on that must end first.
pub const BUSY: u8 = 4;
/// `check`, `eval`: the agent did not do it.
pub const NOT_DONE: u8 = 5;
/// `check`, `eval`: nothing can be said; the environment was at fault, a judge is missing, or the check cannot be made.
pub const UNDECIDED: u8 = 6;
/// `--wait-timeout` ran out; the work goes on in the background.
pub const TIMED_OUT: u8 = 124;
/// Ctrl-C; the work goes on in the background. `images`: it has stopped, and goes on with the next call.
pub const INTERRUPTED: u8 = 130;
