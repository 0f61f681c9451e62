//! Arguments of the commands for tasks of Turkle.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::shared::{DaemonArgs, EngineArgs, WaitArgs};
use super::sites::{StorageChoice, UpArgs};

#[derive(Debug, Subcommand)]
#[command(disable_help_subcommand = true)]
pub enum TurkleCommand {
    /// Publish task folders of TurkingBench, and make them part of the site's baseline
    Load(TurkleLoadArgs),
}

#[derive(Debug, Args)]
pub struct TurkleLoadArgs {
    /// Task folders, with template.html and batch.csv or input.csv, or folders that contain them
    #[arg(value_name = "FOLDER", required = true)]
    pub folders: Vec<PathBuf>,
    /// Accounts to which the HITs are assigned in turn, and which have to sign in for them [default: everybody can do every
    /// HIT, without an account]
    #[arg(long, value_name = "USERNAME", value_delimiter = ',')]
    pub workers: Vec<String>,
    /// Check the folders, without storing them
    #[arg(long, conflicts_with_all = ["detach", "wait_timeout"])]
    pub check: bool,
    /// Environment that has the site [default: mini]
    #[arg(short, long, value_name = "NAME")]
    pub environment: Option<String>,
    /// Name of the site
    #[arg(long, value_name = "SITE", default_value = "turkle")]
    pub site: String,
    /// Folder that contains environments/ and compose/, or a folder below it [default: found from the working directory
    /// upwards, in ARENAD_PATH, or beside the program]
    #[arg(long, env = "ARENAD_ROOT", value_name = "DIR")]
    pub root: Option<PathBuf>,
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

impl TurkleLoadArgs {
    /// Returns the arguments with which the site is brought up.
    pub fn up(&self) -> UpArgs {
        UpArgs {
            names: vec![self.site.clone()],
            environment: self.environment.clone(),
            file: None,
            root: self.root.clone(),
            dry_run: false,
            force: false,
            recreate: false,
            keep_failed: false,
            storage: self.storage,
            wait: self.wait.clone(),
            engine: self.engine.clone(),
            daemon: self.daemon.clone(),
        }
    }
}
