//! The state root's own disk, for hosts whose file system cannot clone: a file that contains an XFS, mounted at the
//! state root.
//!
//! ```text
//!   STATE/disk.json     the record, which names the file; opening the state root mounts it if it is not mounted
//!   STATE/stores.xfs    the file, unless another path was requested; sparse, so it takes the size of its content
//!   STATE/stores/       the mount point, which is the state root
//! ```
//! Creating a disk copies the snapshots of the existing state root to it. Until the record is written, nothing has
//! changed.

mod mount;
mod quota;

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

pub(super) use self::quota::{Allowance, ProjectNumber, Quotas};
use super::{StateRoot, StorageError, StoreTree, trial};
use arenad_folders as folders;
use arenad_model::instance::InstanceId;

/// The default size of a disk: enough for every site of the largest environment that is built from packages.
pub(crate) const USUAL_BYTES: u64 = 20 << 30;

/// The minimum size; `mkfs.xfs` itself refuses sizes below 300 MiB.
pub(crate) const LEAST_BYTES: u64 = 512 << 20;

/// The minimum size of a disk that is created without a request: it holds the stores of the smallest environments that
/// are built from packages, and one generation's changes.
const USEFUL_BYTES: u64 = 2 << 30;

/// The space that the disk leaves free on the file system beneath, for the engine and the host.
const RESERVE_BYTES: u64 = 512 << 20;

/// The name of the state root in the state directory.
const STORES: &str = "stores";

/// The record of the disk, which outlives the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnDisk {
    /// The file that contains the file system.
    pub file: PathBuf,
    /// The size of the file system, in bytes. The sparse file takes only the size of its content.
    pub size_bytes: u64,
}

/// Whether there is a disk, and whether it is mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiskStatus {
    /// No disk was created.
    None,
    /// No disk was created, and another file system is mounted at the state root.
    Foreign,
    /// The disk is mounted.
    Mounted(OwnDisk),
    /// The disk exists and is not mounted.
    Unmounted(OwnDisk),
}

/// The reason why an operation on the disk failed.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// Only root may mount file systems.
    #[error("mount {0}: only root may do that")]
    NotRoot(PathBuf),
    /// The holder of the state directory's lock may be using the state root.
    #[error("work on {0}: a daemon runs on it")]
    DaemonRuns(PathBuf),
    /// Something exists at the path that must not be lost.
    #[error("make the disk {path}: {what}")]
    InTheWay {
        /// The path that the disk was to have.
        path: PathBuf,
        /// A description of the existing object.
        what: &'static str,
        /// The remedy, for the user.
        hint: &'static str,
    },
    /// Instances use the state root.
    #[error("make the disk {path}: {} of {instance} {} in the state root", count(*trees), if *trees == 1 { "is" } else { "are" })]
    InUse {
        /// The path that the disk was to have.
        path: PathBuf,
        /// The number of trees that belong to instances.
        trees: usize,
        /// The name of one of these instances.
        instance: InstanceId,
    },
    /// The requested size is below the minimum.
    #[error("make a disk of {0} bytes: the least is {LEAST_BYTES}")]
    TooSmall(u64),
    /// The requested size exceeds the free space beneath.
    #[error("make a disk of {wanted} bytes at {path}: {free} are free there, and {RESERVE_BYTES} have to stay so")]
    NoRoom {
        /// The path that the disk was to have.
        path: PathBuf,
        /// The requested size, in bytes.
        wanted: u64,
        /// The free space, in bytes.
        free: u64,
    },
    /// A required program is not installed.
    #[error("run {program}: it is not installed")]
    NoProgram {
        /// The name of the program.
        program: &'static str,
        /// Instructions for installing it.
        cure: &'static str,
    },
    /// A program exited with an error.
    #[error("run {program}: {said}")]
    Program {
        /// The name of the program.
        program: &'static str,
        /// The program's error output.
        said: String,
    },
    /// Something else is mounted at the state root.
    #[error("mount {file} at {at}: something else is mounted there")]
    Occupied {
        /// The file of the disk.
        file: PathBuf,
        /// The path of the state root.
        at: PathBuf,
    },
    /// A file could not be read or written.
    #[error("{doing} {path}")]
    File {
        /// The action: `read`, `make`, …
        doing: &'static str,
        /// The path of the file.
        path: PathBuf,
        /// The error that the system reported.
        #[source]
        cause: io::Error,
    },
    /// The trees could not be copied to the disk.
    #[error("carry the snapshots over")]
    Trees(#[source] Box<StorageError>),
}

impl DiskError {
    /// Returns a hint for the next step, if there is one.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::NotRoot(_) => {
                "run it as root, or put the state directory on XFS or btrfs; without either, copies of \
                                 sites' state are full copies"
            }
            Self::DaemonRuns(_) => "`arenad down` ends a daemon that `arenad up` started; snapshots stay",
            Self::InTheWay { hint, .. } => hint,
            Self::InUse { .. } => "take the sites down first with `arenad down`; snapshots stay",
            Self::TooSmall(_) => "give a larger --size",
            Self::NoRoom { .. } => {
                "a disk that cannot grow to its size breaks the databases on it: give a smaller --size, \
                                    or a --path where there is more room"
            }
            Self::NoProgram { cure, .. } => cure,
            Self::Occupied { .. } => "unmount it first, or remove the record, disk.json, if the disk is not wanted",
            Self::Trees(cause) => return cause.hint(),
            Self::Program { .. } | Self::File { .. } => return None,
        })
    }

    fn file<'a>(doing: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> Self + 'a {
        move |cause| Self::File { doing, path: path.to_owned(), cause }
    }
}

fn count(trees: usize) -> String {
    if trees == 1 { "a tree".to_owned() } else { format!("{trees} trees") }
}

/// Returns the path of a state directory's state root.
pub fn stores(state_dir: &Path) -> PathBuf {
    state_dir.join(STORES)
}

/// Determines whether there is a disk and whether it is mounted.
pub fn standing(state_dir: &Path) -> Result<DiskStatus, DiskError> {
    let mounted = mount::source(&stores(state_dir))?;
    Ok(match (read_record(state_dir)?, mounted) {
        (None, None) => DiskStatus::None,
        (None, Some(_)) => DiskStatus::Foreign,
        (Some(disk), None) => DiskStatus::Unmounted(disk),
        (Some(disk), Some(source)) if mount::is_file(&source, &disk.file) => DiskStatus::Mounted(disk),
        (Some(disk), Some(_)) => return Err(DiskError::Occupied { file: disk.file, at: stores(state_dir) }),
    })
}

/// Mounts the disk of a state directory, if there is one and it is not mounted.
pub(crate) fn attach(state_dir: &Path) -> Result<DiskStatus, DiskError> {
    let disk = match standing(state_dir)? {
        DiskStatus::Unmounted(disk) => disk,
        DiskStatus::Mounted(disk) => {
            mount::restrict(&stores(state_dir))?;
            return Ok(DiskStatus::Mounted(disk));
        }
        standing @ (DiskStatus::None | DiskStatus::Foreign) => return Ok(standing),
    };
    require_root(&disk.file)?;
    let at = stores(state_dir);
    make_folder(&at)?;
    mount::mount(&disk.file, &at)?;
    // This folder remains if the creation of the disk was interrupted before its end.
    remove_folder(&before(state_dir))?;
    Ok(DiskStatus::Mounted(disk))
}

/// Creates a disk for a state directory, mounts it, and copies the snapshots of the state root to it. Without `size`,
/// the size is the default or half of the free space, whichever is less.
pub fn init(state_dir: &Path, file: Option<PathBuf>, size: Option<u64>) -> Result<OwnDisk, DiskError> {
    let file = file.unwrap_or_else(|| state_dir.join("stores.xfs"));
    require_root(&file)?;
    make_folder(state_dir)?;
    let _lock = lock(state_dir)?;
    check_free(state_dir, &file)?;
    let snapshots = snapshots(state_dir, &file)?;
    let free = free_bytes(above(&file))?;
    let disk = OwnDisk { size_bytes: size.unwrap_or(USUAL_BYTES.min(free / 2)), file };
    check_size(&disk, free)?;
    let partial = PartialFile(beside(&disk.file));
    make_file(&partial.0, disk.size_bytes)?;
    mount::make_file_system(&partial.0)?;
    if !snapshots.is_empty() {
        carry_over(state_dir, &partial.0, &snapshots)?;
    }
    fs::rename(&partial.0, &disk.file).map_err(DiskError::file("name", &disk.file))?;
    sync(above(&disk.file))?;
    write_record(state_dir, &disk)?;
    let at = stores(state_dir);
    match fs::rename(&at, before(state_dir)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(DiskError::file("rename", &at)(error)),
        _ => {}
    }
    attach(state_dir)?;
    Ok(disk)
}

/// Unmounts the disk of a state directory if it is mounted, and returns whether it was. The next opening of the state
/// root mounts it again.
///
/// Errors: returned if the disk is in use.
pub fn detach(state_dir: &Path) -> Result<bool, DiskError> {
    match standing(state_dir)? {
        DiskStatus::Mounted(_) => mount::unmount(&stores(state_dir)).map(|()| true),
        DiskStatus::None | DiskStatus::Foreign | DiskStatus::Unmounted(_) => Ok(false),
    }
}

/// Returns the space of files that were removed from the disk to the file system beneath. Returns whether there is such
/// a disk.
pub fn trim(state_dir: &Path) -> Result<bool, DiskError> {
    match standing(state_dir)? {
        DiskStatus::Mounted(_) => mount::trim(&stores(state_dir)).map(|()| true),
        DiskStatus::None | DiskStatus::Foreign | DiskStatus::Unmounted(_) => Ok(false),
    }
}

/// Returns whether quotas limit a site's writes in a folder, that is, whether its file system is mounted with project
/// quotas.
pub fn limits_stores(folder: &Path) -> bool {
    Quotas::of(folder).is_some()
}

/// Returns the default size for a disk, or `None` if too little space is free for a useful one.
pub fn usual_size(state_dir: &Path) -> Option<u64> {
    let there = state_dir.ancestors().find(|folder| folder.is_dir())?;
    let size = USUAL_BYTES.min(free_bytes(there).ok()? / 2);
    (size >= USEFUL_BYTES).then_some(size)
}

/// Returns a program that creating a disk requires and that is not installed, with instructions for installing it.
pub fn missing_program() -> Option<(&'static str, &'static str)> {
    mount::missing_program()
}

/// Unmounts the disk and removes it with its content. Returns whether there was one.
pub fn remove(state_dir: &Path) -> Result<bool, DiskError> {
    let disk = match standing(state_dir)? {
        DiskStatus::None | DiskStatus::Foreign => return Ok(false),
        DiskStatus::Mounted(disk) => {
            mount::unmount(&stores(state_dir))?;
            disk
        }
        DiskStatus::Unmounted(disk) => disk,
    };
    remove_file(&disk.file)?;
    remove_file(&record(state_dir))?;
    Ok(true)
}

/// Returns the space that a disk occupies on the file system beneath, in bytes.
pub fn taken_bytes(disk: &OwnDisk) -> Option<u64> {
    /// The unit of `st_blocks` (`stat(2)`).
    const STAT_BLOCK: u64 = 512;
    Some(fs::metadata(&disk.file).ok()?.blocks() * STAT_BLOCK)
}

/// A file that is removed when dropped, unless it has been renamed.
struct PartialFile(PathBuf);

impl Drop for PartialFile {
    fn drop(&mut self) {
        // The file is normally gone by now; if its removal fails, the next attempt replaces it.
        let _ = fs::remove_file(&self.0);
    }
}

fn beside(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".partial");
    name.into()
}

/// Returns the path of the state root from before there was a disk; it is removed after the disk is mounted.
fn before(state_dir: &Path) -> PathBuf {
    state_dir.join("stores.before")
}

fn above(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new("/"))
}

fn free_bytes(folder: &Path) -> Result<u64, DiskError> {
    let room = trial::room(folder).map_err(|error| DiskError::file("look at", folder)(error.into()))?;
    Ok(room.free_bytes)
}

fn require_root(path: &Path) -> Result<(), DiskError> {
    match rustix::process::geteuid().is_root() {
        true => Ok(()),
        false => Err(DiskError::NotRoot(path.to_owned())),
    }
}

/// Takes the lock that a running daemon holds.
fn lock(state_dir: &Path) -> Result<File, DiskError> {
    let path = state_dir.join("lock");
    let file = File::options().create(true).truncate(false).write(true).open(&path);
    let file = file.map_err(DiskError::file("lock", &path))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(_) => Err(DiskError::DaemonRuns(state_dir.to_owned())),
    }
}

fn check_free(state_dir: &Path, file: &Path) -> Result<(), DiskError> {
    let in_the_way = |what, hint| Err(DiskError::InTheWay { path: file.to_owned(), what, hint });
    match standing(state_dir)? {
        DiskStatus::None if trial::reflinks(state_dir) == Some(true) => {
            return in_the_way("files can share their blocks there without one", "nothing needs doing");
        }
        DiskStatus::None => {}
        DiskStatus::Foreign => {
            return in_the_way("the state root is a file system of its own already", "nothing needs doing");
        }
        DiskStatus::Mounted(_) | DiskStatus::Unmounted(_) => {
            return in_the_way("there is one already", "`arenad storage status` says where, and how full it is");
        }
    }
    match file.try_exists() {
        Ok(false) => Ok(()),
        Ok(true) => in_the_way("there is a file of that name", "name another one with --path, or move it away"),
        Err(error) => Err(DiskError::file("look at", file)(error)),
    }
}

/// Returns the snapshots to copy to the disk.
///
/// Errors: returned if there are instances.
fn snapshots(state_dir: &Path, file: &Path) -> Result<Vec<StoreTree>, DiskError> {
    let at = stores(state_dir);
    if !at.exists() {
        return Ok(Vec::new());
    }
    let trees =
        StateRoot::open(&at).and_then(|root| root.trees()).map_err(|error| DiskError::Trees(Box::new(error)))?;
    let (instances, snapshots): (Vec<StoreTree>, Vec<StoreTree>) =
        trees.into_iter().partition(|tree| matches!(tree, StoreTree::Instance { .. }));
    match instances.first() {
        Some(StoreTree::Instance { instance, .. }) => {
            let (trees, instance) = (instances.len(), instance.clone());
            Err(DiskError::InUse { path: file.to_owned(), trees, instance })
        }
        _ => Ok(snapshots),
    }
}

fn check_size(disk: &OwnDisk, free: u64) -> Result<(), DiskError> {
    let wanted = disk.size_bytes;
    if wanted < LEAST_BYTES {
        return Err(DiskError::TooSmall(wanted));
    }
    if wanted.saturating_add(RESERVE_BYTES) > free {
        return Err(DiskError::NoRoom { path: disk.file.clone(), wanted, free });
    }
    Ok(())
}

/// Creates a sparse file of the given length, closed to other users. Replaces the file of an earlier attempt.
fn make_file(path: &Path, size: u64) -> Result<(), DiskError> {
    remove_file(path)?;
    let file = File::options().create_new(true).write(true).mode(0o600).open(path);
    file.and_then(|file| file.set_len(size)).map_err(DiskError::file("make", path))
}

/// Copies trees to the disk, which is mounted beside the state root meanwhile.
fn carry_over(state_dir: &Path, file: &Path, trees: &[StoreTree]) -> Result<(), DiskError> {
    let beside = state_dir.join("stores.new");
    make_folder(&beside)?;
    mount::mount(file, &beside)?;
    let copied = || {
        let (from, to) = (StateRoot::open(stores(state_dir))?, StateRoot::open(&beside)?);
        trees.iter().try_for_each(|tree| to.import(&from, tree).map(drop))
    };
    let copied = copied().map_err(|error| DiskError::Trees(Box::new(error)));
    mount::unmount(&beside)?;
    fs::remove_dir(&beside).map_err(DiskError::file("remove", &beside))?;
    copied
}

fn record(state_dir: &Path) -> PathBuf {
    state_dir.join("disk.json")
}

fn read_record(state_dir: &Path) -> Result<Option<OwnDisk>, DiskError> {
    let path = record(state_dir);
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(DiskError::file("read", &path)(error)),
    };
    serde_json::from_slice(&text).map(Some).map_err(|error| DiskError::file("read", &path)(error.into()))
}

/// Writes the record atomically, so that even a power failure leaves either no record or a complete one.
fn write_record(state_dir: &Path, disk: &OwnDisk) -> Result<(), DiskError> {
    let path = record(state_dir);
    let partial = beside(&path);
    let written = || {
        fs::write(&partial, serde_json::to_vec_pretty(disk)?)?;
        File::open(&partial)?.sync_all()?;
        fs::rename(&partial, &path)
    };
    written().map_err(DiskError::file("write", &path))?;
    sync(state_dir)
}

fn sync(folder: &Path) -> Result<(), DiskError> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(DiskError::file("bring to disk", folder))
}

fn make_folder(path: &Path) -> Result<(), DiskError> {
    folders::make_private(path).map_err(DiskError::file("make the folder", path))
}

fn remove_file(path: &Path) -> Result<(), DiskError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(DiskError::file("remove", path)(error)),
        _ => Ok(()),
    }
}

fn remove_folder(path: &Path) -> Result<(), DiskError> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(DiskError::file("remove", path)(error)),
        _ => Ok(()),
    }
}
