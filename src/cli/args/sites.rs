//! Sites up, back, compared, opened and down.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};

use super::shared::{DaemonArgs, EngineArgs, WaitArgs};

#[derive(Debug, Args)]
pub struct UpArgs {
    /// The environment (default: mini), then its sites (default: all); or sites as ENVIRONMENT/SITE
    #[arg(value_name = "ENVIRONMENT] [SITE")]
    pub names: Vec<String>,
    /// The environment; then all names are sites
    #[arg(short, long, value_name = "NAME", conflicts_with = "file")]
    pub environment: Option<String>,
    /// An environment file, instead of a name; then all names are sites
    #[arg(short, long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// The folder that holds environments/ and compose/ [default: the nearest such folder from here upwards]
    #[arg(long, env = "ARENAD_ROOT", value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Print what would be done, in order, and do nothing
    #[arg(long, conflicts_with_all = ["detach", "wait_timeout"])]
    pub dry_run: bool,
    /// Start them even where memory, space or processors do not suffice
    #[arg(long)]
    pub force: bool,
    /// Make sites anew that are up with variables which this shell does not set
    #[arg(long)]
    pub recreate: bool,
    /// Keep the containers of a baseline that cannot be made, to look into them with `arenad shell`
    #[arg(long)]
    pub keep_failed: bool,
    /// What to do where copies of sites' state would be full copies, when the daemon is started
    #[arg(long, env = "ARENAD_STORAGE", value_enum, default_value_t = StorageChoice::Ask, value_name = "CHOICE")]
    pub storage: StorageChoice,
    #[command(flatten)]
    pub wait: WaitArgs,
    #[command(flatten)]
    pub engine: EngineArgs,
    #[command(flatten)]
    pub daemon: DaemonArgs,
}

/// What to do where copies of sites' state would be full copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StorageChoice {
    /// Make a file system for them, as `storage init` does, where that is possible
    Auto,
    /// Offer that on a terminal; elsewhere say what copies cost
    Ask,
    /// Make full copies
    Plain,
}

#[derive(Debug, Args)]
pub struct DownArgs {
    /// The sites, as SITE or ENVIRONMENT/SITE, or an environment [default: everything that is up]
    #[arg(value_name = "SITE")]
    pub sites: Vec<String>,
    /// The environment, where several have a site of that name; without sites, all of its sites
    #[arg(short, long, value_name = "NAME")]
    pub environment: Option<String>,
    /// Remove snapshots, built images and the daemon's files too
    #[arg(long)]
    pub purge: bool,
    /// Do not ask before --purge
    #[arg(short, long)]
    pub yes: bool,
    #[command(flatten)]
    pub engine: EngineArgs,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("which").args(["sites", "all", "environment"]).required(true).multiple(true)))]
pub struct ResetArgs {
    /// The sites, as SITE or ENVIRONMENT/SITE, or an environment
    #[arg(value_name = "SITE")]
    pub sites: Vec<String>,
    /// All sites of all environments; with --environment, all of that one
    #[arg(short, long, conflicts_with = "sites")]
    pub all: bool,
    /// Leave sites alone that are proven to be as their snapshots
    #[arg(long)]
    pub if_dirty: bool,
    /// Go to this snapshot instead of the baseline: its name or id
    #[arg(long, value_name = "SNAPSHOT", conflicts_with_all = ["all", "if_dirty"])]
    pub to: Option<String>,
    /// The environment, where several have a site of that name; without sites, all of its sites
    #[arg(short, long, value_name = "NAME")]
    pub environment: Option<String>,
    /// Show where the time went
    #[arg(short, long)]
    pub verbose: bool,
    #[command(flatten)]
    pub wait: WaitArgs,
}

#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// The sites, as SITE or ENVIRONMENT/SITE, or an environment [default: all that declare stores]
    #[arg(value_name = "SITE")]
    pub sites: Vec<String>,
    /// The environment, where several have a site of that name
    #[arg(short, long, value_name = "NAME")]
    pub environment: Option<String>,
}

#[derive(Debug, Args)]
pub struct OpenArgs {
    /// The site, as SITE or ENVIRONMENT/SITE
    #[arg(value_name = "SITE")]
    pub site: String,
    /// The environment, where several have a site of that name
    #[arg(short, long, value_name = "NAME")]
    pub environment: Option<String>,
    /// Print the URL only
    #[arg(long)]
    pub print: bool,
}

/// Which container of a site a command runs in.
#[derive(Debug, Clone, Args)]
pub struct ContainerArgs {
    /// The site, as SITE or ENVIRONMENT/SITE
    #[arg(value_name = "SITE")]
    pub site: String,
    /// The service [default: the one that serves the site's pages]
    #[arg(short, long, value_name = "NAME")]
    pub service: Option<String>,
    /// The user in the container [default: the image's]
    #[arg(short, long, value_name = "USER")]
    pub user: Option<String>,
    /// The environment, where several have a site of that name
    #[arg(short, long, value_name = "NAME")]
    pub environment: Option<String>,
}

#[derive(Debug, Args)]
pub struct ExecArgs {
    #[command(flatten)]
    pub container: ContainerArgs,
    /// The command and its arguments
    #[arg(value_name = "COMMAND", last = true, required = true)]
    pub command: Vec<String>,
}

#[derive(Debug, Args)]
pub struct ShellArgs {
    #[command(flatten)]
    pub container: ContainerArgs,
}
