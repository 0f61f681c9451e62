//! The operations that lead to each point.

use arenad_seams::fault::Point;

/// An operation that reaches fault points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultOperation {
    /// A reset with a ready standby.
    Swap,
    /// The same with a daemon that expects no reset, so the standby is frozen.
    SwapFrozen,
    /// A reset without a standby.
    Rewind,
    /// A reset of a site whose container is gone.
    Recreate,
    /// The containers that a swap took out of service are renewed as the next standby.
    Renew,
    /// A pool whose standby has died prepares another.
    Pool,
    /// The same with another standby running: the new one is frozen.
    Freeze,
    /// A swap takes the running standby, so the frozen one is resumed.
    Thaw,
    /// A user requests a snapshot.
    Take,
    /// The definition has changed, so another baseline is built.
    Baseline,
}

impl FaultOperation {
    /// Returns whether a client waits for the site to be equal to its baseline.
    pub fn is_reset(self) -> bool {
        matches!(self, Self::Swap | Self::SwapFrozen | Self::Rewind | Self::Recreate | Self::Renew | Self::Thaw)
    }
}

/// The ways that lead to a point.
pub fn ways_to(point: Point) -> &'static [FaultOperation] {
    match point {
        Point::SwapChosen | Point::SwapThawed | Point::SwapVerified | Point::SwapRecorded | Point::SwapSwitched => {
            &[FaultOperation::Swap, FaultOperation::SwapFrozen]
        }
        Point::ResetHeld | Point::RewindRecorded | Point::RewindVerified | Point::Routed => &[FaultOperation::Rewind],
        Point::RewindStopped | Point::RewindExchanged | Point::RewindStarted | Point::RewindProbed => {
            &[FaultOperation::Rewind, FaultOperation::Renew]
        }
        Point::RecreateRecorded | Point::RecreateRemoved | Point::RecreateVerified => &[FaultOperation::Recreate],
        Point::MakeCreated | Point::MakeStarted | Point::MakeProbed => {
            &[FaultOperation::Recreate, FaultOperation::Pool]
        }
        Point::StandbyForgotten | Point::StandbyRecorded | Point::StandbyProven | Point::StandbyKept => {
            &[FaultOperation::Pool]
        }
        Point::StandbyFrozen => &[FaultOperation::Freeze],
        Point::StandbyThawed => &[FaultOperation::Thaw],
        Point::SnapshotCommitted | Point::SnapshotSaved => &[FaultOperation::Take, FaultOperation::Baseline],
        // Only the forks of episodes lead there; `tests/episodes/forks.rs` kills the daemon at these points.
        Point::CopyHeld | Point::CopyTaken | Point::ForkCopied => &[],
    }
}
