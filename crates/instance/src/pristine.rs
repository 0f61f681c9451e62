//! Marks of serving generations that no client has reached, kept for the next daemon. The gateway's counts end with
//! their daemon, so without a mark the next daemon has to assume that a generation was written to.
//!
//! A mark is a file that contains the generation's number. It is created before a generation serves, and removed before
//! data of the first connection is sent to it; a generation without a mark counts as reached. The mark is a file and
//! not a row of the store, so that the first request after a reset waits for some microseconds and not for other
//! writes. `kill -9` loses no mark, and after a power failure there are no running containers to adopt.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use arenad_folders as folders;
use arenad_model::instance::InstanceId;

/// The mark of one instance's serving generation.
#[derive(Debug)]
pub(crate) struct Pristine {
    folder: PathBuf,
    file: PathBuf,
    /// The newest generation that is known to have been reached, or 0. The lock is held while the mark changes, so that
    /// the removal of one generation's mark does not remove the mark of the next one.
    reached: Mutex<u64>,
}

impl Pristine {
    /// Names the mark of an instance in a folder, which is created when it is needed.
    pub(crate) fn of(folder: &Path, id: &InstanceId) -> Self {
        let file = folder.join(format!("{}.{}.{}", id.environment, id.site, id.number));
        Self { folder: folder.to_owned(), file, reached: Mutex::default() }
    }

    /// Marks a generation that is about to serve, unless it was reached before, as after a snapshot was taken of it. If
    /// the mark cannot be created, the generation counts as reached.
    pub(crate) fn mark(&self, generation: u64) {
        let reached = self.hold();
        if generation <= *reached {
            return;
        }
        let beside = self.beside();
        let marked = folders::make_private(&self.folder)
            .and_then(|()| fs::write(&beside, generation.to_string()))
            .and_then(|()| fs::rename(&beside, &self.file));
        if let Err(error) = marked {
            tracing::warn!(%error, "generation {generation} will count as reached: {} cannot be made", self.file.display());
            let _ = fs::remove_file(&self.file);
        }
    }

    /// Removes the mark of a generation that is about to be reached.
    pub(crate) fn spoil(&self, generation: u64) {
        let mut reached = self.hold();
        *reached = generation.max(*reached);
        if self.read() != Some(generation) {
            return;
        }
        match fs::remove_file(&self.file) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                tracing::error!(%error, "{} stays, but its generation is reached", self.file.display());
            }
            _ => {}
        }
    }

    /// Whether the mark is that of this generation.
    pub(crate) fn has(&self, generation: u64) -> bool {
        let _held = self.hold();
        self.read() == Some(generation)
    }

    /// Removes the mark of any generation, because no generation serves any more.
    pub(crate) fn clear(&self) {
        let _held = self.hold();
        let _ = fs::remove_file(&self.file);
    }

    /// The temporary file of the mark. Names of sites have no dots, so it is not the mark of another instance.
    fn beside(&self) -> PathBuf {
        let mut name = self.file.clone().into_os_string();
        name.push(".new");
        name.into()
    }

    fn read(&self) -> Option<u64> {
        fs::read_to_string(&self.file).ok()?.parse().ok()
    }

    fn hold(&self) -> MutexGuard<'_, u64> {
        self.reached.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arenad_model::ids::{EnvironmentName, SiteName};

    fn id(site: &str) -> InstanceId {
        let environment = EnvironmentName::parse("mini").expect("a name");
        InstanceId { environment, site: SiteName::parse(site).expect("a name"), number: 1 }
    }

    #[test]
    fn a_mark_is_of_one_generation_and_outlives_its_daemon() {
        let folder = tempfile::tempdir().expect("a folder");
        let marks = folder.path().join("pristine");
        let mark = |site: &str| Pristine::of(&marks, &id(site));
        assert!(!mark("shop").has(7), "nothing is marked");
        mark("shop").mark(7);
        assert!(mark("shop").has(7) && !mark("shop").has(8) && !mark("forum").has(7));
        // A client of the previous generation does not affect the mark of this one.
        mark("shop").mark(8);
        mark("shop").spoil(7);
        assert!(mark("shop").has(8) && !mark("shop").has(7));
        mark("shop").spoil(8);
        assert!(!mark("shop").has(8));
        mark("shop").mark(9);
        mark("shop").clear();
        assert!(!mark("shop").has(9));
        assert_eq!(fs::read_dir(&marks).expect("a folder").count(), 0);
    }

    #[test]
    fn a_generation_that_was_reached_is_not_marked_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let mark = Pristine::of(&folder.path().join("pristine"), &id("shop"));
        mark.mark(4);
        mark.spoil(4);
        // The generation leaves service while a snapshot is taken, and then serves again.
        mark.clear();
        mark.mark(4);
        assert!(!mark.has(4), "what its clients wrote is still there");
        mark.mark(5);
        assert!(mark.has(5));
    }

    #[test]
    fn a_mark_that_cannot_be_made_is_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let marks = folder.path().join("pristine");
        let mark = Pristine::of(&marks, &id("shop"));
        mark.mark(1);
        // A folder blocks the path of the next temporary file.
        fs::create_dir_all(marks.join("mini.shop.1.new/full")).expect("a folder");
        mark.mark(2);
        assert!(!mark.has(1) && !mark.has(2), "what cannot be marked counts as reached");
    }
}
