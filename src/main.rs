//! The program arenad: parses the arguments and returns the exit code.

mod cli;

use std::ffi::OsStr;
use std::process::ExitCode;
use std::time::Duration;

use arenad_accounts::form;
use arenad_digest::{redis_worker, sqlite_worker};
use arenad_locators::http::select;
use arenad_locators::json_query;
use arenad_locators::sql::{sqlite, worker};
use arenad_probes::sql_worker;

/// The time limit for blocking work after everything else has ended.
const LAST_WORK: Duration = Duration::from_secs(1);

/// The size of a thread's stack, in bytes. A reset in which an answer of the engine is parsed needs 0.7 MB in
/// unoptimized code. The system provides memory only for the part that is used.
const STACK: usize = 8 << 20;

fn main() -> ExitCode {
    // This comes first, because a confined process must have a single thread and drops its rights before any other
    // work.
    let work = match std::env::args_os().nth(1).as_deref().and_then(OsStr::to_str) {
        Some(sql_worker::COMMAND) => Some(sql_worker::serve as fn() -> std::io::Result<()>),
        Some(sqlite_worker::COMMAND) => Some(sqlite_worker::serve as _),
        Some(redis_worker::COMMAND) => Some(redis_worker::serve as _),
        Some(worker::COMMAND) => Some(worker::serve as _),
        Some(sqlite::COMMAND) => Some(sqlite::serve as _),
        Some(json_query::COMMAND) => Some(json_query::serve as _),
        Some(select::COMMAND) => Some(select::serve as _),
        Some(form::COMMAND) => Some(form::serve as _),
        _ => None,
    };
    if let Some(work) = work {
        return work().map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
    }
    // Two threads suffice for the API and the drivers; the gateway has threads of its own.
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).thread_stack_size(STACK).enable_all().build();
    match runtime {
        Ok(runtime) => {
            let code = runtime.block_on(cli::run());
            // Blocking work whose result is no longer needed ends with the process.
            runtime.shutdown_timeout(LAST_WORK);
            ExitCode::from(code)
        }
        Err(error) => {
            eprintln!("error: start the async runtime\ncaused by: {error}");
            ExitCode::FAILURE
        }
    }
}
