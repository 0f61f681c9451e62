//! Whether a folder's file system lets files share their blocks: found by trying, for names of file systems do not say.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use rustix::fs::{Gid, Mode, OFlags, Uid};
use rustix::io::Errno;

/// Whether one file can be cloned into another there; `None` where that could not be tried.
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

/// Whether an error of `FICLONE` means that it does not work between these two files, rather than that it failed.
pub(super) fn is_refusal(error: Errno) -> bool {
    matches!(error, Errno::OPNOTSUPP | Errno::NOTTY | Errno::INVAL | Errno::XDEV | Errno::NOSYS)
}

/// Whether files there can be given to other owners, as sites' files have them; `None` where that could not be tried.
pub fn gives_away(folder: &Path) -> Option<bool> {
    /// Some owner who is not this one.
    const OTHER: u32 = 65_533;
    let file = nameless_file(folder).ok()?;
    match rustix::fs::fchown(&file, Some(Uid::from_raw(OTHER)), Some(Gid::from_raw(OTHER))) {
        Ok(()) => Some(true),
        Err(Errno::PERM | Errno::INVAL) => Some(false),
        Err(_) => None,
    }
}

/// A file that is gone with its handle, however this process ends.
pub fn nameless_file(folder: &Path) -> Result<File, Errno> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    match rustix::fs::open(folder, flags, Mode::RUSR | Mode::WUSR) {
        Ok(file) => Ok(file.into()),
        // Some file systems have no nameless files: there one gets a name for an instant.
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

/// The room on a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Room {
    /// The space that may still be written, in bytes.
    pub free_bytes: u64,
    /// All that it holds, in bytes.
    pub total_bytes: u64,
    /// How many files may be made yet, where the file system counts them.
    pub free_files: Option<u64>,
}

/// The room on the file system of a folder.
pub fn room(folder: &Path) -> Result<Room, Errno> {
    let found = rustix::fs::statvfs(folder)?;
    Ok(Room {
        free_bytes: found.f_bavail.saturating_mul(found.f_frsize),
        total_bytes: found.f_blocks.saturating_mul(found.f_frsize),
        free_files: (found.f_files > 0).then_some(found.f_favail),
    })
}

/// A file system's kind by its magic number (`statfs(2)`).
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
