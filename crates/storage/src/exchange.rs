//! Exchanging the content of a tree in its place. A container's mount pins the folder itself, so the folder stays and what
//! is in it is moved: the old entries to the trash, those of a fresh clone in. Costs a rename for each entry at the top.
//!
//! ```text
//!   mark ─► old entries out ─► new entries in ─► attributes of the folder ─► mark away
//! ```
//! Whoever is interrupted leaves the mark, and a marked tree is not whole; exchanging it again makes it so.

use std::os::fd::AsFd;

use rustix::fs::RenameFlags;
use rustix::io::Errno;

use super::StorageError;
use super::attributes::Attributes;
use super::walk::Folder;

/// How often a folder is looked through for what was put in while it was emptied.
const ROUNDS: usize = 16;

/// What an exchange is about to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Mark the tree as not whole.
    Mark,
    /// Move the n-th old entry to the trash, from 0.
    MoveOut(u64),
    /// Move the n-th new entry in, from 0.
    MoveIn(u64),
    /// Give the folder the attributes of the fresh one.
    Attributes,
    /// Take the mark away.
    Unmark,
}

/// What an exchange did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Exchanged {
    /// Entries that went to the trash.
    pub moved_out: u64,
    /// Entries that came in.
    pub moved_in: u64,
}

/// Asked before each step; an error stops there, as a crash would.
pub(super) type Before<'a> = &'a mut dyn FnMut(Step) -> Result<(), StorageError>;

/// Moves the content, between the marks.
pub(super) fn exchange(
    live: &Folder,
    fresh: &Folder,
    trash: &Folder,
    before: Before<'_>,
) -> Result<Exchanged, StorageError> {
    // Before its entries leave it, which changes its times.
    let attributes = rustix::fs::fstat(fresh).and_then(|found| Attributes::of_open(fresh.as_fd(), &found));
    let attributes = attributes.map_err(StorageError::at("read the attributes of", &fresh.path))?;
    let moved_out = move_out(live, trash, before)?;
    let moved_in = move_in(live, fresh, before)?;
    before(Step::Attributes)?;
    attributes.replace_on_open(live).map_err(StorageError::at("give its attributes to", &live.path))?;
    Ok(Exchanged { moved_out, moved_in })
}

fn move_out(live: &Folder, trash: &Folder, before: Before<'_>) -> Result<u64, StorageError> {
    let mut moved = 0;
    for _ in 0..ROUNDS {
        let children = live.children()?;
        if children.is_empty() {
            return Ok(moved);
        }
        for child in children {
            before(Step::MoveOut(moved))?;
            match rustix::fs::renameat_with(live, &child.name, trash, &child.name, RenameFlags::NOREPLACE) {
                Ok(()) => moved += 1,
                // Someone who is about to stop has removed it, or made another of that name.
                Err(Errno::NOENT) => {}
                Err(Errno::EXIST) => return Err(StorageError::StillWritten { path: live.path_of(&child.name) }),
                Err(error) => return Err(StorageError::at("move to the trash", live.path_of(&child.name))(error)),
            }
        }
    }
    Err(StorageError::StillWritten { path: live.path.clone() })
}

fn move_in(live: &Folder, fresh: &Folder, before: Before<'_>) -> Result<u64, StorageError> {
    let mut moved = 0;
    for child in fresh.children()? {
        before(Step::MoveIn(moved))?;
        match rustix::fs::renameat_with(fresh, &child.name, live, &child.name, RenameFlags::NOREPLACE) {
            Ok(()) => moved += 1,
            Err(Errno::EXIST) => return Err(StorageError::StillWritten { path: live.path_of(&child.name) }),
            Err(error) => return Err(StorageError::at("move in", fresh.path_of(&child.name))(error)),
        }
    }
    Ok(moved)
}
