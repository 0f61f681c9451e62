//! The words of the JSON that stand for states, kinds, ways and outcomes.

/// Defines an enum whose variants are words in JSON and in tables.
macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)+ })+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$variant_doc])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// Returns the word that stands for the variant in JSON and in tables.
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.word())
            }
        }
    )+};
}

words! {
    /// The state of an instance.
    InstanceState {
        /// It does not exist.
        Down = "down",
        /// Its images and its baseline are being made.
        Preparing = "preparing",
        /// Its containers are being created from the baseline, started and probed.
        Starting = "starting",
        /// It passed its start-up probes and still passes them.
        Ready = "ready",
        /// It was ready and no longer passes its probes.
        Unhealthy = "unhealthy",
        /// It is being brought back to its snapshot.
        Resetting = "resetting",
        /// It is being removed.
        Stopping = "stopping",
        /// The last attempt to bring it up or to reset it failed.
        Failed = "failed",
    }
    /// The kind of an operation.
    OperationKind {
        /// A site is brought up.
        Up = "up",
        /// A site is reset.
        Reset = "reset",
        /// A site is taken down.
        Down = "down",
        /// A snapshot is taken.
        Snapshot = "snapshot",
    }
    /// The state of an operation.
    OperationState {
        /// It is in progress.
        Running = "running",
        /// The work ended as requested.
        Done = "done",
        /// The work ended with an error.
        Failed = "failed",
        /// Another operation took its place, or the daemon stopped.
        Superseded = "superseded",
    }
    /// The way in which a reset was done.
    ResetWay {
        /// A read-only site was left as it is.
        Keep = "keep",
        /// A site without changes was left as it is.
        Untouched = "untouched",
        /// A standby took over.
        Swap = "swap",
        /// The containers were brought back in place.
        Rewind = "rewind",
        /// New containers were created.
        Recreate = "recreate",
    }
    /// The outcome of a reset.
    ResetOutcome {
        /// The instance equals its snapshot.
        Done = "done",
        /// A step of the reset failed.
        Failed = "failed",
        /// A `down` took its place.
        Cancelled = "cancelled",
        /// The daemon crashed meanwhile.
        Interrupted = "interrupted",
    }
    /// The extent of a comparison with the snapshot.
    Extent {
        /// Every store was compared completely.
        Everything = "everything",
        /// The stores were compared that had changed since the last comparison.
        Moved = "moved",
        /// No store was compared.
        Nothing = "nothing",
    }
    /// The state of a standby.
    StandbyState {
        /// It is being created, brought back to the snapshot, or removed.
        Making = "making",
        /// It is ready, and its processes run.
        Running = "running",
        /// It is ready, and its processes are paused.
        Frozen = "frozen",
        /// It has served, and holds what its clients wrote.
        Used = "used",
    }
    /// The kind of a snapshot.
    SnapshotKind {
        /// Episodes start from it.
        Baseline = "baseline",
        /// It was taken on request.
        Named = "named",
    }
    /// The status of a condition.
    ConditionStatus {
        /// The condition holds now.
        True = "True",
        /// The condition does not hold.
        False = "False",
        /// It is not known whether the condition holds.
        Unknown = "Unknown",
    }
}
