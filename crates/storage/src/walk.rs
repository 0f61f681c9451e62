//! Opens folders of trees: without following links, and only below their tree and on its file system.

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, RawDir, ResolveFlags};
use rustix::io::Errno;

use super::StorageError;

/// The size of the buffer for the names of a folder, in bytes; it holds several hundred names.
const LISTING_BYTES: usize = 32 << 10;

/// An open folder, with its path for error messages.
#[derive(Debug)]
pub(super) struct OpenFolder {
    pub fd: OwnedFd,
    pub path: PathBuf,
}

/// An entry of a folder.
#[derive(Debug, Clone)]
pub(super) struct Child {
    pub name: CString,
    pub is_folder: bool,
}

impl OpenFolder {
    /// Opens a folder at any path.
    pub(crate) fn open(path: impl Into<PathBuf>) -> Result<Self, StorageError> {
        let path = path.into();
        match rustix::fs::openat(CWD, &path, folder_flags(), Mode::empty()) {
            Ok(fd) => Ok(Self { fd, path }),
            Err(error) => Err(StorageError::at("open the folder", path)(error)),
        }
    }

    /// Opens a folder below this one.
    pub(crate) fn below(&self, path: &Path) -> Result<Self, StorageError> {
        self.try_below(path).map_err(StorageError::at("open the folder", self.path.join(path)))
    }

    /// Opens a folder like [`Self::below`], for callers that handle the system's error.
    ///
    /// Errors: `XDEV` at a mount point, `LOOP` at a link, `NAMETOOLONG` if the path has more than 4095 bytes.
    pub(crate) fn try_below(&self, path: &Path) -> Result<Self, Errno> {
        let beneath = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        let fd = rustix::fs::openat2(&self.fd, beneath, folder_flags(), Mode::empty(), resolve)?;
        Ok(Self { fd, path: self.path.join(path) })
    }

    /// Returns the entries in the file system's order.
    pub(crate) fn children(&self) -> Result<Vec<Child>, StorageError> {
        self.list().map_err(StorageError::at("read the folder", &self.path))
    }

    fn list(&self) -> Result<Vec<Child>, Errno> {
        rustix::fs::seek(&self.fd, rustix::fs::SeekFrom::Start(0))?;
        let mut buffer = Vec::with_capacity(LISTING_BYTES);
        let mut entries = RawDir::new(&self.fd, buffer.spare_capacity_mut());
        let mut children = Vec::new();
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => self.kind(name)?,
                kind => kind,
            };
            children.push(Child { name: name.to_owned(), is_folder: kind == FileType::Directory });
        }
        Ok(children)
    }

    fn kind(&self, name: &CStr) -> Result<FileType, Errno> {
        let found = rustix::fs::statat(&self.fd, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(FileType::from_raw_mode(found.st_mode))
    }

    /// Returns the path of an entry, for error messages.
    pub(crate) fn path_of(&self, name: &CStr) -> PathBuf {
        self.path.join(as_path(name))
    }
}

impl AsFd for OpenFolder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Returns a name as a path of one part.
pub(super) fn as_path(name: &CStr) -> &Path {
    Path::new(OsStr::from_bytes(name.to_bytes()))
}

fn folder_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

/// Returns the flags for opening a file of a tree for reading. If another entry has replaced the file, opening it
/// neither blocks nor follows a link.
pub(super) fn file_flags() -> OFlags {
    OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC
}
