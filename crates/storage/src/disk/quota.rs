//! Limits the size of a tree by XFS project quotas, so that a site that fills its store gets "disk full" and the other
//! sites continue.
//!
//! A *project* is a number of files. Files created in a folder that passes its number on have that number too, so a
//! tree is numbered while it is empty. A file of another project cannot be moved into such a folder (`EXDEV`), so an
//! exchanged tree gets the number of its new content. The old content keeps its own number and counts towards that
//! until it is removed.
//!
//! ```text
//!   fresh: number 7 ──clone──► limit of 7 ──exchange──► live: number 6 → 7, its old content, number 6, to the trash
//! ```
//! The programs of xfsprogs do the work, in a few milliseconds each, because the system calls have no safe interface.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::{DiskError, mount};
use crate::Cloned;
use arenad_model::store::StateLimit;

/// The minimum limit on a tree's size, in bytes.
const LEAST_BYTES: u64 = 2 << 30;

/// The minimum limit on a tree's number of files and folders.
const LEAST_FILES: u64 = 200_000;

/// The size limit divided by this many bytes is the least number of files that a large tree may have.
const LEAST_FILE_BYTES: u64 = 16 << 10;

/// The factor by which a tree may outgrow its original.
const GROWTH: u64 = 10;

/// The first project number, above those that administrators usually choose, and the number of projects. They are used
/// in turn, because the file system keeps a record of 136 bytes for each project ever used.
const PROJECTS: (u32, u32) = (1_893_000_000, 1 << 20);

/// The limits of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Allowance {
    /// The size of its content in bytes, including blocks shared with other trees.
    bytes: u64,
    /// The number of its files and folders.
    files: u64,
}

impl Allowance {
    /// Computes the limits of a tree that starts as this clone, from the growth that its stores declare.
    pub(crate) fn of(cloned: &Cloned, limit: StateLimit) -> Self {
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

/// The project number of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProjectNumber(u32);

/// The quotas of a file system.
#[derive(Debug)]
pub(crate) struct Quotas {
    mounted_at: PathBuf,
    next: AtomicU32,
}

impl Quotas {
    /// Returns the quotas of a folder's file system, or `None` if it is mounted without quotas.
    pub(crate) fn of(folder: &Path) -> Option<Self> {
        let mounted_at = mount::with_project_quotas(folder)?;
        Some(Self { mounted_at, next: AtomicU32::new(rand::random()) })
    }

    /// Assigns a new project to an empty folder and to everything that is created in it.
    pub(crate) fn number(&self, folder: &Path) -> Result<ProjectNumber, DiskError> {
        let (first, count) = PROJECTS;
        let project = ProjectNumber(first + self.next.fetch_add(1, Ordering::Relaxed) % count);
        self.renumber(folder, project)?;
        Ok(project)
    }

    /// Assigns a project to a folder and to everything that is created in it later.
    pub(crate) fn renumber(&self, folder: &Path, project: ProjectNumber) -> Result<(), DiskError> {
        mount::set_project(folder, project.0)
    }

    /// Limits all files of a project.
    pub(crate) fn limit(&self, project: ProjectNumber, allowance: Allowance) -> Result<(), DiskError> {
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
