//! The time of day, for decisions that go by the calendar: schedules, ages, snapshots' clocks.
//!
//! Durations are measured by tokio's clock, which no administrator sets.

use std::sync::Arc;

use jiff::Timestamp;

/// Tells the time of day.
#[derive(Clone)]
pub struct WallClock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl std::fmt::Debug for WallClock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "WallClock({})", self.now())
    }
}

impl WallClock {
    /// Returns the clock of the system.
    pub fn system() -> Self {
        Self::new(Timestamp::now)
    }

    /// Returns a clock that calls `now` for the time.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// Returns the current time. It may be earlier than a previous result.
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }
}

impl Default for WallClock {
    fn default() -> Self {
        Self::system()
    }
}
