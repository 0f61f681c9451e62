//! What definitions say, and what benchmarks are told of them.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::shared::DefinitionArgs;

/// The forms of `arenad env`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EnvFormat {
    /// `export NAME='value'`, for eval
    Shell,
    /// `NAME=value`, for .env files
    Dotenv,
    /// One JSON object
    Json,
}

/// Who reads the variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EnvReader {
    /// SHOPPING, REDDIT, …
    Webarena,
    /// WA_SHOPPING, WA_REDDIT, …; AgentLab reads them too
    Browsergym,
    /// Both
    All,
}

#[derive(Debug, Args)]
pub struct EnvArgs {
    #[command(flatten)]
    pub definition: DefinitionArgs,
    /// The form
    #[arg(long, value_enum, default_value_t = EnvFormat::Shell)]
    pub format: EnvFormat,
    /// Who reads the variables
    #[arg(long = "for", value_enum, default_value_t = EnvReader::All, value_name = "READER")]
    pub reader: EnvReader,
}

#[derive(Debug, Args)]
pub struct ConfigArgs {
    #[command(flatten)]
    pub definition: DefinitionArgs,
    /// List the variables that were used and where each value comes from
    #[arg(long)]
    pub variables: bool,
}

/// The files that have schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SchemaFile {
    /// environments/NAME.yaml
    Environment,
    /// compose/NAME.yaml
    Compose,
    /// environments/NAME/tasks/*.yaml
    Tasks,
}

#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// Which file
    pub file: SchemaFile,
}

#[derive(Debug, Args)]
pub struct InitArgs {
    /// The environment's name, which becomes environments/NAME.yaml
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Take the services of this Compose file
    #[arg(long, value_name = "FILE")]
    pub from: Option<PathBuf>,
    /// Look into the containers of the file's services that `docker compose` runs now, to see what writes where
    #[arg(long, requires = "from")]
    pub running: bool,
    /// The public port of the site [default: the one that the Compose file publishes, else 8080]
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,
    /// The folder to write to, which gets environments/ and compose/ [default: the nearest such folder from here upwards, else here]
    #[arg(long, env = "ARENAD_ROOT", value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Write over files that are there
    #[arg(long)]
    pub force: bool,
    /// The Docker engine, for --running
    #[arg(long, env = "DOCKER_HOST", value_name = "ADDRESS", default_value = "unix:///var/run/docker.sock")]
    pub engine: String,
}
