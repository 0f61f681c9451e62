//! Marks of slots that an episode has, or had and that have not been recycled since.
//!
//! A mark is an empty file. It is on disk before the preparation of an episode changes the slot, and is removed when the
//! slot has been recycled, so a new daemon knows which content belongs to an episode. The row of the episode does not
//! tell, because it is written when the slot is given to the episode, and says nothing about the recycling.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use arenad_folders as folders;
use arenad_model::instance::InstanceId;

/// The mark of one slot.
#[derive(Debug, Clone)]
pub(super) struct RecycleMark {
    folder: PathBuf,
    file: PathBuf,
}

impl RecycleMark {
    /// Names the mark of a slot in a folder, which is created when it is needed.
    pub(super) fn of(folder: &Path, slot: &InstanceId) -> Self {
        let file = folder.join(format!("{}.{}.{}", slot.environment, slot.site, slot.number));
        Self { folder: folder.to_owned(), file }
    }

    /// Sets the mark. When this returns, the mark outlives a failure of the host.
    pub(super) fn set(&self) -> io::Result<()> {
        if self.exists() {
            return Ok(());
        }
        folders::make_private(&self.folder)?;
        File::create(&self.file)?.sync_all()?;
        File::open(&self.folder)?.sync_all()
    }

    pub(super) fn exists(&self) -> bool {
        self.file.exists()
    }

    /// Removes the mark. If that fails, the slot is recycled once more.
    pub(super) fn clear(&self) {
        match fs::remove_file(&self.file) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                tracing::warn!(%error, "{} stays, so its slot is recycled once more", self.file.display());
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_of_one_slot_and_outlives_its_daemon() {
        let folder = tempfile::tempdir().expect("a folder");
        let marks = folder.path().join("episodes");
        let mark = |slot: &str| RecycleMark::of(&marks, &slot.parse().expect("a name"));
        assert!(!mark("mini/shop/1").exists());
        mark("mini/shop/1").set().expect("a file");
        mark("mini/shop/1").set().expect("it is set already");
        assert!(mark("mini/shop/1").exists() && !mark("mini/shop/2").exists() && !mark("mini/forum/1").exists());
        mark("mini/shop/2").clear();
        assert!(mark("mini/shop/1").exists());
        mark("mini/shop/1").clear();
        assert!(!mark("mini/shop/1").exists());
    }

    #[test]
    fn a_mark_that_cannot_be_set_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("episodes"), "a file").expect("a file");
        assert!(
            RecycleMark::of(&folder.path().join("episodes"), &"mini/shop/1".parse().expect("a name")).set().is_err()
        );
    }
}
