//! Periodic comparisons ("looks") of standbys that run. Their servers and scheduled jobs write now and then. The
//! changes are compared in the background, so a reset finds almost nothing left to compare.
//!
//! A swap does not rely on a look: it compares again, on the same connections. A paused standby is not compared,
//! because its servers would not respond.

use std::time::Duration;

use tokio::time::Instant;

use super::pool::{PoolTaskOutcome, WORN};
use super::standbys::StandbyKeeper;
use crate::proof::{ProofCandidate, ProofError};
use arenad_model::error::describe;
use arenad_model::event::EventKind;
use arenad_model::pool::Standing;
use arenad_model::snapshot::Snapshot;

/// The pause between two looks at a standby that changes.
const SHORTEST_PAUSE: Duration = Duration::from_secs(2);
/// The pause between two looks at a standby that has not changed for a long time, so that an idle host stays idle.
const LONGEST_PAUSE: Duration = Duration::from_secs(32);

/// The schedule of the looks at one standby.
#[derive(Debug)]
pub(super) struct Looks {
    /// The number of the look in progress.
    current: Option<u64>,
    next_at: Instant,
    pause: Duration,
}

impl Default for Looks {
    fn default() -> Self {
        Self { current: None, next_at: Instant::now() + SHORTEST_PAUSE, pause: SHORTEST_PAUSE }
    }
}

impl Looks {
    /// Whether a look is in progress.
    pub(super) fn goes_on(&self) -> bool {
        self.current.is_some()
    }

    /// Whether the next look is due.
    fn is_due(&self, now: Instant) -> bool {
        self.current.is_none() && self.next_at <= now
    }

    /// Ends a look and schedules the next one. A standby that has changed is likely to change again soon.
    fn end(&mut self, has_moved: bool, now: Instant) {
        self.current = None;
        self.pause = if has_moved { SHORTEST_PAUSE } else { (self.pause * 2).min(LONGEST_PAUSE) };
        self.next_at = now + self.pause;
    }
}

/// The result of a look.
pub(super) struct LookResult {
    /// The random number of the look. A result with another number than the standby's current look is ignored.
    number: u64,
    /// Whether anything had changed, or why the standby can no longer be used.
    shown: Result<bool, ProofError>,
}

impl StandbyKeeper {
    /// Begins the looks that are due.
    pub(super) fn look_at_standbys(&self, snapshot: &Snapshot) {
        let now = Instant::now();
        let mut state = self.pool.lock();
        let stop = state.pool.token();
        let mut begun = Vec::new();
        for (made, standby) in state.pool.members_mut() {
            let is_ready = standby.standing == Standing::Running && standby.snapshot.as_ref() == Some(&snapshot.id);
            let (Some(proof), Some(incarnation)) = (&standby.proof, &standby.incarnation) else { continue };
            if !is_ready || !standby.looks.is_due(now) {
                continue;
            }
            let number = rand::random();
            standby.looks.current = Some(number);
            begun.push((made, number, proof.clone(), incarnation.clone()));
        }
        for (made, number, proof, incarnation) in begun {
            let (snapshot, stop) = (snapshot.clone(), stop.clone());
            let (shared, id, site) = (self.shared.clone(), self.id.clone(), self.site.clone());
            state.pool.spawn(&self.shared.tasks, made, async move {
                let (snapshot, incarnation) = (&snapshot, &incarnation);
                let candidate = ProofCandidate { shared: &shared, id: &id, site: &site, snapshot, incarnation };
                let look = async { proof.lock().await.renew(&candidate).await };
                let shown = match stop.run_until_cancelled(look).await {
                    Some(shown) => shown,
                    None => Ok(false),
                };
                Ok(PoolTaskOutcome::Looked(LookResult { number, shown }))
            });
        }
    }

    /// Takes in the result of a look.
    pub(super) fn note_look(&self, made: u64, look: LookResult) {
        let mut state = self.pool.lock();
        let Some(standby) = state.pool.member_mut(made) else { return };
        if standby.looks.current != Some(look.number) {
            return;
        }
        standby.looks.end(matches!(look.shown, Ok(true)), Instant::now());
        if let Err(error) = look.shown {
            standby.standing = Standing::Used { renewals: WORN };
            let message = format!("standby {made} of {} was discarded: {}", self.id, describe(&error));
            self.note_later(EventKind::StandbyFailed, message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moves_is_looked_at_often_and_what_does_not_seldom() {
        let mut looks = Looks::default();
        let mut now = looks.next_at;
        let mut pauses = Vec::new();
        for has_moved in [true, false, false, false, false, false, true] {
            assert!(looks.is_due(now));
            looks.end(has_moved, now);
            pauses.push((looks.next_at - now).as_secs());
            now = looks.next_at;
        }
        assert_eq!(pauses, [2, 4, 8, 16, 32, 32, 2]);
    }
}
