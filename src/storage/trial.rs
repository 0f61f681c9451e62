//! Whether a folder's file system lets files share their blocks: found by trying, for names of file systems do not say.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
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
