//! Faults of the store: a crash of the daemon at a call, or a disk that is full.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arenad_seams::inline::{Interference, IoComponent, IoFate, When};
use tokio::sync::Notify;

/// Decides the fate of each call to the store.
#[derive(Default)]
pub struct Chaos {
    /// The number of points that are still passed before the crash, plus one. Zero means no crash.
    crash_in: AtomicU64,
    is_dead: AtomicBool,
    is_full: AtomicBool,
    dead: Notify,
}

impl Chaos {
    /// Ends the daemon at the n-th point from now. Each call has a point before it and one after it.
    pub fn crash_in(&self, points: u64) {
        self.crash_in.store(points + 1, Ordering::Relaxed);
    }

    /// Resolves when the daemon has crashed.
    pub async fn crashed(&self) {
        while !self.is_dead.load(Ordering::Relaxed) {
            self.dead.notified().await;
        }
    }

    /// Returns at once, or never if the daemon has crashed and only its last tasks still run.
    pub async fn pass(&self) {
        if self.is_dead.load(Ordering::Relaxed) {
            std::future::pending().await
        }
    }

    pub fn revive(&self) {
        self.is_dead.store(false, Ordering::Relaxed);
        self.crash_in.store(0, Ordering::Relaxed);
    }

    pub fn crash_now(&self) {
        self.is_dead.store(true, Ordering::Relaxed);
        self.dead.notify_one();
    }

    pub fn set_full(&self, is_full: bool) {
        self.is_full.store(is_full, Ordering::Relaxed);
    }

    pub fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed)
    }
}

impl Interference for Chaos {
    fn at(&self, _: IoComponent, doing: &str, when: When) -> IoFate {
        if self.is_dead.load(Ordering::Relaxed) {
            return IoFate::Halt;
        }
        let left = self.crash_in.load(Ordering::Relaxed);
        self.crash_in.store(left.saturating_sub(1), Ordering::Relaxed);
        if left == 1 {
            self.crash_now();
            return IoFate::Halt;
        }
        // A full disk lets reads pass and refuses the commit.
        let is_refused = self.is_full() && when == When::Before && doing == "commit";
        if is_refused { IoFate::Fail } else { IoFate::Proceed }
    }
}
