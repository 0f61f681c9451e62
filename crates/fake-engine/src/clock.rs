//! The clock of a simulated engine: it continues from one runtime to the next.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::Instant;

/// Default start of a clock, in seconds since 1970 UTC. It is later than any run of this program, so that a log that is
/// requested from the host's current time on is complete.
const EPOCH: i64 = 2_000_000_000;

/// A clock that follows tokio's clock, which tests pause, across several runtimes.
///
/// Each runtime has its own time, so [`FakeClock::enter`] must be called at the beginning of each runtime and
/// [`FakeClock::leave`] at its end. Outside a runtime the clock does not advance, except by [`FakeClock::pass`].
#[derive(Debug, Clone)]
pub struct FakeClock {
    state: Arc<Mutex<ClockState>>,
}

#[derive(Debug)]
struct ClockState {
    /// Time of this clock when the current runtime was entered.
    base: Duration,
    /// Time of tokio's clock when the current runtime was entered.
    entered: Option<Instant>,
    /// Last time that the clock returned.
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

    /// Follows the current runtime from now on. The clock continues from the last time that it returned.
    pub fn enter(&self) {
        let mut state = self.state();
        state.base = state.last;
        state.entered = Some(Instant::now());
    }

    /// Stops the clock until the next runtime is entered. Must be called within a runtime, at its end. If a runtime
    /// ends without this call, the time since the clock was last read is lost.
    pub fn leave(&self) {
        let last = self.now();
        let mut state = self.state();
        state.base = last;
        state.entered = None;
    }

    /// Returns the time since the clock was created. It never decreases.
    pub fn now(&self) -> Duration {
        let mut state = self.state();
        if Handle::try_current().is_ok() {
            let entered = *state.entered.get_or_insert_with(Instant::now);
            let now = state.base + Instant::now().saturating_duration_since(entered);
            state.last = state.last.max(now);
        }
        state.last
    }

    /// Advances the clock independently of tokio's clock, for example between two runtimes.
    pub fn pass(&self, duration: Duration) {
        let mut state = self.state();
        state.base += duration;
        state.last += duration;
    }

    /// Returns the current time in seconds since 1970 UTC, as in the timestamps of logs and containers.
    pub fn unix(&self) -> i64 {
        let now = self.now();
        self.at(now)
    }

    /// Converts a time of this clock to seconds since 1970 UTC.
    pub(crate) fn at(&self, time: Duration) -> i64 {
        self.state().epoch.saturating_add(i64::try_from(time.as_secs()).unwrap_or(i64::MAX))
    }

    /// Sets the start of the clock, in seconds since 1970 UTC.
    pub fn set_epoch(&self, seconds: i64) {
        self.state().epoch = seconds;
    }
}
