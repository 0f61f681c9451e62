//! What to remove so that the engine holds no more than what the store knows. Pure; the same at start and every minute.
//!
//! Only things that bear this installation's id are ever looked at. A thing of a running operation is left alone, for its
//! row may be newer than the listing; what is left over for good is still there a minute later.

use std::collections::{BTreeMap, BTreeSet};

/// What a thing in the engine says of itself by its labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Labelled {
    /// The engine's name for it.
    pub name: String,
    /// The instance.
    pub instance: String,
    /// The generation.
    pub generation: u64,
    /// Whether a baseline is being made in it.
    pub is_builder: bool,
}

/// What the store knows.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// Of each instance that is wanted up: the generation that serves, and those of its standbys.
    pub generations: BTreeMap<String, BTreeSet<u64>>,
    /// The instances that an operation is working on.
    pub busy: BTreeSet<String>,
}

impl Known {
    /// Whether a thing is left over.
    pub fn is_orphan(&self, thing: &Labelled) -> bool {
        if self.busy.contains(&thing.instance) {
            return false;
        }
        let known = self.generations.get(&thing.instance);
        thing.is_builder || known.is_none_or(|known| !known.contains(&thing.generation))
    }
}

/// The grace period of left-over things: one goes when two passes in a row find it so.
#[derive(Debug, Default)]
pub struct Suspects {
    before: BTreeSet<String>,
    now: BTreeSet<String>,
}

impl Suspects {
    /// Notes that this pass finds a thing left over; says whether the last one did too.
    pub fn note(&mut self, name: &str) -> bool {
        self.now.insert(name.to_owned());
        self.before.contains(name)
    }

    /// Ends a pass: what it found is what the next one compares with.
    pub fn end_pass(&mut self) {
        self.before = std::mem::take(&mut self.now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thing_goes_when_two_passes_in_a_row_find_it() {
        let mut suspects = Suspects::default();
        assert!(!suspects.note("container a"));
        suspects.end_pass();
        assert!(suspects.note("container a"));
        assert!(!suspects.note("network b"));
        suspects.end_pass();
        suspects.end_pass();
        assert!(!suspects.note("network b"), "a pass in between did not find it");
    }

    fn thing(instance: &str, generation: u64, is_builder: bool) -> Labelled {
        Labelled { name: "x".into(), instance: instance.into(), generation, is_builder }
    }

    fn known() -> Known {
        Known {
            generations: BTreeMap::from([("mini/a/1".into(), [3, 5].into()), ("mini/b/1".into(), [1].into())]),
            busy: ["mini/b/1".into()].into(),
        }
    }

    #[test]
    fn what_serves_and_what_stands_by_stays() {
        assert!(!known().is_orphan(&thing("mini/a/1", 3, false)));
        assert!(!known().is_orphan(&thing("mini/a/1", 5, false)));
        assert!(known().is_orphan(&thing("mini/a/1", 4, false)));
        assert!(known().is_orphan(&thing("mini/gone/1", 1, false)));
    }

    #[test]
    fn a_builder_that_nobody_works_in_is_left_over() {
        assert!(known().is_orphan(&thing("mini/a/1", 0, true)));
        assert!(!known().is_orphan(&thing("mini/b/1", 0, true)));
    }

    #[test]
    fn a_busy_instance_is_left_alone() {
        assert!(!known().is_orphan(&thing("mini/b/1", 7, false)));
    }
}
