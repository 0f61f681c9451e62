//! Paths in a definition. They must not leave the root folder, even through symbolic links.

use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::problems::did_you_mean;
use crate::scope::Scope;

/// The kind of file required at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathKind {
    File,
    Folder,
    Either,
}

/// Returns the folder of the host for data that is too large for snapshots. The folder need not exist.
///
/// A definition itself cannot name a folder outside the root folder; only a variable from outside can.
pub(crate) fn data_folder(scope: Scope<'_>, root: &Path, base: &Path, text: Option<&str>) -> Option<PathBuf> {
    let text = text?;
    let folder = normal(base, text);
    let is_written_here = scope.source().text.contains(text);
    if folder.starts_with(root) && folder != root
        || (text.starts_with('/') && !is_written_here && folder != Path::new("/"))
    {
        return Some(folder);
    }
    scope
        .error("path", format!("the data folder `{}` lies outside of the environment's", crate::tree::excerpt(text)))
        .expected("a relative path below the folder that holds `environments/` and `compose/`, or a variable whose value is absolute")
        .report();
    None
}

/// Returns a path without `.` and `..`, without access to the disk.
pub(crate) fn normal(base: &Path, text: &str) -> PathBuf {
    let mut joined = PathBuf::new();
    for component in base.join(text).components() {
        match component {
            Component::ParentDir => drop(joined.pop()),
            Component::CurDir => {}
            other => joined.push(other),
        }
    }
    joined
}

/// Resolves a path of the file against `base`, and reports it unless it exists below `root`.
pub(crate) fn inside(
    scope: Scope<'_>,
    root: &Path,
    base: &Path,
    text: &str,
    kind: PathKind,
    what: &str,
) -> Option<PathBuf> {
    let joined = inside_by_name(scope, root, base, text, what)?;
    let Ok(real) = joined.canonicalize() else {
        scope
            .error("missing-path", format!("{what} `{text}` does not exist"))
            .maybe_help(similar_file(&joined))
            .report();
        return None;
    };
    if !real.starts_with(root) {
        scope
            .error("path", format!("{what} `{text}` leaves the environment's folder through a symbolic link"))
            .expected("a path below the folder that holds `environments/` and `compose/`")
            .report();
        return None;
    }
    let found = match kind {
        PathKind::File if !real.is_file() => Some("a file"),
        PathKind::Folder if !real.is_dir() => Some("a folder"),
        PathKind::Either if !real.is_file() && !real.is_dir() => Some("a file or folder"),
        _ => None,
    };
    if let Some(expected) = found {
        scope.error("path", format!("{what} `{text}` is not {expected}")).expected(expected).report();
        return None;
    }
    Some(real)
}

/// Does the part of [`inside`] that needs no access to the disk.
pub(crate) fn inside_by_name(scope: Scope<'_>, root: &Path, base: &Path, text: &str, what: &str) -> Option<PathBuf> {
    let refuse = |why: &str| {
        scope
            .error("path", format!("{what} `{}` {why}", crate::tree::excerpt(text)))
            .expected("a relative path below the folder that holds `environments/` and `compose/`")
            .report();
        None
    };
    if text.trim().is_empty() {
        return refuse("is empty");
    }
    if text.contains('\0') {
        return refuse("holds a NUL character");
    }
    if text.contains("://") {
        return refuse("is remote");
    }
    if text.starts_with('/') {
        return refuse("is absolute");
    }
    if text.starts_with('~') {
        return refuse("begins in a home folder");
    }
    let mut joined = base.to_path_buf();
    for component in Path::new(text).components() {
        match component {
            Component::ParentDir => {
                joined.pop();
            }
            Component::Normal(name) => joined.push(name),
            _ => {}
        }
        if !joined.starts_with(root) {
            return refuse("leaves the environment's folder");
        }
    }
    Some(joined)
}

fn similar_file(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let entries = fs::read_dir(path.parent()?).ok()?;
    let names: Vec<String> =
        entries.take(1000).filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    did_you_mean(name, names.iter().map(String::as_str))
}
