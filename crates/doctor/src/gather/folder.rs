//! Examines a folder: whether it is writable, how much space is left, what a copy costs. Test files have no name and
//! disappear with their handle, however this process ends.

use std::io::{ErrorKind, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::io::Errno;

use crate::facts::{Access, FileSystemRoom, FolderFacts};
use arenad_storage::{disk, trial};

/// The size of the file that is copied to measure the speed: large enough to measure the disk and not only its cache.
const SAMPLE_BYTES: usize = 32 << 20;

/// Examines a folder, or the nearest existing folder above it.
pub(super) async fn look(path: PathBuf) -> FolderFacts {
    let unseen = path.clone();
    tokio::task::spawn_blocking(move || look_at(path)).await.unwrap_or_else(|panicked| FolderFacts {
        path: unseen,
        exists: false,
        access: Access::Failed(panicked.to_string()),
        kind: "an unknown file system".to_owned(),
        room: FileSystemRoom { free_bytes: 0, total_bytes: 0, free_files: None, device: 0 },
        reflinks: None,
        gives_away: None,
        limits_stores: false,
    })
}

fn look_at(path: PathBuf) -> FolderFacts {
    let (there, is_hidden) = nearest(&path);
    let exists = there == path;
    let kind = trial::kind(there);
    let room = room(there).unwrap_or(FileSystemRoom { free_bytes: 0, total_bytes: 0, free_files: None, device: 0 });
    let tried = trial::nameless_file(there);
    let access = match &tried {
        // The folder of another user hides the content below it.
        _ if is_hidden => Access::Denied,
        Ok(_) => Access::Writable,
        Err(Errno::ROFS) => Access::ReadOnly,
        Err(Errno::ACCESS | Errno::PERM) => Access::Denied,
        Err(error) => Access::Failed(error.to_string()),
    };
    let is_tried = tried.is_ok();
    let reflinks = trial::reflinks(there).filter(|_| is_tried);
    let gives_away = trial::gives_away(there).filter(|_| is_tried);
    let limits_stores = disk::limits_stores(there);
    FolderFacts { path, exists, access, kind, room, reflinks, gives_away, limits_stores }
}

/// Returns the nearest existing folder, and whether access to a folder on the way is denied.
fn nearest(path: &Path) -> (&Path, bool) {
    let mut is_hidden = false;
    let mut there = path;
    loop {
        match there.metadata() {
            Ok(_) => return (there, is_hidden),
            Err(error) => is_hidden |= error.kind() == ErrorKind::PermissionDenied,
        }
        match there.parent() {
            Some(parent) => there = parent,
            None => return (there, is_hidden),
        }
    }
}

/// Returns the space of a folder's file system; `None` if the folder cannot be examined.
pub(super) fn room(path: &Path) -> Option<FileSystemRoom> {
    let trial::FreeSpace { free_bytes, total_bytes, free_files } = trial::room(path).ok()?;
    Some(FileSystemRoom { free_bytes, total_bytes, free_files, device: path.metadata().ok()?.dev() })
}

/// Copies a file and syncs it, as the kernel does at the first write to a file of an image. Returns the speed in bytes
/// per second.
pub(super) async fn copy_speed(folder: PathBuf) -> Option<u64> {
    tokio::task::spawn_blocking(move || {
        let mut source = trial::nameless_file(&folder).ok()?;
        let mut target = trial::nameless_file(&folder).ok()?;
        source.write_all(&vec![1; SAMPLE_BYTES]).ok()?;
        source.seek(SeekFrom::Start(0)).ok()?;
        let begun = Instant::now();
        let copied = std::io::copy(&mut source, &mut target).ok()?;
        target.sync_all().ok()?;
        Some((copied as f64 / begun.elapsed().as_secs_f64()) as u64)
    })
    .await
    .ok()?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_not_there_is_judged_by_the_one_above_it() {
        let above = tempfile::tempdir().expect("a folder");
        let found = look_at(above.path().join("not/there"));
        assert!(!found.exists && found.access == Access::Writable, "{found:?}");
        assert!(found.room.total_bytes > 0 && found.reflinks.is_some());
        let left: Vec<_> = std::fs::read_dir(above.path()).expect("a folder").collect();
        assert!(left.is_empty(), "trying leaves nothing behind");
    }
}
