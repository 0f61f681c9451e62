//! The containers of failed baselines that are kept for inspection.
//!
//! Nothing is stored: a new daemon removes such containers, because it removes all containers of builders that it
//! finds.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use arenad_model::instance::InstanceId;

/// The instances whose builder containers are to be kept after a failure, and those whose builder containers exist.
#[derive(Debug, Default)]
pub struct KeptBuilds(Mutex<Sets>);

#[derive(Debug, Default)]
struct Sets {
    wished: BTreeSet<InstanceId>,
    there: BTreeSet<InstanceId>,
}

impl KeptBuilds {
    fn change<T>(&self, change: impl FnOnce(&mut Sets) -> T) -> T {
        // Every change is one insert or remove, so a panic leaves the sets consistent.
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sets whether the containers of an instance's baseline are kept if the baseline fails.
    pub fn wish(&self, id: &InstanceId, is_wished: bool) {
        self.change(|sets| match is_wished {
            true => sets.wished.insert(id.clone()),
            false => sets.wished.remove(id),
        });
    }

    /// Records that a baseline has failed; returns whether its containers are kept.
    pub(crate) fn fail(&self, id: &InstanceId) -> bool {
        self.change(|sets| {
            let is_kept = sets.wished.contains(id);
            if is_kept {
                sets.there.insert(id.clone());
            }
            is_kept
        })
    }

    /// Whether containers of a failed baseline are kept for the instance.
    pub fn has(&self, id: &InstanceId) -> bool {
        self.change(|sets| sets.there.contains(id))
    }

    /// Records that the containers are gone, or are about to be removed.
    pub fn forget(&self, id: &InstanceId) {
        self.change(|sets| sets.there.remove(id));
    }

    /// Returns the instances for which such containers are kept.
    pub fn list(&self) -> BTreeSet<InstanceId> {
        self.change(|sets| sets.there.clone())
    }
}
