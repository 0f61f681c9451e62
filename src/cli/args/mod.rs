//! Defines the command line. The doc comments of its types are the help texts.

mod definitions;
mod disk;
mod episodes;
mod examples;
mod help;
mod host;
mod images;
mod reading;
mod replays;
mod shared;
mod sites;
mod snapshots;
mod tasks;
mod turkle;
mod verdicts;
mod watching;
mod workflows;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub use definitions::{ConfigArgs, EnvArgs, EnvFormat, EnvReader, InitArgs, SchemaArgs, SchemaFile};
pub use disk::{DfArgs, PruneArgs, StorageCommand, StorageInitArgs};
pub use episodes::{
    EpisodeChangesArgs, EpisodeCommand, EpisodeEndArgs, EpisodeExportArgs, EpisodeExtendArgs, EpisodeForkArgs,
    EpisodeLsArgs, EpisodeStartArgs, EpisodeTermsArgs, ExportFormat, RunArgs,
};
pub use help::command;
pub use host::{CompleteArgs, CompletionsArgs, DoctorArgs, EpisodeQuota, ServeArgs};
pub use images::{ImagesChoice, ImagesCommand, ImagesWriteArgs};
pub use reading::{HarArgs, LocateArgs, LoginArgs, SessionFormat};
pub use replays::{ReplayAddArgs, ReplayCommand, ReplayNameArgs, ReplayRmArgs};
pub(crate) use shared::Malformed;
pub use shared::{DaemonArgs, DefinitionArgs, EngineArgs, PortAddress, port_address};
pub use sites::{
    ChangesArgs, ContainerArgs, DownArgs, ExecArgs, LookArgs, OpenArgs, ResetArgs, ShellArgs, StorageChoice, UpArgs,
    VerifyArgs,
};
pub use snapshots::{DiffArgs, ExportArgs, ImportArgs, RmArgs, SnapshotCommand, SnapshotLsArgs, TakeArgs};
pub use tasks::{
    CheckArgs, CheckBeginArgs, CheckCommand, TaskChoice, TasksCommand, TasksLintArgs, TasksLsArgs, TasksShowArgs,
};
pub use turkle::{TurkleCommand, TurkleLoadArgs};
pub use verdicts::{VerdictCommand, VerdictVerifyArgs};
pub use watching::{EventsArgs, HealthArgs, LogsArgs, PsArgs, StatusArgs};
pub use workflows::{WorkflowCheckArgs, WorkflowCommand, WorkflowDumpArgs, WorkflowRecordArgs, WorkflowReviewArgs};

/// Runs the sites that web agents are tested on, and resets them to proven snapshots between episodes.
#[derive(Debug, Parser)]
#[command(name = "arenad", version, after_help = EXIT_CODES)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: CliCommand,
}

const EXIT_CODES: &str = "\
Name a site as SITE, or as ENVIRONMENT/SITE (or with -e ENVIRONMENT) if several environments have a site of that name.
`arenad help COMMAND` shows a command's options and examples.

Exit codes:
    0  success
    1  failure; differences found (verify, snapshot diff); problems found (doctor)
    2  invalid usage, unknown name, or invalid definition; nothing was changed
    3  not ready (status, health)
    4  busy: another operation must finish first; no slot came free in time (run, episode)
    5  the agent did not accomplish the task (check, eval)
    6  undecided (check, eval)
    7  the signature is not that of the trusted key (verdict verify)
    8  the evidence leads to another verdict (verdict verify)
   75  void: the environment failed the episode; repeat it (run, episode)
  124  --wait-timeout expired; the work continues
  130  interrupted with Ctrl-C; the work continues
`exec`, `shell` and `run` exit with the exit code of the command that they run.";

/// The options that every command accepts.
#[derive(Debug, Clone, Args)]
pub struct Global {
    /// Print JSON instead of text
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub json: bool,
    /// Directory for the daemon's files [default: /var/lib/arenad for root, else ~/.local/state/arenad]
    #[arg(long, global = true, help_heading = GLOBAL, env = "ARENAD_STATE_DIR", value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// Address of the daemon: unix:///path or http://host:port [default: the socket in the state directory]
    #[arg(long, global = true, help_heading = GLOBAL, env = "ARENAD_HOST", value_name = "ADDRESS")]
    pub host: Option<String>,
    /// Token for a daemon on TCP
    #[arg(long, global = true, help_heading = GLOBAL, env = "ARENAD_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    /// File that contains the token for a daemon on TCP
    #[arg(
        long, global = true, help_heading = GLOBAL, env = "ARENAD_TOKEN_FILE", value_name = "FILE", conflicts_with = "token"
    )]
    pub token_file: Option<PathBuf>,
}

/// The heading that separates the global options from the options of the command.
const GLOBAL: &str = "Global options";

#[derive(Debug, Subcommand)]
pub enum CliCommand {
    /// Bring sites up and wait until they are ready
    Up(UpArgs),
    /// Take sites down and remove their containers, networks and volumes
    Down(DownArgs),
    /// Reset sites to their snapshots
    Reset(ResetArgs),
    /// Compare sites with their snapshots and list the differences
    Verify(VerifyArgs),
    /// List the changes in sites, with the rows of tables
    Changes(ChangesArgs),
    /// Keep the state of a site for a later comparison by `changes`
    Look(LookArgs),
    /// Show the sites that are up, their states, and hints for problems
    Status(StatusArgs),
    /// Show the results of health probes
    Health(HealthArgs),
    /// Check whether this host can run sites; requires neither the daemon nor the engine
    Doctor(DoctorArgs),
    /// List the containers of sites
    Ps(PsArgs),
    /// Show the logs of sites' containers
    Logs(LogsArgs),
    /// Show the events of sites and of the daemon
    Events(EventsArgs),
    /// Open a site in the browser
    Open(OpenArgs),
    /// Run a command in a site's container
    Exec(ExecArgs),
    /// Open a shell in a site's container
    Shell(ShellArgs),
    /// Create an environment, with proposed stores, probes and writers
    Init(InitArgs),
    /// Validate a definition; requires neither the daemon nor Docker
    Validate(DefinitionArgs),
    /// Print a definition with variables and defaults filled in
    Config(ConfigArgs),
    /// Print the environment variables that benchmarks read
    Env(EnvArgs),
    /// Print the JSON Schema of a definition file, for editors
    Schema(SchemaArgs),
    /// List, fetch, load and verify images and data that are not built locally
    #[command(subcommand)]
    Images(ImagesCommand),
    /// List, take, compare, export, import and remove snapshots
    #[command(subcommand)]
    Snapshot(SnapshotCommand),
    /// Sign in to a site and print the session
    Login(LoginArgs),
    /// Read a value from a site: from its databases, pages or files
    Locate(LocateArgs),
    /// Print recorded traffic as HAR
    Har(HarArgs),
    /// Run a command with pristine sites of its own, for as long as it runs
    Run(Box<RunArgs>),
    /// Start, list, show, compare, extend, freeze, fork, export and end episodes
    #[command(subcommand)]
    Episode(EpisodeCommand),
    /// Show the requests that wait for slots
    Queue,
    /// Lint, list, show and render tasks
    #[command(subcommand)]
    Tasks(TasksCommand),
    /// Load tasks of TurkingBench into Turkle
    #[command(subcommand)]
    Turkle(TurkleCommand),
    /// Replay recorded workflows of tasks with key nodes, and name what is broken
    #[command(subcommand)]
    Workflow(WorkflowCommand),
    /// Judge an episode of a native task
    Check(CheckArgs),
    /// Judge episodes by a benchmark's rules
    Eval(Box<super::eval::args::EvalArgs>),
    /// Verify certificates of verdicts, and print the key that verifies them
    #[command(subcommand)]
    Verdict(VerdictCommand),
    /// Make, list, show and remove replays: recorded sites, served under their original names
    #[command(subcommand)]
    Replay(ReplayCommand),
    /// Print the certificate that clients must trust to reach recorded https hosts
    Ca,
    /// Show the disk usage of snapshots, instances, images and archives
    Df(DfArgs),
    /// Remove unused snapshots, images and kept containers; named snapshots are kept
    Prune(PruneArgs),
    /// Create or show the file system that holds the state of sites
    #[command(subcommand)]
    Storage(StorageCommand),
    /// Run the daemon in the foreground
    Serve(ServeArgs),
    /// Print the completion script for a shell
    Completions(CompletionsArgs),
    /// Print the possible next words, for the completion scripts
    #[command(hide = true)]
    Complete(CompleteArgs),
    /// Print the version of arenad
    Version,
}
