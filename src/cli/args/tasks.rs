//! Arguments of the commands for native tasks and their checks.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// The options that select the file and the environment of a task.
#[derive(Debug, Clone, Args)]
pub struct TaskChoice {
    /// File that contains the task [default: the files in environments/NAME/tasks/, next to the environment file]
    #[arg(short, long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Environment [default: the one in which the episode began, else the only one that is up and has the task]
    #[arg(short, long, value_name = "NAME")]
    pub environment: Option<String>,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, after_help = CHECK_CODES)]
pub struct CheckArgs {
    #[command(subcommand)]
    pub command: Option<CheckCommand>,
    /// Task, or file that contains one task
    #[arg(value_name = "TASK|FILE", required_unless_present = "from")]
    pub task: Option<String>,
    #[command(flatten)]
    pub choice: TaskChoice,
    /// File with the output of `arenad check begin`; `-` for standard input
    #[arg(long, value_name = "FILE")]
    pub begun: Option<PathBuf>,
    /// Final answer of the agent [default: empty]
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true, allow_hyphen_values = true)]
    pub answer: String,
    /// URL at which the agent ended [default: the URL of its browser, if --cdp is given]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// CDP address of the agent's browser: http://HOST:PORT
    #[arg(long, value_name = "ADDRESS")]
    pub cdp: Option<String>,
    /// Write all observations to this file
    #[arg(long, value_name = "FILE")]
    pub evidence: Option<PathBuf>,
    /// Judge by a file that --evidence wrote, without sites or a daemon; the task is read from the current task files
    #[arg(long, value_name = "FILE", conflicts_with_all = ["begun", "answer", "url", "cdp", "evidence"])]
    pub from: Option<PathBuf>,
}

const CHECK_CODES: &str = "Exit codes: 0 accomplished, 5 not accomplished, 6 undecided; 1 and 2 as for all commands";

#[derive(Debug, Subcommand)]
#[command(disable_help_subcommand = true)]
pub enum CheckCommand {
    /// Capture the values at the start of an episode that the check requires
    Begin(CheckBeginArgs),
}

#[derive(Debug, Args)]
pub struct CheckBeginArgs {
    /// Task, or file that contains one task
    #[arg(value_name = "TASK|FILE")]
    pub task: String,
    #[command(flatten)]
    pub choice: TaskChoice,
    /// Reset the task's sites to its initial state first
    #[arg(long)]
    pub reset: bool,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
#[command(disable_help_subcommand = true)]
pub enum TasksCommand {
    /// Report all problems of task files; requires the daemon only with --live
    Lint(TasksLintArgs),
    /// List the tasks of an environment
    #[command(visible_alias = "list")]
    Ls(TasksLsArgs),
    /// Show the start, the intent and the check of a task
    Show(TasksShowArgs),
    /// Write a benchmark's task files with this environment's URLs, as its generate_test_data.py does
    Render(crate::cli::tasks::render::RenderArgs),
}

#[derive(Debug, Args)]
pub struct TasksLintArgs {
    /// Task file, folder of task files, or name of an environment [default: mini]
    #[arg(value_name = "FILE|DIR|ENVIRONMENT")]
    pub what: Option<String>,
    /// Also run every check on sites in the initial state of its task, and report checks that pass or cannot run
    #[arg(long)]
    pub live: bool,
    #[command(flatten)]
    pub stored: crate::cli::tasks::stored::StoredChoice,
    /// Folder that contains environments/ and compose/, or a folder below it [default: found from the working directory
    /// upwards, in ARENAD_PATH, or beside the program]
    #[arg(long, env = "ARENAD_ROOT", value_name = "DIR")]
    pub root: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct TasksLsArgs {
    /// Name of the environment [default: mini]
    #[arg(value_name = "ENVIRONMENT", conflicts_with = "named")]
    pub environment: Option<String>,
    /// Environment, the same as the argument ENVIRONMENT
    #[arg(id = "named", short = 'e', long = "environment", value_name = "NAME")]
    pub named: Option<String>,
    #[command(flatten)]
    pub stored: crate::cli::tasks::stored::StoredChoice,
    /// Folder that contains environments/ and compose/, or a folder below it [default: found from the working directory
    /// upwards, in ARENAD_PATH, or beside the program]
    #[arg(long, env = "ARENAD_ROOT", value_name = "DIR")]
    pub root: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct TasksShowArgs {
    /// Name of the task
    #[arg(value_name = "TASK")]
    pub task: String,
    /// Name of the environment [default: mini]
    #[arg(short, long, value_name = "NAME")]
    pub environment: Option<String>,
    #[command(flatten)]
    pub stored: crate::cli::tasks::stored::StoredChoice,
    /// Folder that contains environments/ and compose/, or a folder below it [default: found from the working directory
    /// upwards, in ARENAD_PATH, or beside the program]
    #[arg(long, env = "ARENAD_ROOT", value_name = "DIR")]
    pub root: Option<PathBuf>,
}
