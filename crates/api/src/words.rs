//! The words of the JSON that stand for states, kinds, ways and outcomes.

/// Defines an enum whose variants are words in JSON and in tables.
macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)+ })+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
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
    /// How an item differs from its earlier state.
    ItemChange {
        /// Only the later state has it.
        Added = "added",
        /// Both states have it, with different content.
        Changed = "changed",
        /// Only the earlier state has it.
        Removed = "removed",
    }
    /// The reason why the changes of an episode leave a site out.
    LeftOutReason {
        /// All episodes share the site, so that none of them changes it.
        Shared = "shared",
        /// The definition declares no stores of the site.
        NoStores = "no_stores",
        /// The snapshot of the site was taken without a state root.
        NoStateRoot = "no_state_root",
    }
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
    /// The state of an episode.
    EpisodeStatus {
        /// It waits for slots.
        Queued = "queued",
        /// Its sites are being brought to their starting points.
        Preparing = "preparing",
        /// Its client can reach its sites.
        Active = "active",
        /// Its client's requests are refused while its sites are judged.
        Frozen = "frozen",
        /// It ended because its client needed it no longer.
        Released = "released",
        /// It ended because a time limit passed.
        Expired = "expired",
        /// It ended because the environment failed it.
        Void = "void",
    }
    /// The use of a slot.
    SlotOccupation {
        /// No episode has it.
        Free = "free",
        /// It is being brought to the starting point of an episode.
        Preparing = "preparing",
        /// An episode has it.
        Leased = "leased",
        /// It is being made, or brought back to its baseline.
        Recycling = "recycling",
    }
    /// The requests of an episode that are recorded.
    EpisodeRecording {
        /// No requests are recorded.
        Nothing = "none",
        /// All requests except GET, HEAD and OPTIONS are recorded.
        Writes = "writes",
        /// All requests are recorded.
        All = "all",
    }
    /// The verdict on an episode.
    EpisodeVerdict {
        /// The agent accomplished the task.
        Passed = "passed",
        /// The agent did not accomplish the task.
        Failed = "failed",
        /// A judge is needed, and none was available.
        NeedsJudge = "needs_judge",
        /// A check could not be made, because of the environment.
        Inconclusive = "inconclusive",
        /// The profile cannot make a check.
        Unsupported = "unsupported",
        /// The environment failed the episode, so that there is nothing to judge.
        Void = "void",
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
    /// The kind of an item that differs from the snapshot.
    DifferenceKind {
        /// A store that only one of the two has.
        Store = "store",
        /// The rows of a table.
        Table = "table",
        /// The number of a sequence, or a table's next number.
        Counter = "counter",
        /// The definition of a table, an index, a trigger or another object.
        Object = "object",
        /// A file or folder, with its attributes.
        File = "file",
        /// A key of a key-value server.
        Key = "key",
    }
    /// The kind of the probes of a site that is up.
    ProbeKind {
        /// They show whether the site responds.
        Shallow = "shallow",
        /// They show whether the site works.
        Deep = "deep",
    }
    /// The level of a finding of the doctor.
    FindingLevel {
        /// The fact is as it should be.
        Ok = "ok",
        /// The fact is worth knowing, but requires no action.
        Note = "note",
        /// A function works, but more slowly, or not in every case.
        Warning = "warning",
        /// A function will fail until the cause is removed.
        Problem = "problem",
    }
    /// The area of a finding of the doctor.
    FindingArea {
        /// The container engine and the daemon that uses it.
        Engine = "engine",
        /// The file systems and their features.
        Storage = "storage",
        /// Disk space, memory and processors.
        Capacity = "capacity",
        /// Addresses, ports and packet filters.
        Network = "network",
        /// The system and its programs.
        Host = "host",
        /// The images of the environment.
        Images = "images",
    }
    /// The kind of an item that an environment needs.
    ImageItemKind {
        /// An image of a container.
        Image = "image",
        /// Data that is mounted into containers.
        Data = "data",
    }
    /// The origin of an image or of data.
    ImageOrigin {
        /// It is built on this host.
        Built = "built",
        /// It is pulled from a registry.
        Registry = "registry",
        /// It is loaded from an archive.
        Archive = "archive",
    }
    /// The state of an image or of data.
    ImageState {
        /// It is in its place. If it comes from an archive, it has been compared with the archive.
        Present = "present",
        /// Content with its name is in its place, but has not been compared with an archive.
        Unverified = "unverified",
        /// Content with its name is in its place, but differs from the archive.
        Different = "different",
        /// Its archive is complete but has not been loaded.
        Downloaded = "downloaded",
        /// Only a part of its archive has been fetched.
        Partial = "partial",
        /// Neither its content nor any part of its archive is present.
        Missing = "missing",
    }
    /// The result of a command for an image or for data.
    ImageOutcome {
        /// It was in its place already.
        Present = "present",
        /// It was loaded from its archive.
        Loaded = "loaded",
        /// Nothing was done for it.
        Skipped = "skipped",
        /// It has been proven to be what the definition states.
        Proven = "proven",
        /// The command failed for it, or it is not what the definition states.
        Failed = "failed",
    }
    /// The kind of an object that nothing needs any more.
    PrunedKind {
        /// A snapshot that no instance uses.
        Snapshot = "snapshot",
        /// The containers of a baseline that could not be made, which were kept for inspection.
        Container = "container",
        /// An image whose name a newer build has taken.
        Image = "image",
    }
    /// The type of a condition.
    ConditionKind {
        /// Whether a site is ready.
        Ready = "Ready",
        /// Whether the container engine answers.
        EngineReachable = "EngineReachable",
        /// Whether the disk has enough free space.
        DiskSpace = "DiskSpace",
    }
    /// The type of a value that a locator has read.
    ValueKind {
        /// The absence of a value.
        Null = "null",
        /// A truth value, true or false.
        Bool = "bool",
        /// An integer of up to 128 bits.
        Integer = "integer",
        /// An exact decimal number.
        Decimal = "decimal",
        /// A number in binary floating point.
        Float = "float",
        /// A text in Unicode.
        Text = "text",
        /// Bytes, which JSON shows in hexadecimal.
        Bytes = "bytes",
        /// A time, which JSON shows in UTC.
        Timestamp = "timestamp",
        /// A document in JSON.
        Json = "json",
        /// The rows of a table.
        Rows = "rows",
    }
}
