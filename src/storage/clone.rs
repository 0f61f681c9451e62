//! Cloning a tree: every file shares its blocks with the original where the file system can, and is copied without filling
//! its holes where it cannot. Owners, modes, times, extended attributes, links of both kinds, pipes, sockets and devices
//! survive.

use std::collections::{BTreeSet, HashMap};
use std::ffi::CString;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::attributes::{self, Attributes};
use super::content::{Copier, Made};
use super::walk::{Child, Folder, as_path, file_flags};
use super::{StorageError, queue};

/// How many files of one folder one thread takes at a time.
const PORTION: usize = 256;

/// More threads than this gain nothing: the file system's log is one.
const MOST_THREADS: usize = 4;

/// What cloning a tree did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cloned {
    /// Files, each once however many names it has.
    pub files: u64,
    /// Folders, the tree's own included.
    pub folders: u64,
    /// Symbolic links, pipes, sockets and devices.
    pub others: u64,
    /// The content of all files, in bytes.
    pub bytes: u64,
    /// How much of it was written rather than shared, in bytes.
    pub copied_bytes: u64,
}

/// Fills the empty folder `to` with a clone of `from`.
pub(super) fn clone_into(from: &Folder, to: &Folder, clones: bool) -> Result<Cloned, StorageError> {
    let cloning = Cloning { from, to, copier: Copier::new(clones), names: Mutex::default(), tally: Tally::default() };
    queue::run(threads(), Work::Folder(PathBuf::new()), |work, more| cloning.work(work, more))?;
    cloning.link()?;
    Ok(cloning.tally.sum())
}

fn threads() -> NonZeroUsize {
    let most = NonZeroUsize::MIN.saturating_add(MOST_THREADS - 1);
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN).min(most)
}

enum Work {
    /// A folder whose counterpart has been made, by its path in the tree.
    Folder(PathBuf),
    /// Some of a folder's entries that are no folders.
    Portion(Arc<Pair>, Vec<CString>),
}

/// A folder of the original and its counterpart.
struct Pair {
    path: PathBuf,
    from: Folder,
    to: Folder,
}

/// Files with several names.
#[derive(Default)]
struct Names {
    /// The first name of each that was met, by device and inode.
    first: HashMap<(u64, u64), PathBuf>,
    /// The names that are still to be made: of which file, and the path.
    further: Vec<((u64, u64), PathBuf)>,
}

#[derive(Default)]
struct Tally {
    files: AtomicU64,
    folders: AtomicU64,
    others: AtomicU64,
    bytes: AtomicU64,
    copied_bytes: AtomicU64,
}

impl Tally {
    fn sum(self) -> Cloned {
        Cloned {
            files: self.files.into_inner(),
            folders: self.folders.into_inner(),
            others: self.others.into_inner(),
            bytes: self.bytes.into_inner(),
            copied_bytes: self.copied_bytes.into_inner(),
        }
    }
}

struct Cloning<'a> {
    from: &'a Folder,
    to: &'a Folder,
    copier: Copier,
    names: Mutex<Names>,
    tally: Tally,
}

impl Cloning<'_> {
    fn work(&self, work: Work, more: &mut Vec<Work>) -> Result<(), StorageError> {
        let (pair, names) = match work {
            Work::Folder(path) => self.enter(path, more)?,
            Work::Portion(pair, names) => (pair, names),
        };
        for name in &names {
            self.entry(&pair, name)?;
        }
        // Who lets go of the folder last gives it its attributes: by then nothing in it changes its times any more.
        match Arc::into_inner(pair) {
            Some(pair) => self.finish(&pair),
            None => Ok(()),
        }
    }

    /// Makes a folder's folders, and divides the rest; the last portion is the caller's.
    fn enter(&self, path: PathBuf, more: &mut Vec<Work>) -> Result<(Arc<Pair>, Vec<CString>), StorageError> {
        let (from, to) = (self.from.below(&path)?, self.to.below(&path)?);
        let (folders, rest): (Vec<Child>, Vec<Child>) = from.children()?.into_iter().partition(|child| child.is_folder);
        for Child { name, .. } in &folders {
            rustix::fs::mkdirat(&to, name, Mode::RWXU)
                .map_err(StorageError::at("make the folder", to.path_of(name)))?;
            more.push(Work::Folder(path.join(as_path(name))));
        }
        let pair = Arc::new(Pair { path, from, to });
        let mut rest: Vec<CString> = rest.into_iter().map(|child| child.name).collect();
        while rest.len() > PORTION {
            more.push(Work::Portion(pair.clone(), rest.split_off(rest.len() - PORTION)));
        }
        Ok((pair, rest))
    }

    fn finish(&self, pair: &Pair) -> Result<(), StorageError> {
        self.tally.folders.fetch_add(1, Ordering::Relaxed);
        let found = rustix::fs::fstat(&pair.from);
        let attributes = found.and_then(|found| Attributes::of_open(pair.from.as_fd(), &found));
        let attributes = attributes.map_err(StorageError::at("read the attributes of", &pair.from.path))?;
        attributes.give_to_open(&pair.to).map_err(StorageError::at("give its attributes to", &pair.to.path))
    }

    fn entry(&self, pair: &Pair, name: &CString) -> Result<(), StorageError> {
        let found = rustix::fs::statat(&pair.from, name, AtFlags::SYMLINK_NOFOLLOW);
        let found = found.map_err(StorageError::at("look at", pair.from.path_of(name)))?;
        if found.st_nlink > 1 && !self.is_first_name(&found, &pair.path, name) {
            return Ok(());
        }
        let done = match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile => self.file(pair, name, &found),
            FileType::Symlink => self.symlink(pair, name, &found),
            kind => self.node(pair, name, kind, &found),
        };
        done.map_err(StorageError::at("clone", pair.to.path_of(name)))
    }

    /// Whether no other name of the file was met before; if one was, this one is kept for later.
    fn is_first_name(&self, found: &Stat, folder: &Path, name: &CString) -> bool {
        let file = (found.st_dev, found.st_ino);
        let path = folder.join(as_path(name));
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if names.first.contains_key(&file) {
            names.further.push((file, path));
            return false;
        }
        names.first.insert(file, path);
        true
    }

    fn file(&self, pair: &Pair, name: &CString, found: &Stat) -> Result<(), Errno> {
        let source = rustix::fs::openat(&pair.from, name, file_flags(), Mode::empty())?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let target = rustix::fs::openat(&pair.to, name, flags, Mode::RUSR | Mode::WUSR)?;
        let size = found.st_size.unsigned_abs();
        let made = self.copier.copy(source.as_fd(), target.as_fd(), size)?;
        Attributes::of_open(source.as_fd(), found)?.give_to_open(&target)?;
        self.tally.files.fetch_add(1, Ordering::Relaxed);
        self.tally.bytes.fetch_add(size, Ordering::Relaxed);
        if let Made::Copied(bytes) = made {
            self.tally.copied_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        Ok(())
    }

    fn symlink(&self, pair: &Pair, name: &CString, found: &Stat) -> Result<(), Errno> {
        let leads_to = rustix::fs::readlinkat(&pair.from, name, Vec::new())?;
        rustix::fs::symlinkat(&leads_to, &pair.to, name)?;
        self.give(pair, name, found, true)
    }

    fn node(&self, pair: &Pair, name: &CString, kind: FileType, found: &Stat) -> Result<(), Errno> {
        rustix::fs::mknodat(&pair.to, name, kind, Mode::RUSR | Mode::WUSR, found.st_rdev)?;
        self.give(pair, name, found, false)
    }

    fn give(&self, pair: &Pair, name: &CString, found: &Stat, is_link: bool) -> Result<(), Errno> {
        self.tally.others.fetch_add(1, Ordering::Relaxed);
        Attributes::of_entry(pair.from.as_fd(), name, found)?.give_to_entry(pair.to.as_fd(), name, is_link)
    }

    /// Makes the further names of files, once every first one is there, and gives the folders that they are in their times
    /// again.
    fn link(&self) -> Result<(), StorageError> {
        let names = std::mem::take(&mut *self.names.lock().unwrap_or_else(PoisonError::into_inner));
        let mut changed = BTreeSet::new();
        for (file, path) in &names.further {
            // Nobody but us sees the clone yet, so no folder on the way can have become a link.
            let first = names.first.get(file).map(PathBuf::as_path).unwrap_or(path);
            rustix::fs::linkat(self.to, first, self.to, path, AtFlags::empty())
                .map_err(StorageError::at("link", self.to.path.join(path)))?;
            changed.extend(path.parent());
        }
        for folder in changed {
            let (from, to) = (self.from.below(folder)?, self.to.below(folder)?);
            set_times(from.as_fd(), to.as_fd()).map_err(StorageError::at("give its times to", &to.path))?;
        }
        Ok(())
    }
}

fn set_times(from: BorrowedFd<'_>, to: BorrowedFd<'_>) -> Result<(), Errno> {
    rustix::fs::futimens(to, &attributes::times(&rustix::fs::fstat(from)?))
}
