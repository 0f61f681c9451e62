//! Folders of trees: opened without following links, below their tree and on its file system only.

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, RawDir, ResolveFlags};
use rustix::io::Errno;

use super::StorageError;

/// Room for some hundred names at a time.
const LISTING_BYTES: usize = 32 << 10;

/// An open folder, and its path for errors.
#[derive(Debug)]
pub(super) struct Folder {
    pub fd: OwnedFd,
    pub path: PathBuf,
}

/// An entry of a folder.
#[derive(Debug, Clone)]
pub(super) struct Child {
    pub name: CString,
    pub is_folder: bool,
}

impl Folder {
    /// Opens a folder that may be anywhere.
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

    /// The same, for callers with answers of their own to what the system says. Errors: `XDEV` where something is
    /// mounted, `LOOP` at a link, `NAMETOOLONG` where the path has more than 4095 bytes.
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

    /// The path of an entry, for errors.
    pub(crate) fn path_of(&self, name: &CStr) -> PathBuf {
        self.path.join(as_path(name))
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A name as a path of one part.
pub(super) fn as_path(name: &CStr) -> &Path {
    Path::new(OsStr::from_bytes(name.to_bytes()))
}

fn folder_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

/// How a file of a tree is opened for reading: whatever has taken its place meanwhile, opening it neither waits nor
/// leads elsewhere.
pub(super) fn file_flags() -> OFlags {
    OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC
}
