//! Watching a serving instance: rounds of shallow and deep probes on their schedules, and the engine's events.
//!
//! ```text
//!   ready ──► vigils (domain::health): which round is due when ──► rounds, at most one of each depth at a time
//!     ▲                          ▲                                      │
//!     └── state, route ◄─────────┴──────────────── judge ◄──────────────┘
//! ```
//! A container that has ended or is paused makes the instance unhealthy at once and closes its route; probes that fail
//! while the containers run must do so as often in a row as the definition says, and traffic goes on, because a site that
//! is slow under load is still the site that an episode is using. An instance that does not serve is not watched.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::core::Core;
use super::round::{self, Round, Sight};
use super::standbys::Finished;
use super::trouble;
use crate::daemon::health_log::NewRound;
use crate::domain::health::{Depth, Moment, Vigils};
use crate::domain::instance::{InstanceEvent, InstanceState, Trouble};
use crate::domain::request_queue::Request;
use crate::engine::EngineEvent;

/// What an instance is watched with.
pub(super) struct Watch {
    /// Where the clock that only goes forward began.
    began: Instant,
    /// What is due when; none while the instance does not serve.
    vigils: Option<Vigils>,
    /// The rounds that are running, as tasks that end with their handles. They go on when the driver turns to a message
    /// in between: a probe that runs a command causes events of the engine itself.
    rounds: [Option<AbortOnDropHandle<Round>>; 2],
    /// Whether the route was closed because a container did not run.
    is_cut: bool,
}

impl Watch {
    pub(super) fn new() -> Self {
        Self { began: Instant::now(), vigils: None, rounds: [None, None], is_cut: false }
    }

    fn now(&self) -> Moment {
        Moment { uptime: self.began.elapsed(), wall: Timestamp::now() }
    }

    /// Gives up the rounds that are running; they are due again.
    pub(super) fn drop_rounds(&mut self) {
        self.rounds = [None, None];
    }

    /// The instance does not serve any more.
    pub(super) fn end(&mut self) {
        self.drop_rounds();
        self.vigils = None;
    }

    fn slot(&mut self, depth: Depth) -> &mut Option<AbortOnDropHandle<Round>> {
        let [shallow, deep] = &mut self.rounds;
        match depth {
            Depth::Shallow => shallow,
            Depth::Deep => deep,
        }
    }
}

/// Waits for a round that is running; without one, for ever.
async fn ended(slot: &mut Option<AbortOnDropHandle<Round>>, depth: Depth) -> Round {
    let Some(running) = slot else { return std::future::pending().await };
    let round = running.await;
    *slot = None;
    // A round that panicked is one that failed: it must not begin anew at once, over and over.
    round.unwrap_or_else(|error| Round::broken_off(depth, &error))
}

/// What wants the driver's attention.
pub(super) enum Happening {
    /// A round of probes has ended.
    Round(Round),
    /// A standby's task has ended.
    Standby(Finished),
    /// It is time to look at the standbys.
    Tend,
}

async fn tending_due(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

impl Core {
    /// The instance serves from now on, having passed its start-up probes.
    pub(super) fn begin_watch(&mut self) {
        self.watch.drop_rounds();
        self.watch.is_cut = false;
        self.watch.vigils = Some(Vigils::begin(&self.site.health, self.watch.now()));
    }

    /// Runs the rounds that are due, and returns the first thing that wants the driver's attention: a round that has ended,
    /// a standby's task that has, or the time to look at the standbys. May be dropped at any await: everything goes on at the
    /// next call.
    pub(super) async fn next_happening(&mut self) -> Happening {
        loop {
            let pause = self.start_due_rounds();
            let [shallow, deep] = &mut self.watch.rounds;
            tokio::select! {
                round = ended(shallow, Depth::Shallow) => return Happening::Round(round),
                round = ended(deep, Depth::Deep) => return Happening::Round(round),
                finished = self.standbys.news() => return Happening::Standby(finished),
                () = tending_due(self.tend_at) => return Happening::Tend,
                () = tokio::time::sleep(pause), if pause < Duration::MAX => {}
            }
        }
    }

    /// Takes in what has happened, and returns what is to be done about it.
    pub(super) async fn attend_to(&mut self, happening: Happening) -> Option<Request> {
        match happening {
            Happening::Round(round) => {
                let (depth, is_fine) = (round.depth, matches!(round.sight, Sight::Fine));
                self.judge(round).await;
                return (is_fine && self.look_for_writes(depth).await).then_some(Request::Reset);
            }
            Happening::Standby(finished) => self.note_standby(finished).await,
            Happening::Tend => self.tend_standbys().await,
        }
        None
    }

    /// Starts the rounds that are due and says when the next one is; never, for an instance that does not serve.
    fn start_due_rounds(&mut self) -> Duration {
        let now = self.watch.now();
        let mut pause = Duration::MAX;
        for depth in Depth::ALL {
            if self.watch.slot(depth).is_some() {
                continue;
            }
            match self.watch.vigils.as_mut().and_then(|vigils| vigils.pause(depth, now)) {
                Some(Duration::ZERO) => self.start_round(depth),
                Some(until) => pause = pause.min(until),
                None => {}
            }
        }
        pause
    }

    fn start_round(&mut self, depth: Depth) {
        let Some(incarnation) = self.incarnation.clone() else { return };
        let round = round::run(self.shared.clone(), self.site.clone(), incarnation, depth);
        *self.watch.slot(depth) = Some(AbortOnDropHandle::new(self.shared.tasks.spawn(round)));
    }

    /// Something happened to a container; if it is one of ours that serves, looks at once. A look that had begun may have
    /// seen what was before.
    pub(super) fn heard(&mut self, event: &EngineEvent) {
        let ours = self
            .incarnation
            .as_ref()
            .is_some_and(|incarnation| incarnation.containers.values().any(|handle| *handle == event.handle));
        if ["die", "oom", "destroy"].contains(&event.action.as_str()) {
            self.miss_standby(&event.handle);
        }
        let matters = ["die", "oom", "pause", "unpause", "destroy", "kill", "stop", "start"];
        if self.watch.vigils.is_some() && ours && matters.contains(&event.action.as_str()) {
            self.start_round(Depth::Shallow);
        }
    }

    /// Moves route and state by what a round has shown.
    async fn judge(&mut self, round: Round) {
        let now = self.watch.now();
        let Some(vigils) = &mut self.watch.vigils else { return };
        let Round { depth, at, took, sight } = round;
        let generation = self.incarnation.as_ref().map_or(0, |incarnation| incarnation.generation);
        let reason = match &sight {
            Sight::Fine => None,
            Sight::Missed(reason) | Sight::Gone(reason) => Some(reason.clone()),
        };
        match &sight {
            Sight::Fine => vigils.note(depth, Ok(()), now),
            Sight::Missed(reason) => vigils.note(depth, Err(reason.clone()), now),
            Sight::Gone(reason) => vigils.note_gone(depth, reason, now),
        }
        let (trouble, missed) = (vigils.trouble(), vigils.missed());
        match &sight {
            Sight::Gone(reason) => {
                self.watch.is_cut = true;
                self.refuse_traffic(reason);
            }
            Sight::Fine if self.watch.is_cut && depth == Depth::Shallow => {
                self.watch.is_cut = false;
                self.route_to_current();
            }
            Sight::Fine | Sight::Missed(_) => {}
        }
        self.report.send_modify(|report| {
            report.waiting_for = missed;
            if matches!(sight, Sight::Fine) && depth == Depth::Shallow {
                report.last_passed = Some(Timestamp::now());
            }
        });
        self.shared.health.note(NewRound { instance: self.id.to_string(), generation, depth, at, took, reason }).await;
        match trouble {
            Some(reason) => self.ail(reason).await,
            None if matches!(self.state(), InstanceState::Unhealthy(_)) => self.enter(InstanceEvent::Recovered).await,
            None => {}
        }
    }

    async fn ail(&mut self, reason: String) {
        let trouble = Trouble { hint: trouble::hint(&reason, &self.id), reason };
        // The same trouble again is no news.
        if self.state().trouble() != Some(&trouble) {
            self.enter(InstanceEvent::ProbesFailed(trouble)).await;
        }
    }
}
