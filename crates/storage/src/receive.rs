//! Unpacks the archive of a store, as the engine sends it, into a tree.
//!
//! The archive contains one folder, which becomes the tree. Engines leave out sockets (which their servers create
//! again), fractions of seconds, and all extended attributes except capabilities; they cannot be recovered here.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::path::PathBuf;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Timestamps};
use rustix::io::Errno;

use super::StorageError;
use super::archive::{ArchiveMember, ArchiveMemberKind, ArchiveReader, parts, shown};
use super::attributes::Attributes;
use super::content::{Cut, write_sparse};
use super::walk::{OpenFolder, as_path};

/// The limits on the content of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArchiveLimits {
    /// The total size of all files' content, in bytes, including holes.
    pub bytes: u64,
    /// The number of members of all kinds.
    pub members: u64,
    /// The total size of the paths and attributes of all folders, in bytes; they are kept in memory until the end.
    pub folder_bytes: usize,
}

impl Default for ArchiveLimits {
    /// The default limits are higher than the needs of any known site, but low enough that every archive ends.
    fn default() -> Self {
        Self { bytes: 1 << 40, members: 50_000_000, folder_bytes: 256 << 20 }
    }
}

/// The counts of a received archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Received {
    /// The number of files; a file with several names counts once.
    pub files: u64,
    /// The number of folders, including the tree's own.
    pub folders: u64,
    /// The number of further names of files, symbolic links, pipes and devices.
    pub others: u64,
    /// The size of all files' content, in bytes.
    pub bytes: u64,
    /// The part of `bytes` that was written rather than left as holes, in bytes.
    pub written_bytes: u64,
}

/// Fills the empty folder `to` with the content of an archive's single folder.
pub(super) fn receive(archive: impl Read, to: &OpenFolder, limits: ArchiveLimits) -> Result<Received, StorageError> {
    let mut archive = ArchiveReader::new(archive);
    let first = archive.next_member()?.filter(|first| first.kind == ArchiveMemberKind::Folder);
    let first = first.ok_or_else(|| refused(&[], "the archive does not begin with a folder: is the store one?"))?;
    let mut unpacking = ArchiveUnpacking {
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

struct ArchiveUnpacking<'a> {
    to: &'a OpenFolder,
    /// The path of the archive's single folder.
    top: Vec<CString>,
    /// The folder of the last member; the next member is usually in the same folder.
    at: Option<(PathBuf, OpenFolder)>,
    /// The folders, whose attributes are set when their content is complete.
    folders: Vec<(PathBuf, Attributes)>,
    /// The memory that `folders` occupies, in bytes.
    folder_bytes: usize,
    limits: ArchiveLimits,
    received: Received,
}

impl ArchiveUnpacking<'_> {
    fn member(&mut self, member: &ArchiveMember, content: impl Read) -> Result<(), StorageError> {
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
            ArchiveMemberKind::Folder => {
                rustix::fs::mkdirat(folder, name, Mode::RWXU).map_err(made(member, folder))?;
                self.keep(path, member)?;
            }
            ArchiveMemberKind::File => self.file(member, name, content)?,
            ArchiveMemberKind::HardLink => self.hard_link(member, name)?,
            ArchiveMemberKind::Symlink
            | ArchiveMemberKind::Pipe
            | ArchiveMemberKind::CharacterDevice
            | ArchiveMemberKind::BlockDevice => {
                node(member, folder, name).map_err(made(member, folder))?;
                self.received.others += 1;
            }
        }
        Ok(())
    }

    /// Remembers the attributes of a folder, which are set at the end.
    fn keep(&mut self, path: PathBuf, member: &ArchiveMember) -> Result<(), StorageError> {
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

    /// Converts a path in the archive to a path relative to the tree.
    fn within(&self, parts: &[CString], member: &[CString]) -> Result<PathBuf, StorageError> {
        let within = parts.strip_prefix(self.top.as_slice()).filter(|within| !within.is_empty());
        let outside =
            || refused(member, format!("it is not below the archive's one folder, `{}`", shown(&self.top).display()));
        Ok(shown(within.ok_or_else(outside)?))
    }

    /// Opens the folder that will contain a member, unless it is open.
    fn enter(&mut self, path: PathBuf, member: &ArchiveMember) -> Result<&OpenFolder, StorageError> {
        if self.at.as_ref().is_none_or(|(at, _)| *at != path) {
            let folder = self.open(&path, member)?;
            self.at = Some((path, folder));
        }
        // The folder is set here in any case, so the error cannot occur.
        self.at.as_ref().map(|(_, folder)| folder).ok_or_else(|| refused(&member.path, NO_FOLDER))
    }

    fn open(&self, path: &std::path::Path, member: &ArchiveMember) -> Result<OpenFolder, StorageError> {
        self.to.try_below(path).map_err(|error| match error {
            Errno::NOENT | Errno::NOTDIR | Errno::LOOP => refused(&member.path, NO_FOLDER),
            error => StorageError::at("open the folder", self.to.path.join(path))(error),
        })
    }

    fn file(&mut self, member: &ArchiveMember, name: &CStr, content: impl Read) -> Result<(), StorageError> {
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

    fn hard_link(&mut self, member: &ArchiveMember, name: &CStr) -> Result<(), StorageError> {
        let linked = parts(&member.link).map_err(|fault| refused(&member.path, fault.to_string()))?;
        let path = self.within(&linked, &member.path)?;
        let source = self.open(path.parent().unwrap_or(&path), member)?;
        let Some((_, folder)) = &self.at else { return Err(refused(&member.path, NO_FOLDER)) };
        let source_name = linked.last().map(CString::as_c_str).unwrap_or_default();
        rustix::fs::linkat(&source, source_name, folder, name, AtFlags::empty()).map_err(|error| match error {
            Errno::NOENT | Errno::PERM => {
                refused(&member.path, format!("it links to `{}`, which is not an earlier file", path.display()))
            }
            error => made(member, folder)(error),
        })?;
        self.received.others += 1;
        Ok(())
    }

    /// Sets the attributes of the folders, the deepest first, because a folder's mode may prevent access to its
    /// subfolders.
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
fn made(member: &ArchiveMember, folder: &OpenFolder) -> impl FnOnce(Errno) -> StorageError {
    let path = folder.path.join(member.path.last().map(|name| as_path(name)).unwrap_or(std::path::Path::new("")));
    let member = member.path.clone();
    move |error| match error {
        Errno::EXIST => refused(&member, "the archive has it twice"),
        error => StorageError::at("make", path)(error),
    }
}

fn attributes(member: &ArchiveMember) -> Attributes {
    let times =
        Timestamps { last_access: member.accessed.unwrap_or(member.modified), last_modification: member.modified };
    Attributes { uid: member.uid, gid: member.gid, mode: member.mode, times, xattrs: member.xattrs.clone() }
}

fn node(member: &ArchiveMember, folder: &OpenFolder, name: &CStr) -> Result<(), Errno> {
    let kind = match member.kind {
        ArchiveMemberKind::Symlink => None,
        ArchiveMemberKind::CharacterDevice => Some(FileType::CharacterDevice),
        ArchiveMemberKind::BlockDevice => Some(FileType::BlockDevice),
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
