//! Fault points: named stages of every reset strategy, so that tests can inject faults at each of them without omitting
//! one.
//!
//! The environment variable `ARENAD_FAULTS` holds the path of a folder. When a task reaches a point and the folder
//! contains a file with the point's name, the task writes `NAME.reached` to the folder and waits until the file is
//! removed. If the file contains `panic`, the task removes it and panics. Builds without debug assertions, such as
//! releases, ignore the variable.

use std::fmt;

macro_rules! points {
    ($($(#[$comment:meta])* $point:ident = $name:literal,)*) => {
        /// A stage of a reset at which tests can inject a fault.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Point {
            $($(#[$comment])* $point,)*
        }

        impl Point {
            /// All points, in the order of their definition.
            pub const ALL: &[Self] = &[$(Self::$point,)*];

            /// Returns the name of the point's file in the folder of faults.
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
    /// The processes of the standby are running.
    SwapThawed = "swap-thawed",
    /// The standby answers, and equals its snapshot.
    SwapVerified = "swap-verified",
    /// The store records that the standby serves.
    SwapRecorded = "swap-recorded",
    /// Clients reach the former standby.
    SwapSwitched = "swap-switched",
    /// No client reaches the instance.
    ResetHeld = "reset-held",
    /// The generation of a rewind is recorded.
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
    /// The generation of new containers that are to serve is recorded.
    RecreateRecorded = "recreate-recorded",
    /// The old containers are removed.
    RecreateRemoved = "recreate-removed",
    /// The new containers equal their snapshot.
    RecreateVerified = "recreate-verified",
    /// New containers have been created, for serving or for a standby.
    MakeCreated = "make-created",
    /// The new containers run.
    MakeStarted = "make-started",
    /// The probes of the new containers have passed.
    MakeProbed = "make-probed",
    /// The gateway routes to the rewound or new containers.
    Routed = "routed",
    /// The generation of a standby is recorded.
    StandbyRecorded = "standby-recorded",
    /// The standby equals its snapshot.
    StandbyProven = "standby-proven",
    /// The store records that the standby is ready.
    StandbyKept = "standby-kept",
    /// The processes of the standby are paused.
    StandbyFrozen = "standby-frozen",
    /// The processes of the standby were resumed in advance.
    StandbyThawed = "standby-thawed",
    /// The row of the standby is deleted; its containers are about to be removed.
    StandbyForgotten = "standby-forgotten",
    /// The images of a snapshot are committed.
    SnapshotCommitted = "snapshot-committed",
    /// The state of the snapshot is stored; the snapshot has no row yet.
    SnapshotSaved = "snapshot-saved",
    /// The route of an instance that is to be copied for forks holds.
    CopyHeld = "copy-held",
    /// The copy has a row and a digest; the route is still held.
    CopyTaken = "copy-taken",
    /// All slots of an episode and its record are copied for forks, which are not requested yet.
    ForkCopied = "fork-copied",
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Reports that a task has reached a point, and injects the fault that the folder of faults specifies.
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
        // The point panics only once, because the test examines the behaviour after the panic.
        let _ = std::fs::remove_file(&waits);
        panic!("a test wants a panic at {point}");
    }
    if let Err(error) = std::fs::write(folder.join(format!("{point}.reached")), "") {
        tracing::warn!(%point, %error, "could not report that a point was reached");
    }
    while waits.exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Does nothing in builds without debug assertions.
#[cfg(not(debug_assertions))]
pub async fn reach(_: Point) {}

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
