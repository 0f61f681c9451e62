//! The beginnings of the records of forks: the requests of the episodes that they come from.
//!
//! ```text
//!   PARENT/beginning.jsonl ─┐ copied while the parent's requests are held
//!   PARENT/exchanges.jsonl ─┴──────────────────► beginnings/ID.jsonl ── links ──► CHILD/beginning.jsonl
//! ```
//! The beginning is kept before the requests for the children are recorded, and as long as one of these has not ended. So
//! a child finds it whenever it gets its slots, and after a `kill -9` of the daemon at any step of the fork, whatever has
//! become of the parent's record. All children have the same file, which needs its space on disk once.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::line::{RecordHead, RecordLine};
use super::retention::paths_in;
use arenad_folders as folders;
use arenad_model::episode::ids::RecordBeginningId;
use jiff::Timestamp;

/// The folder of the beginnings, beside those of the records. It is not the id of an episode.
const FOLDER: &str = "beginnings";
/// The name of the file in the folder of a record that holds its beginning.
pub(super) const BEGINNING: &str = "beginning.jsonl";
const COMPLETE: &str = "jsonl";
const PARTIAL: &str = "partial";

/// The beginnings that are kept.
#[derive(Debug)]
pub(super) struct KeptBeginnings {
    folder: PathBuf,
    /// Those whose requests may not be recorded yet.
    pinned: Mutex<BTreeSet<RecordBeginningId>>,
}

impl KeptBeginnings {
    /// Names the folder in that of all records. It is created when it is needed.
    pub(super) fn new(records: &Path) -> Self {
        Self { folder: records.join(FOLDER), pinned: Mutex::default() }
    }

    // Every change is one insertion or removal, so a panic leaves a valid set.
    fn pinned(&self) -> MutexGuard<'_, BTreeSet<RecordBeginningId>> {
        self.pinned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the file of a beginning. Once it exists, it is complete and never changes.
    pub(super) fn path(&self, id: &RecordBeginningId) -> PathBuf {
        self.folder.join(id.as_str()).with_extension(COMPLETE)
    }

    /// Returns the beginnings on disk, complete or not, whose requests are recorded if they ever will be.
    pub(super) fn unpinned(&self) -> io::Result<BTreeSet<RecordBeginningId>> {
        let paths = paths_in(&self.folder)?;
        let ids = paths.iter().filter_map(|path| path.file_stem()?.to_str()?.parse().ok());
        let mut found: BTreeSet<RecordBeginningId> = ids.collect();
        // After the files: a beginning is pinned before it has a file.
        let pinned = self.pinned();
        found.retain(|id| !pinned.contains(id));
        Ok(found)
    }

    /// Waits until a beginning would outlive a failure of the host.
    pub(super) fn sync(&self, id: &RecordBeginningId) -> io::Result<()> {
        File::open(self.path(id))?.sync_all()?;
        File::open(&self.folder)?.sync_all()
    }

    /// Removes a beginning. Records that have taken it over keep it.
    pub(super) fn remove(&self, id: &RecordBeginningId) -> io::Result<()> {
        for extension in [COMPLETE, PARTIAL] {
            match fs::remove_file(self.folder.join(id.as_str()).with_extension(extension)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

/// The beginning of the records of forks, which is kept while the value exists, and then as long as a fork needs it.
#[derive(Debug)]
pub(crate) struct RecordBeginning {
    id: RecordBeginningId,
    kept: Arc<KeptBeginnings>,
}

impl RecordBeginning {
    pub(super) fn new(kept: Arc<KeptBeginnings>) -> Self {
        let id = RecordBeginningId::from_random(rand::random());
        kept.pinned().insert(id.clone());
        Self { id, kept }
    }

    /// Returns the id by which the forks find it.
    pub(crate) fn id(&self) -> &RecordBeginningId {
        &self.id
    }

    pub(super) fn path(&self) -> PathBuf {
        self.kept.path(&self.id)
    }
}

impl Drop for RecordBeginning {
    fn drop(&mut self) {
        self.kept.pinned().remove(&self.id);
    }
}

/// Writes a file with the given function. It gets its name when it is complete.
pub(super) fn write(path: &Path, content: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        folders::make_private(folder)?;
    }
    let partial = path.with_extension(PARTIAL);
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&partial)?;
    let written = content(&mut file).and_then(|()| fs::rename(&partial, path));
    if written.is_err() {
        // A file that remains is removed with those that nothing needs.
        let _ = fs::remove_file(&partial);
    }
    written
}

/// Writes the beginning that comes from an episode without a record.
pub(super) fn write_silent(path: &Path, head: RecordHead, at: Timestamp) -> io::Result<()> {
    write(path, |file| {
        io::Write::write_all(file, &RecordLine::Record(head).to_bytes())?;
        io::Write::write_all(file, &RecordLine::Forked { at }.to_bytes())
    })
}

/// Takes a beginning over into the folder of a record. Returns whether the record has it now.
pub(super) fn take_over(kept: &Path, to: &Path) -> io::Result<bool> {
    match fs::hard_link(kept, to) {
        Ok(()) => Ok(true),
        // A daemon that was killed had taken it over.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
