//! Watching a serving instance: the readiness probes again and again, and the engine's word on its containers.
//!
//! A container that has ended or is paused makes the instance unhealthy at once and closes its route; a probe that fails
//! while the containers run must fail `health.failures` times in a row, and traffic goes on, because a site that is slow
//! under load is still the site that an episode is using.

use std::time::Duration;

use jiff::Timestamp;

use super::core::Core;
use super::trouble;
use crate::domain::instance::{InstanceEvent, InstanceState, Trouble};
use crate::domain::schedule::Schedule;
use crate::engine::{ContainerState, EngineEvent};
use crate::probes::describe;

/// After a first miss the next look comes sooner: it decides.
const SECOND_LOOK: Duration = Duration::from_secs(1);

/// What a look at a serving instance shows.
enum Sight {
    Fine,
    /// The probes fail, the containers run.
    Missed(String),
    /// A container does not run.
    Gone(String),
}

impl Core {
    /// Waits for the next look's time, looks, and moves the state. Never returns for an instance that does not serve.
    /// May be dropped at any await: what it knows is in `misses` and the state.
    pub(super) async fn watch(&mut self) {
        if !matches!(self.state(), InstanceState::Ready | InstanceState::Unhealthy(_)) {
            return std::future::pending().await;
        }
        let pause = if self.misses == 0 { self.every() } else { SECOND_LOOK };
        tokio::time::sleep(pause).await;
        self.look().await;
    }

    /// Something happened to a container; if it is one of ours that serves, looks at once.
    pub(super) async fn heard(&mut self, event: &EngineEvent) {
        let serves = matches!(self.state(), InstanceState::Ready | InstanceState::Unhealthy(_));
        let ours = self
            .incarnation
            .as_ref()
            .is_some_and(|incarnation| incarnation.containers.values().any(|handle| *handle == event.handle));
        let matters = ["die", "oom", "pause", "unpause", "destroy", "kill", "stop", "start"];
        if serves && ours && matters.contains(&event.action.as_str()) {
            self.look().await;
        }
    }

    fn every(&self) -> Duration {
        match &self.site.health.shallow.schedule {
            Schedule::Every(period) => *period,
            Schedule::Cron(_) => Duration::from_secs(60),
        }
    }

    async fn look(&mut self) {
        match self.sight().await {
            Sight::Fine => {
                self.misses = 0;
                let was_unhealthy = matches!(self.state(), InstanceState::Unhealthy(_));
                self.report.send_modify(|report| {
                    report.last_passed = Some(Timestamp::now());
                    report.waiting_for = None;
                });
                if was_unhealthy {
                    self.route_to_current();
                    self.enter(InstanceEvent::Recovered).await;
                }
            }
            Sight::Missed(reason) => {
                self.misses = self.misses.saturating_add(1);
                self.report.send_modify(|report| report.waiting_for = Some(reason.clone()));
                if self.misses >= self.site.health.shallow.failures {
                    self.ail(reason).await;
                }
            }
            Sight::Gone(reason) => {
                self.misses = self.misses.saturating_add(1);
                self.refuse_traffic(&reason);
                self.ail(reason).await;
            }
        }
    }

    async fn ail(&mut self, reason: String) {
        let trouble = Trouble { hint: trouble::hint(&reason, &self.id), reason };
        // The same trouble again is no news: `since` keeps the time when it began.
        if self.state().trouble() != Some(&trouble) {
            self.enter(InstanceEvent::ProbesFailed(trouble)).await;
        }
    }

    async fn sight(&self) -> Sight {
        let Some(incarnation) = &self.incarnation else {
            return Sight::Gone("it has no containers".to_owned());
        };
        let engine = self.shared.engine.as_ref();
        let shallow = &self.site.health.shallow;
        let probed = self.shared.prober.round(&shallow.probes, &self.site, incarnation, Some(shallow.timeout)).await;
        let Err(failure) = probed else { return Sight::Fine };
        for (service, handle) in &incarnation.containers {
            let is_one_shot = !incarnation.addresses.contains_key(service);
            match engine.inspect(handle).await {
                Ok(status) => match status.state {
                    ContainerState::Running => {}
                    ContainerState::Exited(0) if is_one_shot => {}
                    ContainerState::Paused => return Sight::Gone(format!("the container of {service} is paused")),
                    ContainerState::Exited(code) => {
                        let why = if status.oom_killed { " (killed for want of memory)" } else { "" };
                        return Sight::Gone(format!("the container of {service} ended with code {code}{why}"));
                    }
                    ContainerState::Created => {
                        return Sight::Gone(format!("the container of {service} was not started"));
                    }
                    ContainerState::Dead => return Sight::Gone(format!("the container of {service} is being removed")),
                },
                Err(error) if error.is_not_found() => {
                    return Sight::Gone(format!("the container of {service} is gone"));
                }
                Err(error) => return Sight::Missed(format!("{failure}; {}", describe(&error))),
            }
        }
        Sight::Missed(failure.to_string())
    }
}
