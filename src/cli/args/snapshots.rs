//! Snapshots: taken, compared, carried away and removed.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::shared::{EngineArgs, WaitArgs};

#[derive(Debug, Subcommand)]
#[command(disable_help_subcommand = true)]
pub enum SnapshotCommand {
    /// List snapshots
    #[command(visible_alias = "list")]
    Ls(SnapshotLsArgs),
    /// Stop a site cleanly, store its state, start it again
    Take(TakeArgs),
    /// Say in which tables and files two snapshots of a site differ
    Diff(DiffArgs),
    /// Write a snapshot into one file, from which another machine can take it
    Export(ExportArgs),
    /// Take a snapshot from a file; goes on where an earlier attempt was cut off
    Import(ImportArgs),
    /// Remove a snapshot that nothing uses
    Rm(RmArgs),
}

#[derive(Debug, Args)]
pub struct SnapshotLsArgs {
    /// Of these sites only, as SITE or ENVIRONMENT/SITE
    #[arg(value_name = "SITE")]
    pub sites: Vec<String>,
    /// Of this environment only
    #[arg(short, long, value_name = "NAME")]
    pub environment: Option<String>,
}

#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Its id, the beginning of its id, or its name
    #[arg(value_name = "SNAPSHOT")]
    pub snapshot: String,
    /// The file to make [default: SITE-SNAPSHOT.snapshot.tar.zst in the present folder]
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub engine: EngineArgs,
}

#[derive(Debug, Args)]
pub struct ImportArgs {
    /// A file that `snapshot export` has written
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// What to call the snapshot [default: the name that it had]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    #[command(flatten)]
    pub engine: EngineArgs,
}

#[derive(Debug, Args)]
pub struct TakeArgs {
    /// The site, as SITE or ENVIRONMENT/SITE
    #[arg(value_name = "SITE")]
    pub site: String,
    /// What to call the snapshot
    #[arg(long, value_name = "NAME")]
    pub name: String,
    /// The environment, where several have a site of that name
    #[arg(short, long, value_name = "ENVIRONMENT")]
    pub environment: Option<String>,
    #[command(flatten)]
    pub wait: WaitArgs,
}

#[derive(Debug, Args)]
pub struct DiffArgs {
    /// What to compare with: id, beginning of an id, or name
    #[arg(value_name = "FROM")]
    pub from: String,
    /// The other one
    #[arg(value_name = "TO")]
    pub to: String,
}

#[derive(Debug, Args)]
pub struct RmArgs {
    /// Ids, beginnings of ids, or names
    #[arg(value_name = "SNAPSHOT", required = true)]
    pub snapshots: Vec<String>,
}
