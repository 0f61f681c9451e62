//! Baselines that could not be made, and whose containers somebody wants to look into.
//!
//! Nothing of this is stored: a daemon that starts anew removes such containers, as it removes all builders' that it finds.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use arenad_model::instance::InstanceId;

/// Which instances' builders are kept when they fail, and which are there.
#[derive(Debug, Default)]
pub struct KeptBuilds(Mutex<Sets>);

#[derive(Debug, Default)]
struct Sets {
    wished: BTreeSet<String>,
    there: BTreeSet<String>,
}

impl KeptBuilds {
    fn change<T>(&self, change: impl FnOnce(&mut Sets) -> T) -> T {
        // Every change is one insert or remove: a panic leaves sets that are whole.
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Says whether the containers of an instance's baseline are to stay, should it fail.
    pub fn wish(&self, id: &InstanceId, is_wished: bool) {
        self.change(|sets| match is_wished {
            true => sets.wished.insert(id.to_string()),
            false => sets.wished.remove(&id.to_string()),
        });
    }

    /// Notes that a baseline has failed; says whether its containers stay.
    pub fn fail(&self, id: &InstanceId) -> bool {
        self.change(|sets| {
            let is_kept = sets.wished.contains(&id.to_string());
            if is_kept {
                sets.there.insert(id.to_string());
            }
            is_kept
        })
    }

    /// Whether there are containers of a baseline that failed.
    pub fn has(&self, id: &InstanceId) -> bool {
        self.change(|sets| sets.there.contains(&id.to_string()))
    }

    /// The containers are gone, or about to go.
    pub fn forget(&self, id: &InstanceId) {
        self.change(|sets| sets.there.remove(&id.to_string()));
    }

    /// The instances that have such containers.
    pub fn list(&self) -> BTreeSet<String> {
        self.change(|sets| sets.there.clone())
    }
}
