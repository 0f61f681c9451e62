//! The command line. Its doc comments are the help texts.

mod definitions;
mod disk;
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

pub use definitions::{ConfigArgs, EnvArgs, EnvFormat, EnvReader, SchemaArgs, SchemaFile};
pub use disk::{DfArgs, PruneArgs, StorageCommand, StorageInitArgs};
pub use host::{CompletionsArgs, DoctorArgs, ServeArgs};
pub use images::{ImagesChoice, ImagesCommand, ImagesWriteArgs};
pub use reading::{HarArgs, LocateArgs, LoginArgs, SessionFormat};
pub use shared::{DefinitionArgs, EngineArgs};
pub use sites::{DownArgs, OpenArgs, ResetArgs, StorageChoice, UpArgs, VerifyArgs};
pub use snapshots::{DiffArgs, ExportArgs, ImportArgs, RmArgs, SnapshotCommand, TakeArgs};
pub use tasks::{
    CheckArgs, CheckBeginArgs, CheckCommand, TaskChoice, TasksCommand, TasksLintArgs, TasksLsArgs, TasksShowArgs,
};
pub use watching::{EventsArgs, HealthArgs, LogsArgs, StatusArgs};

/// Runs the sites that web agents are tested on, and resets them to proven snapshots between episodes.
#[derive(Debug, Parser)]
#[command(name = "arenad", version, disable_help_subcommand = true, after_help = EXIT_CODES)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 done, 1 failed, or `doctor` found a problem, 2 wrong usage or definition, 3 not ready (status, health), \
                          4 busy, 5 not done (check, eval), 6 undecided (check, eval), 124 --wait-timeout ran out, 130 interrupted";

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
}

/// Keeps them apart from what a command takes itself.
const GLOBAL: &str = "Global options";

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Bring sites up and wait until they are ready
    Up(UpArgs),
    /// Take sites down and remove everything of them
    Down(DownArgs),
    /// Bring sites back to their snapshots
    Reset(ResetArgs),
    /// Compare sites with their snapshots and name what differs
    Verify(VerifyArgs),
    /// Say what is up, how it is, and what to do about it
    Status(StatusArgs),
    /// Show what the health probes of sites have seen
    Health(HealthArgs),
    /// Say what is in the way of sites on this host, and what to do about it; needs neither daemon nor engine
    Doctor(DoctorArgs),
    /// List the containers of sites
    Ps,
    /// Show the logs of a site's containers
    Logs(LogsArgs),
    /// Show what happened
    Events(EventsArgs),
    /// Print the variables that benchmarks read
    Env(EnvArgs),
    /// Print a definition as arenad understands it
    Config(ConfigArgs),
    /// Check a definition; needs neither daemon nor Docker
    Validate(DefinitionArgs),
    /// List, take, compare, export, import and remove snapshots
    #[command(subcommand)]
    Snapshot(SnapshotCommand),
    /// Sign in to a site and print the session
    Login(LoginArgs),
    /// Read a value of a site: from its database, its pages, its files
    Locate(LocateArgs),
    /// Print what the gateway has recorded of sites' traffic, as HAR
    Har(HarArgs),
    /// Judge what an agent did, by a benchmark's rules: one episode, a folder of results, or evidence
    Eval(Box<super::eval::args::EvalArgs>),
    /// Say whether an agent did what a native task asks for
    Check(CheckArgs),
    /// Check, list and show native tasks; render those of benchmarks
    #[command(subcommand)]
    Tasks(TasksCommand),
    /// List, fetch, load and verify images and data that no build makes
    #[command(subcommand)]
    Images(ImagesCommand),
    /// Show what takes room on disk: snapshots, instances, images, archives
    Df(DfArgs),
    /// Remove snapshots and images that nothing needs; named snapshots stay
    Prune(PruneArgs),
    /// Make and look at the file system that copies of sites' state are made on
    #[command(subcommand)]
    Storage(StorageCommand),
    /// Open a site in the browser
    Open(OpenArgs),
    /// Run the daemon in the foreground
    Serve(ServeArgs),
    /// Print a shell's completion script
    Completions(CompletionsArgs),
    /// Print the JSON Schema of a definition file, for editors
    Schema(SchemaArgs),
    /// Print arenad's version
    Version,
}
