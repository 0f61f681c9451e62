//! Arguments of the commands that print, create and validate definitions.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::shared::DefinitionArgs;

/// The output formats of `arenad env`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EnvFormat {
    /// `export NAME='value'` lines, for eval
    Shell,
    /// `NAME=value` lines, for .env files
    Dotenv,
    /// A single JSON object
    Json,
}

/// The programs that read the variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EnvReader {
    /// WebArena's names: SHOPPING, REDDIT, …
    Webarena,
    /// BrowserGym's names: WA_SHOPPING, WA_REDDIT, …; AgentLab reads them too
    Browsergym,
    /// The variables of both
    All,
}

#[derive(Debug, Args)]
pub struct EnvArgs {
    #[command(flatten)]
    pub definition: DefinitionArgs,
    /// Format of the output
    #[arg(long, value_enum, default_value_t = EnvFormat::Shell)]
    pub format: EnvFormat,
    /// Program that reads the variables
    #[arg(long = "for", value_enum, default_value_t = EnvReader::All, value_name = "READER")]
    pub reader: EnvReader,
    /// Use the URLs at the own ports of these slots, which answer while an episode has them
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub slot: Option<u32>,
}

#[derive(Debug, Args)]
pub struct ConfigArgs {
    #[command(flatten)]
    pub definition: DefinitionArgs,
    /// List the variables that the definition uses, and the origin of each value
    #[arg(long)]
    pub variables: bool,
}

/// The kinds of files that have schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SchemaFile {
    /// The environment file: environments/NAME.yaml
    Environment,
    /// The Compose file: compose/NAME.yaml
    Compose,
    /// The task files: environments/NAME/tasks/*.yaml
    Tasks,
    /// The HTTP API, as an OpenAPI 3.1 document
    Openapi,
}

#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// Kind of file whose schema is printed
    pub file: SchemaFile,
}

#[derive(Debug, Args)]
pub struct InitArgs {
    /// Name of the environment, which becomes environments/NAME.yaml
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Take the services from this Compose file
    #[arg(long, value_name = "FILE")]
    pub from: Option<PathBuf>,
    /// Also examine the containers that `docker compose` currently runs for the file, to find where they write
    #[arg(long, requires = "from")]
    pub running: bool,
    /// Public port of the site [default: the port that the Compose file publishes, else 8080]
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,
    /// Folder in which environments/ and compose/ are written [default: the nearest such folder from the working
    /// directory upwards, else the working directory]
    #[arg(long, env = "ARENAD_ROOT", value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Overwrite files that already exist
    #[arg(long)]
    pub force: bool,
    /// Address of the Docker engine, for --running
    #[arg(long, env = "DOCKER_HOST", value_name = "ADDRESS", default_value = "unix:///var/run/docker.sock")]
    pub engine: String,
}
