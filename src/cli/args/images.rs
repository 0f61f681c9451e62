//! Arguments of the commands for images and data that are not built locally.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::shared::duration;

#[derive(Debug, Subcommand)]
#[command(disable_help_subcommand = true)]
pub enum ImagesCommand {
    /// List the images and data that the sites need, with their states and sizes
    #[command(visible_alias = "list")]
    Ls(ImagesLsArgs),
    /// Fetch missing images and data from mirrors and registries, and load them
    Pull(ImagesPullArgs),
    /// Load archives into the engine, and put data into its place
    Load(ImagesLoadArgs),
    /// Verify archives, by reading them again, and the engine's images
    Verify(ImagesVerifyArgs),
}

/// The options that select images and data.
#[derive(Debug, Args)]
pub struct ImagesChoice {
    /// Environment (default: mini), followed by sites, images or data (default: all)
    #[arg(value_name = "ENVIRONMENT] [NAME")]
    pub names: Vec<String>,
    /// Environment; all names are then sites, images or data
    #[arg(short, long, value_name = "NAME", conflicts_with = "file")]
    pub environment: Option<String>,
    /// Path of an environment file, instead of a name; all names are then sites, images or data
    #[arg(short, long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Folder that contains environments/ and compose/, or a folder below it [default: found from the working directory
    /// upwards, in ARENAD_PATH, or beside the program]
    #[arg(long, env = "ARENAD_ROOT", value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Address of the Docker engine
    #[arg(long, env = "DOCKER_HOST", value_name = "ADDRESS", default_value = "unix:///var/run/docker.sock")]
    pub engine: String,
}

/// The options for existing images, for used archives and for the free space.
#[derive(Debug, Clone, Args)]
pub struct ImagesWriteArgs {
    /// Replace a different image that has the same name in the engine
    #[arg(long)]
    pub replace: bool,
    /// Remove each archive after its content has been loaded
    #[arg(long)]
    pub discard: bool,
    /// Do not check the free disk space first
    #[arg(long)]
    pub ignore_space: bool,
}

#[derive(Debug, Args)]
pub struct ImagesLsArgs {
    #[command(flatten)]
    pub choice: ImagesChoice,
}

#[derive(Debug, Args)]
pub struct ImagesPullArgs {
    #[command(flatten)]
    pub choice: ImagesChoice,
    #[command(flatten)]
    pub write: ImagesWriteArgs,
    /// Switch to the next mirror if no data arrives for this time
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "60s")]
    pub stall_timeout: Duration,
    /// Give up on a mirror after this number of consecutive failed attempts
    #[arg(long, value_name = "COUNT", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub tries: u32,
}

#[derive(Debug, Args)]
pub struct ImagesLoadArgs {
    #[command(flatten)]
    pub choice: ImagesChoice,
    #[command(flatten)]
    pub write: ImagesWriteArgs,
    /// Archive, or folder of archives under their original names [default: the archives that `pull` has fetched]
    #[arg(long, value_name = "FILE|DIR")]
    pub from: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct ImagesVerifyArgs {
    #[command(flatten)]
    pub choice: ImagesChoice,
    /// Archive, or folder of archives under their original names [default: the archives that `pull` has fetched]
    #[arg(long, value_name = "FILE|DIR")]
    pub from: Option<PathBuf>,
}
