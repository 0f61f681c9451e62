//! I/O that is done in place: a daemon on one thread, whose every step happens in an order that a seed decides.
//!
//! The store and the state root normally work on threads of their own, and whoever asks them yields. In place, a call is done
//! when it returns, nothing else runs meanwhile, and an [`Interference`] is asked before and after each, which may let it
//! fail or never return.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

/// What does the I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// The database.
    Store,
    /// The state root.
    Storage,
}

/// Whether the call has been done yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum When {
    /// It has had no effect.
    Before,
    /// It has had its effect, of which its caller does not know yet.
    After,
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It goes on.
    Proceed,
    /// It fails for want of space. After the call it counts as [`Fate::Proceed`]: what is done is not taken back.
    Fail,
    /// It never returns: the process has ended.
    Halt,
}

/// Is asked at every call that is done in place.
pub trait Interference: Send + Sync + 'static {
    /// Decides about a call. `doing` says which, in a word.
    fn at(&self, part: Part, doing: &str, when: When) -> Fate;
}

/// The way in which I/O in place is done.
#[derive(Clone)]
pub struct Inline {
    part: Part,
    interference: Arc<dyn Interference>,
}

impl std::fmt::Debug for Inline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inline").field("part", &self.part).finish_non_exhaustive()
    }
}

impl Inline {
    /// I/O of a part, in place.
    pub fn new(part: Part, interference: Arc<dyn Interference>) -> Self {
        Self { part, interference }
    }

    /// Does a call, unless it is to fail; then what went wrong, as the system says it.
    pub async fn run<T>(&self, doing: &str, work: impl FnOnce() -> T) -> io::Result<T> {
        match self.interference.at(self.part, doing, When::Before) {
            Fate::Proceed => {}
            Fate::Fail => return Err(rustix::io::Errno::NOSPC.into()),
            Fate::Halt => std::future::pending().await,
        }
        let done = work();
        match self.interference.at(self.part, doing, When::After) {
            Fate::Proceed | Fate::Fail => Ok(done),
            Fate::Halt => std::future::pending().await,
        }
    }
}

/// Runs work that may block: in place on a runtime of one thread, where nobody else could be kept waiting in parallel anyway,
/// and on a thread of its own otherwise. Errors: it panicked there.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, tokio::task::JoinError> {
    match tokio::runtime::Handle::current().runtime_flavor() {
        tokio::runtime::RuntimeFlavor::CurrentThread => Ok(work()),
        _ => tokio::task::spawn_blocking(work).await,
    }
}

/// Waits for a future on the calling thread, whatever runtime that belongs to. For work that other threads complete.
pub fn wait<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut cx = Context::from_waker(&waker);
    // The budget of the task that waits is none of the work's business: there is nobody to yield to.
    let mut future = std::pin::pin!(tokio::task::coop::unconstrained(future));
    loop {
        match future.as_mut().poll(&mut cx) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Always(When, Fate);

    impl Interference for Always {
        fn at(&self, _: Part, _: &str, when: When) -> Fate {
            if when == self.0 { self.1 } else { Fate::Proceed }
        }
    }

    async fn run(when: When, fate: Fate) -> (bool, Option<io::Result<()>>) {
        let mut is_done = false;
        let inline = Inline::new(Part::Store, Arc::new(Always(when, fate)));
        let limit = std::time::Duration::from_secs(1);
        let outcome = tokio::time::timeout(limit, inline.run("work", || is_done = true)).await.ok();
        (is_done, outcome)
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_fails_before_its_effect_and_ends_before_or_after_it() {
        let (is_done, outcome) = run(When::Before, Fate::Fail).await;
        assert!(!is_done && outcome.expect("it returns").is_err());
        let (is_done, outcome) = run(When::Before, Fate::Halt).await;
        assert!(!is_done && outcome.is_none());
        let (is_done, outcome) = run(When::After, Fate::Halt).await;
        assert!(is_done && outcome.is_none());
        let (is_done, outcome) = run(When::After, Fate::Fail).await;
        assert!(is_done && outcome.expect("it returns").is_ok());
    }

    #[test]
    fn waiting_needs_no_runtime() {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let thread = std::thread::spawn(move || sender.send(7));
        assert_eq!(wait(receiver), Ok(7));
        thread.join().expect("it ends").expect("it was received");
    }
}
