//! The kinds of events that the daemon records.
//!
//! The set is fixed for one version only: the log keeps the events of earlier versions, and a client may be older than
//! its daemon. The kind of a recorded event is therefore a text.

/// The kind of an event that the daemon records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// An instance does not exist any more.
    InstanceDown,
    /// The images and the baseline of an instance are being made.
    InstancePreparing,
    /// The containers of an instance are being created.
    InstanceStarting,
    /// An instance passes its probes.
    InstanceReady,
    /// An instance no longer passes its probes.
    InstanceUnhealthy,
    /// An instance is being brought back to its snapshot.
    InstanceResetting,
    /// An instance is being removed.
    InstanceStopping,
    /// The last attempt to bring an instance up or to reset it failed.
    InstanceFailed,
    /// A reset of an instance ended, with any outcome.
    InstanceReset,
    /// A rewind failed, and the containers are recreated.
    InstanceRewindFailed,
    /// A command runs in a container of an instance.
    InstanceEntered,
    /// A read-only site was, or may have been, written to.
    InstanceWritten,
    /// A defect of arenad ended an operation.
    InstancePanicked,
    /// Containers that had served were removed instead of becoming a standby.
    StandbyDiscarded,
    /// A standby could not be created, or was discarded.
    StandbyFailed,
    /// A site has too few standbys.
    StandbyLacking,
    /// A snapshot was taken.
    SnapshotStored,
    /// A snapshot was imported.
    SnapshotImported,
    /// Images of a snapshot are missing.
    SnapshotMissing,
    /// The images of a snapshot are present again.
    SnapshotFound,
    /// An import was abandoned.
    SnapshotGivenUp,
    /// An environment is down.
    EnvironmentDown,
    /// An environment's containers belong to another engine.
    EnvironmentElsewhere,
    /// An environment could not be restored.
    EnvironmentFailed,
    /// Another engine answers at the same address.
    EngineChanged,
    /// A log-in failed while a baseline was taken.
    AccountNoSession,
    /// The daemon has started and serves its API.
    DaemonStarted,
    /// The daemon stopped in an orderly way.
    DaemonStopped,
    /// Objects that nothing needed were removed.
    Pruned,
    /// The state root's trash cannot be emptied.
    TrashStuck,
    /// The state root's trash grows faster than it is emptied.
    TrashGrows,
    /// The state root's trash is empty again.
    TrashEmptied,
    /// A pass of reconciliation removed orphans.
    ReconcileRemoved,
    /// A step of reconciliation failed.
    ReconcileFailed,
}

impl EventKind {
    /// Returns the word in the log and in JSON. It never changes, because scripts look for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::InstanceDown => "instance.down",
            Self::InstancePreparing => "instance.preparing",
            Self::InstanceStarting => "instance.starting",
            Self::InstanceReady => "instance.ready",
            Self::InstanceUnhealthy => "instance.unhealthy",
            Self::InstanceResetting => "instance.resetting",
            Self::InstanceStopping => "instance.stopping",
            Self::InstanceFailed => "instance.failed",
            Self::InstanceReset => "instance.reset",
            Self::InstanceRewindFailed => "instance.rewind_failed",
            Self::InstanceEntered => "instance.entered",
            Self::InstanceWritten => "instance.written",
            Self::InstancePanicked => "instance.panicked",
            Self::StandbyDiscarded => "standby.discarded",
            Self::StandbyFailed => "standby.failed",
            Self::StandbyLacking => "standby.lacking",
            Self::SnapshotStored => "snapshot.stored",
            Self::SnapshotImported => "snapshot.imported",
            Self::SnapshotMissing => "snapshot.missing",
            Self::SnapshotFound => "snapshot.found",
            Self::SnapshotGivenUp => "snapshot.given_up",
            Self::EnvironmentDown => "environment.down",
            Self::EnvironmentElsewhere => "environment.elsewhere",
            Self::EnvironmentFailed => "environment.failed",
            Self::EngineChanged => "engine.changed",
            Self::AccountNoSession => "account.no_session",
            Self::DaemonStarted => "daemon.started",
            Self::DaemonStopped => "daemon.stopped",
            Self::Pruned => "pruned",
            Self::TrashStuck => "trash.stuck",
            Self::TrashGrows => "trash.grows",
            Self::TrashEmptied => "trash.emptied",
            Self::ReconcileRemoved => "reconcile.removed",
            Self::ReconcileFailed => "reconcile.failed",
        }
    }
}
