//! Images and data that no build makes.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::shared::duration;

#[derive(Debug, Subcommand)]
#[command(disable_help_subcommand = true)]
pub enum ImagesCommand {
    /// Say what is needed, what is there, and how large it is
    #[command(visible_alias = "list")]
    Ls(ImagesLsArgs),
    /// Fetch from mirrors and registries what is missing, and load it
    Pull(ImagesPullArgs),
    /// Load archives into the engine, and put data where it belongs
    Load(ImagesLoadArgs),
    /// Read archives again and compare them and the engine's images
    Verify(ImagesVerifyArgs),
}

/// Which images and data are meant.
#[derive(Debug, Args)]
pub struct ImagesChoice {
    /// The environment (default: mini), then sites, images or data (default: all)
    #[arg(value_name = "ENVIRONMENT] [NAME")]
    pub names: Vec<String>,
    /// The environment; then all names are sites, images or data
    #[arg(short, long, value_name = "NAME", conflicts_with = "file")]
    pub environment: Option<String>,
    /// An environment file, instead of a name; then all names are sites, images or data
    #[arg(short, long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// The folder that holds environments/ and compose/ [default: the nearest such folder from here upwards]
    #[arg(long, env = "ARENAD_ROOT", value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// The Docker engine
    #[arg(long, env = "DOCKER_HOST", value_name = "ADDRESS", default_value = "unix:///var/run/docker.sock")]
    pub engine: String,
}

/// What is done with what is there, and with what is left over.
#[derive(Debug, Clone, Args)]
pub struct ImagesWriteArgs {
    /// Let an image take its name from another one that the engine has
    #[arg(long)]
    pub replace: bool,
    /// Remove each archive when what was in it is there
    #[arg(long)]
    pub discard: bool,
    /// Do not ask first whether there is room
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
    /// Turn to the next mirror when nothing has arrived for this long
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "60s")]
    pub stall_timeout: Duration,
    /// Give a mirror up after so many fruitless attempts in a row
    #[arg(long, value_name = "COUNT", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub tries: u32,
}

#[derive(Debug, Args)]
pub struct ImagesLoadArgs {
    #[command(flatten)]
    pub choice: ImagesChoice,
    #[command(flatten)]
    pub write: ImagesWriteArgs,
    /// An archive, or a folder of archives under their own names [default: what `pull` has fetched]
    #[arg(long, value_name = "FILE|DIR")]
    pub from: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct ImagesVerifyArgs {
    #[command(flatten)]
    pub choice: ImagesChoice,
    /// An archive, or a folder of archives under their own names [default: what `pull` has fetched]
    #[arg(long, value_name = "FILE|DIR")]
    pub from: Option<PathBuf>,
}
