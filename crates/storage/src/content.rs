//! The content of files: cloned if the file system supports that, otherwise copied without filling holes.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;

use rustix::fs::SeekFrom;
use rustix::io::Errno;

use super::trial;

/// The unit of reading and writing, in bytes. An aligned block of this length that contains only zeros becomes a hole.
const BLOCK: usize = 64 << 10;

static ZEROS: [u8; BLOCK] = [0; BLOCK];

/// The way in which a file's content was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Made {
    /// The file shares its blocks with the other file.
    Cloned,
    /// The content was copied; the number of bytes that were written.
    Copied(u64),
}

/// Copies contents. Remembers that two file systems cannot clone, so that cloning is tried only once.
pub(super) struct Copier {
    clones: bool,
}

impl Copier {
    pub(crate) fn new(clones: bool) -> Self {
        Self { clones }
    }

    /// Returns whether cloning has worked so far, or has not been tried.
    pub(crate) fn clones(&self) -> bool {
        self.clones
    }

    /// Copies the content of `source` to `target`, which is empty.
    pub(crate) fn copy(&mut self, source: BorrowedFd<'_>, target: BorrowedFd<'_>, size: u64) -> Result<Made, Errno> {
        if size == 0 {
            return Ok(Made::Copied(0));
        }
        if self.clones {
            match rustix::fs::ioctl_ficlone(target, source) {
                Ok(()) => return Ok(Made::Cloned),
                // Some single files cannot be cloned, even on a file system that clones.
                Err(Errno::INVAL) => {}
                Err(error) if trial::is_refusal(error) => self.clones = false,
                Err(error) => return Err(error),
            }
        }
        copy_sparse(source, target, size).map(Made::Copied)
    }
}

/// Copies the parts that contain data and returns the number of bytes copied.
fn copy_sparse(source: BorrowedFd<'_>, target: BorrowedFd<'_>, size: u64) -> Result<u64, Errno> {
    rustix::fs::ftruncate(target, size)?;
    let mut copied = 0;
    let mut at = 0;
    while at < size {
        let begin = match rustix::fs::seek(source, SeekFrom::Data(at)) {
            Ok(begin) => begin,
            // The rest of the file is a hole.
            Err(Errno::NXIO) => break,
            // The file system does not report holes.
            Err(Errno::INVAL | Errno::OPNOTSUPP) => at,
            Err(error) => return Err(error),
        };
        let end = match rustix::fs::seek(source, SeekFrom::Hole(begin)) {
            Ok(end) => end.min(size),
            Err(Errno::INVAL | Errno::OPNOTSUPP | Errno::NXIO) => size,
            Err(error) => return Err(error),
        };
        if end <= begin {
            break;
        }
        copied += copy_range(source, target, begin, end)?;
        at = end;
    }
    Ok(copied)
}

fn copy_range(source: BorrowedFd<'_>, target: BorrowedFd<'_>, begin: u64, end: u64) -> Result<u64, Errno> {
    let (mut from, mut to) = (begin, begin);
    while from < end {
        let length = usize::try_from(end - from).unwrap_or(usize::MAX);
        match rustix::fs::copy_file_range(source, Some(&mut from), target, Some(&mut to), length) {
            // The file has become shorter.
            Ok(0) => break,
            Ok(_) => {}
            Err(Errno::XDEV | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                return copy_by_hand(source, target, from, end).map(|copied| from - begin + copied);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(from - begin)
}

fn copy_by_hand(source: BorrowedFd<'_>, target: BorrowedFd<'_>, begin: u64, end: u64) -> Result<u64, Errno> {
    let mut buffer = vec![0; BLOCK];
    let mut at = begin;
    while at < end {
        let length = usize::try_from(end - at).unwrap_or(BLOCK).min(BLOCK);
        let read = rustix::io::pread(source, &mut buffer[..length], at)?;
        if read == 0 {
            break;
        }
        let mut written = 0;
        while written < read {
            written += rustix::io::pwrite(target, &buffer[written..read], at + written as u64)?;
        }
        at += read as u64;
    }
    Ok(at - begin)
}

/// The side on which copying a content failed.
pub(super) enum Cut {
    Reading(io::Error),
    Writing(io::Error),
}

/// Writes `size` bytes to an empty file, with holes in place of long runs of zeros. Returns the number of bytes
/// written.
pub(super) fn write_sparse(mut content: impl Read, size: u64, target: &File) -> Result<u64, Cut> {
    let mut buffer = vec![0; BLOCK];
    let (mut at, mut written) = (0, 0);
    while at < size {
        let length = usize::try_from(size - at).unwrap_or(BLOCK).min(BLOCK);
        let block = &mut buffer[..length];
        content.read_exact(block).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => Cut::Reading(io::Error::new(error.kind(), "it ends in the middle of a file")),
            _ => Cut::Reading(error),
        })?;
        if *block != ZEROS {
            target.write_all_at(block, at).map_err(Cut::Writing)?;
            written += length as u64;
        }
        at += length as u64;
    }
    // A hole at the end exists only if the file's length is set.
    rustix::fs::ftruncate(target.as_fd(), size).map_err(|error| Cut::Writing(error.into()))?;
    Ok(written)
}
