//! Waiting for conditions with deadlines. Tests never sleep for a fixed time.

use std::fmt::Debug;
use std::time::{Duration, Instant};

/// A limit that no operation reaches on a slow, busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Repeats `look` until it returns a value; panics at the deadline.
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

/// Waits until a value fulfils a condition; panics at the deadline with the last value.
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
