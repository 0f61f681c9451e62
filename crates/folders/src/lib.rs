//! Folders and files whose modes do not depend on the umask of the process: the state directory is closed to other users,
//! and what containers read is open to them.

pub mod beneath;

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;

use rustix::fs::Mode;

/// The bits that give something to the group or to others.
const OPEN: u32 = 0o077;

/// Makes a folder that only its owner can enter, and the missing ones above it. An existing folder keeps its mode.
pub fn make_private(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Makes a folder that everybody can read, and the missing ones above it. An existing folder keeps its mode.
pub fn make_readable(path: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = path.ancestors().take_while(|folder| !folder.exists()).collect();
    for folder in missing.into_iter().rev().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir(folder)?;
        fs::set_permissions(folder, Permissions::from_mode(0o755))?;
    }
    Ok(())
}

/// Keeps the files that this process and its children make from here on to their owner, unless they set a mode.
pub fn keep_private() {
    rustix::process::umask(Mode::from_raw_mode(OPEN));
}

/// Whether the group or others may do anything with it.
pub fn is_open(path: &Path) -> io::Result<bool> {
    Ok(fs::metadata(path)?.mode() & OPEN != 0)
}

/// Takes away what the group and others may do with a folder or a file. Leaves links and sockets alone.
pub fn close(path: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(path)?;
    let mode = found.mode() & 0o7777;
    if !(found.is_dir() || found.is_file()) || mode & OPEN == 0 {
        return Ok(());
    }
    fs::set_permissions(path, Permissions::from_mode(mode & !OPEN))
}
