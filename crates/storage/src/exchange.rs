//! Exchanges the content of a tree in place. A container's mount pins the folder, so the folder stays and its entries
//! are moved: the old ones to the trash, those of a fresh clone in. An exchange costs a rename for each entry at the
//! top level.
//!
//! ```text
//!   mark ─► old entries out ─► new entries in ─► attributes of the folder ─► mark away
//! ```
//! An interrupted exchange leaves the mark. A marked tree is not whole; another exchange makes it whole.

use std::os::fd::AsFd;

use rustix::fs::RenameFlags;
use rustix::io::Errno;

use super::StorageError;
use super::attributes::Attributes;
use super::walk::OpenFolder;

/// The maximum number of passes over a folder to find entries that were added while it was emptied.
const ROUNDS: usize = 16;

/// The next step of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExchangeStep {
    /// Marks the tree as not whole.
    Mark,
    /// Moves the n-th old entry, counted from 0, to the trash.
    MoveOut(u64),
    /// Moves the n-th new entry, counted from 0, into the tree.
    MoveIn(u64),
    /// Sets the attributes of the fresh folder on the tree's folder.
    Attributes,
    /// Removes the mark of the tree.
    Unmark,
}

/// The counts of one exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Exchanged {
    /// The number of entries moved to the trash.
    pub moved_out: u64,
    /// The number of entries moved in.
    pub moved_in: u64,
}

/// Called before each step. An error stops the exchange there, as a crash would.
pub(super) type BeforeStep<'a> = &'a mut dyn FnMut(ExchangeStep) -> Result<(), StorageError>;

/// Moves the content; the caller creates and removes the mark.
pub(super) fn exchange(
    live: &OpenFolder,
    fresh: &OpenFolder,
    trash: &OpenFolder,
    before: BeforeStep<'_>,
) -> Result<Exchanged, StorageError> {
    // The attributes are read before the entries leave the folder, which changes its times.
    let attributes = rustix::fs::fstat(fresh).and_then(|found| Attributes::of_open(fresh.as_fd(), &found));
    let attributes = attributes.map_err(StorageError::at("read the attributes of", &fresh.path))?;
    let moved_out = move_out(live, trash, before)?;
    let moved_in = move_in(live, fresh, before)?;
    before(ExchangeStep::Attributes)?;
    attributes.replace_on_open(live).map_err(StorageError::at("give its attributes to", &live.path))?;
    Ok(Exchanged { moved_out, moved_in })
}

fn move_out(live: &OpenFolder, trash: &OpenFolder, before: BeforeStep<'_>) -> Result<u64, StorageError> {
    let mut moved = 0;
    for _ in 0..ROUNDS {
        let children = live.children()?;
        if children.is_empty() {
            return Ok(moved);
        }
        for child in children {
            before(ExchangeStep::MoveOut(moved))?;
            match rustix::fs::renameat_with(live, &child.name, trash, &child.name, RenameFlags::NOREPLACE) {
                Ok(()) => moved += 1,
                // A process that is about to stop has removed the entry or replaced it.
                Err(Errno::NOENT) => {}
                Err(Errno::EXIST) => return Err(StorageError::StillWritten { path: live.path_of(&child.name) }),
                Err(error) => return Err(StorageError::at("move to the trash", live.path_of(&child.name))(error)),
            }
        }
    }
    Err(StorageError::StillWritten { path: live.path.clone() })
}

fn move_in(live: &OpenFolder, fresh: &OpenFolder, before: BeforeStep<'_>) -> Result<u64, StorageError> {
    let mut moved = 0;
    for child in fresh.children()? {
        before(ExchangeStep::MoveIn(moved))?;
        match rustix::fs::renameat_with(fresh, &child.name, live, &child.name, RenameFlags::NOREPLACE) {
            Ok(()) => moved += 1,
            Err(Errno::EXIST) => return Err(StorageError::StillWritten { path: live.path_of(&child.name) }),
            Err(error) => return Err(StorageError::at("move in", fresh.path_of(&child.name))(error)),
        }
    }
    Ok(moved)
}
