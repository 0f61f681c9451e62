//! Turns: limits on concurrent work on this host. More concurrent work would only finish later and cause time-outs; a
//! site's time-outs count from the moment at which its turn begins.

use std::num::NonZeroUsize;

use tokio::sync::{Semaphore, SemaphorePermit};

/// The stage that a site reports while it waits for its turn.
const WAITING: &str = "waiting for its turn";

/// The limits of a host. Builds have a limit of their own, so a reset never waits for a build.
pub struct Turns {
    /// Limits builds and pulls of images.
    pub builds: ConcurrencyLimit,
    /// Limits boots of sites, for a baseline or to serve.
    pub boots: ConcurrencyLimit,
    /// Limits rewinds. A rewind waits for its processes half of the time, so there are twice as many as boots.
    pub rewinds: ConcurrencyLimit,
    /// Limits boots and renewals of standbys, which run beside the boots that a client waits for and at a low weight.
    pub standbys: ConcurrencyLimit,
}

impl Turns {
    /// Creates the limits. `parallel` applies to builds and to boots, and twice to rewinds; the default is the number of processors, at least
    /// two.
    pub fn new(parallel: Option<NonZeroUsize>, standbys: NonZeroUsize) -> Self {
        let processors = || std::thread::available_parallelism().map_or(2, |processors| processors.get().max(2));
        let count = parallel.map_or_else(processors, NonZeroUsize::get);
        Self {
            builds: ConcurrencyLimit(Semaphore::new(count)),
            boots: ConcurrencyLimit(Semaphore::new(count)),
            rewinds: ConcurrencyLimit(Semaphore::new(count.saturating_mul(2).min(Semaphore::MAX_PERMITS))),
            standbys: ConcurrencyLimit(Semaphore::new(standbys.get())),
        }
    }
}

/// A limit on concurrent work; waiting callers are served in the order of their arrival.
pub struct ConcurrencyLimit(Semaphore);

impl ConcurrencyLimit {
    /// Waits for a turn, which ends when the permit is dropped. `stage` is called if the turn does not begin at once.
    pub async fn turn(&self, stage: &(dyn Fn(&str) + Send + Sync)) -> SemaphorePermit<'_> {
        if let Ok(turn) = self.0.try_acquire() {
            return turn;
        }
        stage(WAITING);
        self.0.acquire().await.expect("the semaphore is never closed: waiting tasks are cancelled")
    }
}
