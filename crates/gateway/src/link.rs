//! One client connection, as a switch of a route and the end of an episode see it.
//!
//! A `ClientLink` is the connection, and an `ExchangeLink` is the part that one route has in it. A connection to a
//! public port has one; a connection to the episode proxy has one for each route and episode of its requests.
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
//!
//! A revoked access expels like a switch, and for good: `begin` and `commit` are refused from then on. It also aborts the
//! connection to the target, which other episodes may use afterwards and which therefore belongs to the exchange only
//! until the response ends (`attach`, `detach`).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
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
    /// Whether the access of the requests has been revoked.
    is_revoked: bool,
}

/// Whether a request may go to a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BeginDecision {
    Begun,
    /// The client's connection has been cut.
    Cut,
    /// The access of the request has been revoked.
    Revoked,
}

#[derive(Debug, PartialEq, Eq)]
enum CutDecision {
    Leave,
    Cut,
    CutIfUnsent,
}

impl Ledger {
    const fn new() -> Self {
        Self { exchange: ExchangePhase::Idle, unflushed: false, carried: false, is_revoked: false }
    }

    fn begin(&mut self, epoch: Epoch) -> BeginDecision {
        match self.exchange {
            ExchangePhase::Cut => return BeginDecision::Cut,
            _ if self.is_revoked => return BeginDecision::Revoked,
            // The previous response has not been flushed: hyper reads ahead of its own writes.
            ExchangePhase::Committed(_) => self.unflushed = true,
            ExchangePhase::Idle | ExchangePhase::Waiting(_) | ExchangePhase::Expelled => {}
        }
        self.exchange = ExchangePhase::Waiting(epoch);
        BeginDecision::Begun
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

    /// Ends every exchange, and refuses all further ones.
    fn revoke(&mut self) -> CutDecision {
        self.is_revoked = true;
        self.expel(Epoch::MAX)
    }

    /// Returns whether the route has no part in the connection at present, apart from bytes in the kernel.
    fn is_idle(&self) -> bool {
        self.exchange == ExchangePhase::Idle && !self.unflushed
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

/// The part that one route has in a client connection.
#[derive(Debug)]
pub(super) struct ExchangeLink {
    pub(super) client: Arc<ClientLink>,
    state: Mutex<ExchangeState>,
}

#[derive(Debug)]
struct ExchangeState {
    ledger: Ledger,
    /// The connection to the target that the exchange under way uses. Weak, because the owner's end closes it.
    target: Weak<SharedWriteHalf>,
}

impl ExchangeLink {
    pub(super) fn new(client: Arc<ClientLink>) -> Self {
        Self { client, state: Mutex::new(ExchangeState { ledger: Ledger::new(), target: Weak::new() }) }
    }

    // A panic while the mutex is held leaves the ledger in a valid state, so poisoning can be ignored.
    fn state(&self) -> MutexGuard<'_, ExchangeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a request is about to go to the target of this epoch, unless it must not.
    pub(super) fn begin(&self, epoch: Epoch) -> BeginDecision {
        let mut state = self.state();
        if self.client.is_cut() { BeginDecision::Cut } else { state.ledger.begin(epoch) }
    }

    /// Records the connection to the target on which the request is about to be sent, so that `revoke` can abort it.
    /// Returns false if the exchange has been expelled and the request must not be sent.
    pub(super) fn attach(&self, target: &Arc<SharedWriteHalf>) -> bool {
        let mut state = self.state();
        let is_waiting = matches!(state.ledger.exchange, ExchangePhase::Waiting(_));
        if is_waiting {
            state.target = Arc::downgrade(target);
        }
        is_waiting
    }

    /// Records that the connection to the target is not used any more. Returns whether other exchanges may use it: a
    /// revocation that came first has aborted it, which its owner may not have noticed.
    pub(super) fn detach(&self) -> bool {
        let mut state = self.state();
        state.target = Weak::new();
        !state.ledger.is_revoked
    }

    /// Claims the right to forward the response. Returns false if the target is outdated or the access revoked, and the
    /// response must be dropped.
    pub(super) fn commit(&self, epoch: Epoch) -> bool {
        self.state().ledger.commit(epoch)
    }

    /// Ends the exchange so that the gateway can answer itself. Returns false if a switch had expelled the exchange.
    pub(super) fn withdraw(&self) -> bool {
        let mut state = self.state();
        state.target = Weak::new();
        state.ledger.withdraw()
    }

    /// Records that all of a finished response has been given to the kernel.
    pub(super) fn flushed(&self) {
        self.state().ledger.flushed();
    }

    /// Ends every exchange with a target older than `now`. Returns whether the connection was cut.
    pub(super) fn expel(&self, now: Epoch) -> bool {
        let mut state = self.state();
        let decision = state.ledger.expel(now);
        self.carry_out(&mut state, decision)
    }

    /// Ends every exchange and refuses all further ones. When this returns, no byte of a response leaves through the
    /// connection, and none of a request reaches a target.
    pub(super) fn revoke(&self) {
        let mut state = self.state();
        let decision = state.ledger.revoke();
        self.carry_out(&mut state, decision);
        if let Some(target) = state.target.upgrade() {
            target.abort();
        }
    }

    fn carry_out(&self, state: &mut ExchangeState, decision: CutDecision) -> bool {
        // This waits for a cut that another thread has begun, so that the connection is aborted when this returns.
        if self.client.is_cut() {
            state.ledger.exchange = ExchangePhase::Cut;
            return false;
        }
        let cut = match decision {
            CutDecision::Leave => false,
            CutDecision::Cut => true,
            CutDecision::CutIfUnsent => self.client.wire.has_unsent(),
        };
        if cut {
            state.ledger.exchange = ExchangePhase::Cut;
        }
        cut && self.client.cut_telling(|| {})
    }

    /// Returns whether the route has no part in the connection any more.
    pub(super) fn is_quiet(&self) -> bool {
        let state = self.state();
        state.ledger.is_idle() && (!state.ledger.carried || !self.client.wire.has_unsent())
    }
}

/// A client connection: its socket, and the time since which it owes a request.
#[derive(Debug)]
pub(super) struct ClientLink {
    pub(super) wire: SharedWriteHalf,
    /// Held while the connection is aborted, so that a thread that reads `true` knows that it has been.
    is_cut: Mutex<bool>,
    born: Instant,
    /// Time since which the client owes a request head: 0 if it owes none, otherwise the milliseconds since `born`,
    /// plus one, times two, plus one if the head has begun to arrive.
    owing: AtomicU64,
}

impl ClientLink {
    pub(super) fn new(wire: SharedWriteHalf) -> Self {
        let link = Self { wire, is_cut: Mutex::new(false), born: Instant::now(), owing: AtomicU64::new(0) };
        link.awaits_head(false);
        link
    }

    fn cut_state(&self) -> MutexGuard<'_, bool> {
        self.is_cut.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_cut(&self) -> bool {
        *self.cut_state()
    }

    /// Cuts the connection because its response cannot be completed.
    pub(super) fn cut(&self) {
        self.cut_telling(|| {});
    }

    /// Cuts the connection as `cut` does. Unless it has been cut already, calls `tell` first, before the client or a
    /// switch can notice. Returns whether this call cut it.
    pub(super) fn cut_telling(&self, tell: impl FnOnce()) -> bool {
        let mut is_cut = self.cut_state();
        let is_first = !std::mem::replace(&mut *is_cut, true);
        if is_first {
            tell();
        }
        self.wire.abort();
        is_first
    }

    /// Ends the connection if its client owes a request; otherwise the connection ends with its response.
    pub(super) fn close_if_idle(&self) {
        let is_cut = self.cut_state();
        if !*is_cut && self.owing.load(Ordering::Relaxed) != 0 {
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

    fn begun(ledger: &mut Ledger, epoch: Epoch) -> bool {
        ledger.begin(epoch) == BeginDecision::Begun
    }

    #[test]
    fn a_commit_before_the_switch_is_cut() {
        let mut ledger = Ledger::new();
        assert!(begun(&mut ledger, 1) && ledger.commit(1));
        assert_eq!(ledger.expel(2), CutDecision::Cut);
        assert_eq!(ledger.begin(2), BeginDecision::Cut, "a cut connection serves no request");
    }

    #[test]
    fn a_commit_after_the_switch_is_refused() {
        let mut ledger = Ledger::new();
        assert!(begun(&mut ledger, 1));
        assert_eq!(ledger.expel(2), CutDecision::Leave);
        assert!(!ledger.commit(1));
        assert!(!ledger.withdraw(), "the worker learns that it was expelled");
        assert!(begun(&mut ledger, 2) && ledger.commit(2));
    }

    #[test]
    fn an_exchange_of_the_new_epoch_is_left_alone() {
        let mut ledger = Ledger::new();
        assert!(begun(&mut ledger, 2));
        assert_eq!(ledger.expel(2), CutDecision::Leave);
        assert!(ledger.commit(2));
    }

    #[test]
    fn leftovers_of_a_finished_answer_are_looked_at_once() {
        let mut ledger = Ledger::new();
        assert!(begun(&mut ledger, 1) && ledger.commit(1));
        ledger.flushed();
        assert_eq!(ledger.expel(2), CutDecision::CutIfUnsent);
        assert_eq!(ledger.expel(3), CutDecision::Leave);
    }

    #[test]
    fn a_pipelined_request_behind_unflushed_bytes_is_cut_with_them() {
        let mut ledger = Ledger::new();
        assert!(begun(&mut ledger, 1) && ledger.commit(1) && begun(&mut ledger, 1));
        assert_eq!(ledger.expel(2), CutDecision::Cut);
        let mut flushed = Ledger::new();
        assert!(begun(&mut flushed, 1) && flushed.commit(1) && begun(&mut flushed, 1));
        flushed.flushed();
        assert_eq!(flushed.expel(2), CutDecision::CutIfUnsent);
    }

    #[test]
    fn a_revoked_exchange_is_expelled_for_good() {
        let mut ledger = Ledger::new();
        assert!(begun(&mut ledger, 1));
        assert_eq!(ledger.revoke(), CutDecision::Leave);
        assert!(!ledger.commit(1));
        assert!(!ledger.withdraw());
        assert_eq!(ledger.begin(1), BeginDecision::Revoked);
        assert!(!ledger.commit(1));
    }

    #[test]
    fn a_response_under_way_is_cut_by_a_revocation() {
        let mut ledger = Ledger::new();
        assert!(begun(&mut ledger, 1) && ledger.commit(1));
        assert_eq!(ledger.revoke(), CutDecision::Cut);
        let mut finished = Ledger::new();
        assert!(begun(&mut finished, 1) && finished.commit(1));
        finished.flushed();
        assert_eq!(finished.revoke(), CutDecision::CutIfUnsent);
    }
}
