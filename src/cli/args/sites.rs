//! Sites up, back, compared, opened and down.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};

use super::shared::{EngineArgs, WaitArgs};

#[derive(Debug, Args)]
pub struct UpArgs {
    /// The environment (default: mini), then its sites (default: all)
    #[arg(value_name = "ENVIRONMENT] [SITE")]
    pub names: Vec<String>,
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
    /// What to do where copies of sites' state would be full copies, when the daemon is started
    #[arg(long, env = "ARENAD_STORAGE", value_enum, default_value_t = StorageChoice::Ask, value_name = "CHOICE")]
    pub storage: StorageChoice,
    #[command(flatten)]
    pub wait: WaitArgs,
    #[command(flatten)]
    pub engine: EngineArgs,
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
    /// The sites; all if none is named
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
#[command(group(ArgGroup::new("which").args(["sites", "all"]).required(true)))]
pub struct ResetArgs {
    /// The sites
    #[arg(value_name = "SITE")]
    pub sites: Vec<String>,
    /// All sites
    #[arg(short, long)]
    pub all: bool,
    /// Leave sites alone that are proven to be as their snapshots
    #[arg(long)]
    pub if_dirty: bool,
    /// Go to this snapshot instead of the baseline: its name or id
    #[arg(long, value_name = "SNAPSHOT", conflicts_with_all = ["all", "if_dirty"])]
    pub to: Option<String>,
    /// The environment, where several have a site of that name
    #[arg(short, long, value_name = "NAME")]
    pub environment: Option<String>,
    #[command(flatten)]
    pub wait: WaitArgs,
}

#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// The sites; all that declare stores, if none is named
    #[arg(value_name = "SITE")]
    pub sites: Vec<String>,
    /// The environment, where several have a site of that name
    #[arg(short, long, value_name = "NAME")]
    pub environment: Option<String>,
}

#[derive(Debug, Args)]
pub struct OpenArgs {
    /// The site
    #[arg(value_name = "SITE")]
    pub site: String,
    /// The environment, where several have a site of that name
    #[arg(short, long, value_name = "NAME")]
    pub environment: Option<String>,
    /// Print the URL only
    #[arg(long)]
    pub print: bool,
}
