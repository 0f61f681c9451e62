//! A client that visits another site continuously and measures the response times.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::support::http;

/// The pause between two visits.
const PAUSE: Duration = Duration::from_millis(20);

/// A visitor that stops when it is dropped.
pub struct Neighbour {
    seen: Arc<Mutex<NeighbourTimings>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct NeighbourTimings {
    took: Vec<Duration>,
    failures: usize,
}

impl Neighbour {
    /// Starts visits to the site on this port of the host.
    pub fn visited(port: u16) -> Self {
        let (seen, is_over) = (Arc::<Mutex<NeighbourTimings>>::default(), Arc::<AtomicBool>::default());
        let (noted, ends) = (Arc::clone(&seen), Arc::clone(&is_over));
        let thread = std::thread::spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                let begun = Instant::now();
                let answer = http::get(port, "/page.html");
                let took = begun.elapsed();
                let mut noted = noted.lock().expect("no panic");
                match answer {
                    Some(answer) if answer.status == 200 => noted.took.push(took),
                    _ => noted.failures += 1,
                }
                drop(noted);
                std::thread::sleep(PAUSE);
            }
        });
        Self { seen, is_over, thread: Some(thread) }
    }

    /// Discards the measurements so far.
    pub fn forget(&self) {
        *self.seen.lock().expect("no panic") = NeighbourTimings::default();
    }

    /// The median response time of at least ten visits.
    pub fn median(&self) -> Duration {
        loop {
            let mut took = self.seen.lock().expect("no panic").took.clone();
            took.sort_unstable();
            if took.len() >= 10 {
                return took[took.len() / 2];
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// The median response time over a period of this length.
    pub fn median_of(&self, length: Duration) -> Duration {
        self.forget();
        std::thread::sleep(length);
        self.median()
    }

    /// The number of failed visits.
    pub fn failures(&self) -> usize {
        self.seen.lock().expect("no panic").failures
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
