//! Build contexts as tar archives whose bytes depend on nothing but the files' names, contents and executable bits, so
//! that the hash of the archive is the hash of the build's inputs.
//!
//! The crate depends only on `model`. Start reading at [`pack`].

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use sha2::{Digest, Sha256};
use walkdir::WalkDir;

use arenad_model::hex::hex;
use arenad_model::service::BuildSpec;

/// The reason why a context could not be packed.
#[derive(Debug, thiserror::Error)]
pub enum ContextError {
    /// A file or folder could not be read.
    #[error("read {path}")]
    Read {
        /// Path of the file or folder.
        path: PathBuf,
        /// The underlying I/O error.
        #[source]
        cause: std::io::Error,
    },
    /// A line of `.dockerignore` is not a pattern.
    #[error("understand {path}: {message}")]
    Ignore {
        /// Path of the `.dockerignore` file.
        path: PathBuf,
        /// Description of the invalid pattern.
        message: String,
    },
}

/// A packed build context.
#[derive(Debug)]
pub struct PackedContext {
    /// The context as a tar archive.
    pub archive: Vec<u8>,
    /// SHA-256 (hex) over the archive and all other inputs of the build.
    pub inputs: String,
}

/// Packs a build's context without the files that `.dockerignore` excludes. Blocks: call it from a blocking thread.
pub fn pack(build: &BuildSpec) -> Result<PackedContext, ContextError> {
    let ignored = ignored(&build.context)?;
    let archive = archive(&build.context, |relative, is_folder| {
        relative != build.dockerfile && ignored.matched_path_or_any_parents(relative, is_folder).is_ignore()
    })?;
    let mut digest = Sha256::new();
    digest.update(&archive);
    digest.update(format!("\0{}\0{:?}\0", build.dockerfile.display(), build.target));
    for (key, value) in &build.args {
        digest.update(format!("{key}={value}\0"));
    }
    let inputs = hex(&digest.finalize());
    Ok(PackedContext { archive, inputs })
}

/// Packs everything in a folder; `inputs` is the hash of the archive. Blocks: call it from a blocking thread.
pub fn pack_folder(folder: &Path) -> Result<PackedContext, ContextError> {
    let archive = archive(folder, |_, _| false)?;
    let inputs = hex(&Sha256::digest(&archive));
    Ok(PackedContext { archive, inputs })
}

/// Packs a folder without the paths that are left out; the second argument tells whether a path is a folder.
fn archive(folder: &Path, is_left_out: impl Fn(&Path, bool) -> bool) -> Result<Vec<u8>, ContextError> {
    let mut builder = tar::Builder::new(Vec::new());
    for entry in WalkDir::new(folder).sort_by_file_name().min_depth(1) {
        let entry = entry.map_err(|error| ContextError::Read {
            path: error.path().unwrap_or(folder).to_owned(),
            cause: error.into_io_error().unwrap_or_else(|| std::io::Error::other("a loop of links")),
        })?;
        let relative = entry.path().strip_prefix(folder).unwrap_or(entry.path());
        if is_left_out(relative, entry.file_type().is_dir()) {
            continue;
        }
        append(&mut builder, entry.path(), relative)
            .map_err(|cause| ContextError::Read { path: entry.path().to_owned(), cause })?;
    }
    builder.into_inner().map_err(|cause| ContextError::Read { path: folder.to_owned(), cause })
}

/// Reads `.dockerignore` in gitignore's syntax, with every pattern relative to the context's root.
fn ignored(context: &Path) -> Result<Gitignore, ContextError> {
    let path = context.join(".dockerignore");
    let mut builder = GitignoreBuilder::new("");
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(cause) => return Err(ContextError::Read { path, cause }),
    };
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let anchored = match line.strip_prefix('!') {
            Some(pattern) => format!("!/{}", pattern.trim_start_matches('/')),
            None => format!("/{}", line.trim_start_matches('/')),
        };
        let bad = |error: ignore::Error| ContextError::Ignore { path: path.clone(), message: error.to_string() };
        builder.add_line(None, &anchored).map_err(bad)?;
    }
    builder.build().map_err(|error| ContextError::Ignore { path, message: error.to_string() })
}

fn append(builder: &mut tar::Builder<Vec<u8>>, path: &Path, relative: &Path) -> std::io::Result<()> {
    let metadata = std::fs::symlink_metadata(path)?;
    let mut header = tar::Header::new_gnu();
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    if metadata.is_dir() {
        header.set_entry_type(tar::EntryType::Directory);
        header.set_mode(0o755);
        header.set_size(0);
        // The slash makes the entry equal to the one that the docker command sends, whose layers can then be reused: the
        // classic builder hashes the entries of a folder with their names.
        builder.append_data(&mut header, relative.join(""), std::io::empty())
    } else if metadata.is_symlink() {
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_mode(0o777);
        header.set_size(0);
        builder.append_link(&mut header, relative, std::fs::read_link(path)?)
    } else {
        let content = std::fs::read(path)?;
        // Only the executable bit is kept: the other bits depend on the umask under which the project was cloned.
        header.set_mode(if metadata.permissions().mode() & 0o111 == 0 { 0o644 } else { 0o755 });
        header.set_size(content.len() as u64);
        builder.append_data(&mut header, relative, content.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn build(context: &Path) -> BuildSpec {
        BuildSpec { context: context.to_owned(), dockerfile: "Dockerfile".into(), args: BTreeMap::new(), target: None }
    }

    fn names(archive: &[u8]) -> Vec<String> {
        let mut archive = tar::Archive::new(archive);
        let entries = archive.entries().expect("an archive");
        entries.map(|entry| entry.expect("an entry").path().expect("a path").display().to_string()).collect()
    }

    #[test]
    fn equal_trees_have_equal_hashes_whatever_their_times() {
        let (one, two) = (tempfile::tempdir().expect("temp"), tempfile::tempdir().expect("temp"));
        for folder in [&one, &two] {
            std::fs::write(folder.path().join("Dockerfile"), "FROM scratch\n").expect("write");
            std::fs::create_dir(folder.path().join("a")).expect("mkdir");
            std::fs::write(folder.path().join("a/b"), "b").expect("write");
        }
        let hash = |folder: &Path| pack(&build(folder)).expect("packs").inputs;
        assert_eq!(hash(one.path()), hash(two.path()));
        std::fs::write(two.path().join("a/b"), "c").expect("write");
        assert_ne!(hash(one.path()), hash(two.path()));
    }

    #[test]
    fn dockerignore_is_anchored_and_can_take_back() {
        let folder = tempfile::tempdir().expect("temp");
        for name in ["Dockerfile", "keep.txt", "x.log", "important.log"] {
            std::fs::write(folder.path().join(name), name).expect("write");
        }
        std::fs::create_dir(folder.path().join("sub")).expect("mkdir");
        std::fs::write(folder.path().join("sub/y.log"), "y").expect("write");
        std::fs::write(folder.path().join(".dockerignore"), "# logs\n*.log\n!important.log\n").expect("write");
        let packed = names(&pack(&build(folder.path())).expect("packs").archive);
        assert_eq!(packed, [".dockerignore", "Dockerfile", "important.log", "keep.txt", "sub/", "sub/y.log"]);
    }
}
