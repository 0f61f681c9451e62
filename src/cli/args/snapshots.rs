//! Arguments of the commands that list, take, compare, export, import and remove snapshots.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::shared::{EngineArgs, WaitArgs};

#[derive(Debug, Subcommand)]
#[command(disable_help_subcommand = true)]
pub enum SnapshotCommand {
    /// List the stored snapshots
    #[command(visible_alias = "list")]
    Ls(SnapshotLsArgs),
    /// Stop a site cleanly, store its state, and start it again
    Take(TakeArgs),
    /// Show the tables and files in which two snapshots of a site differ
    Diff(DiffArgs),
    /// Write a snapshot to a single file, which another machine can import
    Export(ExportArgs),
    /// Import a snapshot from a file; resumes an import that was interrupted
    Import(ImportArgs),
    /// Remove snapshots that are not in use
    Rm(RmArgs),
}

#[derive(Debug, Args)]
pub struct SnapshotLsArgs {
    /// List only snapshots of these sites, as SITE or ENVIRONMENT/SITE
    #[arg(value_name = "SITE")]
    pub sites: Vec<String>,
    /// List only snapshots of this environment
    #[arg(short, long, value_name = "NAME")]
    pub environment: Option<String>,
}

#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Snapshot: its id, a prefix of its id, or its name
    #[arg(value_name = "SNAPSHOT")]
    pub snapshot: String,
    /// File to create [default: SITE-SNAPSHOT.snapshot.tar.zst in the working directory]
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub engine: EngineArgs,
}

#[derive(Debug, Args)]
pub struct ImportArgs {
    /// File that `snapshot export` wrote
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Name for the snapshot [default: its original name]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    #[command(flatten)]
    pub engine: EngineArgs,
}

#[derive(Debug, Args)]
pub struct TakeArgs {
    /// Site, as SITE or ENVIRONMENT/SITE
    #[arg(value_name = "SITE")]
    pub site: String,
    /// Name for the snapshot
    #[arg(long, value_name = "NAME")]
    pub name: String,
    /// Environment, if several have a site of that name
    #[arg(short, long, value_name = "ENVIRONMENT")]
    pub environment: Option<String>,
    #[command(flatten)]
    pub wait: WaitArgs,
}

#[derive(Debug, Args)]
pub struct DiffArgs {
    /// Snapshot to compare with: its id, a prefix of its id, or its name
    #[arg(value_name = "FROM")]
    pub from: String,
    /// Snapshot whose differences are shown
    #[arg(value_name = "TO")]
    pub to: String,
}

#[derive(Debug, Args)]
pub struct RmArgs {
    /// Snapshots: their ids, prefixes of ids, or names
    #[arg(value_name = "SNAPSHOT", required = true)]
    pub snapshots: Vec<String>,
}
