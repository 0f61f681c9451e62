//! One client connection, as a switch of the route sees it.
//!
//! ```text
//!            begin                 commit               flushed
//!   Idle ───────────► Waiting ───────────────► Committed ───────► Idle
//!                      │    ▲ withdraw (own answer) → Idle  │
//!               expel  ▼                                    ▼ expel
//!                   Expelled ── excused (503, or again) → Idle   Cut
//! ```
//! `Waiting`: the target has a request, and no byte of its response has been given to the client. `Committed`: the head
//! of the response has been handed over for writing. The step between the two is the point of no return. It is taken
//! under the link's mutex, as is the decision to expel: either the worker commits first and the switch cuts the
//! connection, or the switch expels first and the worker's commit is refused. No third order exists, so no response of
//! a previous target gets through.
//!
//! Bytes outlive an exchange: a finished response may be in hyper's buffer (`unflushed`) or in the kernel's
//! (`carried`). A switch cuts connections that still hold such bytes and leaves other idle connections alone.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::wire::SharedWriteHalf;

/// Number of a route's configuration; every change of state increments it.
pub(super) type Epoch = u64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExchangePhase {
    Idle,
    Waiting(Epoch),
    Committed(Epoch),
    Expelled,
    Cut,
}

/// The decisions about one connection; pure, so that every order of events can be tested without a socket.
#[derive(Debug)]
struct Ledger {
    exchange: ExchangePhase,
    /// Whether bytes of a finished response may still be in the process.
    unflushed: bool,
    /// Whether bytes of a finished response may still be in the kernel.
    carried: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum CutDecision {
    Leave,
    Cut,
    CutIfUnsent,
}

impl Ledger {
    const fn new() -> Self {
        Self { exchange: ExchangePhase::Idle, unflushed: false, carried: false }
    }

    fn begin(&mut self, epoch: Epoch) -> bool {
        match self.exchange {
            ExchangePhase::Cut => return false,
            // The previous response has not been flushed: hyper reads ahead of its own writes.
            ExchangePhase::Committed(_) => self.unflushed = true,
            ExchangePhase::Idle | ExchangePhase::Waiting(_) | ExchangePhase::Expelled => {}
        }
        self.exchange = ExchangePhase::Waiting(epoch);
        true
    }

    fn commit(&mut self, epoch: Epoch) -> bool {
        let free = self.exchange == ExchangePhase::Waiting(epoch);
        if free {
            self.exchange = ExchangePhase::Committed(epoch);
            self.carried = true;
        }
        free
    }

    /// Ends an exchange of which no byte was forwarded. Returns false if it had already been expelled or cut.
    fn withdraw(&mut self) -> bool {
        let free = matches!(self.exchange, ExchangePhase::Waiting(_) | ExchangePhase::Idle);
        if self.exchange != ExchangePhase::Cut {
            self.exchange = ExchangePhase::Idle;
        }
        free
    }

    fn flushed(&mut self) {
        self.unflushed = false;
        if let ExchangePhase::Committed(_) = self.exchange {
            self.exchange = ExchangePhase::Idle;
        }
    }

    fn expel(&mut self, now: Epoch) -> CutDecision {
        match self.exchange {
            ExchangePhase::Cut => CutDecision::Leave,
            ExchangePhase::Committed(epoch) if epoch < now => {
                self.exchange = ExchangePhase::Cut;
                CutDecision::Cut
            }
            ExchangePhase::Waiting(epoch) if epoch < now => {
                self.exchange = ExchangePhase::Expelled;
                self.leftovers()
            }
            ExchangePhase::Idle | ExchangePhase::Expelled | ExchangePhase::Waiting(_) | ExchangePhase::Committed(_) => {
                self.leftovers()
            }
        }
    }

    fn leftovers(&mut self) -> CutDecision {
        if self.unflushed {
            self.exchange = ExchangePhase::Cut;
            CutDecision::Cut
        } else if std::mem::take(&mut self.carried) {
            CutDecision::CutIfUnsent
        } else {
            CutDecision::Leave
        }
    }
}

/// A client connection: its socket, and the state of its current exchange.
#[derive(Debug)]
pub(super) struct ClientLink {
    pub(super) wire: SharedWriteHalf,
    ledger: Mutex<Ledger>,
    born: Instant,
    /// Time since which the client owes a request head: 0 if it owes none, otherwise the milliseconds since `born`,
    /// plus one, times two, plus one if the head has begun to arrive.
    owing: AtomicU64,
}

impl ClientLink {
    pub(super) fn new(wire: SharedWriteHalf) -> Self {
        let link = Self { wire, ledger: Mutex::new(Ledger::new()), born: Instant::now(), owing: AtomicU64::new(0) };
        link.awaits_head(false);
        link
    }

    // A panic while the mutex is held leaves the ledger in a valid state, so poisoning can be ignored.
    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a request is about to go to the target of this epoch. Returns false if the connection has been cut.
    pub(super) fn begin(&self, epoch: Epoch) -> bool {
        self.ledger().begin(epoch)
    }

    /// Claims the right to forward the response. Returns false if the target is outdated and its response must be
    /// dropped.
    pub(super) fn commit(&self, epoch: Epoch) -> bool {
        self.ledger().commit(epoch)
    }

    /// Ends the exchange so that the gateway can answer itself. Returns false if a switch had expelled the exchange.
    pub(super) fn withdraw(&self) -> bool {
        self.ledger().withdraw()
    }

    /// Records that all of a finished response has been given to the kernel and that the next head is due. `begun` says
    /// whether some of that head has already arrived.
    pub(super) fn flushed(&self, begun: bool) {
        self.ledger().flushed();
        self.awaits_head(begun);
    }

    pub(super) fn is_cut(&self) -> bool {
        self.ledger().exchange == ExchangePhase::Cut
    }

    /// Ends every exchange with a target older than `now`. Returns whether the connection was cut.
    pub(super) fn expel(&self, now: Epoch) -> bool {
        let mut ledger = self.ledger();
        let cut = match ledger.expel(now) {
            CutDecision::Leave => false,
            CutDecision::Cut => true,
            CutDecision::CutIfUnsent => self.wire.has_unsent(),
        };
        if cut {
            ledger.exchange = ExchangePhase::Cut;
            self.wire.abort();
        }
        cut
    }

    /// Cuts the connection because its response cannot be completed.
    pub(super) fn cut(&self) {
        self.cut_telling(|| {});
    }

    /// Cuts the connection as `cut` does. Unless it has been cut already, calls `tell` first, before the client or a
    /// switch can notice.
    pub(super) fn cut_telling(&self, tell: impl FnOnce()) {
        let mut ledger = self.ledger();
        if std::mem::replace(&mut ledger.exchange, ExchangePhase::Cut) != ExchangePhase::Cut {
            tell();
        }
        self.wire.abort();
    }

    /// Ends the connection if no exchange is under way; otherwise the connection ends with its response.
    pub(super) fn close_if_idle(&self) {
        let ledger = self.ledger();
        if ledger.exchange == ExchangePhase::Idle && self.owing.load(Ordering::Relaxed) != 0 {
            self.wire.close();
        }
    }

    pub(super) fn awaits_head(&self, begun: bool) {
        let elapsed = u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX >> 2);
        self.owing.store(((elapsed + 1) << 1) | u64::from(begun), Ordering::Relaxed);
    }

    pub(super) fn owes_head(&self) -> bool {
        self.owing.load(Ordering::Relaxed) != 0
    }

    pub(super) fn has_head(&self) {
        self.owing.store(0, Ordering::Relaxed);
    }

    /// Closes the connection if its client has owed a request for too long.
    ///
    /// A head that has begun has its own, shorter time, counted from its first byte: bytes that arrive slowly do not
    /// extend it.
    pub(super) fn close_if_overdue(&self, head_timeout: Duration, idle_timeout: Duration) {
        let owing = self.owing.load(Ordering::Relaxed);
        if owing == 0 {
            return;
        }
        let since = Duration::from_millis((owing >> 1) - 1);
        let allowed = if owing & 1 == 1 { head_timeout } else { idle_timeout };
        if self.born.elapsed().saturating_sub(since) > allowed {
            self.wire.close();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_before_the_switch_is_cut() {
        let mut ledger = Ledger::new();
        assert!(ledger.begin(1) && ledger.commit(1));
        assert_eq!(ledger.expel(2), CutDecision::Cut);
        assert!(!ledger.begin(2), "a cut connection serves no request");
    }

    #[test]
    fn a_commit_after_the_switch_is_refused() {
        let mut ledger = Ledger::new();
        assert!(ledger.begin(1));
        assert_eq!(ledger.expel(2), CutDecision::Leave);
        assert!(!ledger.commit(1));
        assert!(!ledger.withdraw(), "the worker learns that it was expelled");
        assert!(ledger.begin(2) && ledger.commit(2));
    }

    #[test]
    fn an_exchange_of_the_new_epoch_is_left_alone() {
        let mut ledger = Ledger::new();
        assert!(ledger.begin(2));
        assert_eq!(ledger.expel(2), CutDecision::Leave);
        assert!(ledger.commit(2));
    }

    #[test]
    fn leftovers_of_a_finished_answer_are_looked_at_once() {
        let mut ledger = Ledger::new();
        assert!(ledger.begin(1) && ledger.commit(1));
        ledger.flushed();
        assert_eq!(ledger.expel(2), CutDecision::CutIfUnsent);
        assert_eq!(ledger.expel(3), CutDecision::Leave);
    }

    #[test]
    fn a_pipelined_request_behind_unflushed_bytes_is_cut_with_them() {
        let mut ledger = Ledger::new();
        assert!(ledger.begin(1) && ledger.commit(1) && ledger.begin(1));
        assert_eq!(ledger.expel(2), CutDecision::Cut);
        let mut flushed = Ledger::new();
        assert!(flushed.begin(1) && flushed.commit(1) && flushed.begin(1));
        flushed.flushed();
        assert_eq!(flushed.expel(2), CutDecision::CutIfUnsent);
    }
}
