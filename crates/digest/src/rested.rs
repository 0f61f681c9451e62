//! Finds MariaDB data folders that equal those of a snapshot block by block, and servers that have written nothing
//! since they were started on such a folder. The rows of such a server equal the snapshot's, because they are
//! determined by the compared bytes; hashing them would give the same result.
//!
//! ```text
//!   server stopped, trees exchanged ─► every file shares all its blocks with the snapshot's ─► position of the log
//!   server started, site ready      ─► the log ends there, apart from a checkpoint; no row or definition has changed
//! ```
//! In all other cases the rows are read and hashed. A folder is compared while no process has any of its files open,
//! and nothing happens between the comparison and the start of the servers.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use fiemap::{Fiemap, FiemapExtentFlags, FiemapFlags};
use rustix::fs::{AtFlags, FileType, Stat};
use rustix::io::Errno;

use super::tree::{StoreFolder, names, open_file};
use arenad_folders::beneath;
use arenad_model::ids::ServiceName;
use arenad_model::site::{Database, Site};
use arenad_model::store::{Store, StoreKind, is_within};

/// Folders of this host that are mounted into containers, by service and path in the container.
pub type Folders = BTreeMap<(ServiceName, String), PathBuf>;

/// Maximum number of files and folders in a data folder; larger data folders are not compared.
const ENTRIES_MAX: usize = 100_000;

/// First bytes of the log of MariaDB 10.8 and later.
const LOG_FORMAT: &[u8] = b"Phys";

/// Offsets of the two checkpoints in the log. A checkpoint is the position up to which all changes are in the tables'
/// files; the server writes it alternately to the two offsets.
///
/// Source: `storage/innobase/include/log0log.h`, `CHECKPOINT_1` and `CHECKPOINT_2`.
const CHECKPOINTS: [u64; 2] = [0x1000, 0x2000];

/// Maximum number of bytes that a server adds to its log without writing data: a start records one or two checkpoints.
/// Any change to a row takes more.
///
/// Source: `log0log.h`, where `SIZE_OF_FILE_CHECKPOINT` is 16; the preceding record and its end take the rest.
const START_BYTES: u64 = 64;

/// Extensions of the files that contain InnoDB's tables, their definitions and their triggers.
const TABLE_FILES: [&str; 6] = ["frm", "ibd", "opt", "TRG", "TRN", "par"];

/// The stores that equalled the snapshot when their servers were started.
#[derive(Debug, Default)]
pub struct Rested {
    /// The position at which the snapshot's log ends, by store.
    positions: BTreeMap<String, u64>,
}

impl Rested {
    /// Compares the data folders of a site with the snapshot's. All processes that write to them must have stopped.
    pub async fn look(site: &Site, live: &Folders, snapshot: &Folders) -> Self {
        let mut looks = Vec::new();
        for store in &site.stores {
            let StoreKind::Mysql { databases } = &store.kind else { continue };
            let databases: Option<Vec<Database>> =
                databases.iter().map(|key| site.databases.get(key).cloned()).collect();
            let (Some(databases), Some(live), Some(snapshot)) = (databases, place(store, live), place(store, snapshot))
            else {
                continue;
            };
            looks.push((store.name.clone(), databases, live, snapshot));
        }
        if looks.is_empty() {
            return Self::default();
        }
        let looked = arenad_seams::inline::blocking(move || {
            let found = looks.into_iter().filter_map(|(store, databases, live, snapshot)| {
                match position(&live, &snapshot, &databases) {
                    Ok(position) => Some((store, position?)),
                    Err(error) => {
                        tracing::debug!(store, %error, "a data folder is not compared");
                        None
                    }
                }
            });
            found.collect()
        });
        Self { positions: looked.await.unwrap_or_default() }
    }

    /// Returns the names of these stores.
    pub fn stores(&self) -> impl Iterator<Item = &str> {
        self.positions.keys().map(String::as_str)
    }

    /// Returns the position of a store's log if the store equalled the snapshot.
    pub(super) fn position(&self, store: &Store) -> Option<u64> {
        self.positions.get(&store.name).copied()
    }
}

fn place(store: &Store, folders: &Folders) -> Option<StoreFolder> {
    let inside = store.folder();
    let ((_, path), folder) =
        folders.iter().find(|((service, path), _)| *service == store.service && is_within(inside, path))?;
    let below = inside.strip_prefix(path.as_str()).unwrap_or_default().trim_start_matches('/');
    Some(StoreFolder { root: folder.clone(), below: below.into() })
}

/// Returns the position at which the log of a data folder ends if the folder equals the snapshot's. Returns `None` if
/// it differs, or has tables whose changes are not in the log.
fn position(live: &StoreFolder, snapshot: &StoreFolder, databases: &[Database]) -> Result<Option<u64>, Errno> {
    let (live, snapshot) = (live.open()?, snapshot.open()?);
    for database in databases {
        if !has_innodb_alone(&live, &database.database)? {
            return Ok(None);
        }
    }
    if !is_same(&live, &snapshot)? {
        return Ok(None);
    }
    log_position(&live)
}

/// Returns whether all tables of a database are InnoDB tables, according to the names of their files.
fn has_innodb_alone(data: &OwnedFd, database: &str) -> Result<bool, Errno> {
    // File names encode all other characters.
    if database.is_empty() || !database.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return Ok(false);
    }
    let folder = beneath::open_folder(data, Path::new(database))?;
    let is_known = |name: &Vec<u8>| {
        let end = Path::new(OsStr::from_bytes(name)).extension().and_then(OsStr::to_str);
        end.is_some_and(|end| TABLE_FILES.contains(&end))
    };
    Ok(names(&folder)?.iter().all(is_known))
}

/// Returns whether two folders contain the same files with the same attributes, and each file shares all its blocks
/// with its counterpart.
fn is_same(one: &OwnedFd, other: &OwnedFd) -> Result<bool, Errno> {
    let mut waiting = vec![PathBuf::new()];
    let mut entries = 0;
    while let Some(path) = waiting.pop() {
        let (one, other) = (beneath::open_folder(one, &path)?, beneath::open_folder(other, &path)?);
        let found = names(&one)?;
        entries += found.len();
        if entries > ENTRIES_MAX || found != names(&other)? {
            return Ok(false);
        }
        for name in &found {
            let name = OsStr::from_bytes(name);
            let look = |folder: &OwnedFd| rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
            let (mine, theirs) = (look(&one)?, look(&other)?);
            if seen(&mine) != seen(&theirs) {
                return Ok(false);
            }
            match FileType::from_raw_mode(mine.st_mode) {
                FileType::Directory => waiting.push(path.join(name)),
                FileType::RegularFile => {
                    let (mine, theirs) = (open_file(one.as_fd(), name)?, open_file(other.as_fd(), name)?);
                    if !shares_blocks(&mine, &theirs)? {
                        return Ok(false);
                    }
                }
                _ => return Ok(false),
            }
        }
    }
    Ok(true)
}

/// Returns the attributes that must be equal in addition to the blocks. The size of a folder depends on its history, so
/// it is ignored.
fn seen(stat: &Stat) -> (u32, u32, u32, i64) {
    let is_folder = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    (stat.st_mode, stat.st_uid, stat.st_gid, if is_folder { 0 } else { stat.st_size })
}

/// Returns whether two files of the same length occupy the same blocks, and therefore hold the same bytes.
fn shares_blocks(one: &File, other: &File) -> Result<bool, Errno> {
    let (one, other) = (blocks(one)?, blocks(other)?);
    Ok(one.is_some() && one == other)
}

/// A run of blocks: its offset in the file, its offset on the disk and its length, in bytes.
type FileExtent = (u64, u64, u64);

/// Returns the blocks that hold a file's content, after pending writes have reached the disk. Returns `None` if the
/// file system does not report them exactly.
fn blocks(file: &File) -> Result<Option<Vec<FileExtent>>, Errno> {
    let inexact = FiemapExtentFlags::UNKNOWN
        | FiemapExtentFlags::DELALLOC
        | FiemapExtentFlags::ENCODED
        | FiemapExtentFlags::DATA_ENCRYPTED
        | FiemapExtentFlags::NOT_ALIGNED
        | FiemapExtentFlags::DATA_INLINE
        | FiemapExtentFlags::DATA_TAIL;
    let mut runs: Vec<FileExtent> = Vec::new();
    for extent in Fiemap::with_flags(file, FiemapFlags::SYNC) {
        let extent = extent.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        if extent.fe_flags.intersects(inexact) {
            return Ok(None);
        }
        // An unwritten extent reads as zeros, like the hole that a clone has in its place.
        if extent.fe_flags.contains(FiemapExtentFlags::UNWRITTEN) {
            continue;
        }
        // The file system reports a shared part of a run separately, so adjacent runs are joined.
        match runs.last_mut() {
            Some((logical, physical, length))
                if *logical + *length == extent.fe_logical && *physical + *length == extent.fe_physical =>
            {
                *length += extent.fe_length;
            }
            _ => runs.push((extent.fe_logical, extent.fe_physical, extent.fe_length)),
        }
    }
    Ok(Some(runs))
}

/// Returns the position up to which all changes are in the tables' files. This is the end of the log if the server was
/// shut down cleanly. Returns `None` if the log has another format.
fn log_position(data: &OwnedFd) -> Result<Option<u64>, Errno> {
    let log = open_file(data.as_fd(), OsStr::new("ib_logfile0"))?;
    let read = |at: u64| {
        let mut bytes = [0; 8];
        log.read_exact_at(&mut bytes, at).map(|()| bytes)
    };
    let read = |at: u64| read(at).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO));
    if !read(0)?.starts_with(LOG_FORMAT) {
        return Ok(None);
    }
    let [first, second] = CHECKPOINTS;
    Ok(Some(u64::from_be_bytes(read(first)?).max(u64::from_be_bytes(read(second)?))))
}

/// Returns whether a mark of MariaDB shows that nothing was written since its server was started on a log that ended at
/// `position`.
pub(super) fn is_unwritten(mark: &str, position: u64) -> bool {
    let mut fields = mark.split(' ').map(str::parse::<u64>);
    // The fields: time of the start, end of the log, rows written (including temporary ones), updated and deleted,
    // definitions created, and those of them that are permanent.
    let mut next = || fields.next().and_then(Result::ok);
    let (Some(_), Some(end), Some(_), Some(0), Some(0), Some(_), Some(0), None) =
        (next(), next(), next(), next(), next(), next(), next(), next())
    else {
        return false;
    };
    end.checked_sub(position).is_some_and(|written| written <= START_BYTES)
}

/// Returns the definitions in a digest that the server keeps in its own tables, whose changes are not in InnoDB's log.
pub(super) fn of_own_tables(objects: &BTreeMap<String, String>, prefix: &str) -> BTreeSet<(String, String)> {
    let own = ["function ", "procedure ", "package ", "package body ", "event "];
    let found = objects.iter().filter_map(|(name, hash)| Some((name.strip_prefix(prefix)?, hash)));
    found
        .filter(|(name, _)| own.iter().any(|kind| name.starts_with(kind)))
        .map(|(name, hash)| (name.to_owned(), hash.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_server_that_wrote_nothing_is_unwritten() {
        assert!(is_unwritten("1763971200 11873385 1 0 0 2 0", 11_873_348));
        assert!(is_unwritten("1763971200 11873401 3 0 0 0 0", 11_873_348), "a checkpoint more");
        for mark in [
            "1763971200 11885122 4 0 0 2 0",
            "1763971200 11873385 1 1 0 2 0",
            "1763971200 11873385 1 0 1 2 0",
            "1763971200 11873385 1 0 0 2 1",
            "1763971200 11873347 1 0 0 2 0",
            "1763971200 11873385 1 0 0 2",
            "1763971200 11873385 1 0 0 2 0 0",
            "1763971200 x 1 0 0 2 0",
            "",
        ] {
            assert!(!is_unwritten(mark, 11_873_348), "{mark}");
        }
    }

    #[test]
    fn a_log_of_another_format_has_no_position() {
        let folder = tempfile::tempdir().expect("a folder");
        let open = || beneath::open_folder(&File::open(folder.path()).expect("a folder").into(), Path::new("."));
        let data = open().expect("the folder");
        let log = folder.path().join("ib_logfile0");
        assert_eq!(log_position(&data), Err(Errno::NOENT));
        let mut bytes = vec![0; 0x3000];
        std::fs::write(&log, &bytes).expect("a file");
        assert_eq!(log_position(&data), Ok(None));
        bytes[..4].copy_from_slice(b"Phys");
        bytes[0x1000..0x1008].copy_from_slice(&11_873_250_u64.to_be_bytes());
        bytes[0x2000..0x2008].copy_from_slice(&11_873_348_u64.to_be_bytes());
        std::fs::write(&log, &bytes).expect("a file");
        assert_eq!(log_position(&data), Ok(Some(11_873_348)));
        std::fs::write(&log, b"Phys").expect("a file");
        assert!(log_position(&data).is_err(), "it is cut off");
    }

    #[test]
    fn tables_of_other_engines_are_not_told_of() {
        let folder = tempfile::tempdir().expect("a folder");
        let data: OwnedFd = File::open(folder.path()).expect("a folder").into();
        std::fs::create_dir(folder.path().join("shop")).expect("a folder");
        for name in ["db.opt", "a.frm", "a.ibd", "b.TRG"] {
            std::fs::write(folder.path().join("shop").join(name), "").expect("a file");
        }
        assert_eq!(has_innodb_alone(&data, "shop"), Ok(true));
        assert_eq!(has_innodb_alone(&data, "../shop"), Ok(false));
        std::fs::write(folder.path().join("shop/c.MAD"), "").expect("a file");
        assert_eq!(has_innodb_alone(&data, "shop"), Ok(false));
    }
}
