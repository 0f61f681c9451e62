//! Arguments of the commands for replays.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::shared::EngineArgs;

#[derive(Debug, Subcommand)]
#[command(disable_help_subcommand = true)]
pub enum ReplayCommand {
    /// Make a replay from recordings: HAR, MHTML, WARC or WACZ files, or folders that contain them
    Add(ReplayAddArgs),
    /// List the replays, with their answers since the daemon was started
    #[command(visible_alias = "list")]
    Ls,
    /// Show a replay: its hosts, its proxy, its problems, and the requests without an answer
    Show(ReplayNameArgs),
    /// Remove replays that no episode uses
    Rm(ReplayRmArgs),
}

#[derive(Debug, Args)]
pub struct ReplayAddArgs {
    /// Name for the replay
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Recordings, ZIP archives of recordings, or folders that contain them
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Parameter whose value differs at each visit, in addition to those that arenad knows; may be repeated
    #[arg(long, value_name = "PARAMETER")]
    pub moving: Vec<String>,
    /// Leave out recordings that cannot be read, instead of refusing all of them
    #[arg(long)]
    pub skip_broken: bool,
    #[command(flatten)]
    pub engine: EngineArgs,
}

#[derive(Debug, Args)]
pub struct ReplayNameArgs {
    /// Name of the replay
    #[arg(value_name = "NAME")]
    pub name: String,
}

#[derive(Debug, Args)]
pub struct ReplayRmArgs {
    /// Names of the replays
    #[arg(value_name = "NAME", required = true)]
    pub names: Vec<String>,
}
