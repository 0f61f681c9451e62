//! Logging to standard error, plain or JSON, filtered by `ARENAD_LOG`. `arenad serve` starts it.
//!
//! The crate depends on no other crate of arenad. Start reading at [`start`]; [`supervised`] reports panics of tasks.

pub mod supervised;

use tracing_subscriber::EnvFilter;

/// Starts logging. `ARENAD_LOG` takes tracing's filter notation; without it, states and warnings are logged.
pub fn start(json: bool) {
    let filter = EnvFilter::try_from_env("ARENAD_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    // The log's disk may be full. A failed write cannot be reported there either: the attempt would panic.
    let builder = builder.log_internal_errors(false);
    crate::supervised::log_panics();
    // A second start, as tests may do, keeps the first.
    let _ = if json { builder.json().try_init() } else { builder.with_ansi(false).try_init() };
}
