//! Data folders of MariaDB that are, block for block, those of a snapshot, and servers that have written nothing since they
//! were started on one. Such a server's rows are the snapshot's: they follow from bytes that were compared, and hashing them
//! would show nothing else.
//!
//! ```text
//!   server stopped, trees exchanged ─► every file shares all its blocks with the snapshot's ─► position of the log
//!   server started, site ready      ─► the log ends there, but for a checkpoint; no row was changed; nothing was defined
//! ```
//! What is not so costs a full comparison. A folder is looked at while no process has a file of it open, and after it nothing
//! but the start of the servers is done.

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

use super::tree::{Place, names, open_file};
use arenad_folders::beneath;
use arenad_model::ids::ServiceName;
use arenad_model::site::{Database, Site};
use arenad_model::store::{Store, StoreKind, is_within};

/// The folders of this host that are mounted into containers, by service and path there.
pub type Folders = BTreeMap<(ServiceName, String), PathBuf>;

/// The most files and folders that a data folder may have for this.
const ENTRIES_MAX: usize = 100_000;

/// How the log of MariaDB 10.8 and later begins.
const LOG_FORMAT: &[u8] = b"Phys";

/// Where it says up to which position all that it tells of is in the tables' files. It says so in turn in one place and in the
/// other. (`storage/innobase/include/log0log.h`: `CHECKPOINT_1`, `CHECKPOINT_2`)
const CHECKPOINTS: [u64; 2] = [0x1000, 0x2000];

/// How many bytes a server that writes nothing adds to its log: a start notes one checkpoint or two. Whatever changes a row
/// takes more (`log0log.h`: `SIZE_OF_FILE_CHECKPOINT` is 16; the record before it and its end take the rest).
const START_BYTES: u64 = 64;

/// How the names of files end that InnoDB's tables, their definitions and their triggers are in.
const TABLE_FILES: [&str; 6] = ["frm", "ibd", "opt", "TRG", "TRN", "par"];

/// The stores that were the snapshot's when their servers were started.
#[derive(Debug, Default)]
pub struct Rested {
    /// The position at which the snapshot's log ends, by store.
    positions: BTreeMap<String, u64>,
}

impl Rested {
    /// Compares the data folders of a site whose writers are at rest with the snapshot's.
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

    /// The names of those stores.
    pub fn stores(&self) -> impl Iterator<Item = &str> {
        self.positions.keys().map(String::as_str)
    }

    /// The position of a store's log, if the store was the snapshot's.
    pub(super) fn position(&self, store: &Store) -> Option<u64> {
        self.positions.get(&store.name).copied()
    }
}

fn place(store: &Store, folders: &Folders) -> Option<Place> {
    let inside = store.folder();
    let ((_, path), folder) =
        folders.iter().find(|((service, path), _)| *service == store.service && is_within(inside, path))?;
    let below = inside.strip_prefix(path.as_str()).unwrap_or_default().trim_start_matches('/');
    Some(Place { root: folder.clone(), below: below.into() })
}

/// The position at which the log of a data folder ends that is the snapshot's. None: it is not, or has tables of which the log
/// does not tell.
fn position(live: &Place, snapshot: &Place, databases: &[Database]) -> Result<Option<u64>, Errno> {
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

/// Whether all tables of a database are InnoDB's, by the files that they are in.
fn has_innodb_alone(data: &OwnedFd, database: &str) -> Result<bool, Errno> {
    // Other names are written otherwise in files' names.
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

/// Whether two folders have the same files with the same attributes, and each shares all its blocks with its counterpart.
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

/// What of a file is to be the same besides its blocks. How long a folder is depends on its past.
fn seen(stat: &Stat) -> (u32, u32, u32, i64) {
    let is_folder = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    (stat.st_mode, stat.st_uid, stat.st_gid, if is_folder { 0 } else { stat.st_size })
}

/// Whether two files of one length lie in the same blocks, so that they hold the same bytes.
fn shares_blocks(one: &File, other: &File) -> Result<bool, Errno> {
    let (one, other) = (blocks(one)?, blocks(other)?);
    Ok(one.is_some() && one == other)
}

/// A run of blocks: where it is in the file, where on the disk, and how long, in bytes.
type Run = (u64, u64, u64);

/// Where a file's content lies, once it has been written there. None: the file system does not say it exactly.
fn blocks(file: &File) -> Result<Option<Vec<Run>>, Errno> {
    let inexact = FiemapExtentFlags::UNKNOWN
        | FiemapExtentFlags::DELALLOC
        | FiemapExtentFlags::ENCODED
        | FiemapExtentFlags::DATA_ENCRYPTED
        | FiemapExtentFlags::NOT_ALIGNED
        | FiemapExtentFlags::DATA_INLINE
        | FiemapExtentFlags::DATA_TAIL;
    let mut runs: Vec<Run> = Vec::new();
    for extent in Fiemap::with_flags(file, FiemapFlags::SYNC) {
        let extent = extent.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        if extent.fe_flags.intersects(inexact) {
            return Ok(None);
        }
        // It reads as zeros, as the hole does that a clone has in its place.
        if extent.fe_flags.contains(FiemapExtentFlags::UNWRITTEN) {
            continue;
        }
        // Blocks of which more files have a part are told apart from their neighbours.
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

/// The position up to which everything is in the tables' files, as the log says: where it ends, if its server was shut down
/// cleanly. None: it is of another format.
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

/// Whether a mark of MariaDB says that nothing was written since its server was started on a log that ended at a position.
pub(super) fn is_unwritten(mark: &str, position: u64) -> bool {
    let mut fields = mark.split(' ').map(str::parse::<u64>);
    // When it was started, where the log ends, rows written (temporary ones too), updated, deleted, what was defined, and of
    // that what stays.
    let mut next = || fields.next().and_then(Result::ok);
    let (Some(_), Some(end), Some(_), Some(0), Some(0), Some(_), Some(0), None) =
        (next(), next(), next(), next(), next(), next(), next(), next())
    else {
        return false;
    };
    end.checked_sub(position).is_some_and(|written| written <= START_BYTES)
}

/// Of the definitions in a digest those that the server keeps in tables of its own, of which InnoDB's log does not tell.
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
