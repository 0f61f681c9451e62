//! The disk that holds an environment's state during a benchmark.

use std::process::Stdio;

use crate::arena::Arena;

/// Puts an environment's state on an XFS of its own.
pub fn own_disk(arena: &Arena) {
    let made = arena.arenad(&["storage", "init", "--size", "20G"]);
    assert!(made.status.success(), "storage init: {}", String::from_utf8_lossy(&made.stderr));
}

/// Takes an environment down, and removes its state.
pub fn end(arena: Arena) {
    let stores = arena.state_dir().join("stores");
    drop(arena);
    // If an XFS was created, it is still mounted.
    let _ = std::process::Command::new("umount").arg("-q").arg(&stores).stderr(Stdio::null()).status();
    let _ = std::fs::remove_dir_all(stores.ancestors().nth(2).expect("the state directory's folder"));
}
