//! A waker for a connection that is driven from within another task.
//!
//! hyper's two halves of a connection wake each other when a request is sent, a response arrives or a chunk is
//! requested. Here the same task polls both halves in turn, so the poll under way sees the cause of such a wake anyway.
//! Passing the wake on would poll the whole client connection once more for each. The wake is noted instead, and
//! `Nudge::poll` runs another round. A wake from outside, which comes from the socket, is passed on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// Number of rounds after which a poll yields to other tasks, whether or not a wake is noted.
const MOST_ROUNDS: usize = 32;

/// The waker of one connection, and the task to wake.
pub(super) struct Nudge {
    state: Arc<NudgeState>,
    waker: Waker,
}

struct NudgeState {
    task: Mutex<Waker>,
    is_inside: AtomicBool,
    is_noted: AtomicBool,
}

impl NudgeState {
    fn wake_task(&self) {
        self.task.lock().unwrap_or_else(PoisonError::into_inner).wake_by_ref();
    }
}

impl Wake for NudgeState {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    // Everything that wakes a connection runs on its worker's thread, so no wake can occur between the end of a round
    // and the reset of `is_inside`; concurrent wakes do not exist.
    fn wake_by_ref(self: &Arc<Self>) {
        if self.is_inside.load(Ordering::Relaxed) {
            self.is_noted.store(true, Ordering::Relaxed);
        } else {
            self.wake_task();
        }
    }
}

impl Nudge {
    pub(super) fn new() -> Self {
        let state = Arc::new(NudgeState {
            task: Mutex::new(Waker::noop().clone()),
            is_inside: AtomicBool::new(false),
            is_noted: AtomicBool::new(false),
        });
        Self { waker: Waker::from(Arc::clone(&state)), state }
    }

    /// Runs an action that wakes the connection, and suppresses the wake because the connection is about to be polled.
    pub(super) fn quietly<T>(&self, act: impl FnOnce() -> T) -> T {
        self.state.is_inside.store(true, Ordering::Relaxed);
        let done = act();
        self.state.is_inside.store(false, Ordering::Relaxed);
        done
    }

    /// Forgets the task: events on an idle connection need no attention until it is taken.
    pub(super) fn detach(&self) {
        *self.state.task.lock().unwrap_or_else(PoisonError::into_inner) = Waker::noop().clone();
    }

    /// Polls with this waker on behalf of the task of `cx`, until no half wakes the other any more.
    pub(super) fn poll<T>(&self, cx: &Context<'_>, mut round: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
        {
            let mut task = self.state.task.lock().unwrap_or_else(PoisonError::into_inner);
            task.clone_from(cx.waker());
        }
        let mut own = Context::from_waker(&self.waker);
        let mut polled = Poll::Pending;
        self.state.is_inside.store(true, Ordering::Relaxed);
        for rounds in 1..=MOST_ROUNDS {
            self.state.is_noted.store(false, Ordering::Relaxed);
            polled = round(&mut own);
            if polled.is_ready() || !self.state.is_noted.load(Ordering::Relaxed) {
                break;
            }
            if rounds == MOST_ROUNDS {
                self.state.wake_task();
            }
        }
        self.state.is_inside.store(false, Ordering::Relaxed);
        polled
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[derive(Default)]
    struct WakeCount(AtomicUsize);

    impl Wake for WakeCount {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn wakes_from_inside_make_rounds_and_wakes_from_outside_wake_the_task() {
        let count = Arc::new(WakeCount::default());
        let task = Waker::from(Arc::clone(&count));
        let nudge = Nudge::new();
        let rounds = Cell::new(0);
        let polled: Poll<()> = nudge.poll(&Context::from_waker(&task), |cx| {
            rounds.set(rounds.get() + 1);
            if rounds.get() < 3 {
                cx.waker().wake_by_ref();
            }
            Poll::Pending
        });
        assert!(polled.is_pending());
        assert_eq!((rounds.get(), count.0.load(Ordering::SeqCst)), (3, 0));
        nudge.waker.wake_by_ref();
        assert_eq!(count.0.load(Ordering::SeqCst), 1);
        nudge.detach();
        nudge.waker.wake_by_ref();
        assert_eq!(count.0.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn what_never_comes_to_rest_gives_way_and_is_polled_again() {
        let count = Arc::new(WakeCount::default());
        let task = Waker::from(Arc::clone(&count));
        let nudge = Nudge::new();
        let polled: Poll<()> = nudge.poll(&Context::from_waker(&task), |cx| {
            cx.waker().wake_by_ref();
            Poll::Pending
        });
        assert!(polled.is_pending());
        assert_eq!(count.0.load(Ordering::SeqCst), 1);
    }
}
