//! Folders and files whose modes do not depend on the umask of the process: the state directory is closed to other
//! users, and what containers read is open to them.
//!
//! The crate depends on no other crate of arenad. Start reading at [`make_private`], then [`beneath`].

pub mod beneath;

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;

use rustix::fs::Mode;

/// The permission bits of the group and of others.
const OPEN: u32 = 0o077;

/// Creates a folder that only its owner can enter, and its missing parents. An existing folder keeps its mode.
pub fn make_private(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Creates a folder that all users can read, and its missing parents. An existing folder keeps its mode.
pub fn make_readable(path: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = path.ancestors().take_while(|folder| !folder.exists()).collect();
    for folder in missing.into_iter().rev().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir(folder)?;
        fs::set_permissions(folder, Permissions::from_mode(0o755))?;
    }
    Ok(())
}

/// Restricts files that this process and its children create from now on to their owner, unless they set a mode.
pub fn keep_private() {
    rustix::process::umask(Mode::from_raw_mode(OPEN));
}

/// Returns whether the group or others have any permission on a path.
pub fn is_open(path: &Path) -> io::Result<bool> {
    Ok(fs::metadata(path)?.mode() & OPEN != 0)
}

/// Removes the permissions of the group and others from a folder or a file. Links and sockets stay unchanged.
pub fn close(path: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(path)?;
    let mode = found.mode() & 0o7777;
    if !(found.is_dir() || found.is_file()) || mode & OPEN == 0 {
        return Ok(());
    }
    fs::set_permissions(path, Permissions::from_mode(mode & !OPEN))
}
