//! `arenad tasks`: native tasks from their files, and benchmarks' task files with this environment's URLs.

pub mod choice;
mod lint;
mod live;
pub mod render;
mod show;
pub mod stored;

use super::args::{Global, TasksCommand};
use super::failure::CommandFailure;

/// Lints, lists, shows or renders tasks.
pub async fn run(global: &Global, command: &TasksCommand) -> Result<u8, CommandFailure> {
    match command {
        TasksCommand::Lint(args) => match args.stored.benchmark {
            Some(benchmark) => stored::lint(global, &args.stored, benchmark),
            None => lint::run(global, args).await,
        },
        TasksCommand::Ls(args) => match args.stored.benchmark {
            Some(benchmark) => stored::list(global, &args.stored, benchmark),
            None => show::list(global, args),
        },
        TasksCommand::Show(args) => match args.stored.benchmark {
            Some(benchmark) => stored::show(&args.stored, benchmark, &args.task),
            None => show::one(global, args),
        },
        TasksCommand::Render(args) => render::run(global, args).await,
    }
}
