//! Reads folders of this host that a site writes to.
//!
//! A site may replace any file or folder while it is read. So every folder is opened beneath the store's own folder
//! without following links, only regular files are opened, and no more of a file is read than the length that it had
//! when it was examined.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::budget::{ENTRIES_MAX, FolderBudget};
use super::content::{FileEntry, FileKind, StoreContent};
use super::rules::FileRules;
use super::stat_mark::{FinishedMark, StatMark};
use super::{DigestError, Stop, StoreReading, blocking};
use arenad_folders::beneath;
use arenad_model::site::Site;
use arenad_model::store::Store;

/// Maximum number of times that a folder is read if it changes during the reading.
const ATTEMPTS: usize = 3;

/// Number of bytes of a file that are read between two checks whether the caller still waits.
pub(super) const PIECE: usize = 1 << 16;

/// Maximum number of paths that are remembered for the next mark; they take about ten megabytes of memory.
const PATHS_MAX: usize = 200_000;

/// Paths of everything in a folder that counts, in the order in which the walk found them.
pub(super) type Paths = Arc<[PathBuf]>;

/// Location of a store's folder: a path, controlled by the site, below a folder of the daemon.
#[derive(Debug, Clone)]
pub(super) struct StoreFolder {
    /// Folder of the daemon, which the site cannot replace.
    pub(super) root: PathBuf,
    /// Path below `root`; if it is empty, the store's folder is `root` itself.
    pub(super) below: PathBuf,
}

impl StoreFolder {
    /// Opens the folder without following any link.
    pub(super) fn open(&self) -> Result<OwnedFd, Errno> {
        let folder = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(&self.root, folder, Mode::empty())?;
        if self.below.as_os_str().is_empty() { Ok(root) } else { beneath::open_folder(&root, &self.below) }
    }
}

/// Returns the mark of a folder and everything below it. If the paths are known, folders need not be opened and listed,
/// which is most of the work: a new or removed entry changes the modification time of the folder that contains it.
pub(super) async fn mark(
    site: &Site,
    store: &Store,
    folder: StoreFolder,
    known: Option<Paths>,
) -> Result<Option<String>, DigestError> {
    let walk = Walk::new(site, store, folder);
    blocking(store, move |stop| match known {
        Some(paths) => walk.mark_of(&paths),
        None => Ok(walk.seen(stop)?.mark()),
    })
    .await
}

/// Returns the content of a folder and of everything below it.
pub(super) async fn look(site: &Site, store: &Store, folder: StoreFolder) -> Result<StoreReading, DigestError> {
    let walk = Walk::new(site, store, folder);
    blocking(store, move |stop| {
        let mut attempt = 1;
        loop {
            let (content, paths, before) = walk.content(stop)?;
            let after = walk.seen(stop)?;
            if after.is_like(&before) || attempt == ATTEMPTS {
                let paths = (paths.len() <= PATHS_MAX).then(|| paths.into());
                return Ok(StoreReading { content, mark: after.mark_since(before), paths });
            }
            attempt += 1;
        }
    })
    .await
}

/// Returns the content of those files that are texts of at most `most` bytes, by path.
pub(super) async fn texts(
    store: &Store,
    folder: StoreFolder,
    paths: Vec<String>,
    most: u64,
) -> Result<BTreeMap<String, String>, DigestError> {
    let failed =
        |cause: Errno| DigestError::File { store: store.name.clone(), path: String::new(), cause: cause.into() };
    let read = blocking(store, move |stop| {
        let root = match folder.open() {
            Ok(root) => root,
            Err(cause) => return Ok(Err(cause)),
        };
        let mut found = BTreeMap::new();
        for path in paths {
            if stop.check().is_err() {
                return Ok(Err(Errno::CANCELED));
            }
            // A file that was replaced or removed in the meantime has no text.
            if let Some(text) = text(&root, Path::new(&path), most) {
                found.insert(path, text);
            }
        }
        Ok(Ok(found))
    });
    read.await?.map_err(failed)
}

/// Reads a file without following links. Returns `None` if it has more than `most` bytes, or
/// bytes that no UTF-8 text has.
fn text(root: &OwnedFd, path: &Path, most: u64) -> Option<String> {
    let (parent, name) = (path.parent()?, path.file_name()?);
    let opened;
    let parent = if parent.as_os_str().is_empty() {
        root.as_fd()
    } else {
        opened = beneath::open_folder(root, parent).ok()?;
        opened.as_fd()
    };
    let mut bytes = Vec::new();
    open_file(parent, name).ok()?.take(most + 1).read_to_end(&mut bytes).ok()?;
    if bytes.len() as u64 > most || bytes.contains(&0) {
        return None;
    }
    String::from_utf8(bytes).ok()
}

/// The walk over a store's folder.
struct Walk {
    store: String,
    folder: StoreFolder,
    rules: FileRules,
}

/// One entry of a folder.
struct FolderEntry<'a> {
    /// Folder that contains the entry.
    parent: BorrowedFd<'a>,
    /// Name of the entry in that folder.
    name: &'a OsStr,
    /// Path relative to the store.
    path: &'a Path,
    stat: &'a Stat,
}

impl Walk {
    fn new(site: &Site, store: &Store, folder: StoreFolder) -> Self {
        Self { store: store.name.clone(), folder, rules: FileRules::of(site, store) }
    }

    fn seen(&self, stop: &Stop) -> Result<FinishedMark, DigestError> {
        let mut mark = StatMark::default();
        self.each(stop, &mut |found| {
            mark.add(found.path.as_os_str().as_bytes(), found.stat);
            Ok(())
        })?;
        Ok(mark.finish())
    }

    /// Returns the mark if all the paths still exist, otherwise `None`.
    fn mark_of(&self, paths: &[PathBuf]) -> Result<Option<String>, DigestError> {
        let mut mark = StatMark::default();
        let root = self.open()?;
        for path in paths {
            // This may follow a link that has replaced a folder. The replacement changed the modification time of the
            // folder that contains the link, so the mark differs.
            match rustix::fs::statat(&root, path, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => mark.add(path.as_os_str().as_bytes(), &stat),
                Err(_) => return Ok(None),
            }
        }
        Ok(mark.finish().mark())
    }

    /// Reads everything. Also returns the paths, and the state of each file before it was read.
    fn content(&self, stop: &Stop) -> Result<(StoreContent, Vec<PathBuf>, FinishedMark), DigestError> {
        let mut content = StoreContent::default();
        let (mut paths, mut mark) = (Vec::new(), StatMark::default());
        self.each(stop, &mut |found| {
            paths.push(found.path.to_owned());
            mark.add(found.path.as_os_str().as_bytes(), found.stat);
            let name = shown(found.path);
            match entry(found, stop) {
                Ok(entry) => drop(content.files.insert(name, entry)),
                // The entry was removed or replaced during the reading; the mark shows this.
                Err(Errno::NOENT | Errno::LOOP | Errno::NXIO | Errno::ISDIR) => {}
                Err(cause) => return Err(self.failed(found.path, cause)),
            }
            Ok(())
        })?;
        Ok((content, paths, mark.finish()))
    }

    fn open(&self) -> Result<OwnedFd, DigestError> {
        self.folder.open().map_err(|cause| self.failed(Path::new("."), cause))
    }

    /// Visits the folder and everything below it that counts, always in the same order.
    fn each(
        &self,
        stop: &Stop,
        visit: &mut dyn FnMut(&FolderEntry<'_>) -> Result<(), DigestError>,
    ) -> Result<(), DigestError> {
        let here = Path::new(".");
        let root = self.open()?;
        let stat = rustix::fs::fstat(&root).map_err(|cause| self.failed(here, cause))?;
        visit(&FolderEntry { parent: root.as_fd(), name: here.as_os_str(), path: here, stat: &stat })?;
        let mut waiting = vec![PathBuf::new()];
        let mut budget = FolderBudget::of(&self.store);
        while let Some(path) = waiting.pop() {
            let opened = match beneath::open_folder(&root, &path) {
                Ok(opened) => opened,
                Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => continue,
                Err(cause) => return Err(self.failed(&path, cause)),
            };
            for name in names(&opened).map_err(|cause| self.failed(&path, cause))? {
                let name = OsStr::from_bytes(&name);
                let path = path.join(name);
                budget.add(path.as_os_str().len())?;
                stop.check().map_err(|cause| self.failed(&path, cause))?;
                if self.rules.leave_out(&path) {
                    continue;
                }
                let stat = match rustix::fs::statat(&opened, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => stat,
                    Err(Errno::NOENT) => continue,
                    Err(cause) => return Err(self.failed(&path, cause)),
                };
                visit(&FolderEntry { parent: opened.as_fd(), name, path: &path, stat: &stat })?;
                if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
                    waiting.push(path);
                }
            }
        }
        Ok(())
    }

    fn failed(&self, path: &Path, cause: Errno) -> DigestError {
        DigestError::File { store: self.store.clone(), path: shown(path), cause: cause.into() }
    }
}

/// Returns the names in a folder, sorted. Reading stops after one name more than `ENTRIES_MAX`, so that a list that
/// exceeds the limit on a store's entries is incomplete.
pub(super) fn names(folder: &OwnedFd) -> Result<Vec<Vec<u8>>, Errno> {
    let mut found = Vec::new();
    for entry in Dir::read_from(folder)? {
        let name = entry?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            found.push(name);
        }
        if found.len() > ENTRIES_MAX {
            break;
        }
    }
    found.sort_unstable();
    Ok(found)
}

fn entry(found: &FolderEntry<'_>, stop: &Stop) -> Result<FileEntry, Errno> {
    let stat = found.stat;
    let mut entry = FileEntry {
        kind: FileKind::File,
        mode: stat.st_mode & 0o7777,
        owner: stat.st_uid,
        group: stat.st_gid,
        size: 0,
        content: String::new(),
    };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {
            entry.size = stat.st_size.unsigned_abs();
            entry.content = content(found, entry.size, stop)?;
        }
        FileType::Symlink => {
            entry.kind = FileKind::Link;
            let target = rustix::fs::readlinkat(found.parent, found.name, Vec::new())?;
            entry.content = shown(Path::new(OsStr::from_bytes(target.to_bytes())));
            // Links have no mode of their own.
            entry.mode = 0o777;
        }
        FileType::Directory => entry.kind = FileKind::Folder,
        FileType::Fifo => entry.kind = FileKind::Pipe,
        FileType::Socket => entry.kind = FileKind::Socket,
        FileType::CharacterDevice | FileType::BlockDevice | FileType::Unknown => {
            entry.kind = FileKind::Device;
            entry.size = stat.st_rdev;
        }
    }
    Ok(entry)
}

fn content(found: &FolderEntry<'_>, size: u64, stop: &Stop) -> Result<String, Errno> {
    let mut hash = blake3::Hasher::new();
    let mut file = open_file(found.parent, found.name)?.take(size);
    let mut piece = [0; PIECE];
    loop {
        stop.check()?;
        match file.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => drop(hash.update(&piece[..read])),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(errno(&error)),
        }
    }
    Ok(hash.finalize().to_hex().to_string())
}

/// Opens a regular file for reading. Links are not followed, and opening a pipe in the place of a file does not block.
pub(super) fn open_file(parent: BorrowedFd<'_>, name: &OsStr) -> Result<File, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::openat(parent, name, flags, Mode::empty())?;
    match FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) {
        FileType::RegularFile => Ok(File::from(file)),
        _ => Err(Errno::NXIO),
    }
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

/// Returns a path relative to a store in the form that messages and contents use: invalid UTF-8 and backslashes are
/// escaped.
pub(super) fn shown(path: &Path) -> String {
    let mut text = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        text.push_str(&chunk.valid().replace('\\', "\\\\"));
        chunk.invalid().iter().for_each(|byte| text.push_str(&format!("\\x{byte:02x}")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_in_the_place_of_a_nested_stores_folder_leads_nowhere() {
        let host = tempfile::tempdir().expect("a folder");
        std::fs::write(host.path().join("secret"), "").expect("a file");
        let tree = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(tree.path().join("files")).expect("a folder");
        let place = StoreFolder { root: tree.path().to_owned(), below: "files".into() };
        assert!(place.open().is_ok());
        std::fs::remove_dir(tree.path().join("files")).expect("removed");
        std::os::unix::fs::symlink(host.path(), tree.path().join("files")).expect("a link");
        assert_eq!(place.open().err(), Some(Errno::LOOP));
        // A link in an intermediate folder is not followed either.
        std::fs::create_dir(host.path().join("deep")).expect("a folder");
        let place = StoreFolder { root: tree.path().to_owned(), below: "files/deep".into() };
        assert_eq!(place.open().err(), Some(Errno::LOOP));
    }
}
