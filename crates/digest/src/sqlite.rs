//! Reads SQLite databases. Their files are copied and a confined process reads the rows from the copy, so that the site
//! never meets a lock or a file of the daemon, and the daemon itself does not parse the files.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::content::StoreContent;
use super::rows::{PAGE_ROWS, RowBudget, RowPage, TableRows, offsets};
use super::rules::VolatileParts;
use super::sqlite_worker::{SEQUENCES, Schema, SqliteReader};
use super::stat_mark::{FinishedMark, StatMark};
use super::tree::{PIECE, StoreFolder, open_file};
use super::{DigestError, Stop, StoreReading, blocking};
use arenad_confined::{Folder, WorkerError};
use arenad_model::store::Store;

/// Suffixes of the files that hold a database's rows. The companion `-shm` is only an index of `-wal` and is rebuilt if
/// it is missing.
pub(super) const PARTS: [&str; 3] = ["", "-wal", "-journal"];

/// Maximum number of times that the files are copied if they change during the copy.
const ATTEMPTS: usize = 3;

/// Maximum number of bytes that are copied of a file, not counting blocks of zeros.
pub(super) const COPY_MAX: u64 = 4 << 30;

/// Returns the mark of a database's files.
pub(super) async fn mark(store: &Store, folder: StoreFolder) -> Result<Option<String>, DigestError> {
    let files = Files::of(store, folder);
    blocking(store, move |_| Ok(files.seen(&files.open()?)?.mark())).await
}

/// Reads the rows of a database.
///
/// The files are copied to a folder in `copies`.
pub(super) async fn look(store: &Store, folder: StoreFolder, copies: &Path) -> Result<StoreReading, DigestError> {
    let (copied, name) = copy(store, folder, copies).await?;
    let content = rows(store, &copied.folder, &name).await?;
    Ok(StoreReading { content, mark: copied.mark, paths: None })
}

/// Reads the rows of tables from a copy of the files, as [`look`] does. Tables that do not exist are left out.
pub(super) async fn table_rows(
    store: &Store,
    folder: StoreFolder,
    copies: &Path,
    wanted: &BTreeMap<String, u64>,
    budget: &mut RowBudget,
) -> Result<BTreeMap<String, TableRows>, DigestError> {
    let (copied, name) = copy(store, folder, copies).await?;
    let failed = |cause: WorkerError| DigestError::Sqlite { store: store.name.clone(), cause: cause.into() };
    let (mut reader, Schema { tables, keys, .. }) = SqliteReader::start(&copied.folder, &name).await.map_err(failed)?;
    let rules = VolatileParts::of(store);
    let mut found = BTreeMap::new();
    for (table, columns) in tables {
        let Some(count) = wanted.get(&table).filter(|_| !rules.leaves_out_table(&table) && table != SEQUENCES) else {
            continue;
        };
        let counts = |name: &String| !rules.leaves_out_column(name, &table);
        let key = keys.get(&table).filter(|key| key.iter().all(counts)).cloned().unwrap_or_default();
        let columns: Vec<String> = columns.into_iter().filter(counts).collect();
        let mut rows = Vec::new();
        for offset in offsets(*count, PAGE_ROWS) {
            let page = RowPage { offset, rows: PAGE_ROWS, with_values: budget.has_values() };
            let read = reader.page(&table, &columns, &key, page).await.map_err(failed)?;
            read.iter().for_each(|row| budget.spend(row));
            if budget.is_spent() {
                return Ok(found);
            }
            rows.extend(read);
        }
        found.insert(table, TableRows { key, columns, rows });
    }
    Ok(found)
}

/// Copies the files of a database, and returns the copy and the name of its main file.
async fn copy(store: &Store, folder: StoreFolder, copies: &Path) -> Result<(SqliteCopy, String), DigestError> {
    let files = Files::of(store, folder);
    let name = files.name.clone();
    let copies = copies.to_owned();
    Ok((blocking(store, move |stop| files.copy(&copies, stop)).await?, name))
}

/// The files of a database and the folder that contains them.
struct Files {
    store: String,
    folder: StoreFolder,
    name: String,
}

/// A copy of the files, which is removed when the value is dropped.
struct SqliteCopy {
    folder: Folder,
    mark: Option<String>,
}

impl Files {
    fn of(store: &Store, folder: StoreFolder) -> Self {
        let name = store.path.rsplit('/').next().unwrap_or_default().to_owned();
        Self { store: store.name.clone(), folder, name }
    }

    fn open(&self) -> Result<OwnedFd, DigestError> {
        self.folder.open().map_err(|cause| self.failed("", cause.into()))
    }

    fn seen(&self, folder: &OwnedFd) -> Result<FinishedMark, DigestError> {
        let mut mark = StatMark::default();
        for part in PARTS {
            let name = format!("{}{part}", self.name);
            match rustix::fs::statat(folder, &name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => mark.add(name.as_bytes(), &stat),
                Err(Errno::NOENT) if !part.is_empty() => mark.add_missing(name.as_bytes()),
                Err(cause) => return Err(self.failed(part, cause.into())),
            }
        }
        Ok(mark.finish())
    }

    fn copy(&self, copies: &Path, stop: &Stop) -> Result<SqliteCopy, DigestError> {
        let from = self.open()?;
        let mut attempt = 1;
        loop {
            let before = self.seen(&from)?;
            let folder = Folder::new_in(copies).map_err(|cause| self.failed("", cause))?;
            for part in PARTS {
                let name = format!("{}{part}", self.name);
                match open_file(from.as_fd(), OsStr::new(&name)) {
                    Ok(file) => {
                        let copied = copy_file(file, &folder.path().join(&name), COPY_MAX, stop);
                        copied.map_err(|cause| self.failed(part, cause))?;
                    }
                    Err(Errno::NOENT) if !part.is_empty() => {}
                    Err(cause) => return Err(self.failed(part, cause.into())),
                }
            }
            let after = self.seen(&from)?;
            if after.is_like(&before) || attempt == ATTEMPTS {
                return Ok(SqliteCopy { folder, mark: after.mark_since(before) });
            }
            attempt += 1;
        }
    }

    fn failed(&self, part: &str, cause: io::Error) -> DigestError {
        DigestError::File { store: self.store.clone(), path: format!("{}{part}", self.name), cause }
    }
}

/// Copies the length that the file has at the beginning, so that a growing file does not extend the copy. Blocks of
/// zeros are left as holes in the copy, because a site can create sparse files that are larger than the host's disk.
///
/// Errors: more than `most` bytes are not zero ([`io::ErrorKind::FileTooLarge`]), or no caller waits for the copy.
fn copy_file(from: File, to: &Path, most: u64, stop: &Stop) -> io::Result<()> {
    let length = from.metadata()?.len();
    copy_sparse(from.take(length), &File::create_new(to)?, most, stop)
}

/// Copies all that can be read, as [`copy_file`] does.
pub(super) fn copy_sparse(mut from: impl Read, to: &File, most: u64, stop: &Stop) -> io::Result<()> {
    let mut piece = [0; PIECE];
    let (mut copied, mut written) = (0, 0);
    loop {
        stop.check()?;
        let read = from.read(&mut piece)?;
        if read == 0 {
            return to.set_len(copied);
        }
        if piece[..read].iter().any(|byte| *byte != 0) {
            written += read as u64;
            if written > most {
                return Err(too_large(most));
            }
            to.write_all_at(&piece[..read], copied)?;
        }
        copied += read as u64;
    }
}

/// Returns the error for a database of more than `most` bytes.
pub(super) fn too_large(most: u64) -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, format!("the database has more than {} MiB", most >> 20))
}

/// Reads the rows of a copy in a confined process, because a crafted SQLite file may exploit the program that opens it.
async fn rows(store: &Store, folder: &Folder, name: &str) -> Result<StoreContent, DigestError> {
    let failed = |cause: WorkerError| DigestError::Sqlite { store: store.name.clone(), cause: cause.into() };
    let (mut reader, Schema { objects, tables, .. }) = SqliteReader::start(folder, name).await.map_err(failed)?;
    let rules = VolatileParts::of(store);
    let mut content = StoreContent { objects, ..StoreContent::default() };
    for (table, columns) in &tables {
        if rules.leaves_out_table(table) {
            continue;
        }
        if table == SEQUENCES {
            let counters = reader.sequences().await.map_err(failed)?;
            content.counters.extend(counters.into_iter().filter(|(name, _)| !rules.leaves_out_table(name)));
            continue;
        }
        let counted = columns.iter().filter(|name| !rules.leaves_out_column(name, table)).cloned().collect();
        content.tables.insert(table.clone(), reader.rows(table, counted).await.map_err(failed)?);
    }
    let columns = tables.iter().flat_map(|(table, names)| names.iter().map(|name| (table.clone(), name.clone())));
    rules.check(&columns.collect(), &tables.iter().map(|(table, _)| table.clone()).collect(), &Default::default())?;
    Ok(content)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    /// The limit of the tests' copies, in bytes.
    const MOST: u64 = 8 << 20;

    #[test]
    fn holes_take_no_room_in_a_copy_and_do_not_count() {
        let folder = tempfile::tempdir().expect("a folder");
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        let length = MOST * 16;
        let file = File::create_new(&from).expect("a file");
        file.set_len(length).expect("a hole");
        file.write_all_at(b"the end", length - 7).expect("some bytes");
        copy_file(File::open(&from).expect("a file"), &to, MOST, &Stop::default()).expect("a copy");
        let copy = std::fs::metadata(&to).expect("a copy");
        assert_eq!(copy.len(), length);
        assert!(copy.blocks() * 512 <= 2 * PIECE as u64, "{} blocks", copy.blocks());
        assert_eq!(std::fs::read(&to).expect("a copy"), std::fs::read(&from).expect("a file"));
    }

    #[test]
    fn a_file_beyond_the_limit_is_not_copied_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        std::fs::write(&from, vec![7; 2 * MOST as usize]).expect("a file");
        let error = copy_file(File::open(&from).expect("a file"), &to, MOST, &Stop::default()).expect_err("too large");
        assert_eq!(
            (error.kind(), error.to_string()),
            (io::ErrorKind::FileTooLarge, "the database has more than 8 MiB".into())
        );
        assert!(std::fs::metadata(&to).expect("a part").len() <= MOST);
    }
}
