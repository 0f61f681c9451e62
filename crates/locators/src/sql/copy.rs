//! Copies of files that a site writes, made piece by piece: the daemon's memory does not grow with the file.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use futures_util::{StreamExt, stream};
use rustix::io::Errno;

use crate::{LocateError, TIMEOUT, exec, file};
use arenad_confined::Folder;
use arenad_engine::{Engine, EngineHandle};
use arenad_model::cause::Cause;
use arenad_model::error::describe;
use arenad_model::ids::ServiceName;
use arenad_seams::inline::Stop;
use arenad_storage::archive::{ArchiveMemberKind, ArchiveReader};
use arenad_storage::{StorageError, read_stream};

/// Maximum size of a file that is copied, in bytes; a confined process can write no larger files either.
pub(super) const FILE_MAX: u64 = 4 << 30;

/// Number of bytes that are read at a time.
const PIECE: usize = 1 << 16;

/// Makes `to` a copy of the content of `from`, and returns whether it already was one.
///
/// `size` is the reported size of the file. Ranges of zeros after the end of an earlier copy take no disk space.
///
/// Errors: the file is longer than [`FILE_MAX`] or shorter than `size`, the disk has too little space, or `stop` was
/// set.
pub(super) fn refresh(mut from: impl Read, size: u64, to: &Path, stop: &Stop) -> io::Result<bool> {
    let to = File::options().read(true).write(true).create(true).truncate(false).open(to)?;
    let had = to.metadata()?.len();
    leave_room(&to, size.saturating_sub(had))?;
    let (mut piece, mut known) = (vec![0; PIECE], vec![0; PIECE]);
    let (mut length, mut is_same) = (0, true);
    loop {
        stop.check()?;
        let read = from.read(&mut piece)?;
        if read == 0 {
            break;
        }
        if length + read as u64 > FILE_MAX {
            return Err(io::Error::from(Errno::FBIG));
        }
        let (piece, known) = (&piece[..read], &mut known[..read]);
        if to.read_at(known, length)? < read || known != piece {
            is_same = false;
            if length < had || piece.iter().any(|byte| *byte != 0) {
                to.write_all_at(piece, length)?;
            }
        }
        length += read as u64;
    }
    if length < size {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    if length != had {
        to.set_len(length)?;
        is_same = false;
    }
    Ok(is_same)
}

/// Refuses a copy that would take more than half of the free space, because the disk also holds the state of other
/// sites, and several copies can be made at the same time.
fn leave_room(to: &File, growth: u64) -> io::Result<()> {
    let disk = rustix::fs::fstatvfs(to)?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    if growth <= free / 2 {
        return Ok(());
    }
    let what =
        format!("a copy of {} MiB would take more than half of the {} MiB that are free", growth >> 20, free >> 20);
    Err(io::Error::new(io::ErrorKind::StorageFull, what))
}

/// Returns the error for a copy that could not be made. If the disk has no room for it, the site is not at fault.
pub(super) fn not_copied(what: &str, cause: Option<Cause>, why: &str) -> LocateError {
    match cause {
        Some(Cause::NoSpace) => LocateError::NoRoom(format!("{what}: {why}")),
        _ => LocateError::Unavailable(format!("copy {what}: {why}")),
    }
}

/// Removes the copy of a file that no longer exists, and returns whether there was no copy.
pub(super) fn forget(to: &Path) -> io::Result<bool> {
    match std::fs::remove_file(to) {
        Ok(()) => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}

/// Makes the file `name` in `folder` a copy of a container's file, read through the engine, and returns whether it
/// already was one. If the container has no such file, an existing copy is removed. Links are followed inside the
/// container.
pub(super) async fn refresh_from_container(
    engine: &dyn Engine,
    (service, container): (&ServiceName, &EngineHandle),
    path: &str,
    folder: &Arc<Folder>,
    name: &str,
) -> Result<bool, LocateError> {
    let failed = |path: &str, cause, why: String| not_copied(&format!("{path} of {service}"), cause, &why);
    let mut path = path.to_owned();
    for _ in 0..file::LINKS_MAX {
        let mut chunks = engine.read_archive(container, &path);
        let first = match chunks.next().await {
            Some(Err(error)) if file::is_missing(&error) => {
                return forget(&folder.path().join(name))
                    .map_err(|error| failed(&path, Cause::of_io(&error), error.to_string()));
            }
            Some(Err(error)) => return Err(exec::failed(&error, TIMEOUT)),
            first => first,
        };
        let whole = stream::iter(first).chain(chunks);
        // The thread also owns the folder, so the folder is not removed while a file is created in it.
        let (folder, to) = (Arc::clone(folder), folder.path().join(name));
        let read = read_stream(whole, move |archive| {
            let entry = entry(archive, &to);
            drop(folder);
            entry
        });
        let entry =
            read.await.and_then(|entry| entry).map_err(|error| failed(&path, error.cause(), describe(&error)))?;
        match entry {
            CopiedEntry::Copied { was_same } => return Ok(was_same),
            CopiedEntry::Link(target) => path = file::join(&path, &target),
            CopiedEntry::Other => return Err(LocateError::Failed(format!("{path} of {service} is not a file"))),
            CopiedEntry::TooLarge(bytes) => {
                return Err(LocateError::FileTooLarge {
                    what: format!("{path} of {service} has {bytes} bytes"),
                    limit: format!("{} GiB", FILE_MAX >> 30),
                });
            }
        }
    }
    Err(LocateError::Failed(format!("{path} of {service} is behind more than {} links", file::LINKS_MAX)))
}

#[derive(Debug)]
enum CopiedEntry {
    Copied { was_same: bool },
    Link(String),
    TooLarge(u64),
    Other,
}

/// Reads the first entry of an archive, which is the requested path.
fn entry<R: Read>(mut archive: ArchiveReader<R>, to: &Path) -> Result<CopiedEntry, StorageError> {
    let Some(member) = archive.next_member()? else { return Ok(CopiedEntry::Other) };
    Ok(match member.kind {
        ArchiveMemberKind::File if member.size > FILE_MAX => CopiedEntry::TooLarge(member.size),
        ArchiveMemberKind::File => {
            // The stream ends when no caller waits for the result, so this copy needs no stop of its own.
            let copied = refresh(archive.content(), member.size, to, &Stop::default());
            CopiedEntry::Copied { was_same: copied.map_err(StorageError::Stream)? }
        }
        ArchiveMemberKind::Symlink => CopiedEntry::Link(String::from_utf8_lossy(&member.link).into_owned()),
        _ => CopiedEntry::Other,
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;
    use arenad_seams::inline::StopOnDrop;

    #[test]
    fn a_copy_follows_its_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let to = folder.path().join("copy");
        let copy = |bytes: &[u8]| refresh(bytes, bytes.len() as u64, &to, &Stop::default()).expect("it copies");
        let mut bytes = vec![7; 3 * PIECE + 5];
        for (changed, what) in [(true, "new"), (false, "the same")] {
            assert_eq!(copy(&bytes), !changed, "{what}");
        }
        bytes[PIECE + 1] = 0;
        assert!(!copy(&bytes) && copy(&bytes));
        bytes.truncate(PIECE);
        assert!(!copy(&bytes) && copy(&bytes));
        bytes.extend(vec![0; 4 * PIECE]);
        bytes[..PIECE].fill(0);
        assert!(!copy(&bytes) && copy(&bytes));
        assert_eq!(std::fs::read(&to).expect("a copy"), bytes);
        assert!(!forget(&to).expect("removed") && forget(&to).expect("gone"));
    }

    #[test]
    fn zeros_take_no_room() {
        let folder = tempfile::tempdir().expect("a folder");
        let to = folder.path().join("copy");
        let length = 64 << 20;
        assert!(!refresh(io::repeat(0).take(length), length, &to, &Stop::default()).expect("it copies"));
        let copy = std::fs::metadata(&to).expect("a copy");
        assert_eq!(copy.len(), length);
        assert!(copy.blocks() * 512 < 1 << 20, "{} blocks", copy.blocks());
    }

    #[test]
    fn what_is_cut_off_given_up_or_larger_than_the_disk_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let to = folder.path().join("copy");
        let error = refresh([1; 10].as_slice(), 11, &to, &Stop::default()).expect_err("one byte is missing");
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        let error = refresh([1; 10].as_slice(), 1 << 60, &to, &Stop::default()).expect_err("no disk has that");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        let stop = Stop::default();
        drop(StopOnDrop(stop.clone()));
        let error = refresh(io::repeat(1), 0, &to, &stop).expect_err("given up");
        assert_eq!(error.raw_os_error(), Some(Errno::CANCELED.raw_os_error()));
    }

    #[test]
    fn what_an_archive_promises_is_not_believed() {
        let folder = tempfile::tempdir().expect("a folder");
        let to = folder.path().join("copy");
        let promising = |size: u64| {
            let mut header = tar::Header::new_gnu();
            header.set_path("file").expect("short");
            header.set_entry_type(tar::EntryType::Regular);
            header.set_mode(0o644);
            header.set_uid(0);
            header.set_gid(0);
            header.set_mtime(0);
            header.set_size(size);
            header.set_cksum();
            let mut archive = header.as_bytes().to_vec();
            archive.extend([b'x'; 4096]);
            archive
        };
        let read = |size| entry(ArchiveReader::new(promising(size).as_slice()), &to);
        assert!(matches!(read(FILE_MAX + 1), Ok(CopiedEntry::TooLarge(size)) if size == FILE_MAX + 1));
        assert!(matches!(read(4097), Err(StorageError::Stream(_))), "cut off");
        forget(&to).expect("removed");
        assert!(matches!(read(4096), Ok(CopiedEntry::Copied { was_same: false })));
        assert!(matches!(read(4096), Ok(CopiedEntry::Copied { was_same: true })));
    }
}
