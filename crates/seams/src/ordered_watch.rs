//! A watch channel that wakes its waiters in the order in which they began to wait.
//!
//! `tokio::sync::watch` distributes waiters randomly over eight lists, so that many threads can register without
//! contention, and wakes one list after the other. If several tasks of one thread wait for the same value, the order in
//! which they continue therefore varies from run to run, and a run cannot be replayed. This channel has a single list.
//! Its methods are those of tokio's channel that arenad needs.

use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use tokio::sync::Notify;

#[derive(Debug)]
struct Versioned<T> {
    value: T,
    /// The number of changes so far.
    version: u64,
}

#[derive(Debug)]
struct WatchedValue<T> {
    // Closures replace a value or leave it consistent, so the value remains usable after a panic in one of them.
    state: RwLock<Versioned<T>>,
    changed: Notify,
    senders: AtomicUsize,
}

impl<T> WatchedValue<T> {
    fn read(&self) -> RwLockReadGuard<'_, Versioned<T>> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_closed(&self) -> bool {
        self.senders.load(Ordering::SeqCst) == 0
    }
}

/// The error after every sender has been dropped and the last value has been seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the channel is closed")]
pub struct Closed;

/// A reference to the value, which blocks changes while it exists; it must not be kept across an `await`.
#[derive(Debug)]
pub struct Ref<'a, T>(RwLockReadGuard<'a, Versioned<T>>);

impl<T> Deref for Ref<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.value
    }
}

/// The side that changes the value. Clones change the same value.
#[derive(Debug)]
pub struct Sender<T>(Arc<WatchedValue<T>>);

/// The side that reads the value and waits for changes.
#[derive(Debug)]
pub struct Receiver<T> {
    shared: Arc<WatchedValue<T>>,
    /// The version that this receiver has seen.
    seen: u64,
}

/// Creates a channel with an initial value, which counts as seen.
pub fn channel<T>(value: T) -> (Sender<T>, Receiver<T>) {
    let sender = Sender::new(value);
    let receiver = sender.subscribe();
    (sender, receiver)
}

impl<T> Sender<T> {
    /// Creates a channel that has no receiver yet.
    pub fn new(value: T) -> Self {
        Self(Arc::new(WatchedValue {
            state: RwLock::new(Versioned { value, version: 0 }),
            changed: Notify::new(),
            senders: AtomicUsize::new(1),
        }))
    }

    /// Returns a receiver for which the current value counts as seen.
    pub fn subscribe(&self) -> Receiver<T> {
        let seen = self.0.read().version;
        Receiver { shared: self.0.clone(), seen }
    }

    /// Returns the current value.
    pub fn borrow(&self) -> Ref<'_, T> {
        Ref(self.0.read())
    }

    /// Replaces the value and returns the previous one.
    pub fn send_replace(&self, value: T) -> T {
        let mut value = value;
        self.send_modify(|current| std::mem::swap(current, &mut value));
        value
    }

    /// Changes the value and wakes all waiters.
    pub fn send_modify(&self, change: impl FnOnce(&mut T)) {
        self.send_if_modified(|value| {
            change(value);
            true
        });
    }

    /// Changes the value, and wakes the waiters only if the closure returns true. Returns the result of the closure.
    pub fn send_if_modified(&self, change: impl FnOnce(&mut T) -> bool) -> bool {
        {
            let mut state = self.0.state.write().unwrap_or_else(PoisonError::into_inner);
            if !change(&mut state.value) {
                return false;
            }
            state.version += 1;
        }
        self.0.changed.notify_waiters();
        true
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.0.senders.fetch_add(1, Ordering::SeqCst);
        Self(self.0.clone())
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        if self.0.senders.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.changed.notify_waiters();
        }
    }
}

impl<T> Receiver<T> {
    /// Returns the current value without marking it as seen.
    pub fn borrow(&self) -> Ref<'_, T> {
        Ref(self.shared.read())
    }

    /// Returns the current value and marks it as seen.
    pub fn borrow_and_update(&mut self) -> Ref<'_, T> {
        let state = self.shared.read();
        self.seen = state.version;
        Ref(state)
    }

    /// Returns whether the current value has not been seen. Errors: [`Closed`] once no sender is left.
    pub fn has_changed(&self) -> Result<bool, Closed> {
        if self.shared.is_closed() {
            return Err(Closed);
        }
        Ok(self.shared.read().version != self.seen)
    }

    /// Waits for a value that has not been seen, and marks it as seen. Errors: [`Closed`] once no such value can
    /// follow.
    ///
    /// Cancellation: nothing is marked as seen.
    pub async fn changed(&mut self) -> Result<(), Closed> {
        let seen = self.seen;
        self.wait_until(|state| state.version != seen).await.map(|_| ())
    }

    /// Waits until a value, which may be the current one, meets a condition, and marks it as seen. Errors: [`Closed`]
    /// once no such value can follow.
    pub async fn wait_for(&mut self, mut is_met: impl FnMut(&T) -> bool) -> Result<Ref<'_, T>, Closed> {
        self.wait_until(|state| is_met(&state.value)).await
    }

    async fn wait_until(&mut self, mut is_met: impl FnMut(&Versioned<T>) -> bool) -> Result<Ref<'_, T>, Closed> {
        loop {
            // Created before the value is read: the future receives every later notification, even before its first
            // poll.
            let changed = self.shared.changed.notified();
            // Read before the value, so that the last value of the last sender is not missed.
            let is_closed = self.shared.is_closed();
            {
                let state = self.shared.read();
                if is_met(&state) {
                    self.seen = state.version;
                    return Ok(Ref(state));
                }
            }
            if is_closed {
                return Err(Closed);
            }
            changed.await;
        }
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone(), seen: self.seen }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[tokio::test]
    async fn waiters_wake_in_the_order_in_which_they_began_to_wait() {
        let (sender, receiver) = channel(0);
        let order = Arc::new(Mutex::new(Vec::new()));
        let tasks: Vec<_> = (0..32)
            .map(|number| {
                let (mut receiver, order) = (receiver.clone(), order.clone());
                tokio::spawn(async move {
                    receiver.changed().await.expect("a change");
                    order.lock().expect("no panic").push(number);
                })
            })
            .collect();
        tokio::task::yield_now().await;
        sender.send_replace(1);
        for task in tasks {
            task.await.expect("it ends");
        }
        assert_eq!(*order.lock().expect("no panic"), (0..32).collect::<Vec<_>>());
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_is_seen_once_by_each_receiver() {
        let (sender, mut early) = channel("a");
        assert_eq!(sender.send_replace("b"), "a");
        let mut late = sender.subscribe();
        assert_eq!(early.has_changed(), Ok(true));
        early.changed().await.expect("a change");
        assert_eq!((*early.borrow(), early.has_changed()), ("b", Ok(false)));
        let wait = std::time::Duration::from_secs(1);
        assert!(tokio::time::timeout(wait, early.changed()).await.is_err());
        assert!(tokio::time::timeout(wait, late.changed()).await.is_err(), "it counts as seen for who came later");
        assert!(!sender.send_if_modified(|_| false));
        assert_eq!(late.has_changed(), Ok(false));
        assert!(sender.send_if_modified(|value| std::mem::replace(value, "c") == "b"));
        assert_eq!(*late.borrow(), "c");
        assert_eq!(late.has_changed(), Ok(true), "it was looked at, and not marked");
        assert_eq!(*late.borrow_and_update(), "c");
        assert_eq!(late.has_changed(), Ok(false));
    }

    #[tokio::test]
    async fn the_last_value_is_seen_before_the_end() {
        let (sender, mut receiver) = channel(0);
        let other = sender.clone();
        other.send_modify(|value| *value += 1);
        drop(other);
        assert_eq!(receiver.has_changed(), Ok(true));
        drop(sender);
        assert_eq!(receiver.has_changed(), Err(Closed));
        receiver.changed().await.expect("the last value");
        assert_eq!(receiver.changed().await, Err(Closed));
        assert_eq!(receiver.wait_for(|value| *value == 1).await.as_deref(), Ok(&1), "the value stays");
        assert_eq!(receiver.wait_for(|value| *value == 2).await.map(|_| ()), Err(Closed));
    }

    #[tokio::test]
    async fn the_end_wakes_those_who_wait() {
        let (sender, mut receiver) = channel(0);
        let waiting = tokio::spawn(async move { receiver.changed().await });
        tokio::task::yield_now().await;
        drop(sender);
        assert_eq!(waiting.await.expect("it ends"), Err(Closed));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn no_change_is_missed_between_threads() {
        let (sender, receiver) = channel(0_u32);
        let waiting: Vec<_> = (0..4)
            .map(|_| {
                let mut receiver = receiver.clone();
                tokio::spawn(async move { receiver.wait_for(|value| *value == 10_000).await.map(|value| *value) })
            })
            .collect();
        for _ in 0..10_000 {
            sender.send_modify(|value| *value += 1);
        }
        for task in waiting {
            assert_eq!(task.await.expect("it ends"), Ok(10_000));
        }
    }
}
