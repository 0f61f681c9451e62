//! Where archives lie, and what is remembered of them.
//!
//! ```text
//!   STATE/archives/NAME             whole: its content has been read and compared
//!   STATE/archives/NAME.part        on its way; NAME.part.json says from where
//!   STATE/archives/NAME.json        the record: digest, images, what has been proven
//!   STATE/archives/NAME.lock        held while someone works on it
//! ```
//! A data file that is used as it is lies in its target folder, `.part` included, so that it need not be copied; its record
//! and lock are here. The record stays when the archive goes: a later copy must have the same content.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::docker_archive::ArchivedImage;
use super::{ImagesError, file};
use arenad_folders as folders;
use arenad_model::archive::{Archive, DataSource, Placement};

/// The folder of archives.
#[derive(Debug, Clone)]
pub struct Shelf {
    folder: PathBuf,
}

/// Where one archive lies.
#[derive(Debug, Clone)]
pub struct Place {
    /// The name of the archive.
    pub name: String,
    /// The whole archive.
    pub file: PathBuf,
    record: PathBuf,
    lock: PathBuf,
}

/// What is remembered of an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// SHA-256 (hex) of the first copy, or of the definition.
    pub sha256: String,
    /// How large it is.
    pub size_bytes: u64,
    /// How large its content is, uncompressed.
    pub expanded_bytes: u64,
    /// The images in it.
    pub images: Vec<ArchivedImage>,
    /// Where it came from: a mirror's URL or a path.
    pub source: String,
    /// The copy that was read last, which need not be read again while it looks the same.
    pub seen: Option<Stamp>,
    /// The id under which the engine has had the image since it was proven.
    #[serde(default)]
    pub engine_id: Option<String>,
    /// The folders that the archive was unpacked to.
    #[serde(default)]
    pub unpacked: Vec<Unpacked>,
}

/// A folder that an archive was unpacked to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unpacked {
    /// Where it is.
    pub folder: PathBuf,
    /// Its number, which a rename does not change.
    pub inode: u64,
}

impl Unpacked {
    /// Whether the folder is there, and is that one.
    pub(crate) fn is_in_place(&self) -> bool {
        fs::metadata(&self.folder).is_ok_and(|found| found.is_dir() && found.ino() == self.inode)
    }
}

/// What tells a file from one that was changed or exchanged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    device: u64,
    inode: u64,
    size_bytes: u64,
    modified_ns: i128,
}

/// The right to work on an archive, given back when it is dropped or the process ends.
pub struct Turn {
    _lock: File,
}

impl Stamp {
    /// The file's stamp; `None` where there is no such file.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let found = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        let modified_ns = i128::from(found.mtime()) * 1_000_000_000 + i128::from(found.mtime_nsec());
        Some(Self { device: found.dev(), inode: found.ino(), size_bytes: found.len(), modified_ns })
    }
}

impl Shelf {
    /// The shelf of a state directory.
    pub fn new(state_dir: &Path) -> Self {
        Self { folder: state_dir.join("archives") }
    }

    /// Where an archive lies.
    pub fn place(&self, archive: &Archive) -> Place {
        self.place_in(&self.folder, archive)
    }

    /// Where a data file lies: on the shelf if it is unpacked, else where it is used.
    pub fn place_of_data(&self, data: &DataSource) -> Place {
        match &data.placement {
            Placement::Folder(folder) => self.place_in(folder, &data.archive),
            Placement::Unpacked(_) => self.place(&data.archive),
        }
    }

    fn place_in(&self, folder: &Path, archive: &Archive) -> Place {
        let beside = |ending: &str| self.folder.join(format!("{}.{ending}", archive.file));
        Place {
            name: archive.file.clone(),
            file: folder.join(&archive.file),
            record: beside("json"),
            lock: beside("lock"),
        }
    }
}

impl Place {
    /// The archive on its way.
    pub(crate) fn part(&self) -> PathBuf {
        with_ending(&self.file, "part")
    }

    /// What is remembered of the archive on its way.
    pub(crate) fn part_state(&self) -> PathBuf {
        with_ending(&self.file, "part.json")
    }

    /// Whether the archive lies beside its record, and not where it is used.
    pub(crate) fn is_on_shelf(&self) -> bool {
        self.file.parent() == self.record.parent()
    }

    /// Where the record is.
    pub(crate) fn record_path(&self) -> &Path {
        &self.record
    }

    /// Takes the right to work on the archive, and makes the folders for it.
    pub fn take_turn(&self) -> Result<Turn, ImagesError> {
        // The state directory may come into being here; where data is used, containers read it.
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

    /// What is remembered; a record that cannot be read counts as none, for all of it can be found out again.
    pub(crate) fn record(&self) -> Option<Record> {
        serde_json::from_slice(&fs::read(&self.record).ok()?).ok()
    }

    /// Remembers.
    pub(crate) fn remember(&self, record: &Record) -> Result<(), ImagesError> {
        write_whole(&self.record, record).map_err(file("write", &self.record))
    }
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

/// Writes JSON so that there is either the old file or the new one, whatever happens.
pub(crate) fn write_whole<T: Serialize>(path: &Path, value: &T) -> std::io::Result<()> {
    let beside = with_ending(path, "new");
    let mut out = File::create(&beside)?;
    out.write_all(&serde_json::to_vec_pretty(value)?)?;
    out.sync_all()?;
    fs::rename(&beside, path)?;
    sync_folder(path)
}

/// Makes a rename last.
pub(crate) fn sync_folder(of: &Path) -> std::io::Result<()> {
    match of.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}
