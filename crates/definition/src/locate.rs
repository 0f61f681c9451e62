//! Lookup and reading of an environment's files. Each file is read once.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::diagnostic::Diagnostics;
use super::parse::parse;
use super::problems::{Problems, closest, did_you_mean, quoted_list};
use super::source::{Position, SOURCE_MAX_BYTES, SourceFile, Span};
use arenad_model::ids::EnvironmentName;

/// Name of the folder that holds the environment files.
pub(super) const ENVIRONMENTS: &str = "environments";

/// Name of the folder that holds the Compose files.
const COMPOSE: &str = "compose";

/// The reason why an environment's files could not be found or read.
#[derive(Debug, thiserror::Error)]
pub enum DefinitionError {
    /// No environment file has the requested name.
    #[error("there is no environment `{name}` in {root}/environments")]
    UnknownEnvironment {
        /// The name that was requested.
        name: EnvironmentName,
        /// The root folder that was searched.
        root: PathBuf,
        /// The names of the existing environments, sorted.
        known: Vec<EnvironmentName>,
        /// The closest existing name.
        suggestion: Option<EnvironmentName>,
    },
    /// The path is not of the form `environments/<name>.yaml`.
    #[error("take {path} as an environment file")]
    NotAnEnvironmentFile {
        /// The path that was given.
        path: PathBuf,
        /// Description of the error in the path.
        reason: String,
    },
    /// A file could not be read.
    #[error("read {path}")]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// The underlying I/O error.
        #[source]
        cause: io::Error,
    },
    /// The files can be read, but their content is invalid.
    #[error("the definition is not valid")]
    Invalid(#[source] Diagnostics),
}

impl DefinitionError {
    /// Returns a hint on how to correct the error, if there is one.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::UnknownEnvironment { suggestion: Some(name), .. } => Some(format!("did you mean `{name}`?")),
            Self::UnknownEnvironment { known, root, .. } if known.is_empty() => {
                Some(format!("{} holds no environments", root.join(ENVIRONMENTS).display()))
            }
            Self::UnknownEnvironment { known, .. } => {
                Some(format!("there are {}", quoted_list(known.iter().map(EnvironmentName::as_str))))
            }
            Self::NotAnEnvironmentFile { reason, .. } => Some(reason.clone()),
            Self::Unreadable { .. } | Self::Invalid(_) => None,
        }
    }
}

/// An environment whose file exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvironmentLocation {
    /// The folder that holds `environments/` and `compose/`. The path is absolute and has no symbolic links.
    pub root: PathBuf,
    /// Name of the environment.
    pub name: EnvironmentName,
}

/// The texts of an environment's files, with their paths.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct DefinitionSources {
    /// The folder that holds `environments/` and `compose/`. Build contexts and mounted files are looked up below it.
    pub root: PathBuf,
    /// The environment file, `environments/<name>.yaml`.
    pub environment: SourceFile,
    /// The Compose file, below `compose/`.
    pub compose: SourceFile,
    /// The `.env` file beside the Compose file, if there is one.
    pub dotenv: Option<SourceFile>,
}

/// Returns the nearest folder, from `start` upwards, that contains `environments/` and `compose/`.
pub fn find_root(start: &Path) -> Option<PathBuf> {
    let start = start.canonicalize().ok()?;
    let is_root = |folder: &&Path| folder.join(ENVIRONMENTS).is_dir() && folder.join(COMPOSE).is_dir();
    start.ancestors().find(is_root).map(Path::to_path_buf)
}

/// Returns the names of the environments below a root folder, sorted.
pub fn list(root: &Path) -> Vec<EnvironmentName> {
    let Ok(entries) = fs::read_dir(root.join(ENVIRONMENTS)) else {
        return Vec::new();
    };
    let name = |entry: io::Result<fs::DirEntry>| {
        let file = entry.ok()?.file_name().into_string().ok()?;
        EnvironmentName::parse(file.strip_suffix(".yaml")?).ok()
    };
    let mut names: Vec<EnvironmentName> = entries.filter_map(name).collect();
    names.sort();
    names
}

/// Finds an environment by its name.
///
/// Errors: [`DefinitionError::UnknownEnvironment`] with the names that exist; [`DefinitionError::Unreadable`] when the
/// root folder is missing.
pub fn locate(root: &Path, name: &EnvironmentName) -> Result<EnvironmentLocation, DefinitionError> {
    let root = root.canonicalize().map_err(|cause| DefinitionError::Unreadable { path: root.to_path_buf(), cause })?;
    if root.join(ENVIRONMENTS).join(format!("{name}.yaml")).is_file() {
        return Ok(EnvironmentLocation { root, name: name.clone() });
    }
    let known = list(&root);
    let suggestion = closest(name.as_str(), known.iter().map(EnvironmentName::as_str));
    let suggestion = suggestion.and_then(|name| EnvironmentName::parse(name).ok());
    Err(DefinitionError::UnknownEnvironment { name: name.clone(), root, known, suggestion })
}

/// Finds an environment by its file, `<root>/environments/<name>.yaml`.
///
/// Errors: [`DefinitionError::NotAnEnvironmentFile`] for paths of another form; [`DefinitionError::Unreadable`] when the
/// file is missing.
pub fn locate_file(path: &Path) -> Result<EnvironmentLocation, DefinitionError> {
    let refuse = |reason: String| DefinitionError::NotAnEnvironmentFile { path: path.to_path_buf(), reason };
    let real = path.canonicalize().map_err(|cause| DefinitionError::Unreadable { path: path.to_path_buf(), cause })?;
    let form = || refuse(format!("it must be `<root>/{ENVIRONMENTS}/<name>.yaml`, beside `<root>/{COMPOSE}/`"));
    let folder = real.parent().filter(|folder| folder.ends_with(ENVIRONMENTS)).ok_or_else(form)?;
    let root = folder.parent().filter(|root| root.join(COMPOSE).is_dir()).ok_or_else(form)?;
    let file = real.file_name().and_then(|file| file.to_str()).ok_or_else(form)?;
    let stem = file.strip_suffix(".yaml").ok_or_else(form)?;
    let name = EnvironmentName::parse(stem).map_err(|error| refuse(error.to_string()))?;
    Ok(EnvironmentLocation { root: root.to_path_buf(), name })
}

/// Reads the files of an environment.
///
/// Errors: [`DefinitionError::Unreadable`] when the environment file cannot be opened; [`DefinitionError::Invalid`] when
/// a file is too large or not UTF-8, or when the Compose file is missing or outside of `compose/`.
pub fn read(located: &EnvironmentLocation) -> Result<DefinitionSources, DefinitionError> {
    let root = &located.root;
    let problems = Problems::default();
    let environment_path = PathBuf::from(ENVIRONMENTS).join(format!("{}.yaml", located.name));
    let environment = read_source(root, &environment_path, &problems)?;
    let Some(environment) = environment else {
        return Err(invalid(problems));
    };
    let Some(compose_path) = compose_path(root, located.name.as_str(), &environment, &problems) else {
        return Err(invalid(problems));
    };
    let compose = read_source(root, &compose_path, &problems)?;
    let dotenv_path = compose_path.with_file_name(".env");
    let dotenv = if root.join(&dotenv_path).is_file() { read_source(root, &dotenv_path, &problems)? } else { None };
    match (compose, problems.count()) {
        (Some(compose), 0) => Ok(DefinitionSources { root: root.clone(), environment, compose, dotenv }),
        _ => Err(invalid(problems)),
    }
}

fn invalid(problems: Problems) -> DefinitionError {
    match problems.into_result() {
        Err(diagnostics) => DefinitionError::Invalid(diagnostics),
        // Reached only if a refusal was not reported, which would be a bug in this module.
        Ok(()) => DefinitionError::Unreadable {
            path: PathBuf::from(ENVIRONMENTS),
            cause: io::Error::other("no reason was given"),
        },
    }
}

/// Reads one file. Returns `None` if its content is unusable, which has then been reported.
pub(super) fn read_source(
    root: &Path,
    path: &Path,
    problems: &Problems,
) -> Result<Option<SourceFile>, DefinitionError> {
    let full = root.join(path);
    let unreadable = |cause| DefinitionError::Unreadable { path: full.clone(), cause };
    let length = fs::metadata(&full).map_err(unreadable)?.len();
    if length > SOURCE_MAX_BYTES as u64 {
        problems
            .at(&SourceFile::new(path, ""), Span::START, "too-large", format!("the file has {length} bytes"))
            .expected(format!("at most {SOURCE_MAX_BYTES} bytes"))
            .report();
        return Ok(None);
    }
    let bytes = fs::read(&full).map_err(unreadable)?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Some(SourceFile::new(path, text))),
        Err(error) => {
            let offset = error.utf8_error().valid_up_to();
            let position = Position::of_offset(error.as_bytes(), offset);
            let source = SourceFile::new(path, String::from_utf8_lossy(error.as_bytes()));
            problems
                .at(&source, Span::at(position), "not-utf8", "the file is not UTF-8 text")
                .expected("UTF-8, here and in the rest of the file")
                .report();
            Ok(None)
        }
    }
}

/// Returns the path of the Compose file, relative to the root folder, as the environment file names it. Returns `None`
/// if there is no such file below `compose/`, which has then been reported.
fn compose_path(root: &Path, name: &str, environment: &SourceFile, problems: &Problems) -> Option<PathBuf> {
    // Other problems of the file are reported when it is loaded.
    let tree = parse(environment, &Problems::default());
    let entry = tree.as_ref().and_then(|tree| tree.entry("compose"));
    let stated = entry.and_then(|entry| Some((entry.value.scalar()?.text.clone(), entry.value.span)));
    let (file, span) = stated.filter(|(text, _)| !text.is_empty()).unwrap_or((format!("{name}.yaml"), Span::START));
    let folder = root.join(COMPOSE);
    let report = |code: &str, message: String, help: Option<String>| {
        problems
            .at(environment, span, code, message)
            .expected("the path of a Compose file below `compose/`, relative to it")
            .maybe_help(help)
            .report();
        None
    };
    let is_plain = |component| matches!(component, std::path::Component::Normal(_) | std::path::Component::CurDir);
    if !Path::new(&file).components().all(is_plain) || file.contains(['$', '\0']) {
        return report("path", format!("`{file}` is not a path below `compose/`"), None);
    }
    let Ok(real) = folder.join(&file).canonicalize() else {
        let names: Vec<String> = fs::read_dir(&folder)
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        let help = did_you_mean(&file, names.iter().map(String::as_str));
        return report("missing-path", format!("the Compose file `compose/{file}` does not exist"), help);
    };
    if !folder.canonicalize().is_ok_and(|folder| real.starts_with(folder)) || !real.is_file() {
        return report("path", format!("`{file}` is not a file below `compose/`"), None);
    }
    Some(PathBuf::from(COMPOSE).join(file))
}
