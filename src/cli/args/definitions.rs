//! What definitions say, and what benchmarks are told of them.

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
