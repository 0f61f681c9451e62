//! Work that finds more work while it is done, on several threads.

use std::num::NonZeroUsize;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

struct Queue<T, E> {
    waiting: Vec<T>,
    at_work: usize,
    failed: Option<E>,
}

struct Shared<T, E> {
    queue: Mutex<Queue<T, E>>,
    changed: Condvar,
}

impl<T, E> Shared<T, E> {
    fn lock(&self) -> MutexGuard<'_, Queue<T, E>> {
        // A panic of a thread ends the others too; what they had in the queue does not matter then.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next piece of work; `None` when there will be none.
    fn next(&self) -> Option<T> {
        let mut queue = self.lock();
        loop {
            if queue.failed.is_some() {
                return None;
            }
            if let Some(work) = queue.waiting.pop() {
                queue.at_work += 1;
                return Some(work);
            }
            if queue.at_work == 0 {
                return None;
            }
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Counts a thread as at work until dropped, so that a panic does not let the others wait for ever.
struct AtWork<'a, T, E>(&'a Shared<T, E>);

impl<T, E> Drop for AtWork<'_, T, E> {
    fn drop(&mut self) {
        self.0.lock().at_work -= 1;
        self.0.changed.notify_all();
    }
}

/// Does `first` and whatever the work adds to its second argument, the newest first. Ends at the first error, which it
/// returns.
pub(super) fn run<T: Send, E: Send>(
    threads: NonZeroUsize,
    first: T,
    work: impl Fn(T, &mut Vec<T>) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let queue = Queue { waiting: vec![first], at_work: 0, failed: None };
    let shared = Shared { queue: Mutex::new(queue), changed: Condvar::new() };
    let toil = || {
        let mut more = Vec::new();
        while let Some(piece) = shared.next() {
            let _at_work = AtWork(&shared);
            let done = work(piece, &mut more);
            let mut queue = shared.lock();
            match done {
                Ok(()) => queue.waiting.append(&mut more),
                Err(error) => queue.failed = queue.failed.take().or(Some(error)),
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.get() {
            scope.spawn(toil);
        }
        toil();
    });
    let queue = shared.queue.into_inner().unwrap_or_else(PoisonError::into_inner);
    queue.failed.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn all_that_is_found_is_done_once() {
        let done = AtomicU64::new(0);
        let threads = NonZeroUsize::MIN.saturating_add(3);
        let halves = |n: u64, more: &mut Vec<u64>| -> Result<(), ()> {
            done.fetch_add(1, Ordering::Relaxed);
            more.extend([n / 2, n / 2].into_iter().filter(|half| *half > 0));
            Ok(())
        };
        run(threads, 1 << 10, halves).expect("nothing fails");
        assert_eq!(done.into_inner(), (1 << 11) - 1);
    }

    #[test]
    fn the_first_error_ends_it() {
        let result = run(NonZeroUsize::MIN, 0_u32, |n, more| {
            more.push(n + 1);
            if n == 3 { Err(n) } else { Ok(()) }
        });
        assert_eq!(result, Err(3));
    }
}
