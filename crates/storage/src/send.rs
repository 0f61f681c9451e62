//! Packs a tree into a tar archive that [`super::receive`] unpacks: POSIX (pax), with owners, modes, times in
//! nanoseconds, extended attributes, and links of both kinds. Sockets are left out; their servers create them again.

use std::collections::HashMap;
use std::ffi::{CStr, OsStr};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, Stat};
use tar::{EntryType, Header};

use super::StorageError;
use super::attributes::Attributes;
use super::walk::{OpenFolder, as_path, file_flags};

/// The name of the archive's single folder.
const TOP: &str = "store";

/// The maximum length of a name in a header, in bytes.
const NAME_BYTES: usize = 100;

/// The number of bytes that are read at a time.
const BLOCK: usize = 256 << 10;

/// Writes a tree as an archive of one folder. No process may change the tree meanwhile. The same tree yields the same
/// bytes.
pub(super) fn send(tree: &OpenFolder, to: impl Write) -> Result<(), StorageError> {
    let mut sending = Sending { tree, to: tar::Builder::new(to), first_names: HashMap::new() };
    let mut waiting = vec![PathBuf::new()];
    while let Some(path) = waiting.pop() {
        sending.folder(&path, &mut waiting)?;
    }
    sending.to.finish().map_err(StorageError::Sink)
}

struct Sending<'a, W: Write> {
    tree: &'a OpenFolder,
    to: tar::Builder<W>,
    /// The first name of each file with several names, by device and inode.
    first_names: HashMap<(u64, u64), PathBuf>,
}

impl<W: Write> Sending<'_, W> {
    fn folder(&mut self, path: &Path, waiting: &mut Vec<PathBuf>) -> Result<(), StorageError> {
        let folder = self.tree.below(path)?;
        let found = rustix::fs::fstat(&folder).map_err(StorageError::at("look at", &folder.path))?;
        let attributes = Attributes::of_open(folder.as_fd(), &found);
        let attributes = attributes.map_err(StorageError::at("read the attributes of", &folder.path))?;
        self.header(path, EntryType::Directory, &found, &attributes, None, 0)?;
        let mut children = folder.children()?;
        children.sort_by(|a, b| a.name.cmp(&b.name));
        // `waiting` is a stack, so the order is reversed.
        let folders = children.iter().rev().filter(|child| child.is_folder);
        waiting.extend(folders.map(|child| path.join(as_path(&child.name))));
        children.iter().filter(|child| !child.is_folder).try_for_each(|child| self.entry(&folder, path, &child.name))
    }

    fn entry(&mut self, folder: &OpenFolder, path: &Path, name: &CStr) -> Result<(), StorageError> {
        let at = folder.path_of(name);
        let path = path.join(as_path(name));
        let found = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
        let found = found.map_err(StorageError::at("look at", &at))?;
        if FileType::from_raw_mode(found.st_mode) == FileType::RegularFile {
            return self.file(folder, name, &path, &found);
        }
        let attributes = Attributes::of_entry(folder.as_fd(), name, &found);
        let attributes = attributes.map_err(StorageError::at("read the attributes of", &at))?;
        if let Some(first) = self.first_name(&found, &path) {
            return self.header(&path, EntryType::Link, &found, &attributes, Some(&within(&first)), 0);
        }
        let kind = match FileType::from_raw_mode(found.st_mode) {
            FileType::Symlink => {
                let leads_to = rustix::fs::readlinkat(folder, name, Vec::new());
                let leads_to = leads_to.map_err(StorageError::at("read the link", &at))?;
                return self.header(
                    &path,
                    EntryType::Symlink,
                    &found,
                    &attributes,
                    Some(OsStr::from_bytes(leads_to.to_bytes())),
                    0,
                );
            }
            FileType::Fifo => EntryType::Fifo,
            FileType::CharacterDevice => EntryType::Char,
            FileType::BlockDevice => EntryType::Block,
            _ => return Ok(()),
        };
        self.header(&path, kind, &found, &attributes, None, 0)
    }

    fn file(&mut self, folder: &OpenFolder, name: &CStr, path: &Path, found: &Stat) -> Result<(), StorageError> {
        let at = folder.path_of(name);
        let file = rustix::fs::openat(folder, name, file_flags(), Mode::empty());
        let file = file.map_err(StorageError::at("open", &at))?;
        let attributes = Attributes::of_open(file.as_fd(), found);
        let attributes = attributes.map_err(StorageError::at("read the attributes of", &at))?;
        if let Some(first) = self.first_name(found, path) {
            return self.header(path, EntryType::Link, found, &attributes, Some(&within(&first)), 0);
        }
        let size = found.st_size.unsigned_abs();
        self.header(path, EntryType::Regular, found, &attributes, None, size)?;
        self.content(file.as_fd(), &at, size)
    }

    /// Returns the first name of a file with several names, if one was found earlier; otherwise remembers this name.
    fn first_name(&mut self, found: &Stat, path: &Path) -> Option<PathBuf> {
        if found.st_nlink < 2 {
            return None;
        }
        let file = (found.st_dev, found.st_ino);
        let first = self.first_names.get(&file).cloned();
        if first.is_none() {
            self.first_names.insert(file, path.to_owned());
        }
        first
    }

    fn content(&mut self, file: BorrowedFd<'_>, at: &Path, size: u64) -> Result<(), StorageError> {
        let mut content = DescriptorReader(file).take(size);
        let mut buffer = vec![0; BLOCK];
        let mut left = size;
        let to = self.to.get_mut();
        while left > 0 {
            let read = content.read(&mut buffer).map_err(StorageError::at("read", at))?;
            if read == 0 {
                let cut = io::Error::new(io::ErrorKind::UnexpectedEof, "it has become shorter");
                return Err(StorageError::at("read", at)(cut));
            }
            to.write_all(&buffer[..read]).map_err(StorageError::Sink)?;
            left -= read as u64;
        }
        let padding = size.next_multiple_of(512) - size;
        to.write_all(&[0; 512][..padding as usize]).map_err(StorageError::Sink)
    }

    fn header(
        &mut self,
        path: &Path,
        kind: EntryType,
        found: &Stat,
        attributes: &Attributes,
        link: Option<&OsStr>,
        size: u64,
    ) -> Result<(), StorageError> {
        let path = within(path);
        let mut header = Header::new_ustar();
        header.set_entry_type(kind);
        header.set_mode(attributes.mode);
        header.set_uid(u64::from(attributes.uid));
        header.set_gid(u64::from(attributes.gid));
        header.set_size(size);
        // The header cannot hold times before 1970; the extension below holds all times.
        let modified = attributes.times.last_modification;
        header.set_mtime(modified.tv_sec.max(0).unsigned_abs());
        if matches!(kind, EntryType::Char | EntryType::Block) {
            let (major, minor) = (rustix::fs::major(found.st_rdev), rustix::fs::minor(found.st_rdev));
            header.set_device_major(major).and_then(|()| header.set_device_minor(minor)).map_err(StorageError::Sink)?;
        }
        let mut extensions: Vec<(String, Vec<u8>)> =
            vec![("mtime".to_owned(), time(modified)), ("atime".to_owned(), time(attributes.times.last_access))];
        put(&path, &mut header.as_ustar_mut().expect("it was made as one").name, "path", &mut extensions);
        if let Some(link) = link {
            put(link, &mut header.as_ustar_mut().expect("it was made as one").linkname, "linkpath", &mut extensions);
        }
        for (name, value) in &attributes.xattrs {
            extensions.push((format!("SCHILY.xattr.{}", name.to_string_lossy()), value.clone()));
        }
        let borrowed = extensions.iter().map(|(key, value)| (key.as_str(), value.as_slice()));
        self.to.append_pax_extensions(borrowed).map_err(StorageError::Sink)?;
        header.set_cksum();
        self.to.get_mut().write_all(header.as_bytes()).map_err(StorageError::Sink)
    }
}

/// Writes a name to its place in the header. If it is too long, an extension contains the whole name.
fn put(name: &OsStr, place: &mut [u8; NAME_BYTES], key: &str, extensions: &mut Vec<(String, Vec<u8>)>) {
    let bytes = name.as_bytes();
    let length = bytes.len().min(NAME_BYTES);
    place[..length].copy_from_slice(&bytes[..length]);
    if bytes.len() > NAME_BYTES {
        extensions.push((key.to_owned(), bytes.to_vec()));
    }
}

fn within(path: &Path) -> std::ffi::OsString {
    Path::new(TOP).join(path).into_os_string()
}

/// Returns a time in seconds since 1970 with a decimal fraction. Times before 1970 are negative decimal numbers.
fn time(time: rustix::fs::Timespec) -> Vec<u8> {
    let nanoseconds = i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec);
    let (sign, size) = if nanoseconds < 0 { ("-", -nanoseconds) } else { ("", nanoseconds) };
    format!("{sign}{}.{:09}", size / 1_000_000_000, size % 1_000_000_000).into_bytes()
}

struct DescriptorReader<'a>(BorrowedFd<'a>);

impl Read for DescriptorReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::read(self.0, buffer)?)
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::Timespec;

    use super::time;

    #[test]
    fn times_before_1970_count_downwards() {
        assert_eq!(time(Timespec { tv_sec: 5, tv_nsec: 500_000_000 }), b"5.500000000");
        assert_eq!(time(Timespec { tv_sec: -2, tv_nsec: 750_000_000 }), b"-1.250000000");
        assert_eq!(time(Timespec { tv_sec: -1, tv_nsec: 750_000_000 }), b"-0.250000000");
    }
}
