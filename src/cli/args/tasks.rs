//! Native tasks and their checks.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Which task is meant.
#[derive(Debug, Clone, Args)]
pub struct TaskChoice {
    /// The file that has the task [default: those in environments/NAME/tasks/ of the folder that the environment is of]
    #[arg(short, long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// The environment [default: the one where the episode began, else the only one that is up and has the task]
    #[arg(short, long, value_name = "NAME")]
    pub environment: Option<String>,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, after_help = CHECK_CODES)]
pub struct CheckArgs {
    #[command(subcommand)]
    pub command: Option<CheckCommand>,
    /// The task, or a file with one task
    #[arg(value_name = "TASK|FILE", required_unless_present = "from")]
    pub task: Option<String>,
    #[command(flatten)]
    pub choice: TaskChoice,
    /// What `arenad check begin` said; `-` for standard input
    #[arg(long, value_name = "FILE")]
    pub begun: Option<PathBuf>,
    /// What the agent said in the end [default: nothing]
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true, allow_hyphen_values = true)]
    pub answer: String,
    /// Where it ended [default: where its browser is, if --cdp is given]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// The agent's browser: http://HOST:PORT
    #[arg(long, value_name = "ADDRESS")]
    pub cdp: Option<String>,
    /// Write all that was seen to this file
    #[arg(long, value_name = "FILE")]
    pub evidence: Option<PathBuf>,
    /// Judge by what --evidence wrote, without sites and daemon; the task is the one of the files as they are now
    #[arg(long, value_name = "FILE", conflicts_with_all = ["begun", "answer", "url", "cdp", "evidence"])]
    pub from: Option<PathBuf>,
}

const CHECK_CODES: &str = "Exit codes: 0 the agent did it, 5 it did not, 6 nothing can be said; 1 and 2 as everywhere";

#[derive(Debug, Subcommand)]
#[command(disable_help_subcommand = true)]
pub enum CheckCommand {
    /// Capture the values of an episode's beginning that the check will want
    Begin(CheckBeginArgs),
}

#[derive(Debug, Args)]
pub struct CheckBeginArgs {
    /// The task, or a file with one task
    #[arg(value_name = "TASK|FILE")]
    pub task: String,
    #[command(flatten)]
    pub choice: TaskChoice,
    /// Bring the task's sites to where it starts first
    #[arg(long)]
    pub reset: bool,
    /// Write to a file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
#[command(disable_help_subcommand = true)]
pub enum TasksCommand {
    /// Say everything that is wrong with task files; needs neither daemon nor Docker, but with --live
    Lint(TasksLintArgs),
    /// List the tasks of an environment
    #[command(visible_alias = "list")]
    Ls(TasksLsArgs),
    /// Show a task: where it starts, what it asks for, and how it is checked
    Show(TasksShowArgs),
    /// Write a benchmark's task files with this environment's URLs, as its generate_test_data.py does
    Render(crate::cli::tasks::render::RenderArgs),
}

#[derive(Debug, Args)]
pub struct TasksLintArgs {
    /// A task file, a folder of them, or an environment's name [default: mini]
    #[arg(value_name = "FILE|DIR|ENVIRONMENT")]
    pub what: Option<String>,
    /// Also make every check on sites that stand where the tasks start: one that passes there, or cannot be made, is wrong
    #[arg(long)]
    pub live: bool,
    /// The folder that holds environments/ and compose/ [default: the nearest such folder from here upwards]
    #[arg(long, env = "ARENAD_ROOT", value_name = "DIR")]
    pub root: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct TasksLsArgs {
    /// The environment [default: mini]
    #[arg(value_name = "ENVIRONMENT", conflicts_with = "named")]
    pub environment: Option<String>,
    /// The same, as other commands take it
    #[arg(id = "named", short = 'e', long = "environment", value_name = "NAME")]
    pub named: Option<String>,
    /// The folder that holds environments/ and compose/ [default: the nearest such folder from here upwards]
    #[arg(long, env = "ARENAD_ROOT", value_name = "DIR")]
    pub root: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct TasksShowArgs {
    /// The task
    #[arg(value_name = "TASK")]
    pub task: String,
    /// The environment [default: mini]
    #[arg(short, long, value_name = "NAME")]
    pub environment: Option<String>,
    /// The folder that holds environments/ and compose/ [default: the nearest such folder from here upwards]
    #[arg(long, env = "ARENAD_ROOT", value_name = "DIR")]
    pub root: Option<PathBuf>,
}
