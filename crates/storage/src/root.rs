//! The state root: its folders, and the creation, exchange and removal of trees.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{CWD, RenameFlags};
use rustix::io::Errno;

use super::clone::{self, Cloned};
use super::disk::{Allowance, ProjectNumber, Quotas};
use super::exchange::{self, BeforeStep, ExchangeStep, Exchanged};
use super::receive::{self, ArchiveLimits, Received};
use super::remove::{self, Removed};
use super::send;
use super::touched::{Restored, Restoring, Stamps};
use super::tree::{INSTANCES, MARK, SNAPSHOTS, StoreTree, parse_instance};
use super::usage::{self, TreeUsage};
use super::walk::OpenFolder;
use super::{StorageError, disk, trial};
use arenad_folders as folders;
use arenad_model::store::StateLimit;

/// The folder of trees that are being created, and of content that is being exchanged. Entries that exist when the root
/// is opened are left from an earlier run.
const PARTIAL: &str = "partial";
/// The folder of trees that wait for removal.
const TRASH: &str = "trash";

/// The folder that contains the trees. Clones of this value refer to the same folder.
#[derive(Debug, Clone)]
pub struct StateRoot {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    clones: bool,
    /// The quotas that limit the trees of instances, if the file system has them.
    quotas: Option<Quotas>,
    /// Held while a tree is named and while folders without trees are removed, because naming creates a folder that is
    /// empty at first and must not be removed.
    layout: Mutex<()>,
    /// The stamps that show whether instances' trees are unchanged clones.
    stamps: Mutex<HashMap<StoreTree, Stamps>>,
    /// Whether stamps are kept.
    is_stamping: bool,
}

/// A whole clone that has no name yet, for [`StateRoot::exchange`]. It is moved to the trash when dropped.
#[derive(Debug)]
pub struct Fresh {
    partial: UnnamedFolder,
    /// The tree that was cloned.
    of: StoreTree,
    /// The project number of the clone, if the file system has quotas.
    project: Option<ProjectNumber>,
    /// The counts of the clone operation.
    pub cloned: Cloned,
}

/// A folder that has no name yet. It is moved to the trash when dropped, unless it has been named.
#[derive(Debug)]
struct UnnamedFolder {
    inner: Arc<Inner>,
    path: PathBuf,
    is_named: bool,
}

impl StateRoot {
    /// Opens the state root of a state directory. If the state root has its own disk, the disk is mounted first.
    pub fn open_in(state_dir: &Path) -> Result<Self, StorageError> {
        disk::attach(state_dir)?;
        let root = Self::open(disk::stores(state_dir))?;
        match trial::gives_away(root.path()) {
            Some(false) => Err(StorageError::at("give files to other owners in", root.path())(Errno::PERM)),
            Some(true) | None => Ok(root),
        }
    }

    /// Opens a state root, and creates it if it does not exist. The state root is closed to other users, and incomplete
    /// trees from before a crash are moved to the trash. Only one process may have it open at a time.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, StorageError> {
        let path = path.into();
        for folder in [path.clone(), path.join(SNAPSHOTS), path.join(INSTANCES), path.join(PARTIAL), path.join(TRASH)] {
            make_folder(&folder)?;
            folders::close(&folder).map_err(StorageError::at("close to other users", &folder))?;
        }
        let clones = trial::reflinks(&path).unwrap_or(false);
        let quotas = Quotas::of(&path);
        let (layout, stamps) = (Mutex::default(), Mutex::default());
        let inner = Inner { path, clones, quotas, layout, stamps, is_stamping: true };
        let root = Self { inner: Arc::new(inner) };
        root.sweep()?;
        Ok(root)
    }

    /// Opens a state root like [`Self::open`], but every tree is exchanged as a whole, so that no call waits for the
    /// clock of the file system.
    pub fn open_unstamped(path: impl Into<PathBuf>) -> Result<Self, StorageError> {
        let mut root = Self::open(path)?;
        if let Some(inner) = Arc::get_mut(&mut root.inner) {
            inner.is_stamping = false;
        }
        Ok(root)
    }

    /// Returns the path of the state root.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// Returns whether files can share their blocks here, so that a clone takes space only for its metadata.
    pub fn clones(&self) -> bool {
        self.inner.clones
    }

    /// Returns the path of a tree's folder, for mounting it.
    pub fn folder(&self, tree: &StoreTree) -> PathBuf {
        self.inner.path.join(tree.folder())
    }

    /// Returns whether a tree exists and is complete.
    pub fn is_whole(&self, tree: &StoreTree) -> bool {
        self.check(tree).is_ok()
    }

    /// Returns all trees, whole or not, sorted by name.
    pub fn trees(&self) -> Result<Vec<StoreTree>, StorageError> {
        let mut trees = Vec::new();
        for snapshot in names(&self.inner.path.join(SNAPSHOTS))? {
            let stores = names(&self.inner.path.join(SNAPSHOTS).join(&snapshot))?;
            trees.extend(stores.iter().filter_map(|store| StoreTree::snapshot(&snapshot, store).ok()));
        }
        for folder in names(&self.inner.path.join(INSTANCES))? {
            let Some(instance) = parse_instance(&folder) else { continue };
            let path = self.inner.path.join(INSTANCES).join(&folder);
            for name in names(&path)? {
                let Some(generation) = name.strip_prefix('g').and_then(|number| number.parse().ok()) else { continue };
                let stores = names(&path.join(&name))?;
                trees.extend(stores.iter().filter_map(|store| StoreTree::instance(&instance, generation, store).ok()));
            }
        }
        trees.sort();
        Ok(trees)
    }

    /// Creates a tree from the single folder of a tar archive. Blocks until the whole archive has arrived.
    pub fn receive(
        &self,
        archive: impl Read,
        tree: &StoreTree,
        limits: ArchiveLimits,
    ) -> Result<Received, StorageError> {
        self.check_free(tree)?;
        let partial = self.begin()?;
        let received = receive::receive(archive, &OpenFolder::open(&partial.path)?, limits)?;
        self.name(partial, tree)?;
        Ok(received)
    }

    /// Writes a tree as a tar archive of one folder, for [`Self::receive`].
    pub fn send(&self, tree: &StoreTree, to: impl io::Write) -> Result<(), StorageError> {
        self.check(tree)?;
        send::send(&OpenFolder::open(self.folder(tree))?, to)
    }

    /// Creates a tree as a clone of another one, to which no process may write meanwhile.
    pub fn clone_tree(&self, from: &StoreTree, to: &StoreTree) -> Result<Cloned, StorageError> {
        self.clone_limited(from, to, StateLimit::default())
    }

    /// Creates a clone like [`Self::clone_tree`]. If the file system has quotas, the growth of an instance's tree is
    /// limited.
    pub fn clone_limited(&self, from: &StoreTree, to: &StoreTree, limit: StateLimit) -> Result<Cloned, StorageError> {
        self.check_free(to)?;
        let fresh = match to {
            StoreTree::Instance { .. } => self.fresh_limited(from, limit)?,
            // Snapshots never change, so they need no limit.
            StoreTree::Snapshot { .. } => self.make(from, None, limit)?,
        };
        self.name(fresh.partial, to)?;
        self.stamp(to, from.clone());
        Ok(fresh.cloned)
    }

    /// Creates a tree as a copy of another root's tree with the same name.
    pub(crate) fn import(&self, from: &StateRoot, tree: &StoreTree) -> Result<Cloned, StorageError> {
        from.check(tree)?;
        self.check_free(tree)?;
        let partial = self.begin()?;
        let source = OpenFolder::open(from.folder(tree))?;
        let copied = clone::clone_into(&source, &OpenFolder::open(&partial.path)?, self.inner.clones)?;
        self.name(partial, tree)?;
        Ok(copied)
    }

    /// Creates a clone for an instance. If the file system has quotas, the clone's growth is limited.
    pub fn fresh(&self, from: &StoreTree) -> Result<Fresh, StorageError> {
        self.fresh_limited(from, StateLimit::default())
    }

    /// Creates a clone like [`Self::fresh`], with the declared limit of its stores.
    pub fn fresh_limited(&self, from: &StoreTree, limit: StateLimit) -> Result<Fresh, StorageError> {
        self.make(from, self.inner.quotas.as_ref(), limit)
    }

    fn make(&self, from: &StoreTree, quotas: Option<&Quotas>, limit: StateLimit) -> Result<Fresh, StorageError> {
        self.check(from)?;
        let partial = self.begin()?;
        let project = quotas.map(|quotas| quotas.number(&partial.path)).transpose()?;
        let cloned = clone::clone_into(
            &OpenFolder::open(self.folder(from))?,
            &OpenFolder::open(&partial.path)?,
            self.inner.clones,
        )?;
        if let (Some(quotas), Some(project)) = (quotas, project) {
            quotas.limit(project, Allowance::of(&cloned, limit))?;
        }
        Ok(Fresh { partial, of: from.clone(), project, cloned })
    }

    /// Returns whether a tree can be restored to another one by its touched entries.
    pub fn knows_touched(&self, live: &StoreTree, from: &StoreTree) -> bool {
        self.inner.hold_stamps().get(live).is_some_and(|stamps| stamps.of == *from)
    }

    /// Restores the content and attributes of a tree, which may be mounted, to those of another one: only its touched
    /// entries if they are known, otherwise the whole tree. No process may write to it meanwhile. After an error the
    /// tree may not be complete.
    pub fn restore(&self, live: &StoreTree, from: &StoreTree) -> Result<Restored, StorageError> {
        self.restore_stepwise(live, from, &mut |_| Ok(()))
    }

    /// Restores a tree like [`Self::restore`], and calls `before` before each step. If restoring the touched entries
    /// fails, the tree is exchanged.
    pub fn restore_stepwise(
        &self,
        live: &StoreTree,
        from: &StoreTree,
        before: BeforeStep<'_>,
    ) -> Result<Restored, StorageError> {
        self.check(from)?;
        let known = self.inner.hold_stamps().remove(live).filter(|stamps| stamps.of == *from && self.is_whole(live));
        if let Some(stamps) = known {
            match self.restore_touched(live, from, stamps, before) {
                Ok(restored) => return Ok(restored),
                Err(error) => tracing::debug!(%error, "the tree {live} is exchanged as a whole"),
            }
        }
        let fresh = self.fresh(from)?;
        let Cloned { files, folders, others, .. } = fresh.cloned;
        let exchanged = self.exchange_stepwise(live, fresh, before)?;
        Ok(Restored { kept: 0, moved_out: exchanged.moved_out, cloned: files + folders + others })
    }

    fn restore_touched(
        &self,
        live: &StoreTree,
        from: &StoreTree,
        stamps: Stamps,
        before: BeforeStep<'_>,
    ) -> Result<Restored, StorageError> {
        let (folder, snapshot) = (OpenFolder::open(self.folder(live))?, OpenFolder::open(self.folder(from))?);
        let old = self.begin()?;
        let trash = OpenFolder::open(&old.path)?;
        let mark = self.inner.path.join(live.mark());
        before(ExchangeStep::Mark)?;
        File::create(&mark).map_err(StorageError::at("make the mark", &mark))?;
        let restoring = Restoring { live: &folder, snapshot: &snapshot, trash: &trash, clones: self.inner.clones };
        let (restored, stamps) = restoring.run(stamps, before)?;
        before(ExchangeStep::Unmark)?;
        fs::remove_file(&mark).map_err(StorageError::at("remove the mark", &mark))?;
        if let Some(stamps) = stamps {
            self.inner.hold_stamps().insert(live.clone(), stamps);
        }
        Ok(restored)
    }

    /// Stores the stamps of an instance's tree that is a clone of a snapshot's.
    fn stamp(&self, tree: &StoreTree, of: StoreTree) {
        if !self.inner.is_stamping || !matches!((tree, &of), (StoreTree::Instance { .. }, StoreTree::Snapshot { .. })) {
            return;
        }
        let beside = self.inner.path.join(PARTIAL);
        let stamped = OpenFolder::open(self.folder(tree))
            .and_then(|folder| Stamps::take(&folder, of, &OpenFolder::open(beside)?));
        match stamped {
            Ok(Some(stamps)) => drop(self.inner.hold_stamps().insert(tree.clone(), stamps)),
            Ok(None) => {}
            Err(error) => tracing::debug!(%error, "the tree {tree} has no stamps"),
        }
    }

    /// Replaces the content and attributes of a tree, which may be mounted, by those of a fresh clone; the old content
    /// is moved to the trash. No process may write to the tree meanwhile. After an error the tree may not be complete
    /// until an exchange succeeds.
    pub fn exchange(&self, live: &StoreTree, fresh: Fresh) -> Result<Exchanged, StorageError> {
        self.exchange_stepwise(live, fresh, &mut |_| Ok(()))
    }

    /// Exchanges a tree like [`Self::exchange`], and calls `before` before each step. If `before` returns an error, the
    /// exchange stops and leaves the state of a crash at this step.
    pub fn exchange_stepwise(
        &self,
        live: &StoreTree,
        fresh: Fresh,
        before: BeforeStep<'_>,
    ) -> Result<Exchanged, StorageError> {
        let folder = match OpenFolder::open(self.folder(live)) {
            Err(StorageError::File { cause, .. }) if cause.kind() == io::ErrorKind::NotFound => {
                return Err(StorageError::Missing(live.clone()));
            }
            other => other?,
        };
        self.inner.hold_stamps().remove(live);
        let old = self.begin()?;
        let mark = self.inner.path.join(live.mark());
        before(ExchangeStep::Mark)?;
        File::create(&mark).map_err(StorageError::at("make the mark", &mark))?;
        if let (Some(quotas), Some(project)) = (&self.inner.quotas, fresh.project) {
            quotas.renumber(&folder.path, project)?;
        }
        let exchanged = exchange::exchange(
            &folder,
            &OpenFolder::open(&fresh.partial.path)?,
            &OpenFolder::open(&old.path)?,
            before,
        )?;
        before(ExchangeStep::Unmark)?;
        fs::remove_file(&mark).map_err(StorageError::at("remove the mark", &mark))?;
        self.stamp(live, fresh.of);
        Ok(exchanged)
    }

    /// Moves a tree to the trash, which takes one rename, and returns whether the tree existed.
    pub fn discard(&self, tree: &StoreTree) -> Result<bool, StorageError> {
        let folder = self.folder(tree);
        self.inner.hold_stamps().remove(tree);
        let was_there = match self.inner.discard(&folder) {
            Ok(()) => true,
            Err(Errno::NOENT) => false,
            Err(error) => return Err(StorageError::at("move to the trash", folder)(error)),
        };
        // The mark is removed after the tree, because a tree that is not whole must never be without its mark.
        remove_if_there(&self.inner.path.join(tree.mark()))?;
        self.remove_empty_parents(&folder);
        Ok(was_there)
    }

    /// Removes the content of the trash, which may take long.
    pub fn empty_trash(&self) -> Result<Removed, StorageError> {
        remove::empty(&OpenFolder::open(self.inner.path.join(TRASH))?)
    }

    /// Measures the size of a tree.
    pub fn usage(&self, tree: &StoreTree) -> Result<TreeUsage, StorageError> {
        match self.check(tree) {
            Err(error @ StorageError::Missing(_)) => Err(error),
            _ => usage::measure(&OpenFolder::open(self.folder(tree))?),
        }
    }

    /// Checks that a tree, which may be in use, has no folder that is too deep to be cloned.
    pub(crate) fn check_depth(&self, tree: &StoreTree) -> Result<(), StorageError> {
        self.check(tree)?;
        usage::check_depth(&OpenFolder::open(self.folder(tree))?)
    }

    /// Measures the size of the trash.
    pub fn trash_usage(&self) -> Result<TreeUsage, StorageError> {
        usage::measure(&OpenFolder::open(self.inner.path.join(TRASH))?)
    }

    fn check(&self, tree: &StoreTree) -> Result<(), StorageError> {
        if !self.folder(tree).is_dir() {
            return Err(StorageError::Missing(tree.clone()));
        }
        let mark = self.inner.path.join(tree.mark());
        match mark.try_exists() {
            Ok(false) => Ok(()),
            Ok(true) => Err(StorageError::NotWhole(tree.clone())),
            Err(error) => Err(StorageError::at("look at", mark)(error)),
        }
    }

    fn check_free(&self, tree: &StoreTree) -> Result<(), StorageError> {
        let folder = self.folder(tree);
        match folder.try_exists() {
            Ok(false) => Ok(()),
            Ok(true) => Err(StorageError::Exists(tree.clone())),
            Err(error) => Err(StorageError::at("look at", folder)(error)),
        }
    }

    fn begin(&self) -> Result<UnnamedFolder, StorageError> {
        let path = self.inner.path.join(PARTIAL).join(unique_name());
        make_folder(&path)?;
        Ok(UnnamedFolder { inner: self.inner.clone(), path, is_named: false })
    }

    /// Names a tree that is complete. A snapshot, which must survive a restart of the host, is synced to disk first.
    fn name(&self, mut partial: UnnamedFolder, tree: &StoreTree) -> Result<(), StorageError> {
        let is_lasting = matches!(tree, StoreTree::Snapshot { .. });
        if is_lasting {
            let made = OpenFolder::open(&partial.path)?;
            rustix::fs::syncfs(&made).map_err(StorageError::at("bring to disk", &made.path))?;
        }
        let folder = self.folder(tree);
        {
            let _held = self.inner.hold_layout();
            make_folder(&self.inner.path.join(tree.parent()))?;
            match rustix::fs::renameat_with(CWD, &partial.path, CWD, &folder, RenameFlags::NOREPLACE) {
                Ok(()) => partial.is_named = true,
                Err(Errno::EXIST) => return Err(StorageError::Exists(tree.clone())),
                Err(error) => return Err(StorageError::at("name", folder)(error)),
            }
        }
        if is_lasting {
            for above in folder.ancestors().skip(1).take(2) {
                let synced = File::open(above).and_then(|above| above.sync_all());
                synced.map_err(StorageError::at("bring to disk", above))?;
            }
        }
        Ok(())
    }

    /// Moves the remains of a crash to the trash, and removes marks and folders without trees.
    fn sweep(&self) -> Result<(), StorageError> {
        let partial = self.inner.path.join(PARTIAL);
        for entry in entries(&partial)? {
            let path = partial.join(entry);
            self.inner.discard(&path).map_err(StorageError::at("move to the trash", path))?;
        }
        for kind in [SNAPSHOTS, INSTANCES] {
            self.sweep_below(&self.inner.path.join(kind), if kind == SNAPSHOTS { 1 } else { 2 })?;
        }
        Ok(())
    }

    /// Removes marks whose trees no longer exist, and folders without trees.
    fn sweep_below(&self, folder: &Path, levels: usize) -> Result<(), StorageError> {
        for name in entries(folder)? {
            let path = folder.join(&name);
            if levels > 0 {
                self.sweep_below(&path, levels - 1)?;
                remove_if_empty(&path);
            } else if let Some(store) = name.to_str().and_then(|name| name.strip_prefix('.')?.strip_suffix(MARK))
                && !folder.join(store).exists()
            {
                remove_if_there(&path)?;
            }
        }
        Ok(())
    }

    fn remove_empty_parents(&self, tree: &Path) {
        let _held = self.inner.hold_layout();
        for parent in tree.ancestors().skip(1) {
            let is_layout = parent.parent() == Some(&self.inner.path) || !parent.starts_with(&self.inner.path);
            if is_layout || !remove_if_empty(parent) {
                return;
            }
        }
    }
}

impl Inner {
    fn hold_layout(&self) -> MutexGuard<'_, ()> {
        self.layout.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hold_stamps(&self) -> MutexGuard<'_, HashMap<StoreTree, Stamps>> {
        self.stamps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn discard(&self, path: &Path) -> Result<(), Errno> {
        rustix::fs::rename(path, self.path.join(TRASH).join(unique_name()))
    }
}

impl Drop for UnnamedFolder {
    fn drop(&mut self) {
        // If the move fails, the next opening of the root removes the folder.
        if !self.is_named
            && let Err(error) = self.inner.discard(&self.path)
        {
            tracing::debug!(%error, "{} could not be moved to the trash", self.path.display());
        }
    }
}

fn unique_name() -> OsString {
    OsString::from_vec(remove::unique_name().into_bytes())
}

/// Creates a folder that is closed to other users, with its parent folders. An existing folder is left unchanged.
fn make_folder(path: &Path) -> Result<(), StorageError> {
    folders::make_private(path).map_err(StorageError::at("make the folder", path))
}

fn remove_if_there(file: &Path) -> Result<(), StorageError> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(StorageError::at("remove", file)(error)),
        _ => Ok(()),
    }
}

fn remove_if_empty(folder: &Path) -> bool {
    fs::remove_dir(folder).is_ok()
}

fn entries(folder: &Path) -> Result<Vec<OsString>, StorageError> {
    let listed = fs::read_dir(folder).and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect());
    listed.map_err(StorageError::at("read the folder", folder))
}

/// Returns the names in a folder that are valid UTF-8, as all names of trees are. A folder that has just been removed
/// has none.
fn names(folder: &Path) -> Result<Vec<String>, StorageError> {
    match entries(folder) {
        Ok(entries) => Ok(entries.into_iter().filter_map(|name| name.into_string().ok()).collect()),
        Err(StorageError::File { cause, .. }) if cause.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}
