//! Work that continues after its caller has stopped waiting for it, and a way to wait for its end.
//!
//! A cancelled call to the engine or the state root still takes effect. Code that removes the leftovers of such calls
//! must look for them after the calls have ended.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::ordered_watch as watch;

/// The work in progress, by increasing numbers.
#[derive(Debug, Clone)]
pub struct Outstanding(Arc<watch::Sender<Pieces>>);

#[derive(Debug, Default)]
struct Pieces {
    begun: u64,
    going_on: BTreeSet<u64>,
}

impl Default for Outstanding {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(Pieces::default())))
    }
}

/// One piece of work; it ends when this guard is dropped.
#[derive(Debug)]
pub struct OutstandingWork {
    of: Outstanding,
    number: u64,
}

impl Outstanding {
    /// Begins a piece of work.
    pub fn begin(&self) -> OutstandingWork {
        let mut number = 0;
        self.0.send_modify(|pieces| {
            pieces.begun += 1;
            number = pieces.begun;
            pieces.going_on.insert(number);
        });
        OutstandingWork { of: self.clone(), number }
    }

    /// Waits until all work that began before the call has ended. Work that begins during the wait is ignored.
    pub async fn settled(&self) {
        let last = self.0.borrow().begun;
        let is_over = |pieces: &Pieces| pieces.going_on.first().is_none_or(|first| *first > last);
        // The sender lives as long as `self`, so only the end of the work ends the wait.
        let _ = self.0.subscribe().wait_for(is_over).await;
    }
}

impl Drop for OutstandingWork {
    fn drop(&mut self) {
        self.of.0.send_modify(|pieces| {
            pieces.going_on.remove(&self.number);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_has_begun_is_waited_for() {
        let outstanding = Outstanding::default();
        outstanding.settled().await;
        let pieces = (outstanding.begin(), outstanding.begin());
        drop(pieces.0);
        let wait = std::time::Duration::from_secs(1);
        assert!(tokio::time::timeout(wait, outstanding.settled()).await.is_err());
        let settled = tokio::spawn({
            let outstanding = outstanding.clone();
            async move { outstanding.settled().await }
        });
        tokio::task::yield_now().await;
        let later = outstanding.begin();
        drop(pieces.1);
        settled.await.expect("what begins later is not waited for");
        drop(later);
    }
}
