//! Removes the content of the trash. A site may have made its tree deeper than the maximum length of paths, so there is
//! no recursion: subfolders are moved up into the trash and removed later.

use std::ffi::CString;

use rustix::fs::{AtFlags, RenameFlags};
use rustix::io::Errno;

use super::StorageError;
use super::walk::{Child, OpenFolder, as_path};

/// The counts of emptying the trash once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Removed {
    /// The number of removed entries that are not folders.
    pub files: u64,
    /// The number of removed folders.
    pub folders: u64,
}

/// Removes everything in a folder. Entries that are added meanwhile may remain. A failed removal does not stop the
/// others: the first error is returned after everything else has been removed.
pub(super) fn empty(trash: &OpenFolder) -> Result<Removed, StorageError> {
    let mut removed = Removed::default();
    let mut waiting = trash.children()?;
    let mut failed = None;
    while let Some(child) = waiting.pop() {
        let done = if child.is_folder {
            remove_folder(trash, &child.name, &mut waiting, &mut removed)
        } else {
            unlink(trash, &child.name, AtFlags::empty()).map(|was_there| removed.files += u64::from(was_there))
        };
        failed = failed.or(done.err());
    }
    failed.map_or(Ok(removed), Err)
}

fn remove_folder(
    trash: &OpenFolder,
    name: &CString,
    waiting: &mut Vec<Child>,
    removed: &mut Removed,
) -> Result<(), StorageError> {
    let folder = match trash.try_below(as_path(name)) {
        Ok(folder) => folder,
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(StorageError::at("open the folder", trash.path_of(name))(error)),
    };
    let mut failed = None;
    for child in folder.children()? {
        let done = remove_child(trash, &folder, &child, waiting, removed);
        failed = failed.or(done.err());
    }
    if let Some(error) = failed {
        return Err(error);
    }
    removed.folders += u64::from(unlink(trash, name, AtFlags::REMOVEDIR)?);
    Ok(())
}

fn remove_child(
    trash: &OpenFolder,
    folder: &OpenFolder,
    child: &Child,
    waiting: &mut Vec<Child>,
    removed: &mut Removed,
) -> Result<(), StorageError> {
    if !child.is_folder {
        removed.files += u64::from(unlink(folder, &child.name, AtFlags::empty())?);
        return Ok(());
    }
    match rustix::fs::unlinkat(folder, &child.name, AtFlags::REMOVEDIR) {
        Ok(()) => removed.folders += 1,
        Err(Errno::NOTEMPTY | Errno::EXIST) => waiting.push(bring_up(trash, folder, &child.name)?),
        Err(error) => return Err(StorageError::at("remove the folder", folder.path_of(&child.name))(error)),
    }
    Ok(())
}

fn bring_up(trash: &OpenFolder, folder: &OpenFolder, name: &CString) -> Result<Child, StorageError> {
    let new = unique_name();
    rustix::fs::renameat_with(folder, name, trash, &new, RenameFlags::NOREPLACE)
        .map_err(StorageError::at("move to the trash", folder.path_of(name)))?;
    Ok(Child { name: new, is_folder: true })
}

/// Removes an entry, and returns whether it existed.
fn unlink(folder: &OpenFolder, name: &CString, flags: AtFlags) -> Result<bool, StorageError> {
    match rustix::fs::unlinkat(folder, name, flags) {
        Ok(()) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(StorageError::at("remove", folder.path_of(name))(error)),
    }
}

/// Returns a random name, which no other entry has.
pub(super) fn unique_name() -> CString {
    // Sixteen hexadecimal digits contain no zero byte.
    CString::new(format!("{:016x}", rand::random::<u64>())).unwrap_or_default()
}
