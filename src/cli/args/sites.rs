//! Arguments of the commands that bring sites up, reset, verify, open and take them down.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};

use super::shared::{DaemonArgs, EngineArgs, WaitArgs};

#[derive(Debug, Args)]
pub struct UpArgs {
    /// Environment (default: mini), followed by its sites (default: all); or sites as ENVIRONMENT/SITE
    #[arg(value_name = "ENVIRONMENT] [SITE")]
    pub names: Vec<String>,
    /// Environment; all names are then sites
    #[arg(short, long, value_name = "NAME", conflicts_with = "file")]
    pub environment: Option<String>,
    /// Path of an environment file, instead of a name; all names are then sites
    #[arg(short, long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Folder that contains environments/ and compose/, or a folder below it [default: found from the working directory
    /// upwards, in ARENAD_PATH, or beside the program]
    #[arg(long, env = "ARENAD_ROOT", value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Print the steps in order, without performing them
    #[arg(long, conflicts_with_all = ["detach", "wait_timeout"])]
    pub dry_run: bool,
    /// Start the sites even if memory, disk space or processors are insufficient
    #[arg(long)]
    pub force: bool,
    /// Recreate sites that are up with variables that this shell does not set
    #[arg(long)]
    pub recreate: bool,
    /// If creating a baseline fails, keep its containers for inspection with `arenad shell`
    #[arg(long)]
    pub keep_failed: bool,
    /// Action if this command starts the daemon on a file system that can only make full copies of the state of sites
    #[arg(long, env = "ARENAD_STORAGE", value_enum, default_value_t = StorageChoice::Ask, value_name = "CHOICE")]
    pub storage: StorageChoice,
    #[command(flatten)]
    pub wait: WaitArgs,
    #[command(flatten)]
    pub engine: EngineArgs,
    #[command(flatten)]
    pub daemon: DaemonArgs,
}

/// The actions for a file system that cannot share blocks between copies of the state of sites.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StorageChoice {
    /// Create a file system that shares blocks, as `storage init` does, if possible
    Auto,
    /// Offer to create one on a terminal; otherwise print the cost of copies
    Ask,
    /// Make full copies without a note
    Plain,
}

#[derive(Debug, Args)]
pub struct DownArgs {
    /// Sites, as SITE or ENVIRONMENT/SITE, or an environment [default: everything that is up]
    #[arg(value_name = "SITE")]
    pub sites: Vec<String>,
    /// Environment, if several have a site of that name; without sites, all sites of that environment
    #[arg(short, long, value_name = "NAME")]
    pub environment: Option<String>,
    /// Also remove snapshots, built images and the daemon's files
    #[arg(long)]
    pub purge: bool,
    /// Do not ask for confirmation of --purge
    #[arg(short, long)]
    pub yes: bool,
    #[command(flatten)]
    pub engine: EngineArgs,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("which").args(["sites", "all", "environment"]).required(true).multiple(true)))]
pub struct ResetArgs {
    /// Sites or slots, as SITE, ENVIRONMENT/SITE or SITE:SLOT, or an environment
    #[arg(value_name = "SITE")]
    pub sites: Vec<String>,
    /// Reset all sites of all environments, or with --environment all sites of that one
    #[arg(short, long, conflicts_with = "sites")]
    pub all: bool,
    /// Skip sites that are proven to equal their snapshots
    #[arg(long)]
    pub if_dirty: bool,
    /// Reset to this snapshot, by name or id, instead of the baseline
    #[arg(long, value_name = "SNAPSHOT", conflicts_with_all = ["all", "if_dirty"])]
    pub to: Option<String>,
    /// Environment, if several have a site of that name; without sites, all sites of that environment
    #[arg(short, long, value_name = "NAME")]
    pub environment: Option<String>,
    /// Show the time of each stage
    #[arg(short, long)]
    pub verbose: bool,
    #[command(flatten)]
    pub wait: WaitArgs,
}

#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Sites or slots, as SITE, ENVIRONMENT/SITE or SITE:SLOT, or an environment [default: all sites that declare
    /// stores]
    #[arg(value_name = "SITE")]
    pub sites: Vec<String>,
    /// Environment, if several have a site of that name
    #[arg(short, long, value_name = "NAME")]
    pub environment: Option<String>,
}

/// Lists the tables with the rows that were added, changed and removed, sequences, definitions, files and keys. Parts
/// that the definition declares volatile are left out.
#[derive(Debug, Args)]
pub struct ChangesArgs {
    /// Sites or slots, as SITE, ENVIRONMENT/SITE or SITE:SLOT, or an environment [default: all sites that declare
    /// stores]
    #[arg(value_name = "SITE")]
    pub sites: Vec<String>,
    /// Also show the values of rows, and the differences of text files
    #[arg(long)]
    pub values: bool,
    /// Compare with this look instead of the snapshot
    #[arg(long, value_name = "LOOK")]
    pub since: Option<u64>,
    /// Compare the state at this look instead of the present state
    #[arg(long, value_name = "LOOK")]
    pub until: Option<u64>,
    /// Environment, if several have a site of that name
    #[arg(short, long, value_name = "NAME")]
    pub environment: Option<String>,
}

/// Prints the number of the look, for `arenad changes --since`. The site is only read. Looks end with the next reset.
#[derive(Debug, Args)]
pub struct LookArgs {
    /// Site or slot, as SITE, ENVIRONMENT/SITE or SITE:SLOT
    #[arg(value_name = "SITE")]
    pub site: String,
    /// Environment, if several have a site of that name
    #[arg(short, long, value_name = "NAME")]
    pub environment: Option<String>,
}

#[derive(Debug, Args)]
pub struct OpenArgs {
    /// Site, as SITE or ENVIRONMENT/SITE
    #[arg(value_name = "SITE")]
    pub site: String,
    /// Environment, if several have a site of that name
    #[arg(short, long, value_name = "NAME")]
    pub environment: Option<String>,
    /// Only print the URL
    #[arg(long)]
    pub print: bool,
}

/// The options that select the container in which a command runs.
#[derive(Debug, Clone, Args)]
pub struct ContainerArgs {
    /// Site, as SITE or ENVIRONMENT/SITE
    #[arg(value_name = "SITE")]
    pub site: String,
    /// Service [default: the service that serves the site's pages]
    #[arg(short, long, value_name = "NAME")]
    pub service: Option<String>,
    /// User in the container [default: the user of the image]
    #[arg(short, long, value_name = "USER")]
    pub user: Option<String>,
    /// Environment, if several have a site of that name
    #[arg(short, long, value_name = "NAME")]
    pub environment: Option<String>,
}

#[derive(Debug, Args)]
pub struct ExecArgs {
    #[command(flatten)]
    pub container: ContainerArgs,
    /// Command to run, with its arguments
    #[arg(value_name = "COMMAND", last = true, required = true)]
    pub command: Vec<String>,
}

#[derive(Debug, Args)]
pub struct ShellArgs {
    #[command(flatten)]
    pub container: ContainerArgs,
}
