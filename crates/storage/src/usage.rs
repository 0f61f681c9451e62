//! Measures the space that a tree takes, and the part of it that no other tree shares.

use std::collections::HashSet;
use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use fiemap::{Fiemap, FiemapExtentFlags};
use rustix::fs::{AtFlags, FileType, Mode, Stat};
use rustix::io::Errno;

use super::StorageError;
use super::walk::{OpenFolder, as_path, file_flags};

/// The unit of `st_blocks` on every file system, in bytes (`stat(2)`).
const STAT_BLOCK: u64 = 512;

/// The space that a tree takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TreeUsage {
    /// The number of entries that are not folders; a file with several names counts once.
    pub files: u64,
    /// The number of folders, including the tree's own.
    pub folders: u64,
    /// The total length of all files, including holes, in bytes.
    pub apparent_bytes: u64,
    /// The space of the files on disk, shared or not, in bytes.
    pub allocated_bytes: u64,
    /// The part of `allocated_bytes` that no other file shares, in bytes: removing the tree frees this much. It equals
    /// `allocated_bytes` if the file system does not report shared blocks.
    pub exclusive_bytes: u64,
}

/// Measures a tree, which may change meanwhile. Entries that disappear or lie too deep for a path are left out.
pub(super) fn measure(tree: &OpenFolder) -> Result<TreeUsage, StorageError> {
    let mut measuring = Measuring { usage: TreeUsage::default(), seen: HashSet::new() };
    let mut waiting = vec![PathBuf::new()];
    while let Some(path) = waiting.pop() {
        let folder = match tree.try_below(&path) {
            Ok(folder) => folder,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NAMETOOLONG) => continue,
            Err(error) => return Err(StorageError::at("open the folder", tree.path.join(path))(error)),
        };
        measuring.usage.folders += 1;
        for child in folder.children()? {
            if child.is_folder {
                waiting.push(path.join(as_path(&child.name)));
            } else {
                measuring.entry(&folder, &child.name)?;
            }
        }
    }
    Ok(measuring.usage)
}

/// Checks that no folder of a tree, which may change meanwhile, lies deeper than the maximum length of paths, because
/// deeper folders can be neither cloned nor compared.
pub(super) fn check_depth(tree: &OpenFolder) -> Result<(), StorageError> {
    let mut waiting = vec![PathBuf::new()];
    while let Some(path) = waiting.pop() {
        let folder = match tree.try_below(&path) {
            Ok(folder) => folder,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => continue,
            Err(Errno::NAMETOOLONG) => return Err(StorageError::TooDeep(tree.path.clone())),
            Err(error) => return Err(StorageError::at("open the folder", tree.path.join(path))(error)),
        };
        let folders = folder.children()?.into_iter().filter(|child| child.is_folder);
        waiting.extend(folders.map(|child| path.join(as_path(&child.name))));
    }
    Ok(())
}

struct Measuring {
    usage: TreeUsage,
    /// Files with several names, by device and inode.
    seen: HashSet<(u64, u64)>,
}

impl Measuring {
    fn entry(&mut self, folder: &OpenFolder, name: &CStr) -> Result<(), StorageError> {
        let failed = |error: Errno| StorageError::at("look at", folder.path_of(name))(error);
        let found = match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => found,
            Err(Errno::NOENT) => return Ok(()),
            Err(error) => return Err(failed(error)),
        };
        if found.st_nlink > 1 && !self.seen.insert((found.st_dev, found.st_ino)) {
            return Ok(());
        }
        let allocated = found.st_blocks.unsigned_abs() * STAT_BLOCK;
        self.usage.files += 1;
        self.usage.allocated_bytes += allocated;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            self.usage.exclusive_bytes += allocated;
            return Ok(());
        }
        self.usage.apparent_bytes += found.st_size.unsigned_abs();
        self.usage.exclusive_bytes += match rustix::fs::openat(folder, name, file_flags(), Mode::empty()) {
            Ok(file) => exclusive(file, &found, allocated),
            Err(Errno::NOENT | Errno::LOOP | Errno::NXIO) => 0,
            Err(error) => return Err(failed(error)),
        };
        Ok(())
    }
}

/// Returns the size of the blocks of a file that it does not share with other files, in bytes.
fn exclusive(file: OwnedFd, found: &Stat, allocated: u64) -> u64 {
    if found.st_blocks == 0 {
        return 0;
    }
    let mut shared = 0_u64;
    for extent in Fiemap::new(file.as_fd()) {
        match extent {
            Ok(extent) if extent.fe_flags.contains(FiemapExtentFlags::SHARED) => shared += extent.fe_length,
            Ok(_) => {}
            // The file system does not report shared blocks.
            Err(_) => return allocated,
        }
    }
    allocated.saturating_sub(shared)
}
