//! Copies of a site's files for a worker.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, chownat};
use rustix::process::{Gid, Uid, geteuid};
use tempfile::TempDir;

use super::child::USER;

/// A folder for copies that one worker reads. It is removed when the value is dropped.
#[derive(Debug)]
pub struct Folder(TempDir);

impl Folder {
    /// Creates a folder in `parent`, and `parent` itself if it is missing.
    pub fn new_in(parent: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(parent)?;
        TempDir::new_in(parent).map(Self)
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Opens the folder. If arenad runs as root, the folder and its files are first given to the worker's user.
    pub(super) fn hand_over(&self) -> io::Result<OwnedFd> {
        if geteuid().is_root() {
            let give = |path: &Path| {
                let (user, group) = (Some(Uid::from_raw(USER)), Some(Gid::from_raw(USER)));
                chownat(CWD, path, user, group, AtFlags::SYMLINK_NOFOLLOW)
            };
            for entry in std::fs::read_dir(self.path())? {
                give(&entry?.path())?;
            }
            give(self.path())?;
        }
        Ok(File::open(self.path())?.into())
    }
}
