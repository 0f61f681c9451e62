//! Limits of what a tree may take, by XFS's project quotas: a site that fills its store is told that its disk is full, and the
//! others go on.
//!
//! A *project* is a number that files bear. What is made in a folder that passes its number on bears it too, so a tree is
//! numbered while it is empty. Nothing may be moved into such a folder that bears another number (`EXDEV`): a tree that is
//! exchanged gets the number of what is to come in. What is moved out keeps its own, and counts for that until it is gone.
//!
//! ```text
//!   fresh: number 7 ──clone──► limit of 7 ──exchange──► live: number 6 → 7, its old content, number 6, to the trash
//! ```
//! By the programs of xfsprogs, some milliseconds each: the system calls have no safe interface.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::{DiskError, mount};
use crate::Cloned;
use arenad_model::store::StateLimit;

/// The least that a tree may take, in bytes.
const LEAST_BYTES: u64 = 2 << 30;

/// The least number of files and folders that a tree may have.
const LEAST_FILES: u64 = 200_000;

/// A tree that may grow further may have so many more files: one for so many bytes.
const LEAST_FILE_BYTES: u64 = 16 << 10;

/// How much more a tree may hold than what it was made from.
const GROWTH: u64 = 10;

/// The first project, above those that administrators choose, and how many there are. They are used in turn: the file system
/// keeps a record of 136 bytes for each that was ever used.
const PROJECTS: (u32, u32) = (1_893_000_000, 1 << 20);

/// What a tree may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Allowance {
    /// Its content, shared with other trees or not, in bytes.
    bytes: u64,
    /// Its files and folders.
    files: u64,
}

impl Allowance {
    /// That of a tree that begins as this clone, and may grow as its stores are declared to.
    pub fn of(cloned: &Cloned, limit: StateLimit) -> Self {
        let files = cloned.files + cloned.folders + cloned.others;
        let usual = cloned.bytes.saturating_mul(GROWTH).max(LEAST_BYTES);
        let bytes = match limit {
            StateLimit { declared_bytes: None, .. } => usual,
            StateLimit { declared_bytes: Some(bytes), has_usual: true } => bytes.saturating_add(usual),
            StateLimit { declared_bytes: Some(bytes), has_usual: false } => bytes,
        };
        let files = files.saturating_mul(GROWTH).max(LEAST_FILES).max(bytes / LEAST_FILE_BYTES);
        Self { bytes, files }
    }
}

/// The number of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Project(u32);

/// The quotas of a file system.
#[derive(Debug)]
pub(crate) struct Quotas {
    mounted_at: PathBuf,
    next: AtomicU32,
}

impl Quotas {
    /// Those of the file system that a folder is on; `None`: it is mounted without.
    pub fn of(folder: &Path) -> Option<Self> {
        let mounted_at = mount::with_project_quotas(folder)?;
        Some(Self { mounted_at, next: AtomicU32::new(rand::random()) })
    }

    /// Gives an empty folder a number, and what is made in it.
    pub fn number(&self, folder: &Path) -> Result<Project, DiskError> {
        let (first, count) = PROJECTS;
        let project = Project(first + self.next.fetch_add(1, Ordering::Relaxed) % count);
        self.renumber(folder, project)?;
        Ok(project)
    }

    /// Gives a folder a number, and what is made in it from now on.
    pub fn renumber(&self, folder: &Path, project: Project) -> Result<(), DiskError> {
        mount::set_project(folder, project.0)
    }

    /// Limits all files of a number.
    pub fn limit(&self, project: Project, allowance: Allowance) -> Result<(), DiskError> {
        mount::limit_project(&self.mounted_at, project.0, allowance.bytes, allowance.files)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_may_grow_tenfold_and_small_ones_further() {
        let cloned = |bytes, files| Cloned { bytes, files, folders: 1, ..Cloned::default() };
        let usual = StateLimit::default();
        assert_eq!(Allowance::of(&cloned(1 << 20, 9), usual), Allowance { bytes: LEAST_BYTES, files: LEAST_FILES });
        assert_eq!(Allowance::of(&cloned(1 << 30, 99_999), usual), Allowance { bytes: 10 << 30, files: 1_000_000 });
        let declared = |bytes, has_usual| StateLimit { declared_bytes: Some(bytes), has_usual };
        let small = cloned(1 << 20, 9);
        assert_eq!(Allowance::of(&small, declared(64 << 20, false)), Allowance { bytes: 64 << 20, files: LEAST_FILES });
        assert_eq!(Allowance::of(&small, declared(64 << 30, false)), Allowance { bytes: 64 << 30, files: 4 << 20 });
        let both = Allowance::of(&small, declared(1 << 30, true));
        assert_eq!(both, Allowance { bytes: (1 << 30) + LEAST_BYTES, files: LEAST_FILES });
    }
}
