//! arenad's program: arguments in, exit code out.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Two threads carry the API and the drivers with ease; the gateway has threads of its own.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    match runtime {
        Ok(runtime) => ExitCode::from(runtime.block_on(arenad::cli::run())),
        Err(error) => {
            eprintln!("error: start the async runtime\ncaused by: {error}");
            ExitCode::FAILURE
        }
    }
}
