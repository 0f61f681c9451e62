//! Waiting for conditions with deadlines. Tests never sleep for a fixed time and hope.

use std::fmt::Debug;
use std::time::{Duration, Instant};

/// Longer than anything takes on a slow, busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Looks again and again until there is something to see; panics when time is up.
pub fn within<T>(what: &str, limit: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(Instant::now() < deadline, "{what}: not within {limit:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until a value is what it should be; shows the last one when time is up.
pub fn until<T: Debug>(what: &str, limit: Duration, mut look: impl FnMut() -> T, is_it: impl Fn(&T) -> bool) -> T {
    let deadline = Instant::now() + limit;
    loop {
        let seen = look();
        if is_it(&seen) {
            return seen;
        }
        assert!(Instant::now() < deadline, "{what}: not within {limit:?}, last seen: {seen:#?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
