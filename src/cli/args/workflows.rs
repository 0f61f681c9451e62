//! Arguments of the commands for recorded workflows.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::shared::Malformed;
use arenad_model::schedule::CronSchedule;

#[derive(Debug, Subcommand)]
#[command(disable_help_subcommand = true)]
pub enum WorkflowCommand {
    /// Replay workflows, and name the key nodes that are broken, with causes and repairs
    Check(WorkflowCheckArgs),
    /// Replay workflows, and write them as recorded tasks in the layout of Mind2Web
    Dump(WorkflowDumpArgs),
    /// Record your actions in a browser window as a workflow
    Record(WorkflowRecordArgs),
    /// Write a page that shows a workflow, proposes key nodes, and saves those that you choose as a task
    Review(WorkflowReviewArgs),
}

#[derive(Debug, Args)]
pub struct WorkflowDumpArgs {
    /// Workflow files, or folders that contain them
    #[arg(value_name = "FILE|DIR", required = true)]
    pub files: Vec<PathBuf>,
    /// Folder to write the dump to, which does not exist or is empty
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// Environment that has the sites, if several have sites of these names
    #[arg(short, long, value_name = "NAME")]
    pub environment: Option<String>,
}

#[derive(Debug, Args)]
pub struct WorkflowRecordArgs {
    /// File to write the workflow to
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Address that is opened first, such as http://shopping.arena.test/
    #[arg(long, value_name = "URL")]
    pub start: String,
    /// Site that the workflow runs on, as part of an episode; may be repeated [default: none, for live sites]
    #[arg(long = "site", value_name = "SITE")]
    pub sites: Vec<String>,
    /// Account that is signed in from the beginning; may be repeated [default for NAME: the only one that can sign in]
    #[arg(long = "account", value_name = "SITE[=NAME]", value_parser = account)]
    pub accounts: Vec<(String, Option<String>)>,
    /// Instruction of the task
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub title: String,
    /// `index` of the task, for the key nodes
    #[arg(long, value_name = "ID")]
    pub task: Option<String>,
    /// Answer with which the task ends
    #[arg(long, value_name = "TEXT")]
    pub answer: Option<String>,
    /// Replace the file if it exists
    #[arg(long)]
    pub force: bool,
    /// Environment that has the sites, if several have sites of these names
    #[arg(short, long, value_name = "NAME")]
    pub environment: Option<String>,
}

#[derive(Debug, Args)]
pub struct WorkflowReviewArgs {
    /// Workflow file, such as `record` writes it
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// File to write the page to [default: the workflow's name with .html]
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct WorkflowCheckArgs {
    /// Workflow files, or folders that contain them
    #[arg(value_name = "FILE|DIR", required = true)]
    pub files: Vec<PathBuf>,
    /// Task file of WebCanvas with the key nodes [default: tasks.json beside each workflow or in the folder above it]
    #[arg(long, value_name = "FILE")]
    pub tasks: Option<PathBuf>,
    /// Visit the sites of the workflows directly, with a browser of this command, instead of sites of an episode
    #[arg(long, conflicts_with = "environment")]
    pub live: bool,
    /// Write repaired key nodes to the task file as new versions of the tasks, and keep the former ones in it
    #[arg(long)]
    pub write: bool,
    /// Write what the replay saw to the workflow files: the present addresses and elements, and the steps at which key nodes
    /// are reached
    #[arg(long)]
    pub update: bool,
    /// Append the result of each workflow to this file as a line of JSON, to see when a task broke
    #[arg(long, value_name = "FILE")]
    pub history: Option<PathBuf>,
    /// Environment that has the sites, if several have sites of these names
    #[arg(short, long, value_name = "NAME")]
    pub environment: Option<String>,
    /// Replay again and again at the times of this cron expression in UTC, such as `0 6 * * *`, until Ctrl-C
    #[arg(long, value_name = "EXPRESSION", value_parser = cron)]
    pub cron: Option<CronSchedule>,
}

fn account(text: &str) -> Result<(String, Option<String>), Malformed> {
    let (site, name) = text.split_once('=').map_or((text, None), |(site, name)| (site, Some(name)));
    if site.is_empty() || name == Some("") {
        return Err(format!("`{text}` is not of the form SITE or SITE=NAME, such as shopping=customer").into());
    }
    Ok((site.to_owned(), name.map(str::to_owned)))
}

fn cron(expression: &str) -> Result<CronSchedule, String> {
    CronSchedule::parse(expression, "UTC").map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_has_a_site_and_maybe_a_name() {
        let read = |text: &str| account(text).map_err(|error| error.to_string());
        assert_eq!(read("shopping"), Ok(("shopping".to_owned(), None)));
        assert_eq!(read("shopping=customer"), Ok(("shopping".to_owned(), Some("customer".to_owned()))));
        for malformed in ["", "=customer", "shopping="] {
            assert!(read(malformed).expect_err("malformed").contains("SITE=NAME"), "{malformed}");
        }
    }
}
