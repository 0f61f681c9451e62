//! One arena with all sites for the tests that need a site as users have it, and leave it as it was. To bring a site up
//! takes longer than most of these tests.

use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::arena::Arena;

/// The sites of the shared arena.
const SITES: [&str; 8] = ["shopping", "shopping_admin", "wikipedia", "reddit", "gitlab", "map", "turkle", "homepage"];

/// Held by the test that uses a site.
static TURNS: [Mutex<()>; SITES.len()] = [const { Mutex::new(()) }; SITES.len()];

/// The arena, while any test uses it.
static ARENA: Mutex<Weak<Arena>> = Mutex::new(Weak::new());

/// A site of the shared arena, which no other test uses at the same time. Its daemon and its other sites must be left
/// alone.
pub(super) struct SharedSite {
    arena: Arc<Arena>,
    _turn: MutexGuard<'static, ()>,
}

impl SharedSite {
    /// Waits for a site, which equals its baseline then.
    pub(super) fn take(site: &str) -> Self {
        let index = SITES.iter().position(|name| *name == site).expect("a site of the mini environment");
        let turn = TURNS[index].lock().unwrap_or_else(PoisonError::into_inner);
        let arena = {
            let mut shared = ARENA.lock().unwrap_or_else(PoisonError::into_inner);
            shared.upgrade().unwrap_or_else(|| {
                let arena = Arc::new(Arena::up(&SITES));
                *shared = Arc::downgrade(&arena);
                arena
            })
        };
        arena.json(&["reset", site, "--if-dirty", "--json"]);
        Self { arena, _turn: turn }
    }
}

impl Deref for SharedSite {
    type Target = Arena;

    fn deref(&self) -> &Arena {
        &self.arena
    }
}
