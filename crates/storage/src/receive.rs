//! Unpacking the archive of a store, as the engine sends it, into a tree.
//!
//! The archive holds one folder, which becomes the tree. Engines leave some things out, and they cannot be got back here:
//! sockets (their servers make them anew), fractions of seconds, and of extended attributes all but capabilities.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::path::PathBuf;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Timestamps};
use rustix::io::Errno;

use super::StorageError;
use super::archive::{Archive, Kind, Member, parts, shown};
use super::attributes::Attributes;
use super::content::{Cut, write_sparse};
use super::walk::{Folder, as_path};

/// How much is taken from an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The content of all files together, in bytes; holes count.
    pub bytes: u64,
    /// Members of all kinds.
    pub members: u64,
    /// The paths and attributes of all folders, which are kept in memory until the end, in bytes.
    pub folder_bytes: usize,
}

impl Default for Limits {
    /// More than any site is known to have, and little enough to end.
    fn default() -> Self {
        Self { bytes: 1 << 40, members: 50_000_000, folder_bytes: 256 << 20 }
    }
}

/// The counts of a received archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Received {
    /// Files, each once however many names it has.
    pub files: u64,
    /// Folders, the tree's own included.
    pub folders: u64,
    /// Further names of files, symbolic links, pipes and devices.
    pub others: u64,
    /// The content of all files, in bytes.
    pub bytes: u64,
    /// How much of it was written; the rest are holes.
    pub written_bytes: u64,
}

/// Fills the empty folder `to` with what the one folder of an archive holds.
pub(super) fn receive(archive: impl Read, to: &Folder, limits: Limits) -> Result<Received, StorageError> {
    let mut archive = Archive::new(archive);
    let first = archive.next_member()?.filter(|first| first.kind == Kind::Folder);
    let first = first.ok_or_else(|| refused(&[], "the archive does not begin with a folder: is the store one?"))?;
    let mut unpacking = Unpacking {
        to,
        top: first.path.clone(),
        at: None,
        folders: Vec::new(),
        folder_bytes: 0,
        limits,
        received: Received::default(),
    };
    unpacking.keep(PathBuf::new(), &first)?;
    while let Some(member) = archive.next_member()? {
        unpacking.member(&member, archive.content())?;
    }
    unpacking.finish()
}

struct Unpacking<'a> {
    to: &'a Folder,
    /// The path of the archive's one folder.
    top: Vec<CString>,
    /// The folder that the last member went to: the next one mostly goes there too.
    at: Option<(PathBuf, Folder)>,
    /// The folders, which get their attributes when nothing in them changes any more.
    folders: Vec<(PathBuf, Attributes)>,
    /// The memory that `folders` occupies, in bytes.
    folder_bytes: usize,
    limits: Limits,
    received: Received,
}

impl Unpacking<'_> {
    fn member(&mut self, member: &Member, content: impl Read) -> Result<(), StorageError> {
        let counted = self.received.files + self.received.folders + self.received.others;
        if counted >= self.limits.members {
            return Err(refused(&member.path, format!("the archive has more than {} members", self.limits.members)));
        }
        if member.path == self.top {
            return Err(refused(&member.path, "the archive has its one folder twice"));
        }
        let path = self.within(&member.path, &member.path)?;
        let name = member.path.last().map(CString::as_c_str).unwrap_or_default();
        let folder = self.enter(path.parent().map(PathBuf::from).unwrap_or_default(), member)?;
        match member.kind {
            Kind::Folder => {
                rustix::fs::mkdirat(folder, name, Mode::RWXU).map_err(made(member, folder))?;
                self.keep(path, member)?;
            }
            Kind::File => self.file(member, name, content)?,
            Kind::HardLink => self.hard_link(member, name)?,
            Kind::Symlink | Kind::Pipe | Kind::CharacterDevice | Kind::BlockDevice => {
                node(member, folder, name).map_err(made(member, folder))?;
                self.received.others += 1;
            }
        }
        Ok(())
    }

    /// Keeps what a folder is to get at the end.
    fn keep(&mut self, path: PathBuf, member: &Member) -> Result<(), StorageError> {
        let xattrs = member
            .xattrs
            .iter()
            .map(|(name, value)| size_of::<(CString, Vec<u8>)>() + name.count_bytes() + value.len());
        self.folder_bytes += size_of::<(PathBuf, Attributes)>() + path.as_os_str().len() + xattrs.sum::<usize>();
        if self.folder_bytes > self.limits.folder_bytes {
            let what =
                format!("the paths and attributes of its folders have more than {} bytes", self.limits.folder_bytes);
            return Err(refused(&member.path, what));
        }
        self.received.folders += 1;
        self.folders.push((path, attributes(member)));
        Ok(())
    }

    /// A path in the archive as one in the tree.
    fn within(&self, parts: &[CString], member: &[CString]) -> Result<PathBuf, StorageError> {
        let within = parts.strip_prefix(self.top.as_slice()).filter(|within| !within.is_empty());
        let outside =
            || refused(member, format!("it is not below the archive's one folder, `{}`", shown(&self.top).display()));
        Ok(shown(within.ok_or_else(outside)?))
    }

    /// Opens the folder that a member goes to, unless it is open.
    fn enter(&mut self, path: PathBuf, member: &Member) -> Result<&Folder, StorageError> {
        if self.at.as_ref().is_none_or(|(at, _)| *at != path) {
            let folder = self.open(&path, member)?;
            self.at = Some((path, folder));
        }
        // It was put there just now, or was there.
        self.at.as_ref().map(|(_, folder)| folder).ok_or_else(|| refused(&member.path, NO_FOLDER))
    }

    fn open(&self, path: &std::path::Path, member: &Member) -> Result<Folder, StorageError> {
        self.to.try_below(path).map_err(|error| match error {
            Errno::NOENT | Errno::NOTDIR | Errno::LOOP => refused(&member.path, NO_FOLDER),
            error => StorageError::at("open the folder", self.to.path.join(path))(error),
        })
    }

    fn file(&mut self, member: &Member, name: &CStr, content: impl Read) -> Result<(), StorageError> {
        if member.size > self.limits.bytes.saturating_sub(self.received.bytes) {
            let what = format!("the archive holds more than {} bytes", self.limits.bytes);
            return Err(refused(&member.path, what));
        }
        let Some((_, folder)) = &self.at else { return Err(refused(&member.path, NO_FOLDER)) };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(folder, name, flags, Mode::RUSR | Mode::WUSR).map_err(made(member, folder))?;
        let file = File::from(file);
        let written = write_sparse(content, member.size, &file).map_err(|cut| match cut {
            Cut::Reading(error) => StorageError::Stream(error),
            Cut::Writing(error) => StorageError::at("write", folder.path_of(name))(error),
        })?;
        attributes(member)
            .give_to_open(&file)
            .map_err(StorageError::at("give its attributes to", folder.path_of(name)))?;
        self.received.files += 1;
        self.received.bytes += member.size;
        self.received.written_bytes += written;
        Ok(())
    }

    fn hard_link(&mut self, member: &Member, name: &CStr) -> Result<(), StorageError> {
        let linked = parts(&member.link).map_err(|fault| refused(&member.path, fault.to_string()))?;
        let path = self.within(&linked, &member.path)?;
        let source = self.open(path.parent().unwrap_or(&path), member)?;
        let Some((_, folder)) = &self.at else { return Err(refused(&member.path, NO_FOLDER)) };
        let source_name = linked.last().map(CString::as_c_str).unwrap_or_default();
        rustix::fs::linkat(&source, source_name, folder, name, AtFlags::empty()).map_err(|error| match error {
            Errno::NOENT | Errno::PERM => {
                refused(&member.path, format!("it links to `{}`, which is no file before it", path.display()))
            }
            error => made(member, folder)(error),
        })?;
        self.received.others += 1;
        Ok(())
    }

    /// Gives the folders their attributes, the deepest first: a folder's own may close the way to those in it.
    fn finish(self) -> Result<Received, StorageError> {
        for (path, attributes) in self.folders.iter().rev() {
            let folder = self.to.below(path)?;
            attributes.give_to_open(&folder).map_err(StorageError::at("give its attributes to", &folder.path))?;
        }
        Ok(self.received)
    }
}

const NO_FOLDER: &str = "its folder is not in the archive before it";

fn refused(member: &[CString], what: impl Into<String>) -> StorageError {
    StorageError::Archive { member: shown(member), what: what.into() }
}

/// Translates the error of creating a member.
fn made(member: &Member, folder: &Folder) -> impl FnOnce(Errno) -> StorageError {
    let path = folder.path.join(member.path.last().map(|name| as_path(name)).unwrap_or(std::path::Path::new("")));
    let member = member.path.clone();
    move |error| match error {
        Errno::EXIST => refused(&member, "the archive has it twice"),
        error => StorageError::at("make", path)(error),
    }
}

fn attributes(member: &Member) -> Attributes {
    let times =
        Timestamps { last_access: member.accessed.unwrap_or(member.modified), last_modification: member.modified };
    Attributes { uid: member.uid, gid: member.gid, mode: member.mode, times, xattrs: member.xattrs.clone() }
}

fn node(member: &Member, folder: &Folder, name: &CStr) -> Result<(), Errno> {
    let kind = match member.kind {
        Kind::Symlink => None,
        Kind::CharacterDevice => Some(FileType::CharacterDevice),
        Kind::BlockDevice => Some(FileType::BlockDevice),
        _ => Some(FileType::Fifo),
    };
    match kind {
        None => rustix::fs::symlinkat(&member.link, folder, name)?,
        Some(kind) => {
            let device = rustix::fs::makedev(member.device.0, member.device.1);
            rustix::fs::mknodat(folder, name, kind, Mode::RUSR | Mode::WUSR, device)?;
        }
    }
    attributes(member).give_to_entry(folder.as_fd(), name, kind.is_none())
}
