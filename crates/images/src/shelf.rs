//! Stores archives and their records.
//!
//! ```text
//!   STATE/archives/NAME             complete: its content has been read and compared
//!   STATE/archives/NAME.part        a partial download; NAME.part.json names its origin
//!   STATE/archives/NAME.json        the record: digest, images, verified copies
//!   STATE/archives/NAME.lock        locked while a process works on the archive
//! ```
//! A data file that is used unchanged is in its target folder, as is its `.part` file, so that it need not be copied;
//! its record and lock are here. The record remains when the archive is removed: a later copy must have the same
//! content.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::docker_archive::ArchivedImage;
use super::{ImagesError, file};
use arenad_folders as folders;
use arenad_model::archive::{DataSource, Placement, SourceArchive};

/// The folder of archives and their records.
#[derive(Debug, Clone)]
pub struct Shelf {
    folder: PathBuf,
}

/// The paths of one archive.
#[derive(Debug, Clone)]
pub struct ArchivePaths {
    /// Name of the archive.
    pub name: String,
    /// Path of the complete archive.
    pub file: PathBuf,
    record: PathBuf,
    lock: PathBuf,
}

/// The record of an archive. It is stored as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShelfRecord {
    /// SHA-256 (hex) of the first copy, or as declared in the definition.
    pub sha256: String,
    /// Size of the archive, in bytes.
    pub size_bytes: u64,
    /// Size of the uncompressed content, in bytes.
    pub expanded_bytes: u64,
    /// Images that the archive contains.
    pub images: Vec<ArchivedImage>,
    /// Origin of the archive: a mirror's URL or a path.
    pub source: String,
    /// Stamp of the copy that was read last. The copy is not read again as long as its stamp is the same.
    pub seen: Option<FileStamp>,
    /// ID under which the engine has had the image since it was proven.
    #[serde(default)]
    pub engine_id: Option<String>,
    /// Folders that the archive was unpacked to.
    #[serde(default)]
    pub unpacked: Vec<Unpacked>,
}

/// A folder that an archive was unpacked to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unpacked {
    /// Path of the folder.
    pub folder: PathBuf,
    /// Inode number, which a rename does not change.
    pub inode: u64,
}

impl Unpacked {
    /// Returns whether the folder exists and is the one that was unpacked.
    pub(crate) fn is_in_place(&self) -> bool {
        fs::metadata(&self.folder).is_ok_and(|found| found.is_dir() && found.ino() == self.inode)
    }
}

/// The attributes that change when a file is changed or replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileStamp {
    device: u64,
    inode: u64,
    size_bytes: u64,
    modified_ns: i128,
}

/// The exclusive right to work on an archive. It ends when this value is dropped or the process ends.
pub struct Turn {
    _lock: File,
}

impl FileStamp {
    /// Returns the stamp of a file, or `None` if there is no such file.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let found = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        let modified_ns = i128::from(found.mtime()) * 1_000_000_000 + i128::from(found.mtime_nsec());
        Some(Self { device: found.dev(), inode: found.ino(), size_bytes: found.len(), modified_ns })
    }
}

impl Shelf {
    /// Returns the shelf of a state directory.
    pub fn new(state_dir: &Path) -> Self {
        Self { folder: state_dir.join("archives") }
    }

    /// Returns the paths of an archive on the shelf.
    pub fn place(&self, archive: &SourceArchive) -> ArchivePaths {
        self.place_in(&self.folder, archive)
    }

    /// Returns the paths of a data file: on the shelf if it is unpacked, otherwise where it is used.
    pub fn place_of_data(&self, data: &DataSource) -> ArchivePaths {
        match &data.placement {
            Placement::Folder(folder) => self.place_in(folder, &data.archive),
            Placement::Unpacked(_) => self.place(&data.archive),
        }
    }

    fn place_in(&self, folder: &Path, archive: &SourceArchive) -> ArchivePaths {
        let beside = |ending: &str| self.folder.join(format!("{}.{ending}", archive.file));
        ArchivePaths {
            name: archive.file.clone(),
            file: folder.join(&archive.file),
            record: beside("json"),
            lock: beside("lock"),
        }
    }
}

impl ArchivePaths {
    /// Returns the path of the partial download.
    pub(crate) fn part(&self) -> PathBuf {
        with_ending(&self.file, "part")
    }

    /// Returns the path of the partial download's state.
    pub(crate) fn part_state(&self) -> PathBuf {
        with_ending(&self.file, "part.json")
    }

    /// Returns whether the archive is beside its record and not where it is used.
    pub(crate) fn is_on_shelf(&self) -> bool {
        self.file.parent() == self.record.parent()
    }

    /// Returns the path of the record.
    pub(crate) fn record_path(&self) -> &Path {
        &self.record
    }

    /// Takes the exclusive right to work on the archive, and creates the folders for it.
    pub fn take_turn(&self) -> Result<Turn, ImagesError> {
        // This may create the state directory, which is private. Containers read the folders where data is used.
        let (records, content) = (self.lock.parent(), self.file.parent());
        for (folder, make) in [(records, folders::make_private as fn(&Path) -> _), (content, folders::make_readable)] {
            let folder = folder.unwrap_or(Path::new("/"));
            make(folder).map_err(file("make the folder", folder))?;
        }
        let lock = File::options().create(true).truncate(false).write(true).open(&self.lock);
        let lock = lock.map_err(file("open", &self.lock))?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Turn { _lock: lock }),
            Err(_) => Err(ImagesError::Busy { file: self.name.clone() }),
        }
    }

    /// Returns the record. An unreadable record counts as missing, because all of its content can be determined again.
    pub(crate) fn record(&self) -> Option<ShelfRecord> {
        serde_json::from_slice(&fs::read(&self.record).ok()?).ok()
    }

    /// Writes the record atomically.
    pub(crate) fn remember(&self, record: &ShelfRecord) -> Result<(), ImagesError> {
        write_whole(&self.record, record).map_err(file("write", &self.record))
    }
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

/// Writes JSON atomically: after a crash, the path holds either the old or the new content.
pub(crate) fn write_whole<T: Serialize>(path: &Path, value: &T) -> std::io::Result<()> {
    let beside = with_ending(path, "new");
    let mut out = File::create(&beside)?;
    out.write_all(&serde_json::to_vec_pretty(value)?)?;
    out.sync_all()?;
    fs::rename(&beside, path)?;
    sync_folder(path)
}

/// Makes a rename durable by syncing the folder of the path.
pub(crate) fn sync_folder(of: &Path) -> std::io::Result<()> {
    match of.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}
