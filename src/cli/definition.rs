//! Finding and reading the definition that a command is about.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::args::UpArgs;
use super::exit_code;
use super::failure::Failure;
use crate::definition::{self, Diagnostics, Loaded, Located, Sources, Style, VariableOrigin};
use crate::domain::ids::EnvironmentName;
use crate::wire::{SourceText, UpRequest};

/// The environment that is meant where none is named.
pub const DEFAULT: &str = "mini";

/// A definition that holds, with the texts it was made from.
pub struct Found {
    /// What was read.
    pub sources: Sources,
    /// What it means.
    pub loaded: Loaded,
}

/// The folder that holds `environments/` and `compose/`: given, or from here upwards, or from the program upwards.
pub fn root(given: Option<&Path>) -> Result<PathBuf, Failure> {
    if let Some(given) = given {
        return definition::find_root(given)
            .ok_or_else(|| Failure::usage(format!("{} has no folders environments/ and compose/", given.display())));
    }
    let here = std::env::current_dir().context("find the current folder")?;
    let program = std::env::current_exe().ok();
    definition::find_root(&here).or_else(|| program.as_deref().and_then(definition::find_root)).ok_or_else(|| {
        Failure::usage("no folder from here upwards has environments/ and compose/")
            .hint("change into the folder that has them, or name it with --root or ARENAD_ROOT; `arenad init NAME` makes new ones")
    })
}

/// Locates the definition by file or name.
pub fn locate(name: Option<&str>, file: Option<&Path>, root_given: Option<&Path>) -> Result<Located, Failure> {
    let wrong = from_definition;
    match file {
        Some(file) => definition::locate_file(file).map_err(wrong),
        None => {
            let name = name.unwrap_or(DEFAULT);
            let root = root(root_given)?;
            let parsed = EnvironmentName::parse(name).map_err(|error| Failure::usage(format!("`{name}`: {error}")))?;
            definition::locate(&root, &parsed).map_err(wrong)
        }
    }
}

/// Reads and checks a definition with the variables of this process.
pub fn load(located: &Located) -> Result<Found, Failure> {
    read(located)?.map_err(|problems| invalid(&problems))
}

/// The same, with the problems of a definition as they were found.
pub fn read(located: &Located) -> Result<Result<Found, Diagnostics>, Failure> {
    let sources = match definition::read(located) {
        Ok(sources) => sources,
        Err(definition::DefinitionError::Invalid(problems)) => return Ok(Err(problems)),
        Err(error) => return Err(from_definition(error)),
    };
    let variables: BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    Ok(definition::load(&sources, &variables).map(|loaded| Found { sources, loaded }))
}

/// The failure of a command whose definition has problems.
pub fn invalid(problems: &Diagnostics) -> Failure {
    let text = problems.render(Style { color: super::output::is_colored(), prefix: "" });
    let count = problems.count();
    let plural = if count == 1 { "problem" } else { "problems" };
    Failure::new(exit_code::USAGE, anyhow::anyhow!("the definition has {count} {plural}\n\n{}", text.trim_end()))
}

/// What the daemon is sent: the texts, and of this shell's variables those that the files mention.
pub fn up_request(found: &Found, sites: Vec<String>, args: &UpArgs) -> UpRequest {
    let text =
        |file: &definition::SourceFile| SourceText { path: file.path.display().to_string(), text: file.text.clone() };
    let of_shell = found.loaded.variables.iter().filter(|used| used.origin == VariableOrigin::Shell);
    UpRequest {
        root: found.sources.root.display().to_string(),
        environment: text(&found.sources.environment),
        compose: text(&found.sources.compose),
        dotenv: found.sources.dotenv.as_ref().map(text),
        variables: of_shell.map(|used| (used.name.clone(), used.value.expose().to_owned())).collect(),
        sites,
        force: args.force,
        recreate: args.recreate,
        keep_failed: args.keep_failed,
    }
}

pub(super) fn from_definition(error: definition::DefinitionError) -> Failure {
    let hint = error.hint();
    let failure = Failure::new(exit_code::USAGE, anyhow::Error::new(error));
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
