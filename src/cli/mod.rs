//! The command line, with one file per command. Results go to standard output, everything else to standard error.

#[macro_use]
mod streams;

mod args;
mod changes;
mod check;
mod client;
mod complete;
mod config;
mod definition;
mod df;
mod doctor;
mod down;
mod dry_run;
mod engine;
mod env;
mod episode;
mod eval;
mod exec;
pub mod exit_code;
mod failure;
mod find;
mod har;
mod health;
mod images;
mod init;
mod locate;
mod login;
mod logs;
mod open;
mod output;
mod progress;
mod prune;
mod reach;
mod replay;
pub mod report;
mod reset;
mod run;
mod secrets;
mod serve;
mod server_events;
mod session;
mod snapshot;
mod state_root;
mod status;
mod storage;
mod tasks;
mod transfer;
mod turkle;
mod up;
mod verdict;
mod verify;
mod workflow;

use clap::FromArgMatches;

use self::args::{Cli, CliCommand};
use self::failure::CommandFailure;

/// Runs the command of the process's arguments, and returns its exit code.
pub async fn run() -> u8 {
    let matches = args::command().get_matches();
    // The arguments have passed the command line from which this parser is derived.
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match dispatch(&cli).await {
        Ok(code) => code,
        Err(failure) if is_closed_pipe(&failure) => exit_code::OK,
        Err(failure) => {
            match cli.global.json {
                true => failure.print_json(),
                false => failure.print(),
            }
            failure.code
        }
    }
}

async fn dispatch(cli: &Cli) -> Result<u8, CommandFailure> {
    let global = &cli.global;
    match &cli.command {
        CliCommand::Up(args) => up::run(global, args).await,
        CliCommand::Down(args) => down::run(global, args).await,
        CliCommand::Reset(args) => reset::run(global, args).await,
        CliCommand::Status(args) => status::run(global, args).await,
        CliCommand::Health(args) => health::run(global, args).await,
        CliCommand::Doctor(args) => doctor::run(global, args).await,
        CliCommand::Ps(args) => status::ps(global, args).await,
        CliCommand::Logs(args) => logs::logs(global, args).await,
        CliCommand::Events(args) => logs::events(global, args).await,
        CliCommand::Env(args) => env::run(global, args).await,
        CliCommand::Config(args) => config::config(global, args),
        CliCommand::Validate(args) => config::validate(global, args),
        CliCommand::Snapshot(command) => snapshot::run(global, command).await,
        CliCommand::Replay(command) => replay::run(global, command).await,
        CliCommand::Ca => replay::certificate(global).await,
        CliCommand::Verify(args) => verify::run(global, args).await,
        CliCommand::Changes(args) => changes::run(global, args).await,
        CliCommand::Look(args) => changes::look(global, args).await,
        CliCommand::Login(args) => login::run(global, args).await,
        CliCommand::Locate(args) => locate::run(global, args).await,
        CliCommand::Har(args) => har::run(global, args).await,
        CliCommand::Eval(args) => eval::run(global, args).await,
        CliCommand::Check(args) => check::run(global, args).await,
        CliCommand::Run(args) => run::run(global, args).await,
        CliCommand::Episode(command) => episode::run(global, command).await,
        CliCommand::Queue => episode::queue(global).await,
        CliCommand::Tasks(command) => tasks::run(global, command).await,
        CliCommand::Turkle(command) => turkle::run(global, command).await,
        CliCommand::Workflow(command) => workflow::run(global, command).await,
        CliCommand::Images(command) => images::run(global, command).await,
        CliCommand::Verdict(command) => verdict::run(global, command).await,
        CliCommand::Df(args) => df::run(global, args).await,
        CliCommand::Prune(args) => prune::run(global, args).await,
        CliCommand::Storage(command) => storage::run(global, command).await,
        CliCommand::Open(args) => open::run(global, args).await,
        CliCommand::Serve(args) => serve::run(global, args).await,
        CliCommand::Schema(args) => config::schema(args),
        CliCommand::Exec(args) => exec::exec(global, args).await,
        CliCommand::Shell(args) => exec::shell(global, args).await,
        CliCommand::Init(args) => init::run(global, args).await,
        CliCommand::Completions(args) => Ok(complete::script(args)),
        CliCommand::Complete(args) => complete::run(global, args).await,
        CliCommand::Version => version(global.json),
    }
}

fn version(json: bool) -> Result<u8, CommandFailure> {
    let version = arenad_api::Version { version: env!("CARGO_PKG_VERSION").to_owned(), api: "v1".to_owned() };
    if json {
        output::print_json(&version)?;
    } else {
        outln!("arenad {} (API {})", version.version, version.api);
    }
    Ok(exit_code::OK)
}

/// Prints a message that is not a result, unless the command's output is for programs.
fn say(is_silent: bool, text: &str) {
    if !is_silent {
        errln!("{text}");
    }
}

/// Returns whether standard output was closed: `arenad logs | head` ends when head has read enough, which is not a
/// failure.
fn is_closed_pipe(failure: &CommandFailure) -> bool {
    let kind = |cause: &(dyn std::error::Error + 'static)| {
        let of_json = cause.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind);
        cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind).or(of_json)
    };
    failure.error.chain().any(|cause| kind(cause) == Some(std::io::ErrorKind::BrokenPipe))
}
