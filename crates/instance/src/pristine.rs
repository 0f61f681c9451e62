//! Which serving generations no client has reached, kept for the next daemon. The gateway's counts end with their daemon, and
//! one that takes a generation up would otherwise have to take it for written to.
//!
//! A mark is a file with the generation's number. It is made before a generation is let serve, and removed before the first
//! connection to it is let through; what has no mark counts as reached. A file of its own, and not a row of the store: the
//! first request after a reset waits for some microseconds, and not behind whatever else is being written. `kill -9` loses
//! nothing of it, and after a loss of power there are no containers to take up.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use arenad_folders as folders;
use arenad_model::instance::InstanceId;

/// The mark of one instance's serving generation.
#[derive(Debug)]
pub struct Pristine {
    folder: PathBuf,
    file: PathBuf,
    /// The newest generation that is known to have been reached, 0 for none. Held while the mark is changed: the removal of one
    /// generation's must not take the next one's away.
    reached: Mutex<u64>,
}

impl Pristine {
    /// That of an instance, among those of a folder that is made when it is needed.
    pub fn of(folder: &Path, id: &InstanceId) -> Self {
        let file = folder.join(format!("{}.{}.{}", id.environment, id.site, id.number));
        Self { folder: folder.to_owned(), file, reached: Mutex::default() }
    }

    /// Marks a generation that is about to serve, unless it has served before and was reached then, as after a snapshot that
    /// was taken of it. Where the mark cannot be made, the generation counts as reached.
    pub fn mark(&self, generation: u64) {
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

    /// Takes the mark of a generation away: something is about to reach it.
    pub fn spoil(&self, generation: u64) {
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

    /// Whether a generation is marked.
    pub fn has(&self, generation: u64) -> bool {
        let _held = self.hold();
        self.read() == Some(generation)
    }

    /// Takes the mark away, whichever generation it is of: nothing serves any more.
    pub fn clear(&self) {
        let _held = self.hold();
        let _ = fs::remove_file(&self.file);
    }

    /// Where it is made. A site's name has no dots, and the number is none.
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
        // A client of the generation before says nothing of this one.
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
        // It leaves service for a snapshot, and serves again.
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
        // Something lies in the way of the next one.
        fs::create_dir_all(marks.join("mini.shop.1.new/full")).expect("a folder");
        mark.mark(2);
        assert!(!mark.has(1) && !mark.has(2), "what cannot be marked counts as reached");
    }
}
