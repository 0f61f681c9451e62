//! Arguments of the commands that show and free disk space.

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
    /// Also remove unused baselines older than this, such as 7d; the next `up` creates them again
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub older: Option<Duration>,
    /// Also remove unused baselines, oldest first, until snapshots take at most this much space, such as 20G
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub keep_bytes: Option<u64>,
    /// Do not ask for confirmation
    #[arg(short, long)]
    pub yes: bool,
    #[command(flatten)]
    pub engine: EngineArgs,
}

#[derive(Debug, Subcommand)]
#[command(disable_help_subcommand = true)]
pub enum StorageCommand {
    /// Create a file that holds an XFS file system, whose files can share blocks, for the state of sites; requires root
    Init(StorageInitArgs),
    /// Show where the state of sites is kept, the cost of its copies, and the free space
    Status,
}

#[derive(Debug, Args)]
pub struct StorageInitArgs {
    /// Maximum size, such as 50G; the file takes only as much space as its content [default: 20G, or half of the free
    /// space]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub size: Option<u64>,
    /// File to create [default: stores.xfs in the state directory]
    #[arg(long, value_name = "FILE")]
    pub path: Option<PathBuf>,
}
