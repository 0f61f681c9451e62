//! One mini environment for all tests of a program that leave its daemon alone. To bring sites up takes longer than most of
//! these tests.

use std::ops::Deref;
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use super::{Arena, Place, removal_of_snapshots};

/// The sites of the environment, in the order in which tests take them.
pub const SITES: [&str; 8] =
    ["gitlab", "homepage", "map", "reddit", "shopping", "shopping_admin", "turkle", "wikipedia"];

/// One for each site, held by the test that uses it.
static IN_USE: [Mutex<()>; SITES.len()] = [const { Mutex::new(()) }; SITES.len()];

/// The arena, and the process that takes it down after the tests. A failure of its start fails every test that uses it.
static SHARED: LazyLock<(Arena, Child)> = LazyLock::new(|| {
    // The user that is waiting has a place already.
    let mut arena = Arena::placed(None);
    // Its sites are rewound in place, which takes less work than standbys, and its tests follow each other closely.
    // The deep probes run more often, so that a test sees them.
    arena.edit(|definition| {
        definition.replace("reset: { standby: 1 }", "reset: { standby: 0 }").replace("*/5 * * * *", "*/2 * * * *")
    });
    arena.set_variables(&[("ARENAD_RECORD", "all"), ("ARENAD_PROXY", "127.0.0.1:0")]);
    let arena = arena.bring_up(&[]);
    let remover = remover(&arena);
    (arena, remover)
});

/// Some sites of the shared arena, which no other test uses meanwhile. They are reset when the value is dropped.
pub struct SharedArena {
    arena: &'static Arena,
    sites: Vec<(&'static str, MutexGuard<'static, ()>)>,
    _place: Place,
}

impl SharedArena {
    /// Waits for the named sites.
    pub fn with(sites: &[&str]) -> Self {
        Self::take(sites, false)
    }

    /// Waits for the named sites, and until no other arena is up. See [`Arena::up_alone`].
    pub fn alone_with(sites: &[&str]) -> Self {
        Self::take(sites, true)
    }

    fn take(sites: &[&str], alone: bool) -> Self {
        // A test that failed poisons the locks of its sites, which it has reset.
        let wanted = SITES.into_iter().zip(&IN_USE).filter(|(name, _)| sites.contains(name));
        let taken: Vec<_> =
            wanted.map(|(name, site)| (name, site.lock().unwrap_or_else(PoisonError::into_inner))).collect();
        assert_eq!(taken.len(), sites.len(), "the sites are known: {sites:?}");
        Self { _place: Place::take(alone), arena: &SHARED.0, sites: taken }
    }
}

impl Deref for SharedArena {
    type Target = Arena;

    fn deref(&self) -> &Arena {
        self.arena
    }
}

impl Drop for SharedArena {
    fn drop(&mut self) {
        if self.sites.is_empty() {
            return;
        }
        let names = self.sites.iter().map(|(name, _)| *name);
        let output = self.arena.arenad(&["reset"].into_iter().chain(names).collect::<Vec<_>>());
        if !output.status.success() && !std::thread::panicking() {
            panic!("arenad reset: {}", String::from_utf8_lossy(&output.stderr));
        }
    }
}

/// Starts the process that takes the arena down as soon as this one has ended, in whatever way: statics are not dropped.
/// The files of an arena that does not go down stay, for a later `arenad down`.
fn remover(arena: &Arena) -> Child {
    let script = format!("cat; \"$0\" down && {{ {}; rm -rf \"$@\"; }}", removal_of_snapshots(&arena.installation()));
    let mut command = arena.command("sh");
    command.args(["-c", &script]).arg(&arena.program).args([arena.root.path(), arena.state.path()]);
    // Ctrl-C ends the tests, and not this process.
    command.current_dir("/").process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("a shell")
}
