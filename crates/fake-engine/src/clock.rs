//! The time of a simulated engine: it goes on where a runtime ends and the next one begins.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::Instant;

/// Seconds since 1970 UTC at which a clock begins unless it is told otherwise: later than any run of this program, so that
/// a log that is asked for from the host's present time on is never cut.
const EPOCH: i64 = 2_000_000_000;

/// A clock that follows tokio's, which tests pause, from one runtime to the next.
///
/// Each runtime counts for itself, so [`FakeClock::enter`] is called at the beginning of each, and [`FakeClock::leave`] at
/// its end. Outside of a runtime the
/// clock stands still, apart from [`FakeClock::pass`].
#[derive(Debug, Clone)]
pub struct FakeClock {
    state: Arc<Mutex<ClockState>>,
}

#[derive(Debug)]
struct ClockState {
    /// What the clock showed when the present runtime was entered.
    base: Duration,
    /// When that was, by that runtime's clock.
    entered: Option<Instant>,
    /// What it showed last.
    last: Duration,
    epoch: i64,
}

impl Default for FakeClock {
    fn default() -> Self {
        let state = ClockState { base: Duration::ZERO, entered: None, last: Duration::ZERO, epoch: EPOCH };
        Self { state: Arc::new(Mutex::new(state)) }
    }
}

impl FakeClock {
    fn state(&self) -> MutexGuard<'_, ClockState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Follows the present runtime from now on. The time that it showed last is the time at which this runtime begins.
    pub fn enter(&self) {
        let mut state = self.state();
        state.base = state.last;
        state.entered = Some(Instant::now());
    }

    /// Stands still from now on, until the next runtime is entered. Called at the end of a runtime, from within; of one
    /// that ends without it, the time since the engine was last looked at does not count.
    pub fn leave(&self) {
        let last = self.now();
        let mut state = self.state();
        state.base = last;
        state.entered = None;
    }

    /// The time since the clock was made. Never goes back.
    pub fn now(&self) -> Duration {
        let mut state = self.state();
        if Handle::try_current().is_ok() {
            let entered = *state.entered.get_or_insert_with(Instant::now);
            let now = state.base + Instant::now().saturating_duration_since(entered);
            state.last = state.last.max(now);
        }
        state.last
    }

    /// Lets time pass beside what tokio's clock shows, as between two runtimes.
    pub fn pass(&self, duration: Duration) {
        let mut state = self.state();
        state.base += duration;
        state.last += duration;
    }

    /// The time in seconds since 1970 UTC, as timestamps of logs and containers carry it.
    pub fn unix(&self) -> i64 {
        let now = self.now();
        self.at(now)
    }

    /// A time of this clock in seconds since 1970 UTC.
    pub(crate) fn at(&self, time: Duration) -> i64 {
        self.state().epoch.saturating_add(i64::try_from(time.as_secs()).unwrap_or(i64::MAX))
    }

    /// Says when the clock began, in seconds since 1970 UTC.
    pub fn set_epoch(&self, seconds: i64) {
        self.state().epoch = seconds;
    }
}
