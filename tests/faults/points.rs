//! Something dies at every point of every way of resetting, all of which `arenad::fault` names. Whatever it is and wherever it
//! happens: no client sees anything but the baseline after a reset that was said to be done, the next reset works, and
//! nothing stays behind.
//!
//! What is broken at which point is spread over tests that run beside each other. `ARENAD_TEST_LONG=1` breaks everything
//! everywhere; without it, the engine dies at some points only, because starting one takes seconds.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use arenad::fault::Point;
use rustix::process::Signal;
use serde_json::Value;

use crate::support::own_engine::OwnEngine;
use crate::support::wait::PATIENCE;
use crate::support::world::{Running, list};
use crate::support::{World, within};

const BASELINE: &str = "toy\nconfigured\n";

/// How long it may take until something comes to a point; after that it is taken not to lie on the way.
const COMES_WITHIN: Duration = Duration::from_secs(60);

/// How a point is come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// A reset with a standby that runs.
    Swap,
    /// The same with one that is frozen.
    FrozenSwap,
    /// A reset without a standby.
    Rewind,
    /// A reset of something whose container is gone.
    Recreate,
    /// A pool that is filled.
    Pool,
    /// A standby that is expected to be needed soon.
    Thaw,
    /// A pool that has one too many.
    Surplus,
    /// A snapshot that is taken.
    Take,
}

/// The way that leads to a point.
fn way_to(point: Point) -> Way {
    match point {
        Point::SwapChosen | Point::SwapVerified | Point::SwapRecorded | Point::SwapSwitched => Way::Swap,
        Point::SwapThawed => Way::FrozenSwap,
        Point::ResetHeld
        | Point::ResetRecorded
        | Point::RewindRecorded
        | Point::RewindStopped
        | Point::RewindExchanged
        | Point::RewindStarted
        | Point::RewindProbed
        | Point::RewindVerified
        | Point::Routed => Way::Rewind,
        Point::RecreateRecorded
        | Point::RecreateRemoved
        | Point::RecreateVerified
        | Point::MakeCreated
        | Point::MakeStarted
        | Point::MakeProbed => Way::Recreate,
        Point::StandbyRecorded | Point::StandbyProven | Point::StandbyKept | Point::StandbyFrozen => Way::Pool,
        Point::StandbyThawed => Way::Thaw,
        Point::StandbyForgotten => Way::Surplus,
        Point::SnapshotCommitted | Point::SnapshotSaved => Way::Take,
    }
}
