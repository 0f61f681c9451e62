//! The entries of a container's writable layer and memory file systems, with hashes of their content.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::Failed;
use super::mounts::Mounts;
use arenad_engine::{LayerChange, LayerChangeKind};
use arenad_folders::beneath;
use arenad_model::coverage::{FOLDER, REMOVED, ScratchRules};

/// The maximum number of entries that are read in one container. Sites write a few dozen outside their stores.
const ENTRIES_MAX: usize = 20_000;
/// The maximum depth of folders. Sites do not create deeper ones, and each level keeps one folder open.
const DEPTH_MAX: usize = 100;
/// The maximum size of the files that are read, in bytes. Hashing them takes about a tenth of a second.
const READ_MAX: u64 = 256 << 20;

/// One pass over the files of a container.
pub(super) struct ContainerWalk<'a> {
    /// The root folder of the container, as its processes see it.
    root: OwnedFd,
    mounts: &'a Mounts,
    rules: &'a ScratchRules,
    found: BTreeMap<String, String>,
    read: u64,
}

impl<'a> ContainerWalk<'a> {
    pub(super) fn begin(pid: u32, mounts: &'a Mounts, rules: &'a ScratchRules) -> Result<Self, Failed> {
        Ok(Self { root: container_root(pid)?, mounts, rules, found: BTreeMap::new(), read: 0 })
    }

    /// Returns the attributes of the entries by path.
    pub(super) fn end(self) -> BTreeMap<String, String> {
        self.found
    }

    /// Adds everything at and below a mount point.
    pub(super) fn mount(&mut self, path: &str) -> Result<(), Failed> {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        let parent = below(&self.root, parent).map_err(Failed::at(format!("open the folder of {path}")))?;
        let stat = rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW);
        let stat = stat.map_err(Failed::at(format!("look at {path}")))?;
        self.entry(parent.as_fd(), OsStr::new(name), path, &stat)?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            let folder = folder_in(parent.as_fd(), name).map_err(Failed::at(format!("open {path}")))?;
            self.folder(&folder, path, &mut |_, _| false)?;
        }
        Ok(())
    }

    /// Adds everything in the upper folder of an overlay, except folders that equal those of the image and exist only
    /// because an entry below them was written.
    pub(super) fn overlay(&mut self, upper: &Path, lower: &[PathBuf]) -> Result<(), Failed> {
        let folder = open_folder(upper).map_err(Failed::at("open its writable layer"))?;
        self.folder(&folder, "", &mut |path, stat| {
            // An opaque folder hides the image's content below it, so it differs from the image whatever its attributes
            // are.
            let mut opaque = [0; 8];
            let above = below(&folder, path);
            let is_opaque =
                above.and_then(|above| rustix::fs::fgetxattr(above, "trusted.overlay.opaque", &mut opaque[..]));
            if is_opaque != Err(Errno::NODATA) {
                return false;
            }
            let is_same = |layer: &PathBuf| {
                let found =
                    open_folder(layer).and_then(|layer| below(&layer, path)).and_then(rustix::fs::fstat).ok()?;
                Some(attributes(&found) == attributes(stat))
            };
            lower.iter().find_map(is_same).unwrap_or(false)
        })
    }

    /// Adds the changes that the engine reports.
    pub(super) fn changes(&mut self, changes: &[LayerChange]) -> Result<(), Failed> {
        for LayerChange { path, kind } in changes {
            if self.is_hidden(path) || self.rules.allow(path) {
                continue;
            }
            if *kind == LayerChangeKind::Removed {
                self.note(path, REMOVED.to_owned())?;
                continue;
            }
            let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
            let doing = format!("look at {path}");
            let parent = below(&self.root, parent).map_err(Failed::at(doing.clone()))?;
            match rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => self.entry(parent.as_fd(), OsStr::new(name), path, &stat)?,
                Err(Errno::NOENT) => self.note(path, REMOVED.to_owned())?,
                Err(error) => return Err(Failed::at(doing)(error)),
            }
        }
        Ok(())
    }

    /// Whether a mount hides the path, so that no process sees it.
    fn is_hidden(&self, path: &str) -> bool {
        self.mounts.points.contains(path)
    }

    fn folder(
        &mut self,
        folder: &OwnedFd,
        path: &str,
        is_same: &mut dyn FnMut(&str, &Stat) -> bool,
    ) -> Result<(), Failed> {
        if path.split('/').count() > DEPTH_MAX {
            return Err(Failed::TooMuch("100 folders in one another"));
        }
        for name in names(folder).map_err(Failed::at(format!("read {path}/")))? {
            let shown = format!("{path}/{}", String::from_utf8_lossy(name.as_bytes()));
            if self.is_hidden(&shown) {
                continue;
            }
            let stat = match rustix::fs::statat(folder, &name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => stat,
                // The entry was removed during the pass.
                Err(Errno::NOENT) => continue,
                Err(error) => return Err(Failed::at(format!("look at {shown}"))(error)),
            };
            let is_folder = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
            let is_scratch = self.rules.allow(&shown);
            if !(is_scratch || is_folder && is_same(&shown, &stat)) {
                self.entry(folder.as_fd(), &name, &shown, &stat)?;
            }
            // Everything below scratch is scratch as well.
            if is_folder && !is_scratch {
                match folder_in(folder.as_fd(), &name) {
                    Ok(below) => self.folder(&below, &shown, is_same)?,
                    Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                    Err(error) => return Err(Failed::at(format!("open {shown}"))(error)),
                }
            }
        }
        Ok(())
    }

    fn entry(&mut self, parent: BorrowedFd<'_>, name: &OsStr, path: &str, stat: &Stat) -> Result<(), Failed> {
        let mut text = attributes(stat);
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {
                let size = stat.st_size.unsigned_abs();
                self.read = self.read.saturating_add(size);
                if self.read > READ_MAX {
                    return Err(Failed::TooMuch("256 MiB"));
                }
                match content(parent, name, size) {
                    Ok(hash) => text.push_str(&format!(" {size} {hash}")),
                    // The file was removed or replaced by another type during the pass. The next pass shows the result.
                    Err(Errno::NOENT | Errno::NXIO | Errno::LOOP) => text.push_str(" gone"),
                    Err(error) => return Err(Failed::at(format!("read {path}"))(error)),
                }
            }
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(parent, name, Vec::new());
                let target = target.map_err(Failed::at(format!("read the link {path}")))?;
                text.push_str(&format!(" to {}", String::from_utf8_lossy(target.to_bytes())));
            }
            _ => {}
        }
        self.note(path, text)
    }

    fn note(&mut self, path: &str, entry: String) -> Result<(), Failed> {
        self.found.insert(path.to_owned(), entry);
        if self.found.len() > ENTRIES_MAX { Err(Failed::TooMuch("20,000 files and folders")) } else { Ok(()) }
    }
}

/// Returns the type, the permissions and the owner of an entry.
fn attributes(stat: &Stat) -> String {
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => "file",
        FileType::Directory => FOLDER,
        FileType::Symlink => "link",
        FileType::Fifo => "pipe",
        FileType::Socket => "socket",
        // An overlay marks a removed entry of the image by this device.
        FileType::CharacterDevice if stat.st_rdev == 0 => return REMOVED.to_owned(),
        FileType::CharacterDevice | FileType::BlockDevice | FileType::Unknown => {
            return format!("device {:o} {}:{} {:x}", stat.st_mode & 0o7777, stat.st_uid, stat.st_gid, stat.st_rdev);
        }
    };
    format!("{kind} {:o} {}:{}", stat.st_mode & 0o7777, stat.st_uid, stat.st_gid)
}

fn content(parent: BorrowedFd<'_>, name: &OsStr, size: u64) -> Result<String, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(parent, name, flags, Mode::empty())?;
    if FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) != FileType::RegularFile {
        return Err(Errno::NXIO);
    }
    let mut hash = blake3::Hasher::new();
    let read = hash.update_reader(File::from(file).take(size));
    read.map_err(|error: io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    Ok(hash.finalize().to_hex().as_str()[..32].to_owned())
}

/// Empties a folder of a container, except for mounts in it. A missing folder counts as empty.
pub(super) fn empty(pid: u32, path: &str) -> Result<(), Failed> {
    match below(&container_root(pid)?, path) {
        Ok(folder) => clear(&folder, 0).map_err(Failed::at(format!("empty {path}"))),
        Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(Failed::at(format!("open {path}"))(error)),
    }
}

fn clear(folder: &OwnedFd, depth: usize) -> Result<(), Errno> {
    if depth > DEPTH_MAX {
        return Err(Errno::NAMETOOLONG);
    }
    for name in names(folder)? {
        match rustix::fs::unlinkat(folder, &name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT | Errno::BUSY) => continue,
            Err(Errno::ISDIR | Errno::PERM) => {}
            Err(error) => return Err(error),
        }
        clear(&folder_in(folder.as_fd(), &name)?, depth + 1)?;
        match rustix::fs::unlinkat(folder, &name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT | Errno::BUSY) => {}
            // The folder contains a mount.
            Err(Errno::NOTEMPTY) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn container_root(pid: u32) -> Result<OwnedFd, Failed> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(CWD, format!("/proc/{pid}/root"), flags, Mode::empty());
    opened.map_err(Failed::at("open its root folder"))
}

fn open_folder(path: &Path) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(CWD, path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

/// Opens a folder below another one by an absolute path, without following links.
fn below(root: &OwnedFd, path: &str) -> Result<OwnedFd, Errno> {
    beneath::open_folder(root, Path::new(path.trim_start_matches('/')))
}

fn folder_in(parent: BorrowedFd<'_>, name: impl rustix::path::Arg) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(parent, name, flags, Mode::empty())
}

fn names(folder: &OwnedFd) -> Result<BTreeSet<std::ffi::OsString>, Errno> {
    let mut found = BTreeSet::new();
    for entry in Dir::read_from(folder)? {
        let name = entry?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            found.insert(OsStr::from_bytes(&name).to_owned());
        }
    }
    Ok(found)
}
