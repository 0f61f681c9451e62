//! Restores a tree to its snapshot by its touched entries: untouched entries remain in place, and only the others are
//! exchanged. The cost depends on the amount of data that a site has written, not on the size of its stores.
//!
//! An entry is *untouched* if it has the same inode and the same time of last status change (ctime) as when the tree
//! was last equal to the snapshot and no process was writing to it. Only the kernel sets the ctime, at every change of
//! content, attributes, names or places. While the writers of a tree are stopped, no file of it is mapped into memory
//! and could be written to without a change of the ctime. Changes within one tick of the kernel's clock have the same
//! time, so [`Stamps::take`] waits for the end of the tick of the last change before processes may write again.
//!
//! Stamps are kept in memory only: after a restart of the daemon or an error, a tree is exchanged as a whole once.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, CString};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{AtFlags, FileType, RenameFlags, Stat, Timespec, Timestamps, UTIME_NOW};
use rustix::io::Errno;

use super::attributes::Attributes;
use super::clone::Cloner;
use super::exchange::{BeforeStep, ExchangeStep};
use super::remove::unique_name;
use super::walk::{OpenFolder, as_path};
use super::{StorageError, StoreTree};

/// The maximum number of entries of a tree whose stamps are kept; they take about twenty megabytes of memory.
const ENTRIES_MAX: usize = 200_000;

/// The maximum length of a path with a stamp, in bytes; the kernel accepts 4095.
const PATH_MAX: usize = 2_000;

/// The pause between two readings of the kernel's clock, whose tick takes 1 to 10 ms.
const TICK_LOOK: Duration = Duration::from_millis(1);

/// Sets both settable times of a file to the current time.
const NOW: Timestamps = Timestamps {
    last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
    last_modification: Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
};

/// The maximum number of readings of the clock. A clock that was set back may not reach the required time for hours.
const TICK_LOOKS: usize = 50;

/// The counts of one restore of the touched entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Restored {
    /// The number of entries that remained in place.
    pub kept: u64,
    /// The number of entries that were moved to the trash; each counts once with everything below it.
    pub moved_out: u64,
    /// The number of entries that were cloned again; each counts once with everything below it.
    pub cloned: u64,
}

/// The values that change whenever an entry changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct EntryStamp {
    inode: u64,
    /// The ctime, as seconds and nanoseconds.
    changed: (i64, i64),
    is_folder: bool,
}

impl EntryStamp {
    fn of(found: &Stat) -> Self {
        Self {
            inode: found.st_ino,
            changed: (found.st_ctime, i64::try_from(found.st_ctime_nsec).unwrap_or(i64::MAX)),
            is_folder: FileType::from_raw_mode(found.st_mode) == FileType::Directory,
        }
    }
}

/// The stamps of a tree that was equal to a snapshot's.
#[derive(Debug)]
pub(super) struct Stamps {
    /// The tree of the snapshot.
    pub(super) of: StoreTree,
    /// Stamps by path relative to the tree; the path of the tree's own folder is empty. A folder precedes its content.
    entries: BTreeMap<PathBuf, EntryStamp>,
}

impl Stamps {
    /// Takes the stamps of a tree that is a clone of `of` and to which no process writes yet. Returns when no later
    /// change can have the time of an earlier one. `beside` is a folder of the daemon on the same file system.
    ///
    /// Returns `None` if the tree has files with several names, which share their times, if the tree is too large, or
    /// if the clock was set back.
    pub(super) fn take(tree: &OpenFolder, of: StoreTree, beside: &OpenFolder) -> Result<Option<Self>, StorageError> {
        let mut stamps = Self { of, entries: BTreeMap::new() };
        let is_past = stamps.add(tree, Path::new(""))? && stamps.is_past(beside)?;
        Ok(is_past.then_some(stamps))
    }

    /// Waits until the clock of the file system has passed the times of all stamps, and returns whether it has.
    fn is_past(&self, beside: &OpenFolder) -> Result<bool, StorageError> {
        let newest = self.entries.values().map(|stamp| stamp.changed).max().unwrap_or_default();
        for _ in 0..TICK_LOOKS {
            // A change of the folder's times shows the time that the file system would assign to any change now.
            let stamped = rustix::fs::futimens(beside, &NOW).and_then(|()| rustix::fs::fstat(beside));
            let stamped = stamped.map_err(StorageError::at("look at the time of", &beside.path))?;
            if EntryStamp::of(&stamped).changed > newest {
                return Ok(true);
            }
            std::thread::sleep(TICK_LOOK);
        }
        Ok(false)
    }

    /// Adds the stamps of an entry and everything below it. Returns `false` if stamps cannot show the changes of one of
    /// these entries, or if a limit is exceeded.
    fn add(&mut self, tree: &OpenFolder, path: &Path) -> Result<bool, StorageError> {
        let mut waiting = vec![path.to_owned()];
        while let Some(path) = waiting.pop() {
            let found = look(tree, &path).map_err(StorageError::at("look at", tree.path.join(&path)))?;
            let stamp = EntryStamp::of(&found);
            let is_telling = stamp.is_folder || found.st_nlink == 1;
            if !is_telling || self.entries.len() >= ENTRIES_MAX || path.as_os_str().len() > PATH_MAX {
                return Ok(false);
            }
            if stamp.is_folder {
                let children = tree.below(&path)?.children()?;
                waiting.extend(children.iter().map(|child| path.join(as_path(&child.name))));
            }
            self.entries.insert(path, stamp);
        }
        Ok(true)
    }

    /// Removes the stamps of an entry and everything below it, and returns their number.
    fn forget(&mut self, path: &Path) -> u64 {
        // In the order of paths, a folder is followed by its content.
        let below = self.entries.range(path.to_owned()..).map(|(known, _)| known);
        let below: Vec<PathBuf> = below.take_while(|known| known.starts_with(path)).cloned().collect();
        below.iter().for_each(|known| _ = self.entries.remove(known));
        below.len() as u64
    }

    /// Returns the entries that have changed.
    fn touched(&self, tree: &OpenFolder) -> Touched {
        let mut touched = Touched::default();
        for (path, stamp) in &self.entries {
            // This may follow a link that has replaced a folder. In that case the folder itself is gone, and was
            // visited earlier.
            let now = look(tree, path).map(|found| EntryStamp::of(&found));
            if now.as_ref() == Ok(stamp) || touched.is_gone(path) {
                continue;
            }
            match now {
                // A folder may have received the inode number of a removed file.
                Ok(now) if now.inode == stamp.inode && now.is_folder && stamp.is_folder => {
                    touched.folders.insert(path.clone());
                }
                _ => {
                    touched.folders.extend(path.parent().map(Path::to_owned));
                    touched.gone.insert(path.clone());
                }
            }
        }
        touched
    }
}

/// The changed entries of a tree.
#[derive(Debug, Default)]
struct Touched {
    /// Folders whose entries or attributes have changed.
    folders: BTreeSet<PathBuf>,
    /// Entries that were changed, replaced or removed.
    gone: BTreeSet<PathBuf>,
}

impl Touched {
    /// Returns whether a path equals or is below an entry in `gone`.
    fn is_gone(&self, path: &Path) -> bool {
        !self.gone.is_empty() && path.ancestors().any(|above| self.gone.contains(above))
    }
}

/// The folders of one restore.
pub(super) struct Restoring<'a> {
    /// The tree that is restored.
    pub(super) live: &'a OpenFolder,
    /// The tree of the snapshot.
    pub(super) snapshot: &'a OpenFolder,
    /// The folder that receives the touched entries.
    pub(super) trash: &'a OpenFolder,
    /// Whether files can share their blocks.
    pub(super) clones: bool,
}

impl Restoring<'_> {
    /// Restores the touched entries. The tree's writers must be stopped until this returns. Without new stamps, the
    /// tree is complete, but the next restore must exchange the whole tree.
    ///
    /// Errors: the tree is not whole after an error.
    pub(super) fn run(
        &self,
        mut stamps: Stamps,
        before: BeforeStep<'_>,
    ) -> Result<(Restored, Option<Stamps>), StorageError> {
        let touched = stamps.touched(self.live);
        let mut restored = Restored::default();
        if touched.gone.contains(Path::new("")) {
            // The tree's own folder was replaced, so no stamp applies.
            return Err(StorageError::StillWritten { path: self.live.path.clone() });
        }
        let mut is_whole = true;
        restored.kept = stamps.entries.len() as u64;
        for gone in &touched.gone {
            restored.kept -= stamps.forget(gone);
        }
        for path in &touched.folders {
            if touched.is_gone(path) {
                continue;
            }
            let renewed = self.folder(path, &stamps, &mut restored, before)?;
            for name in renewed {
                let entry = path.join(as_path(&name));
                is_whole = is_whole && stamps.add(self.live, &entry)?;
            }
            let found = look(self.live, path).map_err(StorageError::at("look at", self.live.path.join(path)))?;
            stamps.entries.insert(path.clone(), EntryStamp::of(&found));
        }
        let is_past = is_whole && stamps.is_past(self.trash)?;
        Ok((restored, is_past.then_some(stamps)))
    }

    /// Restores the entries and attributes of a folder to those of the snapshot's folder. Returns the names of the
    /// cloned entries.
    fn folder(
        &self,
        path: &Path,
        stamps: &Stamps,
        restored: &mut Restored,
        before: BeforeStep<'_>,
    ) -> Result<Vec<CString>, StorageError> {
        let (live, snapshot) = (self.live.below(path)?, self.snapshot.below(path)?);
        let mut present = BTreeSet::new();
        for child in live.children()? {
            let entry = path.join(as_path(&child.name));
            if stamps.entries.contains_key(&entry) {
                present.insert(child.name);
                continue;
            }
            before(ExchangeStep::MoveOut(restored.moved_out))?;
            self.discard(&live, &child.name)?;
            restored.moved_out += 1;
        }
        let mut cloner = Cloner::new(self.clones);
        let mut renewed = Vec::new();
        for child in snapshot.children()?.into_iter().filter(|child| !present.contains(&child.name)) {
            before(ExchangeStep::MoveIn(restored.cloned))?;
            cloner.entry(&snapshot, &live, &child)?;
            restored.cloned += 1;
            renewed.push(child.name);
        }
        before(ExchangeStep::Attributes)?;
        let found = rustix::fs::fstat(&snapshot);
        let attributes = found.and_then(|found| Attributes::of_open(snapshot.as_fd(), &found));
        let attributes = attributes.map_err(StorageError::at("read the attributes of", &snapshot.path))?;
        attributes.replace_on_open(&live).map_err(StorageError::at("give its attributes to", &live.path))?;
        Ok(renewed)
    }

    fn discard(&self, folder: &OpenFolder, name: &CStr) -> Result<(), StorageError> {
        match rustix::fs::renameat_with(folder, name, self.trash, unique_name(), RenameFlags::NOREPLACE) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(StorageError::at("move to the trash", folder.path_of(name))(error)),
        }
    }
}

fn look(tree: &OpenFolder, path: &Path) -> Result<Stat, Errno> {
    if path.as_os_str().as_bytes().is_empty() {
        return rustix::fs::fstat(tree);
    }
    rustix::fs::statat(tree, path, AtFlags::SYMLINK_NOFOLLOW)
}
