//! Watching a serving instance: rounds of shallow and deep probes on their schedules, and the engine's events.
//!
//! ```text
//!   ready ──► vigils (model::health):  which round is due when ──► rounds, at most one of each depth at a time
//!     ▲                          ▲                                      │
//!     └── state, route ◄─────────┴──────────────── judge ◄──────────────┘
//! ```
//! A container that has ended or is paused makes the instance unhealthy at once and closes its route. Probes that fail
//! while the containers run make it unhealthy only after as many consecutive failures as the definition says, and
//! requests are still forwarded, because an episode may still be using a site that is slow under load. An instance that
//! does not serve is not watched.

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::failure;
use super::operations::Instance;
use super::pool::until;
use super::round::{self, ProbeRound, RoundResult};
use super::writes::BackgroundComparison;
use arenad_engine::EngineEvent;
use arenad_model::cause::Cause;
use arenad_model::health::{Depth, Moment, Vigils};
use arenad_model::instance::InstanceFailure;
use arenad_model::request_queue::Want;
use arenad_seams::wall_clock::WallClock;
use arenad_store::NewRound;

/// The schedules and the running work of watching one instance.
pub(super) struct InstanceWatch {
    /// The origin of the monotonic clock.
    began: Instant,
    clock: WallClock,
    /// The schedules of the probes; `None` while the instance does not serve.
    vigils: Option<Vigils>,
    /// The rounds that are running, as tasks that are aborted when their handles are dropped. They continue while the
    /// driver handles a message or an event: a probe that runs a command causes engine events itself.
    rounds: [Option<AbortOnDropHandle<ProbeRound>>; 2],
    /// Whether a round was aborted; the site may still be responding to its last probe.
    has_cut_off: bool,
    /// The comparison of a site that is only read, while one runs.
    comparison: Option<AbortOnDropHandle<BackgroundComparison>>,
}

impl InstanceWatch {
    pub(super) fn new(clock: WallClock) -> Self {
        Self { began: Instant::now(), clock, vigils: None, rounds: [None, None], has_cut_off: false, comparison: None }
    }

    fn now(&self) -> Moment {
        Moment { uptime: self.began.elapsed(), wall: self.clock.now() }
    }

    /// Aborts the rounds and the comparison that are running; the rounds are due again.
    pub(super) fn drop_rounds(&mut self) {
        self.has_cut_off |= self.rounds.iter().any(Option::is_some);
        self.rounds = [None, None];
        self.comparison = None;
    }

    /// Begins a round, in place of one of the same depth that is running.
    fn begin(&mut self, depth: Depth, round: AbortOnDropHandle<ProbeRound>) {
        self.has_cut_off |= self.slot(depth).replace(round).is_some();
    }

    /// Whether rounds have been aborted since the last call.
    pub(super) fn take_cut_off(&mut self) -> bool {
        std::mem::take(&mut self.has_cut_off)
    }

    /// Begins a comparison in the background, unless one is running.
    pub(super) fn compare(&mut self, begin: impl FnOnce() -> AbortOnDropHandle<BackgroundComparison>) {
        self.comparison.get_or_insert_with(begin);
    }

    /// Stops watching, because the instance does not serve any more.
    pub(super) fn end(&mut self) {
        self.drop_rounds();
        self.vigils = None;
    }

    fn slot(&mut self, depth: Depth) -> &mut Option<AbortOnDropHandle<ProbeRound>> {
        let [shallow, deep] = &mut self.rounds;
        match depth {
            Depth::Shallow => shallow,
            Depth::Deep => deep,
        }
    }
}

/// Waits for the end of a round; forever if none is running.
async fn ended(slot: &mut Option<AbortOnDropHandle<ProbeRound>>, depth: Depth) -> ProbeRound {
    let Some(running) = slot else { return std::future::pending().await };
    let round = running.await;
    *slot = None;
    // A panic counts as a failed round. Otherwise the round would begin again at once, repeatedly.
    round.unwrap_or_else(|error| ProbeRound::broken_off(depth, &error))
}

/// Waits for the end of a comparison; forever if none is running.
async fn compared(comparison: &mut Option<AbortOnDropHandle<BackgroundComparison>>) -> BackgroundComparison {
    let Some(running) = comparison else { return std::future::pending().await };
    let compared = running.await;
    *comparison = None;
    compared.unwrap_or_else(|error| BackgroundComparison::broken_off(&error))
}

/// An occurrence that the driver must handle.
pub(super) enum Happening {
    /// A round of probes has ended.
    Round(ProbeRound),
    /// The comparison of a site that is only read has ended.
    Compared(Box<BackgroundComparison>),
    /// An action that the store or the engine refused is to be retried.
    Retry,
}

impl Instance {
    /// Begins to watch the instance, which has just passed its readiness probes.
    pub(super) fn begin_watch(&mut self) {
        self.watch.drop_rounds();
        self.watch.vigils = Some(Vigils::begin(&self.context.site.health, self.watch.now()));
    }

    /// Starts the rounds that are due, and returns the next occurrence.
    ///
    /// Cancellation: safe at any await; the work continues with the next call.
    pub(super) async fn next_happening(&mut self) -> Happening {
        loop {
            let pause = self.start_due_rounds();
            let retry = self.retry_at;
            let InstanceWatch { rounds: [shallow, deep], comparison, .. } = &mut self.watch;
            tokio::select! {
                biased;
                round = ended(shallow, Depth::Shallow) => return Happening::Round(round),
                round = ended(deep, Depth::Deep) => return Happening::Round(round),
                compared = compared(comparison) => return Happening::Compared(Box::new(compared)),
                () = until(retry) => return Happening::Retry,
                () = tokio::time::sleep(pause), if pause < Duration::MAX => {}
            }
        }
    }

    /// Handles an occurrence, and returns a request if one follows from it. Nothing here waits for the engine or the
    /// site, so requests that arrive meanwhile are admitted soon afterwards.
    pub(super) async fn attend_to(&mut self, happening: Happening) -> Option<Want> {
        match happening {
            Happening::Round(round) => {
                let (depth, is_fine) = (round.depth, matches!(round.sight, RoundResult::Fine));
                self.judge(round).await;
                if is_fine {
                    self.look_for_writes(depth).await;
                }
            }
            Happening::Compared(compared) => return self.note_compared(*compared).await.then_some(Want::RESET),
            Happening::Retry => return self.retry().await,
        }
        None
    }

    /// Starts the rounds that are due; returns the time until the next one is due, or `Duration::MAX` if none will be.
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
        let Some(serving) = self.service.serving() else { return };
        let (shared, site) = (self.context.shared.clone(), self.context.site.clone());
        let round = round::run(shared.clone(), site, serving.incarnation.clone(), depth);
        self.watch.begin(depth, AbortOnDropHandle::new(shared.tasks.spawn(round)));
    }

    /// Handles an event of a container. An event of a serving container starts a round at once; a round that is running
    /// is replaced, because it may have seen the state before the event.
    pub(super) fn heard(&mut self, event: &EngineEvent) {
        let is_ours = self
            .service
            .serving()
            .is_some_and(|serving| serving.incarnation.containers.values().any(|handle| *handle == event.handle));
        let matters = ["die", "oom", "pause", "unpause", "destroy", "kill", "stop", "start"];
        if self.watch.vigils.is_some() && is_ours && matters.contains(&event.action.as_str()) {
            self.start_round(Depth::Shallow);
        }
    }

    /// Changes route and state by the result of a round.
    async fn judge(&mut self, round: ProbeRound) {
        let now = self.watch.now();
        let Some(vigils) = &mut self.watch.vigils else { return };
        let Some(serving) = self.service.serving() else { return };
        let generation = serving.incarnation.generation;
        let ProbeRound { depth, at, took, sight } = round;
        let reason = match &sight {
            RoundResult::Fine => None,
            RoundResult::Missed(miss) | RoundResult::Gone(miss) => Some(miss.reason.clone()),
        };
        match &sight {
            RoundResult::Fine => vigils.note(depth, Ok(()), now),
            RoundResult::Missed(miss) => vigils.note(depth, Err(miss.clone()), now),
            RoundResult::Gone(miss) => vigils.note_gone(depth, miss, now),
        }
        let (reported, missed) = (vigils.trouble(), vigils.missed());
        match &sight {
            RoundResult::Gone(miss) => self.service.cut(&miss.reason),
            RoundResult::Fine if depth == Depth::Shallow => self.service.mend(),
            RoundResult::Fine | RoundResult::Missed(_) => {}
        }
        self.service.report().send_modify(|report| {
            report.waiting_for = missed.map(|miss| miss.reason);
            match &sight {
                RoundResult::Gone(miss) if miss.cause != Some(Cause::Paused) => {
                    report.ended = Some(miss.reason.clone())
                }
                RoundResult::Fine if depth == Depth::Shallow => report.ended = None,
                RoundResult::Gone(_) | RoundResult::Fine | RoundResult::Missed(_) => {}
            }
            if matches!(sight, RoundResult::Fine) && depth == Depth::Shallow {
                report.last_passed = Some(self.context.shared.clock.now());
            }
        });
        let id = &self.context.id;
        let trouble = reported.map(|miss| InstanceFailure { hint: failure::hint(miss.cause, id), reason: miss.reason });
        self.service.judge(trouble).await;
        self.watch_the_row();
        let instance = self.context.id.clone();
        self.context.shared.health.note(NewRound { instance, generation, depth, at, took, reason }).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running() -> AbortOnDropHandle<ProbeRound> {
        AbortOnDropHandle::new(tokio::spawn(std::future::pending()))
    }

    #[tokio::test]
    async fn a_replaced_round_counts_as_cut_off() {
        let mut watch = InstanceWatch::new(WallClock::system());
        watch.begin(Depth::Shallow, running());
        watch.begin(Depth::Deep, running());
        assert!(!watch.take_cut_off());
        watch.begin(Depth::Shallow, running());
        assert!(watch.take_cut_off());
        assert!(!watch.take_cut_off());
    }
}
