//! Finds and reads the definition that a command refers to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::args::UpArgs;
use super::exit_code;
use super::failure::CommandFailure;
use arenad_api::{SourceText, UpRequest};
use arenad_definition::{
    self as definition, DefinitionSources, Diagnostics, EnvironmentLocation, LoadedEnvironment, Style, VariableOrigin,
};
use arenad_model::ids::EnvironmentName;

/// The default environment, for commands that name none.
pub const DEFAULT: &str = "mini";

/// The directory of packaged definitions, below the prefix whose `bin/` holds the program.
const INSTALLED: &str = "share/arenad";

/// A valid definition, with the texts that it was parsed from.
pub struct FoundDefinition {
    /// The texts of the definition's files.
    pub sources: DefinitionSources,
    /// The parsed and validated definition.
    pub loaded: LoadedEnvironment,
}

/// Returns the folders to search for definitions, in this order: the given folder alone; else the nearest one from the
/// working directory upwards, the folders of `ARENAD_PATH`, the nearest one from the program upwards (a checkout), and
/// the one that was installed with the program (`share/arenad` next to its `bin/`).
///
/// Errors: a usage error if the given folder has no definitions, or if no folder has any.
fn roots(given: Option<&Path>) -> Result<Vec<PathBuf>, CommandFailure> {
    if let Some(given) = given {
        let root = definition::find_root(given).ok_or_else(|| {
            CommandFailure::usage(format!("{} has no folders environments/ and compose/", given.display()))
        })?;
        return Ok(vec![root]);
    }
    let here = std::env::current_dir().context("find the current folder")?;
    let program = std::env::current_exe().ok().and_then(|program| program.canonicalize().ok());
    let path = std::env::var_os("ARENAD_PATH").unwrap_or_default();
    let candidates = std::iter::once(here)
        .chain(std::env::split_paths(&path).filter(|folder| !folder.as_os_str().is_empty()))
        .chain(program.clone())
        .chain(program.as_deref().and_then(Path::parent).and_then(Path::parent).map(|prefix| prefix.join(INSTALLED)));
    let mut roots: Vec<PathBuf> = Vec::new();
    for root in candidates.filter_map(|folder| definition::find_root(&folder)) {
        if !roots.contains(&root) {
            roots.push(root);
        }
    }
    if roots.is_empty() {
        let message = "no folder from the working directory upwards contains environments/ and compose/";
        return Err(CommandFailure::usage(message)
            .hint("change to a folder that contains them, name one with --root, ARENAD_ROOT or ARENAD_PATH, or create them with `arenad init NAME`"));
    }
    Ok(roots)
}

/// Returns the folder that holds `environments/` and `compose/`: the first of the folders to search.
pub fn root(given: Option<&Path>) -> Result<PathBuf, CommandFailure> {
    Ok(roots(given)?.remove(0))
}

/// Locates the definition by file or name; a name selects the first folder that has an environment of that name.
pub fn locate(
    name: Option<&str>,
    file: Option<&Path>,
    root_given: Option<&Path>,
) -> Result<EnvironmentLocation, CommandFailure> {
    if let Some(file) = file {
        return definition::locate_file(file).map_err(from_definition);
    }
    let name = name.unwrap_or(DEFAULT);
    let roots = roots(root_given)?;
    let parsed = EnvironmentName::parse(name).map_err(|error| CommandFailure::usage(format!("`{name}`: {error}")))?;
    let mut error = None;
    for root in &roots {
        match definition::locate(root, &parsed) {
            Ok(located) => return Ok(located),
            // The first folder is the nearest to the user, so its names make the best suggestion.
            Err(cause) => error = error.or(Some(cause)),
        }
    }
    Err(from_definition(error.expect("there is one folder at least")))
}

/// Reads and validates a definition with the variables of this process.
pub fn load(located: &EnvironmentLocation) -> Result<FoundDefinition, CommandFailure> {
    read(located)?.map_err(|problems| invalid(&problems))
}

/// Does the same as [`load`], but returns the problems of an invalid definition unrendered.
pub fn read(located: &EnvironmentLocation) -> Result<Result<FoundDefinition, Diagnostics>, CommandFailure> {
    let sources = match definition::read(located) {
        Ok(sources) => sources,
        Err(definition::DefinitionError::Invalid(problems)) => return Ok(Err(problems)),
        Err(error) => return Err(from_definition(error)),
    };
    let variables: BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    Ok(definition::load(&sources, &variables).map(|loaded| FoundDefinition { sources, loaded }))
}

/// Returns the failure of a command whose definition is invalid.
pub fn invalid(problems: &Diagnostics) -> CommandFailure {
    let text = problems.render(Style { color: super::output::is_colored(), prefix: "" });
    let count = problems.count();
    let plural = if count == 1 { "problem" } else { "problems" };
    CommandFailure::new(exit_code::USAGE, anyhow::anyhow!("the definition has {count} {plural}\n\n{}", text.trim_end()))
}

/// Builds the request to the daemon: the texts, and those variables of this shell that the files refer to.
pub fn up_request(found: &FoundDefinition, sites: Vec<String>, args: &UpArgs) -> UpRequest {
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

pub(super) fn from_definition(error: definition::DefinitionError) -> CommandFailure {
    let hint = error.hint();
    let failure = CommandFailure::new(exit_code::USAGE, anyhow::Error::new(error));
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
