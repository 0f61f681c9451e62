//! The content of files: cloned where the file system can, else copied without filling the holes.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;

use rustix::fs::SeekFrom;
use rustix::io::Errno;

use super::trial;

/// What is read and written at a time; a run of zeros of this length at a multiple of it becomes a hole.
const BLOCK: usize = 64 << 10;

static ZEROS: [u8; BLOCK] = [0; BLOCK];

/// How a file's content came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Made {
    /// It shares its blocks with the other file.
    Cloned,
    /// So many bytes were written.
    Copied(u64),
}

/// Copies contents; remembers that cloning does not work between two file systems, so that it is tried once only.
pub(super) struct Copier {
    clones: bool,
}

impl Copier {
    pub fn new(clones: bool) -> Self {
        Self { clones }
    }

    /// Whether cloning has worked so far, or has not been tried.
    pub fn clones(&self) -> bool {
        self.clones
    }

    /// Gives `target`, which is empty, the content of `source`.
    pub fn copy(&mut self, source: BorrowedFd<'_>, target: BorrowedFd<'_>, size: u64) -> Result<Made, Errno> {
        if size == 0 {
            return Ok(Made::Copied(0));
        }
        if self.clones {
            match rustix::fs::ioctl_ficlone(target, source) {
                Ok(()) => return Ok(Made::Cloned),
                // Some files of a file system that clones cannot be cloned.
                Err(Errno::INVAL) => {}
                Err(error) if trial::is_refusal(error) => self.clones = false,
                Err(error) => return Err(error),
            }
        }
        copy_sparse(source, target, size).map(Made::Copied)
    }
}

/// Copies the parts that have data; returns how much that was.
fn copy_sparse(source: BorrowedFd<'_>, target: BorrowedFd<'_>, size: u64) -> Result<u64, Errno> {
    rustix::fs::ftruncate(target, size)?;
    let mut copied = 0;
    let mut at = 0;
    while at < size {
        let begin = match rustix::fs::seek(source, SeekFrom::Data(at)) {
            Ok(begin) => begin,
            // Nothing but a hole is left.
            Err(Errno::NXIO) => break,
            // A file system without holes.
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

/// Why a content could not be written to a file: the one side or the other.
pub(super) enum Cut {
    Reading(io::Error),
    Writing(io::Error),
}

/// Writes `size` bytes to an empty file, leaving holes where there are long runs of zeros. Returns how many it wrote.
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
    // A hole at the end has to be made.
    rustix::fs::ftruncate(target.as_fd(), size).map_err(|error| Cut::Writing(error.into()))?;
    Ok(written)
}
