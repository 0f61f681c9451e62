//! `arenad tasks`: native tasks from their files, and benchmarks' task files with this environment's URLs.

pub mod choice;
mod lint;
mod live;
pub mod render;
mod show;

use super::args::{Global, TasksCommand};
use super::failure::CommandFailure;

/// Lints, lists, shows or renders tasks.
pub async fn run(global: &Global, command: &TasksCommand) -> Result<u8, CommandFailure> {
    match command {
        TasksCommand::Lint(args) => lint::run(global, args).await,
        TasksCommand::Ls(args) => show::list(global, args),
        TasksCommand::Show(args) => show::one(global, args),
        TasksCommand::Render(args) => render::run(global, args).await,
    }
}
