//! The processor of a thread.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Pins a thread, and the threads that it starts for SQLite, to one processor. These threads only wait for each other,
/// and a wake-up on another processor costs as much as the statement itself.
pub fn stay_on(thread: usize) {
    let Ok(allowed) = sched_getaffinity(None) else { return };
    let processors: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|processor| allowed.is_set(*processor)).collect();
    let Some(processor) = processors.get(thread % processors.len().max(1)) else { return };
    let mut one = CpuSet::new();
    one.set(*processor);
    // Without this permission the simulation is merely slower.
    let _ = sched_setaffinity(None, &one);
}
