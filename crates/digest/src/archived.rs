//! Reads stores that are not folders on this host from the containers, through the engine's archives.
//!
//! A daemon without a state root uses this path. It reads everything every time, because an archive does not show what
//! was written since the last one. It does not report sockets.

use std::collections::{BTreeMap, HashSet};
use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::budget::FolderBudget;
use super::content::{FileEntry, FileKind, StoreContent};
use super::rows::{RowBudget, TableRows};
use super::rules::FileRules;
use super::sqlite::COPY_MAX;
use super::tree::{StoreFolder, shown};
use super::{DigestError, Stop, StoreReading, Subject, sqlite};
use arenad_confined::Folder;
use arenad_engine::EngineHandle;
use arenad_model::store::Store;
use arenad_storage::archive::{ArchiveMember, ArchiveMemberKind, ArchiveReader, parts};
use arenad_storage::{StorageError, read_stream};

/// Reads the content of a folder and of everything below it.
pub(super) async fn look(subject: &Subject<'_>, store: &Store) -> Result<StoreReading, DigestError> {
    let archive = subject.engine.read_archive(container(subject, store)?, &store.path);
    let (rules, name) = (FileRules::of(subject.site, store), store.name.clone());
    let read = read_stream(archive, move |archive| content(archive, &rules, &name, FolderBudget::of(&name))).await;
    Ok(StoreReading { content: read.map_err(|cause| failed(store, cause))??, mark: None, paths: None })
}

/// Reads the rows of a SQLite database, whose files are first copied out of the container.
pub(super) async fn look_sqlite(subject: &Subject<'_>, store: &Store) -> Result<StoreReading, DigestError> {
    let (_copy, place) = copied(subject, store).await?;
    let look = sqlite::look(store, place, subject.copies).await?;
    // The mark of the copy says nothing about the site's files.
    Ok(StoreReading { mark: None, ..look })
}

/// Reads the rows of tables of a SQLite database, whose files are first copied out of the container.
pub(super) async fn table_rows(
    subject: &Subject<'_>,
    store: &Store,
    wanted: &BTreeMap<String, u64>,
    budget: &mut RowBudget,
) -> Result<BTreeMap<String, TableRows>, DigestError> {
    let (_copy, place) = copied(subject, store).await?;
    sqlite::table_rows(store, place, subject.copies, wanted, budget).await
}

/// Copies the files of a SQLite database out of the container. The copy is removed with the returned folder.
async fn copied(subject: &Subject<'_>, store: &Store) -> Result<(Folder, StoreFolder), DigestError> {
    let copy = Folder::new_in(subject.copies).map_err(|cause| DigestError::File {
        store: store.name.clone(),
        path: store.path.clone(),
        cause,
    })?;
    let archive = subject.engine.read_archive(container(subject, store)?, store.folder());
    let name = store.path.rsplit('/').next().unwrap_or_default().to_owned();
    let to = copy.path().to_owned();
    let read = read_stream(archive, move |archive| copy_database(archive, &name, &to, COPY_MAX)).await;
    read.and_then(|copied| copied).map_err(|cause| failed(store, cause))?;
    let place = StoreFolder { root: copy.path().to_owned(), below: PathBuf::new() };
    Ok((copy, place))
}

fn container<'a>(subject: &Subject<'a>, store: &Store) -> Result<&'a EngineHandle, DigestError> {
    subject.incarnation.containers.get(&store.service).ok_or_else(|| DigestError::NoFolder {
        store: store.name.clone(),
        path: store.folder().to_owned(),
        service: store.service.clone(),
    })
}

fn failed(store: &Store, cause: StorageError) -> DigestError {
    DigestError::File { store: store.name.clone(), path: store.path.clone(), cause: io::Error::other(cause) }
}

/// Returns the path of a member relative to the archive's top folder; the path of the top folder is empty.
fn below<'a>(top: &[CString], path: &'a [CString]) -> Option<&'a [CString]> {
    path.strip_prefix(top)
}

fn content<R: Read>(
    mut archive: ArchiveReader<R>,
    rules: &FileRules,
    store: &str,
    mut budget: FolderBudget,
) -> Result<StoreContent, DigestError> {
    let failed = |path: &str, cause: StorageError| DigestError::File {
        store: store.to_owned(),
        path: path.to_owned(),
        cause: io::Error::other(cause),
    };
    let mut content = StoreContent::default();
    let mut top: Option<Vec<CString>> = None;
    let mut left_out: HashSet<PathBuf> = HashSet::new();
    while let Some(member) = archive.next_member().map_err(|cause| failed("", cause))? {
        let top = top.get_or_insert_with(|| member.path.clone());
        let Some(parts) = below(top, &member.path) else { continue };
        let path = as_path(parts);
        budget.add(path.as_os_str().len() + member.link.len())?;
        if path.ancestors().any(|folder| left_out.contains(folder)) {
            continue;
        }
        if !parts.is_empty() && rules.leave_out(&path) {
            left_out.insert(path);
            continue;
        }
        let name = if parts.is_empty() { ".".to_owned() } else { shown(&path) };
        let entry = entry(&member, &mut archive, top, &content).map_err(|cause| failed(&name, cause))?;
        content.files.insert(name, entry);
    }
    Ok(content)
}

fn entry<R: Read>(
    member: &ArchiveMember,
    archive: &mut ArchiveReader<R>,
    top: &[CString],
    content: &StoreContent,
) -> Result<FileEntry, StorageError> {
    let mut entry = FileEntry {
        kind: FileKind::File,
        mode: member.mode,
        owner: member.uid,
        group: member.gid,
        size: 0,
        content: String::new(),
    };
    match member.kind {
        ArchiveMemberKind::File => {
            entry.size = member.size;
            let mut hash = blake3::Hasher::new();
            hash.update_reader(archive.content()).map_err(StorageError::Stream)?;
            entry.content = hash.finalize().to_hex().to_string();
        }
        ArchiveMemberKind::HardLink => {
            let linked = parts(&member.link).unwrap_or_default();
            let first = below(top, &linked).map(|parts| shown(&as_path(parts)));
            if let Some(first) = first.and_then(|first| content.files.get(&first)) {
                return Ok(first.clone());
            }
        }
        ArchiveMemberKind::Symlink => {
            entry.kind = FileKind::Link;
            entry.mode = 0o777;
            entry.content = shown(Path::new(OsStr::from_bytes(&member.link)));
        }
        ArchiveMemberKind::Folder => entry.kind = FileKind::Folder,
        ArchiveMemberKind::Pipe => entry.kind = FileKind::Pipe,
        ArchiveMemberKind::CharacterDevice | ArchiveMemberKind::BlockDevice => {
            entry.kind = FileKind::Device;
            entry.size = rustix::fs::makedev(member.device.0, member.device.1);
        }
    }
    Ok(entry)
}

/// Copies the files of a database; of several members with the same name, the last one remains.
///
/// Errors: `ArchiveReader` if the files have more than `most` bytes in total.
fn copy_database<R: Read>(mut archive: ArchiveReader<R>, name: &str, to: &Path, most: u64) -> Result<(), StorageError> {
    let (mut depth, mut left) = (None, most);
    while let Some(member) = archive.next_member()? {
        let depth = *depth.get_or_insert(member.path.len());
        let Some(file) =
            member.path.last().filter(|_| member.kind == ArchiveMemberKind::File && member.path.len() == depth + 1)
        else {
            continue;
        };
        let file = file.to_string_lossy();
        let is_part = file.strip_prefix(name).is_some_and(|rest| sqlite::PARTS.contains(&rest));
        if is_part {
            left = left.checked_sub(member.size).ok_or_else(|| StorageError::File {
                doing: "copy",
                path: as_path(&member.path),
                cause: sqlite::too_large(most),
            })?;
            let path = to.join(file.as_ref());
            // The stream ends when nothing waits for it.
            let copied = File::create(&path)
                .and_then(|copy| sqlite::copy_sparse(archive.content(), &copy, most, &Stop::default()));
            copied.map_err(|cause| StorageError::File { doing: "copy", path, cause })?;
        }
    }
    Ok(())
}

fn as_path(parts: &[CString]) -> PathBuf {
    arenad_storage::archive::shown(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arenad_model::cause::Cause;

    fn archive(files: &[(&str, usize)]) -> Vec<u8> {
        let mut archive = tar::Builder::new(Vec::new());
        let mut add = |path: &str, kind, size: usize| {
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(kind);
            header.set_mode(0o755);
            header.set_size(size as u64);
            header.set_mtime(0);
            header.set_uid(0);
            header.set_gid(0);
            archive.append_data(&mut header, path, vec![b'x'; size].as_slice()).expect("in memory");
        };
        add("data/", tar::EntryType::Directory, 0);
        for (path, size) in files {
            add(path, tar::EntryType::Regular, *size);
        }
        archive.into_inner().expect("in memory")
    }

    #[test]
    fn files_that_are_left_out_count() {
        let bytes = archive(&[("data/a", 1), ("data/left", 1), ("data/left/b", 1), ("data/left/c", 1), ("data/z", 1)]);
        let rules = FileRules::leaving_out(["left"].into_iter());
        let read = |budget| content(ArchiveReader::new(bytes.as_slice()), &rules, "files", budget);
        let found = read(FolderBudget::limited("files", 6, 100)).expect("six, the folder among them");
        assert_eq!(found.files.keys().collect::<Vec<_>>(), [".", "a", "z"]);
        assert!(matches!(read(FolderBudget::limited("files", 5, 100)), Err(DigestError::TooMany { .. })));
        assert!(matches!(read(FolderBudget::limited("files", 6, 10)), Err(DigestError::TooLong { .. })));
    }

    #[test]
    fn databases_are_copied_up_to_a_size() {
        let folder = tempfile::tempdir().expect("a folder");
        let bytes = archive(&[("data/notes.db", 600), ("data/notes.db-wal", 400), ("data/other", 5000)]);
        let copy = |most| copy_database(ArchiveReader::new(bytes.as_slice()), "notes.db", folder.path(), most);
        copy(1000).expect("two files");
        let error = copy(999).expect_err("too long");
        assert_eq!(error.cause(), Some(Cause::FileTooLarge), "{error}");
    }
}
