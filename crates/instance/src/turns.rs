//! Turns: how much goes on at once on this host. More would only make all of it later, and let sites miss their
//! time-outs; those count from when a site's turn has come.

use std::num::NonZeroUsize;

use tokio::sync::{Semaphore, SemaphorePermit};

/// What a site says of itself until its turn has come.
const WAITING: &str = "waiting for its turn";

/// The turns of a host. Builds have their own, so that a reset never waits for one.
pub struct Turns {
    /// Of images to be built or pulled.
    pub builds: Bound,
    /// Of sites to boot, be it for a baseline or to serve.
    pub boots: Bound,
    /// Of standbys to boot, beside the boots that someone waits for, at low weight.
    pub standbys: Bound,
}

impl Turns {
    /// That many builds and boots at once; by default one for each processor, and two on a host that has but one.
    pub fn new(parallel: Option<NonZeroUsize>, standbys: NonZeroUsize) -> Self {
        let processors = || std::thread::available_parallelism().map_or(2, |processors| processors.get().max(2));
        let count = parallel.map_or_else(processors, NonZeroUsize::get);
        Self {
            builds: Bound(Semaphore::new(count)),
            boots: Bound(Semaphore::new(count)),
            standbys: Bound(Semaphore::new(standbys.get())),
        }
    }
}

/// So many at once, the others in the order in which they came.
pub struct Bound(Semaphore);

impl Bound {
    /// Waits for a turn, which ends when the permit is dropped. `stage` is told if it does not come at once.
    pub async fn turn(&self, stage: &(dyn Fn(&str) + Send + Sync)) -> SemaphorePermit<'_> {
        if let Ok(turn) = self.0.try_acquire() {
            return turn;
        }
        stage(WAITING);
        self.0.acquire().await.expect("nobody closes the turns: who waits is cancelled")
    }
}
