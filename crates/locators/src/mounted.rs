//! Files in host folders that are mounted into containers. The site controls their content, so no path may lead out of
//! the folder: symbolic links are not followed, and only regular files are read.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// Opens the folder below which `read` resolves paths.
pub(super) fn open(folder: &Path) -> Result<OwnedFd, Errno> {
    rustix::fs::open(folder, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

/// Returns the bytes of a file, or `None` if the file does not exist.
pub(super) fn read(folder: &OwnedFd, path: &str, size_max: usize) -> Result<Option<Vec<u8>>, Errno> {
    let resolve =
        ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_XDEV;
    // Without NONBLOCK, opening a named pipe would block.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match rustix::fs::openat2(folder, path, flags, Mode::empty(), resolve) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error),
    };
    let is_file = file.metadata().is_ok_and(|found| found.is_file() && found.len() <= size_max as u64);
    if !is_file {
        return Err(Errno::INVAL);
    }
    let mut bytes = Vec::new();
    let read = file.take(size_max as u64 + 1).read_to_end(&mut bytes);
    match read {
        Ok(length) if length <= size_max => Ok(Some(bytes)),
        Ok(_) => Err(Errno::FBIG),
        Err(_) => Err(Errno::IO),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn nothing_leads_out_of_the_folder() {
        let outside = tempfile::tempdir().expect("a folder");
        std::fs::write(outside.path().join("secret"), "s").expect("a file");
        let inside = tempfile::tempdir().expect("a folder");
        let path = inside.path();
        std::fs::write(path.join("plain"), "p").expect("a file");
        symlink(outside.path().join("secret"), path.join("link")).expect("a link");
        symlink(outside.path(), path.join("folder")).expect("a link");
        let folder = open(path).expect("the folder opens");
        assert_eq!(read(&folder, "plain", 9), Ok(Some(b"p".to_vec())));
        assert_eq!(read(&folder, "none", 9), Ok(None));
        assert_eq!(read(&folder, "plain", 0), Err(Errno::INVAL), "too large");
        for hostile in ["link", "folder/secret", "../secret", "/etc/passwd", "."] {
            assert!(read(&folder, hostile, 9).is_err(), "{hostile}");
        }
    }
}
