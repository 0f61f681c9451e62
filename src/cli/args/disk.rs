//! Room on disk.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::shared::{EngineArgs, duration, size};

#[derive(Debug, Args)]
pub struct DfArgs {
    #[command(flatten)]
    pub engine: EngineArgs,
}

#[derive(Debug, Args)]
pub struct PruneArgs {
    /// Also unused baselines that were taken longer ago, such as 7d: the next `up` makes them anew
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub older: Option<Duration>,
    /// Also unused baselines, the oldest first, until snapshots take no more than this, such as 20G
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub keep_bytes: Option<u64>,
    /// Remove without asking
    #[arg(short, long)]
    pub yes: bool,
    #[command(flatten)]
    pub engine: EngineArgs,
}

#[derive(Debug, Subcommand)]
#[command(disable_help_subcommand = true)]
pub enum StorageCommand {
    /// Make a file with XFS in it, where files can share their blocks, and keep sites' state there; needs root
    Init(StorageInitArgs),
    /// Say where sites' state is kept, what copies of it cost, and how much room is left
    Status,
}

#[derive(Debug, Args)]
pub struct StorageInitArgs {
    /// How large it may become, such as 50G; it takes as much as is in it [default: 20G, or half of what is free]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub size: Option<u64>,
    /// The file to make [default: stores.xfs in the state directory]
    #[arg(long, value_name = "FILE")]
    pub path: Option<PathBuf>,
}
