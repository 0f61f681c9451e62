//! Folders of this host that a site writes to.
//!
//! A site may exchange anything for anything while it is read. So every folder is opened beneath the store's own without
//! following a link, nothing but regular files is opened, and no more is read of one than it had when it was looked at.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::content::{Content, FileEntry, FileKind};
use super::extent::{ENTRIES_MAX, Extent};
use super::rules::FileRules;
use super::stat_mark::{Seen, StatMark};
use super::{DigestError, Look, Stop, blocking};
use arenad_folders::beneath;
use arenad_model::site::Site;
use arenad_model::store::Store;

/// How often a folder is read anew when it changes while it is read.
const ATTEMPTS: usize = 3;

/// How much of a file is read before it is asked whether anybody still waits, in bytes.
pub(super) const PIECE: usize = 1 << 16;

/// The most paths that are remembered from one look to the next: some ten megabytes of memory.
const PATHS_MAX: usize = 200_000;

/// The paths of everything that was found in a folder and counts, in the order in which it was.
pub(super) type Paths = Arc<[PathBuf]>;

/// Where a store's folder lies: below a folder of ours, through whatever the site has put in between.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// The tree.
    pub(super) root: PathBuf,
    /// The path below it; empty: the tree itself.
    pub(super) below: PathBuf,
}

impl Place {
    /// Opens the folder. No link leads out of the tree, nor anywhere else in it.
    pub(super) fn open(&self) -> Result<OwnedFd, Errno> {
        let folder = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(&self.root, folder, Mode::empty())?;
        if self.below.as_os_str().is_empty() { Ok(root) } else { beneath::open_folder(&root, &self.below) }
    }
}

/// The mark of a folder and all below it. Where the paths are known, no folder need be opened and read, which is most of the
/// work: what comes or goes changes the time of the folder that it is in.
pub(super) async fn mark(
    site: &Site,
    store: &Store,
    folder: Place,
    known: Option<Paths>,
) -> Result<Option<String>, DigestError> {
    let walk = Walk::new(site, store, folder);
    blocking(store, move |stop| match known {
        Some(paths) => walk.mark_of(&paths),
        None => Ok(walk.seen(stop)?.mark()),
    })
    .await
}

/// What is in a folder and all below it.
pub(super) async fn look(site: &Site, store: &Store, folder: Place) -> Result<Look, DigestError> {
    let walk = Walk::new(site, store, folder);
    blocking(store, move |stop| {
        let mut attempt = 1;
        loop {
            let (content, paths, before) = walk.content(stop)?;
            let after = walk.seen(stop)?;
            if after.is_like(&before) || attempt == ATTEMPTS {
                let paths = (paths.len() <= PATHS_MAX).then(|| paths.into());
                return Ok(Look { content, mark: after.mark_since(before), paths });
            }
            attempt += 1;
        }
    })
    .await
}

/// What a walk needs to know.
struct Walk {
    store: String,
    folder: Place,
    rules: FileRules,
}

/// One name in a folder.
struct Found<'a> {
    /// The folder.
    parent: BorrowedFd<'a>,
    /// The name in it.
    name: &'a OsStr,
    /// The path relative to the store.
    path: &'a Path,
    stat: &'a Stat,
}

impl Walk {
    fn new(site: &Site, store: &Store, folder: Place) -> Self {
        Self { store: store.name.clone(), folder, rules: FileRules::of(site, store) }
    }

    fn seen(&self, stop: &Stop) -> Result<Seen, DigestError> {
        let mut mark = StatMark::default();
        self.each(stop, &mut |found| {
            mark.add(found.path.as_os_str().as_bytes(), found.stat);
            Ok(())
        })?;
        Ok(mark.finish())
    }

    /// The mark, if what was found is all still there; `None` if it is not.
    fn mark_of(&self, paths: &[PathBuf]) -> Result<Option<String>, DigestError> {
        let mut mark = StatMark::default();
        let root = self.open()?;
        for path in paths {
            // A link in the place of a folder is only looked through, and has changed the folder that it is in.
            match rustix::fs::statat(&root, path, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => mark.add(path.as_os_str().as_bytes(), &stat),
                Err(_) => return Ok(None),
            }
        }
        Ok(mark.finish().mark())
    }

    /// Reads everything; with it come the paths, and what was seen of each file before it was read.
    fn content(&self, stop: &Stop) -> Result<(Content, Vec<PathBuf>, Seen), DigestError> {
        let mut content = Content::default();
        let (mut paths, mut mark) = (Vec::new(), StatMark::default());
        self.each(stop, &mut |found| {
            paths.push(found.path.to_owned());
            mark.add(found.path.as_os_str().as_bytes(), found.stat);
            let name = shown(found.path);
            match entry(found, stop) {
                Ok(entry) => drop(content.files.insert(name, entry)),
                // It went, or became something else, while it was looked at: the mark tells.
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

    /// Visits the folder and everything below it that counts, in the same order every time.
    fn each(
        &self,
        stop: &Stop,
        visit: &mut dyn FnMut(&Found<'_>) -> Result<(), DigestError>,
    ) -> Result<(), DigestError> {
        let here = Path::new(".");
        let root = self.open()?;
        let stat = rustix::fs::fstat(&root).map_err(|cause| self.failed(here, cause))?;
        visit(&Found { parent: root.as_fd(), name: here.as_os_str(), path: here, stat: &stat })?;
        let mut waiting = vec![PathBuf::new()];
        let mut extent = Extent::of(&self.store);
        while let Some(path) = waiting.pop() {
            let opened = match beneath::open_folder(&root, &path) {
                Ok(opened) => opened,
                Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => continue,
                Err(cause) => return Err(self.failed(&path, cause)),
            };
            for name in names(&opened).map_err(|cause| self.failed(&path, cause))? {
                let name = OsStr::from_bytes(&name);
                let path = path.join(name);
                extent.add(path.as_os_str().len())?;
                stop.check().map_err(|cause| self.failed(&path, cause))?;
                if self.rules.leave_out(&path) {
                    continue;
                }
                let stat = match rustix::fs::statat(&opened, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => stat,
                    Err(Errno::NOENT) => continue,
                    Err(cause) => return Err(self.failed(&path, cause)),
                };
                visit(&Found { parent: opened.as_fd(), name, path: &path, stat: &stat })?;
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

/// The names in a folder, sorted. No more than one too many for a store: then there is no telling their order, nor any need to.
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

fn entry(found: &Found<'_>, stop: &Stop) -> Result<FileEntry, Errno> {
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

fn content(found: &Found<'_>, size: u64, stop: &Stop) -> Result<String, Errno> {
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

/// Opens a regular file for reading: no link is followed, and what only pretends to be one does not block.
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

/// A path relative to a store as messages and contents name it: bytes that are no text, and backslashes, are escaped.
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
        let place = Place { root: tree.path().to_owned(), below: "files".into() };
        assert!(place.open().is_ok());
        std::fs::remove_dir(tree.path().join("files")).expect("removed");
        std::os::unix::fs::symlink(host.path(), tree.path().join("files")).expect("a link");
        assert_eq!(place.open().err(), Some(Errno::LOOP));
        // Nor does one on the way to it.
        std::fs::create_dir(host.path().join("deep")).expect("a folder");
        let place = Place { root: tree.path().to_owned(), below: "files/deep".into() };
        assert_eq!(place.open().err(), Some(Errno::LOOP));
    }
}
