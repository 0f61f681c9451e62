//! Files in host folders that are mounted into containers. The site controls their content, so no path may lead out of
//! the folder: symbolic links are not followed, and only regular files are read.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// Opens the folder below which `read` resolves paths.
pub(super) fn open(folder: &Path) -> Result<OwnedFd, Errno> {
    rustix::fs::open(folder, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

/// Opens a file and returns it with its size in bytes, or `None` if the file does not exist.
pub(super) fn open_file(folder: &OwnedFd, path: &str, size_max: u64) -> Result<Option<(File, u64)>, Errno> {
    let resolve =
        ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_XDEV;
    // Without NONBLOCK, opening a named pipe would block.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match rustix::fs::openat2(folder, path, flags, Mode::empty(), resolve) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error),
    };
    match file.metadata() {
        Ok(found) if found.is_file() && found.len() <= size_max => Ok(Some((file, found.len()))),
        _ => Err(Errno::INVAL),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
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
        let read = |path, size_max| {
            let found = open_file(&folder, path, size_max)?;
            Ok(found.map(|(mut file, size)| {
                let mut text = String::new();
                assert_eq!(file.read_to_string(&mut text).expect("it reads") as u64, size);
                text
            }))
        };
        assert_eq!(read("plain", 9), Ok(Some("p".to_owned())));
        assert_eq!(read("none", 9), Ok(None));
        assert_eq!(read("plain", 0), Err(Errno::INVAL), "too large");
        for hostile in ["link", "folder/secret", "../secret", "/etc/passwd", "."] {
            assert!(read(hostile, 9).is_err(), "{hostile}");
        }
    }
}
