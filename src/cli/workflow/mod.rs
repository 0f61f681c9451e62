//! `arenad workflow`: recorded workflows of tasks with key nodes.

mod check;
mod drive;
mod dump;
mod files;
mod record;
mod visit;

use super::args::{Global, WorkflowCommand};
use super::failure::CommandFailure;

/// Runs one of the commands for recorded workflows.
pub async fn run(global: &Global, command: &WorkflowCommand) -> Result<u8, CommandFailure> {
    match command {
        // An interrupted replay ends its browser, and leaves no folder and no control group of it.
        WorkflowCommand::Check(args) => tokio::select! {
            checked = check::run(global, args) => checked,
            _ = tokio::signal::ctrl_c() => Err(CommandFailure::interrupted()),
        },
        WorkflowCommand::Dump(args) => dump::run(global, args).await,
        WorkflowCommand::Record(args) => record::record(global, args).await,
        WorkflowCommand::Review(args) => record::review(args),
    }
}
