//! The command line. Its doc comments are the help texts.

mod definitions;
mod disk;
mod examples;
mod help;
mod host;
mod images;
mod reading;
mod shared;
mod sites;
mod snapshots;
mod tasks;
mod watching;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub use definitions::{ConfigArgs, EnvArgs, EnvFormat, EnvReader, InitArgs, SchemaArgs, SchemaFile};
pub use disk::{DfArgs, PruneArgs, StorageCommand, StorageInitArgs};
pub use help::command;
pub use host::{CompleteArgs, CompletionsArgs, DoctorArgs, ServeArgs};
pub use images::{ImagesChoice, ImagesCommand, ImagesWriteArgs};
pub use reading::{HarArgs, LocateArgs, LoginArgs, SessionFormat};
pub(crate) use shared::Malformed;
pub use shared::{DaemonArgs, DefinitionArgs, EngineArgs};
pub use sites::{ContainerArgs, DownArgs, ExecArgs, OpenArgs, ResetArgs, ShellArgs, StorageChoice, UpArgs, VerifyArgs};
pub use snapshots::{DiffArgs, ExportArgs, ImportArgs, RmArgs, SnapshotCommand, SnapshotLsArgs, TakeArgs};
pub use tasks::{
    CheckArgs, CheckBeginArgs, CheckCommand, TaskChoice, TasksCommand, TasksLintArgs, TasksLsArgs, TasksShowArgs,
};
pub use watching::{EventsArgs, HealthArgs, LogsArgs, PsArgs, StatusArgs};

/// Runs the sites that web agents are tested on, and resets them to proven snapshots between episodes.
#[derive(Debug, Parser)]
#[command(name = "arenad", version, after_help = EXIT_CODES)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "\
Sites are named SITE, or ENVIRONMENT/SITE where several environments have one of that name; -e ENVIRONMENT does the same.
`arenad help COMMAND` shows a command's options and examples.

Exit codes:
    0  done
    1  failed; a difference was found (verify, snapshot diff); a problem was found (doctor)
    2  wrong usage, unknown name, or invalid definition; nothing was changed
    3  not ready (status, health)
    4  busy: something else must end first
    5  the agent did not do the task (check, eval)
    6  undecided (check, eval)
  124  --wait-timeout ran out; the work goes on
  130  interrupted with Ctrl-C; the work goes on
`exec` and `shell` exit with the code of the command that they run.";

/// Options of every command.
#[derive(Debug, Clone, Args)]
pub struct Global {
    /// Print JSON instead of text
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub json: bool,
    /// Where the daemon keeps its files [default: /var/lib/arenad for root, else ~/.local/state/arenad]
    #[arg(long, global = true, help_heading = GLOBAL, env = "ARENAD_STATE_DIR", value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// The daemon's address: unix:///path or http://host:port [default: the socket in the state directory]
    #[arg(long, global = true, help_heading = GLOBAL, env = "ARENAD_HOST", value_name = "ADDRESS")]
    pub host: Option<String>,
    /// The token for a daemon on TCP
    #[arg(long, global = true, help_heading = GLOBAL, env = "ARENAD_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    /// A file with the token for a daemon on TCP
    #[arg(
        long, global = true, help_heading = GLOBAL, env = "ARENAD_TOKEN_FILE", value_name = "FILE", conflicts_with = "token"
    )]
    pub token_file: Option<PathBuf>,
}

/// Keeps them apart from what a command takes itself.
const GLOBAL: &str = "Global options";

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Bring sites up and wait until they are ready
    Up(UpArgs),
    /// Take sites down and remove their containers, networks and volumes
    Down(DownArgs),
    /// Bring sites back to their snapshots
    Reset(ResetArgs),
    /// Compare sites with their snapshots and list the differences
    Verify(VerifyArgs),
    /// Show what is up, in which state, and what to do about problems
    Status(StatusArgs),
    /// Show the results of health probes
    Health(HealthArgs),
    /// Show what keeps sites from running on this host; needs neither daemon nor engine
    Doctor(DoctorArgs),
    /// List the containers of sites
    Ps(PsArgs),
    /// Show the logs of sites' containers
    Logs(LogsArgs),
    /// Show what happened
    Events(EventsArgs),
    /// Open a site in the browser
    Open(OpenArgs),
    /// Run a command in a site's container
    Exec(ExecArgs),
    /// Open a shell in a site's container
    Shell(ShellArgs),
    /// Write a new environment, with proposals for stores, probes and writers
    Init(InitArgs),
    /// Check a definition; needs neither daemon nor Docker
    Validate(DefinitionArgs),
    /// Print a definition with variables and defaults filled in
    Config(ConfigArgs),
    /// Print the variables that benchmarks read
    Env(EnvArgs),
    /// Print the JSON Schema of a definition file, for editors
    Schema(SchemaArgs),
    /// List, fetch, load and verify images and data that are not built
    #[command(subcommand)]
    Images(ImagesCommand),
    /// List, take, compare, export, import and remove snapshots
    #[command(subcommand)]
    Snapshot(SnapshotCommand),
    /// Sign in to a site and print the session
    Login(LoginArgs),
    /// Read a value of a site: from its database, its pages, its files
    Locate(LocateArgs),
    /// Print recorded traffic as HAR
    Har(HarArgs),
    /// Check, list, show and render tasks
    #[command(subcommand)]
    Tasks(TasksCommand),
    /// Judge an episode of a native task
    Check(CheckArgs),
    /// Judge episodes by a benchmark's rules
    Eval(Box<super::eval::args::EvalArgs>),
    /// Show what takes room on disk: snapshots, instances, images, archives
    Df(DfArgs),
    /// Remove unused snapshots, images and kept containers; named snapshots stay
    Prune(PruneArgs),
    /// Make and show the file system that holds sites' state
    #[command(subcommand)]
    Storage(StorageCommand),
    /// Run the daemon in the foreground
    Serve(ServeArgs),
    /// Print a shell's completion script
    Completions(CompletionsArgs),
    /// Print the words that could follow, for the completion scripts
    #[command(hide = true)]
    Complete(CompleteArgs),
    /// Print arenad's version
    Version,
}
