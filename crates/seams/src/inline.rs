//! Inline I/O, for a daemon on one thread that runs all steps in an order determined by a seed.
//!
//! The store and the state root normally work on threads of their own, and their callers yield. Inline, a call is
//! complete when it returns, and no other task runs during it. An [`Interference`] is asked before and after each call,
//! and may make it fail or never return.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use rustix::io::Errno;

/// The component that performs the I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum IoComponent {
    /// The database of the daemon.
    Store,
    /// The state root on disk.
    Storage,
}

/// Whether the interference is asked before or after the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum When {
    /// The call has had no effect yet.
    Before,
    /// The call has taken effect, but its caller has not received the result.
    After,
}

/// The outcome that an interference chooses for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IoFate {
    /// The call proceeds normally.
    Proceed,
    /// The call fails because the disk is full. After the call this equals [`IoFate::Proceed`], because the effect is
    /// not undone.
    Fail,
    /// The call never returns, as if the process had ended.
    Halt,
}

/// Decides the outcome of inline calls.
pub trait Interference: Send + Sync + 'static {
    /// Decides the outcome of a call. `doing` names the call in one word.
    fn at(&self, part: IoComponent, doing: &str, when: When) -> IoFate;
}

/// Inline I/O of one component.
#[derive(Clone)]
pub struct Inline {
    part: IoComponent,
    interference: Arc<dyn Interference>,
}

impl std::fmt::Debug for Inline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inline").field("part", &self.part).finish_non_exhaustive()
    }
}

impl Inline {
    /// Creates the inline I/O of a component.
    pub fn new(part: IoComponent, interference: Arc<dyn Interference>) -> Self {
        Self { part, interference }
    }

    /// Runs a call, unless the interference makes it fail or never return.
    ///
    /// Errors: `ENOSPC` if the interference makes the call fail.
    pub async fn run<T>(&self, doing: &str, work: impl FnOnce() -> T) -> io::Result<T> {
        match self.interference.at(self.part, doing, When::Before) {
            IoFate::Proceed => {}
            IoFate::Fail => return Err(rustix::io::Errno::NOSPC.into()),
            IoFate::Halt => std::future::pending().await,
        }
        let done = work();
        match self.interference.at(self.part, doing, When::After) {
            IoFate::Proceed | IoFate::Fail => Ok(done),
            IoFate::Halt => std::future::pending().await,
        }
    }
}

/// Runs work that may block: in place on a single-threaded runtime, where no other task runs in parallel anyway, and on
/// a thread of its own otherwise. Errors: the work panicked on that thread.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, tokio::task::JoinError> {
    match tokio::runtime::Handle::current().runtime_flavor() {
        tokio::runtime::RuntimeFlavor::CurrentThread => Ok(work()),
        _ => tokio::task::spawn_blocking(work).await,
    }
}

/// A flag that tells blocking work that no caller waits for its result any more. Work on a site's files checks the flag
/// after each piece of bounded size, because those files can have any size.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Returns [`Errno::CANCELED`] if no caller waits for the work any more.
    pub fn check(&self) -> Result<(), Errno> {
        if self.0.load(Ordering::Relaxed) { Err(Errno::CANCELED) } else { Ok(()) }
    }
}

/// Sets a [`Stop`] when the future that owns this value is dropped.
#[derive(Debug)]
pub struct StopOnDrop(pub Stop);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

/// Runs work as [`blocking`] does, and stops it when the future that waits for it is dropped. Errors: the work
/// panicked.
pub async fn stoppable<T: Send + 'static>(
    work: impl FnOnce(&Stop) -> T + Send + 'static,
) -> Result<T, tokio::task::JoinError> {
    let stop = Stop::default();
    let _given_up = StopOnDrop(stop.clone());
    blocking(move || work(&stop)).await
}

/// Blocks the calling thread, of any runtime, until a future completes. The future must be completed by other threads.
pub fn wait<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut cx = Context::from_waker(&waker);
    // The cooperative budget of the waiting task must not apply to the work, because this loop does not yield.
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

    struct Always(When, IoFate);

    impl Interference for Always {
        fn at(&self, _: IoComponent, _: &str, when: When) -> IoFate {
            if when == self.0 { self.1 } else { IoFate::Proceed }
        }
    }

    async fn run(when: When, fate: IoFate) -> (bool, Option<io::Result<()>>) {
        let mut is_done = false;
        let inline = Inline::new(IoComponent::Store, Arc::new(Always(when, fate)));
        let limit = std::time::Duration::from_secs(1);
        let outcome = tokio::time::timeout(limit, inline.run("work", || is_done = true)).await.ok();
        (is_done, outcome)
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_fails_before_its_effect_and_ends_before_or_after_it() {
        let (is_done, outcome) = run(When::Before, IoFate::Fail).await;
        assert!(!is_done && outcome.expect("it returns").is_err());
        let (is_done, outcome) = run(When::Before, IoFate::Halt).await;
        assert!(!is_done && outcome.is_none());
        let (is_done, outcome) = run(When::After, IoFate::Halt).await;
        assert!(is_done && outcome.is_none());
        let (is_done, outcome) = run(When::After, IoFate::Fail).await;
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
