//! The life of one episode over time: the wait, the time to live, the hold, and the causes of a freeze.
//!
//! ```text
//!   queued      wait ────────────────► expired (wait)
//!   preparing   time limit ──────────► void (preparation timed out)
//!   active      time to live ────────► expired (ttl)      a heartbeat moves the deadline; a hold suspends it
//!   frozen      time to live ────────► expired (ttl)      an evaluation moves the deadline by its own time limit
//!   any         the hold is closed ──► released (hold closed)
//! ```
//! Every part of a life is bounded, except a hold, which is bounded by its connection. After the deadline only
//! [`EpisodeLife::expire`] changes the episode, so a late heartbeat cannot revive an episode whose requests are already
//! refused.

use std::time::Duration;

use super::ending::{EpisodeEnding, ReleaseCause, VoidReason};
use super::ids::InvalidEpisodeValue;
use super::{EpisodeEvent, EpisodeRefusal, EpisodeState};

/// The time to live of an episode whose client states none.
pub const DEFAULT_TTL: Duration = Duration::from_secs(600);
/// The shortest time to live. A shorter one would expire between two heartbeats of a busy client.
pub const SHORTEST_TTL: Duration = Duration::from_secs(1);
/// The longest time to live, and the longest extension by one heartbeat, that a daemon may be set to allow.
pub const LONGEST_TTL: Duration = Duration::from_secs(30 * 24 * 3600);
/// The longest time that a request may wait for slots.
pub const LONGEST_WAIT: Duration = Duration::from_secs(24 * 3600);
/// The time after a restart of the daemon in which the client of a held episode must hold it again.
pub const HOLD_AGAIN_WITHIN: Duration = Duration::from_secs(15);

/// The times that a client asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EpisodeTerms {
    ttl: Duration,
    wait: Duration,
}

impl EpisodeTerms {
    /// Creates terms from the time to live and the longest wait for slots.
    ///
    /// Errors: a time to live outside [`SHORTEST_TTL`] to [`LONGEST_TTL`], or a wait above [`LONGEST_WAIT`].
    pub fn new(ttl: Duration, wait: Duration) -> Result<Self, InvalidEpisodeValue> {
        check_ttl(ttl)?;
        if wait > LONGEST_WAIT {
            return Err(InvalidEpisodeValue { kind: "the wait", rule: "at most 24 hours" });
        }
        Ok(Self { ttl, wait })
    }

    /// Returns the time to live.
    pub fn ttl(self) -> Duration {
        self.ttl
    }

    /// Returns the longest wait for slots.
    pub fn wait(self) -> Duration {
        self.wait
    }
}

/// Checks a time to live.
///
/// Errors: times outside [`SHORTEST_TTL`] to [`LONGEST_TTL`].
pub fn check_ttl(ttl: Duration) -> Result<(), InvalidEpisodeValue> {
    if (SHORTEST_TTL..=LONGEST_TTL).contains(&ttl) {
        return Ok(());
    }
    Err(InvalidEpisodeValue { kind: "the time to live", rule: "between 1 second and 30 days" })
}

/// A connection that holds an episode. Its number is unique while the daemon runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct HoldId(pub u64);

/// A stored life, from which a new daemon continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredLife {
    /// The state that was stored last.
    pub state: EpisodeState,
    /// The times that the client asked for.
    pub terms: EpisodeTerms,
    /// The time until the deadline. The store keeps the deadline on the wall clock, which may have jumped, and the time
    /// that was left when the row was written. The smaller of both counts.
    pub left: Duration,
    /// Whether a connection held the episode. The connection ended with the earlier daemon.
    pub was_held: bool,
    /// Whether the client, and not only an evaluation, had frozen the episode.
    pub is_frozen_by_client: bool,
}

/// The state of an episode together with its deadline, its hold and the causes of its freeze.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EpisodeLife {
    state: EpisodeState,
    terms: EpisodeTerms,
    /// The end of the current part of the life; after the end, the time of the end.
    deadline: Duration,
    hold: Option<HoldId>,
    hold_again_by: Option<Duration>,
    is_frozen_by_client: bool,
    evaluations: u32,
}

impl EpisodeLife {
    /// Begins the life of a request that waits for slots.
    pub fn queued(terms: EpisodeTerms, now: Duration) -> Self {
        Self {
            state: EpisodeState::Queued,
            terms,
            deadline: now + terms.wait,
            hold: None,
            hold_again_by: None,
            is_frozen_by_client: false,
            evaluations: 0,
        }
    }

    /// Continues a life after a restart of the daemon. Evaluations ended with the earlier daemon, and a held episode
    /// must be held again within [`HOLD_AGAIN_WITHIN`].
    pub fn restored(stored: StoredLife, now: Duration) -> Self {
        let StoredLife { state, terms, left, was_held, is_frozen_by_client } = stored;
        let most = if state == EpisodeState::Queued { terms.wait } else { LONGEST_TTL };
        let mut life = Self {
            state,
            terms,
            deadline: now + left.min(most),
            hold: None,
            hold_again_by: None,
            is_frozen_by_client,
            evaluations: 0,
        };
        let Ok(next) = life.state.after(EpisodeEvent::DaemonRestarted) else { return life };
        life.set(next, now);
        if life.state.ending().is_none() {
            life.hold_again_by = was_held.then_some(now + HOLD_AGAIN_WITHIN);
            if life.state == EpisodeState::Frozen && !is_frozen_by_client {
                life.state = EpisodeState::Active;
            }
        }
        life
    }

    /// Creates the life of an episode that ended before a restart of the daemon.
    pub fn over(ending: EpisodeEnding, terms: EpisodeTerms, now: Duration) -> Self {
        Self { state: EpisodeState::Ended(ending), ..Self::queued(terms, now) }.at(now)
    }

    fn at(self, deadline: Duration) -> Self {
        Self { deadline, ..self }
    }

    /// Returns the life as it is stored, or `None` after the end, of which only the ending is stored.
    pub fn stored(&self, now: Duration) -> Option<StoredLife> {
        self.state.ending().is_none().then(|| StoredLife {
            state: self.state.clone(),
            terms: self.terms,
            left: self.left(now),
            was_held: self.hold.is_some() || self.hold_again_by.is_some(),
            is_frozen_by_client: self.is_frozen_by_client,
        })
    }

    /// Returns the current state.
    pub fn state(&self) -> &EpisodeState {
        &self.state
    }

    /// Returns the time until the deadline, which is zero after the end.
    pub fn left(&self, now: Duration) -> Duration {
        self.deadline.saturating_sub(now)
    }

    /// Returns the time when the episode ended, if it did.
    pub fn ended_at(&self) -> Option<Duration> {
        self.state.ending().map(|_| self.deadline)
    }

    /// Whether a connection holds the episode.
    pub fn is_held(&self) -> bool {
        self.hold.is_some()
    }

    /// Returns the event that is due because time has passed.
    fn due(&self, now: Duration) -> Option<EpisodeEvent> {
        if self.hold_again_by.is_some_and(|by| by < now) {
            return Some(EpisodeEvent::Released(ReleaseCause::HoldClosed));
        }
        let is_suspended = self.hold.is_some() || self.hold_again_by.is_some();
        let is_past = self.deadline < now;
        match self.state {
            EpisodeState::Queued if is_past => Some(EpisodeEvent::WaitEnded),
            EpisodeState::Preparing if is_past => Some(EpisodeEvent::Failed(VoidReason::PreparationTimedOut)),
            EpisodeState::Active | EpisodeState::Frozen if is_past && !is_suspended => Some(EpisodeEvent::TtlEnded),
            _ => None,
        }
    }

    /// Returns the time after which [`Self::is_expired`] is true, if nothing else happens.
    pub fn next_due(&self) -> Option<Duration> {
        let is_waiting = matches!(self.state, EpisodeState::Queued | EpisodeState::Preparing);
        let is_suspended = self.hold.is_some() || self.hold_again_by.is_some();
        let deadline = (is_waiting || (self.state.is_open() && !is_suspended)).then_some(self.deadline);
        self.hold_again_by.into_iter().chain(deadline).min()
    }

    /// Returns how the episode ended, or how it ends at the next [`Self::expire`] because its deadline has passed.
    pub fn ending(&self, now: Duration) -> Option<EpisodeEnding> {
        let due = || self.state.after(self.due(now)?).ok()?.ending().cloned();
        self.state.ending().cloned().or_else(due)
    }

    /// Whether the deadline has passed and the episode has not ended yet.
    pub fn is_expired(&self, now: Duration) -> bool {
        self.due(now).is_some()
    }

    /// Ends the episode if its deadline has passed. Returns the ending if the episode ended by this call.
    pub fn expire(&mut self, now: Duration) -> Option<EpisodeEnding> {
        let next = self.state.after(self.due(now)?).ok()?;
        self.set(next, now);
        self.state.ending().cloned()
    }

    fn set(&mut self, next: EpisodeState, now: Duration) {
        if next.ending().is_some() {
            self.deadline = now;
            self.hold = None;
            self.hold_again_by = None;
            self.is_frozen_by_client = false;
            self.evaluations = 0;
        }
        self.state = next;
    }

    /// Applies an event.
    ///
    /// Errors: [`EpisodeRefusal::Overdue`] if the deadline has passed, and the refusals of [`EpisodeState::after`].
    fn step(&mut self, event: EpisodeEvent, now: Duration) -> Result<(), EpisodeRefusal> {
        if self.is_expired(now) {
            return Err(EpisodeRefusal::Overdue);
        }
        let next = self.state.after(event)?;
        self.set(next, now);
        Ok(())
    }

    /// Begins the preparation, which must be complete after `limit`.
    pub fn grant(&mut self, limit: Duration, now: Duration) -> Result<(), EpisodeRefusal> {
        self.step(EpisodeEvent::Granted, now)?;
        self.deadline = now + limit;
        Ok(())
    }

    /// Gives the prepared slots to the client. The time to live begins.
    pub fn activate(&mut self, now: Duration) -> Result<(), EpisodeRefusal> {
        self.step(EpisodeEvent::Prepared, now)?;
        self.deadline = now + self.terms.ttl;
        Ok(())
    }

    /// Ends the episode on behalf of its client.
    pub fn release(&mut self, now: Duration) -> Result<(), EpisodeRefusal> {
        self.step(EpisodeEvent::Released(ReleaseCause::Client), now)
    }

    /// Ends the episode because the environment failed it.
    pub fn fail(&mut self, reason: VoidReason, now: Duration) -> Result<(), EpisodeRefusal> {
        self.step(EpisodeEvent::Failed(reason), now)
    }

    /// Moves the deadline to at least `extension` from now, or to the time to live from now if there is none. Never
    /// shortens the time that is left. Has no effect on the deadlines of the wait and of the preparation.
    pub fn heartbeat(&mut self, extension: Option<Duration>, now: Duration) -> Result<(), EpisodeRefusal> {
        self.check(now)?;
        if matches!(self.state, EpisodeState::Active | EpisodeState::Frozen) {
            let extension = extension.unwrap_or(self.terms.ttl).min(LONGEST_TTL);
            self.deadline = self.deadline.max(now + extension);
        }
        Ok(())
    }

    /// Returns the reason why the client cannot do anything with the episode any more.
    fn check(&self, now: Duration) -> Result<(), EpisodeRefusal> {
        match &self.state {
            EpisodeState::Ended(ending) => Err(EpisodeRefusal::Ended(ending.clone())),
            _ if self.is_expired(now) => Err(EpisodeRefusal::Overdue),
            _ => Ok(()),
        }
    }

    /// Binds the episode to a connection. The time to live is suspended until the connection is closed, which ends the
    /// episode. A waiting episode can be held, too.
    ///
    /// Errors: [`EpisodeRefusal::AlreadyHeld`] if another connection holds the episode.
    pub fn hold(&mut self, connection: HoldId, now: Duration) -> Result<(), EpisodeRefusal> {
        self.check(now)?;
        if self.hold.is_some_and(|holder| holder != connection) {
            return Err(EpisodeRefusal::AlreadyHeld);
        }
        self.hold = Some(connection);
        self.hold_again_by = None;
        Ok(())
    }

    /// Ends the episode because the connection that held it was closed.
    ///
    /// Errors: [`EpisodeRefusal::NotHeld`] if that connection does not hold the episode, so that the end of a refused
    /// connection has no effect.
    pub fn close_hold(&mut self, connection: HoldId, now: Duration) -> Result<(), EpisodeRefusal> {
        self.check(now)?;
        if self.hold != Some(connection) {
            return Err(EpisodeRefusal::NotHeld);
        }
        self.step(EpisodeEvent::Released(ReleaseCause::HoldClosed), now)
    }

    /// Freezes the episode on request of its client. The time to live goes on.
    pub fn freeze(&mut self, now: Duration) -> Result<(), EpisodeRefusal> {
        self.step(EpisodeEvent::Frozen, now)?;
        self.is_frozen_by_client = true;
        Ok(())
    }

    /// Ends the client's freeze. The episode stays frozen while it is being evaluated.
    pub fn unfreeze(&mut self, now: Duration) -> Result<(), EpisodeRefusal> {
        if self.state == EpisodeState::Frozen && !self.is_frozen_by_client {
            return Err(EpisodeRefusal::NotFrozen);
        }
        if self.evaluations > 0 {
            self.check(now)?;
        } else {
            self.step(EpisodeEvent::Unfrozen, now)?;
        }
        self.is_frozen_by_client = false;
        Ok(())
    }

    /// Freezes the episode for an evaluation that takes at most `limit`. The deadline is moved by as much as needed, so
    /// that an episode does not expire while it is judged.
    pub fn begin_evaluation(&mut self, limit: Duration, now: Duration) -> Result<(), EpisodeRefusal> {
        self.step(EpisodeEvent::Frozen, now)?;
        self.evaluations = self.evaluations.saturating_add(1);
        self.deadline = self.deadline.max(now + limit.min(LONGEST_TTL));
        Ok(())
    }

    /// Ends an evaluation. The last one unfreezes the episode, unless its client froze it.
    ///
    /// Errors: [`EpisodeRefusal::NotFrozen`] if no evaluation is running.
    pub fn end_evaluation(&mut self, now: Duration) -> Result<(), EpisodeRefusal> {
        self.check(now)?;
        match self.evaluations {
            0 => return Err(EpisodeRefusal::NotFrozen),
            1 if !self.is_frozen_by_client => self.step(EpisodeEvent::Unfrozen, now)?,
            _ => {}
        }
        self.evaluations -= 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
