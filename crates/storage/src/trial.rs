//! Determines the abilities of a folder's file system. Whether files can share their blocks is found by a trial,
//! because the kind of a file system does not determine it.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use rustix::fs::{Gid, Mode, OFlags, Uid};
use rustix::io::Errno;

/// Returns whether a file in the folder can be cloned into another one, or `None` if the trial was not possible.
pub fn reflinks(folder: &Path) -> Option<bool> {
    let mut source = nameless_file(folder).ok()?;
    let target = nameless_file(folder).ok()?;
    source.write_all(&[1; 4096]).ok()?;
    match rustix::fs::ioctl_ficlone(&target, &source) {
        Ok(()) => Some(true),
        Err(error) if is_refusal(error) => Some(false),
        Err(_) => None,
    }
}

/// Returns whether an error of `FICLONE` means that the two files cannot share blocks, rather than that the call
/// failed.
pub(super) fn is_refusal(error: Errno) -> bool {
    matches!(error, Errno::OPNOTSUPP | Errno::NOTTY | Errno::INVAL | Errno::XDEV | Errno::NOSYS)
}

/// Returns whether the owner of a file in the folder can be changed, which sites' files require, or `None` if the trial
/// was not possible.
pub fn gives_away(folder: &Path) -> Option<bool> {
    /// The number of a user other than this process's.
    const OTHER: u32 = 65_533;
    let file = nameless_file(folder).ok()?;
    match rustix::fs::fchown(&file, Some(Uid::from_raw(OTHER)), Some(Gid::from_raw(OTHER))) {
        Ok(()) => Some(true),
        Err(Errno::PERM | Errno::INVAL) => Some(false),
        Err(_) => None,
    }
}

/// Creates a file that disappears with its handle, even if this process is killed.
pub fn nameless_file(folder: &Path) -> Result<File, Errno> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    match rustix::fs::open(folder, flags, Mode::RUSR | Mode::WUSR) {
        Ok(file) => Ok(file.into()),
        // Some file systems do not support files without a name, so the file has a name until it is unlinked.
        Err(Errno::OPNOTSUPP | Errno::ISDIR) => {
            let path = folder.join(format!(".arenad-trial-{:016x}", rand::random::<u64>()));
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
            let file = rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR)?;
            rustix::fs::unlink(&path)?;
            Ok(file.into())
        }
        Err(error) => Err(error),
    }
}

/// The free and total space of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FreeSpace {
    /// The free space, in bytes.
    pub free_bytes: u64,
    /// The total space, in bytes.
    pub total_bytes: u64,
    /// The number of files that can still be created, if the file system limits it.
    pub free_files: Option<u64>,
}

/// Returns the free and total space of a folder's file system.
pub fn room(folder: &Path) -> Result<FreeSpace, Errno> {
    let found = rustix::fs::statvfs(folder)?;
    Ok(FreeSpace {
        free_bytes: found.f_bavail.saturating_mul(found.f_frsize),
        total_bytes: found.f_blocks.saturating_mul(found.f_frsize),
        free_files: (found.f_files > 0).then_some(found.f_favail),
    })
}

/// Returns the kind of a folder's file system, by its magic number (`statfs(2)`).
pub fn kind(folder: &Path) -> String {
    let Ok(found) = rustix::fs::statfs(folder) else { return "an unknown file system".to_owned() };
    // The numbers are 32 bits wide; some architectures show them signed.
    match found.f_type as u32 {
        0x0000_ef53 => "ext4".to_owned(),
        0x5846_5342 => "xfs".to_owned(),
        0x9123_683e => "btrfs".to_owned(),
        0x2fc1_2fc1 => "zfs".to_owned(),
        0x0102_1994 => "tmpfs".to_owned(),
        0x794c_7630 => "overlayfs".to_owned(),
        0xf2f5_2010 => "f2fs".to_owned(),
        0x0000_6969 => "nfs".to_owned(),
        0xca45_1a4e => "bcachefs".to_owned(),
        magic => format!("file system {magic:#x}"),
    }
}
