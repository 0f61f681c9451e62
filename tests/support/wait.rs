//! Waiting for conditions with deadlines. Tests never sleep for a fixed time.

use std::fmt::Debug;
use std::time::{Duration, Instant};

/// A limit that no operation reaches on a slow, busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Repeats `look` until it returns a value; panics at the deadline.
pub fn within<T>(what: &str, limit: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(begun.elapsed() < limit, "{what}: not within {limit:?}");
        pause_since(begun);
    }
}

/// Waits until a value fulfils a condition; panics at the deadline with the last value.
pub fn until<T: Debug>(what: &str, limit: Duration, mut look: impl FnMut() -> T, is_it: impl Fn(&T) -> bool) -> T {
    let begun = Instant::now();
    loop {
        let seen = look();
        if is_it(&seen) {
            return seen;
        }
        assert!(begun.elapsed() < limit, "{what}: not within {limit:?}, last seen: {seen:#?}");
        pause_since(begun);
    }
}

/// Sleeps for a twentieth of the time that was waited so far, from 5 to 50 ms: most looks are requests, and tests beside
/// this one need the processors.
fn pause_since(begun: Instant) {
    let pause = begun.elapsed() / 20;
    std::thread::sleep(pause.clamp(Duration::from_millis(5), Duration::from_millis(50)));
}
