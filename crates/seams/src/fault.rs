//! Points at which something may go wrong: the stages of every way of resetting, named, so that tests can break things at
//! each of them and miss none.
//!
//! Steered by the environment variable `ARENAD_FAULTS`, the path of a folder: whoever comes to a point whose name is that of
//! a file there writes `NAME.reached` beside it and waits until the file is gone; if the file says `panic`, it panics, once. Builds without debug assertions, which are
//! those that people use, know nothing of it.

use std::fmt;

macro_rules! points {
    ($($(#[$comment:meta])* $point:ident = $name:literal,)*) => {
        /// A point.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Point {
            $($(#[$comment])* $point,)*
        }

        impl Point {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$point,)*];

            /// The name of its file.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$point => $name,)*
                }
            }
        }
    };
}

points! {
    /// A standby was taken out of the pool.
    SwapChosen = "swap-chosen",
    /// The standby runs.
    SwapThawed = "swap-thawed",
    /// The standby answers, and equals its snapshot.
    SwapVerified = "swap-verified",
    /// The store records that the standby serves.
    SwapRecorded = "swap-recorded",
    /// Clients reach it.
    SwapSwitched = "swap-switched",
    /// No client reaches the instance.
    ResetHeld = "reset-held",
    /// A rewind has its generation.
    RewindRecorded = "rewind-recorded",
    /// All writers are stopped, and the clones are made.
    RewindStopped = "rewind-stopped",
    /// One tree was exchanged.
    RewindExchanged = "rewind-exchanged",
    /// The writers were told to start.
    RewindStarted = "rewind-started",
    /// The probes of the rewound instance have passed.
    RewindProbed = "rewind-probed",
    /// The rewound instance equals its snapshot.
    RewindVerified = "rewind-verified",
    /// New containers that are to serve have their generation.
    RecreateRecorded = "recreate-recorded",
    /// The old containers are removed.
    RecreateRemoved = "recreate-removed",
    /// The new containers equal their snapshot.
    RecreateVerified = "recreate-verified",
    /// New containers are there, to serve or to stand by.
    MakeCreated = "make-created",
    /// The new containers run.
    MakeStarted = "make-started",
    /// The probes of the new containers have passed.
    MakeProbed = "make-probed",
    /// The gateway routes to the rewound or new containers.
    Routed = "routed",
    /// A standby has its generation.
    StandbyRecorded = "standby-recorded",
    /// It is as its snapshot.
    StandbyProven = "standby-proven",
    /// The store says that it is ready.
    StandbyKept = "standby-kept",
    /// It is frozen.
    StandbyFrozen = "standby-frozen",
    /// It was let go on ahead of time.
    StandbyThawed = "standby-thawed",
    /// It has no row any more and is to be removed.
    StandbyForgotten = "standby-forgotten",
    /// The images of a snapshot are committed.
    SnapshotCommitted = "snapshot-committed",
    /// Its state is stored; it has no row yet.
    SnapshotSaved = "snapshot-saved",
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Comes to a point.
#[cfg(debug_assertions)]
pub async fn reach(point: Point) {
    use std::path::PathBuf;
    use std::sync::LazyLock;
    use std::time::Duration;

    static FOLDER: LazyLock<Option<PathBuf>> = LazyLock::new(|| std::env::var_os("ARENAD_FAULTS").map(PathBuf::from));
    let Some(folder) = &*FOLDER else { return };
    let waits = folder.join(point.name());
    let Ok(wanted) = std::fs::read_to_string(&waits) else { return };
    if wanted.trim() == "panic" {
        // Once: what comes afterwards is what the test is about.
        let _ = std::fs::remove_file(&waits);
        panic!("a test wants a panic at {point}");
    }
    if let Err(error) = std::fs::write(folder.join(format!("{point}.reached")), "") {
        tracing::warn!(%point, %error, "nobody hears that a point was reached");
    }
    while waits.exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Comes to a point, of which nobody wants to know.
#[cfg(not(debug_assertions))]
pub(crate) async fn reach(_: Point) {}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::Point;

    #[test]
    fn no_two_points_have_one_name() {
        let names: BTreeSet<&str> = Point::ALL.iter().map(|point| point.name()).collect();
        assert_eq!(names.len(), Point::ALL.len());
    }
}
