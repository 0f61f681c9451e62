//! The life of an instance as a value.
//!
//! ```text
//!            UpRequested          BaselineReady          ProbesPassed
//!   Down ───────────────► Preparing ─────────► Starting ─────────────► Ready ◄──┐
//!    ▲                        │                   │                    │  │     │ Recovered, Swapped
//!    │ Removed                │ StepFailed        │ StepFailed         │  └► Unhealthy (ProbesFailed)
//!  Stopping ◄── DownRequested │                   │    ResetRequested  │          │
//!    (from every state)       └──────► Failed ◄───┴───── Resetting ◄───┴──────────┘
//!                                        └── UpRequested, ResetRequested lead out again
//! ```
//!
//! `after` is total: every pair of state and event either moves or is refused with its reason.

use std::fmt;

use super::ids::{EnvironmentName, SiteName};

/// The name of one running copy of a site: environment, site and the copy's number, such as `mini/shopping/1`.
///
/// It stays the same over resets; the generation counts how often its containers were made anew.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InstanceId {
    /// The environment.
    pub environment: EnvironmentName,
    /// The site.
    pub site: SiteName,
    /// Counts the copies, from 1.
    pub number: u32,
}

impl InstanceId {
    /// The serving instance of a site.
    pub fn serving(environment: &EnvironmentName, site: &SiteName) -> Self {
        Self { environment: environment.clone(), site: site.clone(), number: 1 }
    }

    /// The name of what belongs to the instance in the engine, readable in `docker ps`: generation, service (where the
    /// site has several) and the first characters of the installation's id, since names are global there.
    pub fn resource_name(&self, generation: u64, part: Option<&str>, installation: &str) -> String {
        let Self { environment, site, number } = self;
        let part = part.map(|part| format!("-{part}")).unwrap_or_default();
        let tag = installation.get(..4).unwrap_or(installation);
        format!("arenad-{environment}-{site}-{number}-g{generation}{part}-{tag}")
    }
}

impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.environment, self.site, self.number)
    }
}

/// What is wrong, and what its owner can do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// The cause, with its own causes.
    pub reason: String,
    /// The next step for a person.
    pub hint: String,
}

/// What an instance is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstanceState {
    /// It does not exist.
    Down,
    /// Its images and its baseline are being made.
    Preparing,
    /// Its containers are being created from the baseline, started and probed.
    Starting,
    /// It passed its start-up probes and still passes them.
    Ready,
    /// It was ready and no longer passes its probes.
    Unhealthy(Trouble),
    /// It is being brought back to its snapshot.
    Resetting,
    /// It is being removed.
    Stopping,
    /// The last attempt to bring it up or to reset it failed; nothing of it serves.
    Failed(Trouble),
}

impl InstanceState {
    /// The state's name in tables, JSON and the store.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Down => "down",
            Self::Preparing => "preparing",
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Unhealthy(_) => "unhealthy",
            Self::Resetting => "resetting",
            Self::Stopping => "stopping",
            Self::Failed(_) => "failed",
        }
    }

    /// Whether clients reach it. Only then is it watched.
    pub fn serves(&self) -> bool {
        matches!(self, Self::Ready | Self::Unhealthy(_))
    }

    /// What is wrong, in the states that know.
    pub fn trouble(&self) -> Option<&Trouble> {
        match self {
            Self::Unhealthy(trouble) | Self::Failed(trouble) => Some(trouble),
            _ => None,
        }
    }
}

/// What happens to an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstanceEvent {
    /// Someone wants it up.
    UpRequested,
    /// The snapshot to start from exists.
    BaselineReady,
    /// All start-up probes passed in one round.
    ProbesPassed,
    /// Someone wants it reset.
    ResetRequested,
    /// A standby took over, ready by its own probes.
    Swapped,
    /// Someone wants it gone.
    DownRequested,
    /// Nothing of it is left.
    Removed,
    /// A step of bringing it up or resetting it failed.
    StepFailed(Trouble),
    /// It failed its periodic probes often enough, or its container ended.
    ProbesFailed(Trouble),
    /// It passes its periodic probes again.
    Recovered,
}

/// A move that the diagram does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an instance that is {state} cannot take {event:?}")]
pub struct Refused {
    /// The state it was in.
    pub state: &'static str,
    /// What was to happen.
    pub event: InstanceEvent,
}

impl InstanceState {
    /// The state that follows.
    pub fn after(&self, event: InstanceEvent) -> Result<Self, Refused> {
        use InstanceEvent as E;
        use InstanceState as S;
        let next = match (self, event) {
            (_, E::DownRequested) => S::Stopping,
            (S::Stopping, E::Removed) => S::Down,
            (S::Down | S::Failed(_), E::UpRequested) => S::Preparing,
            (S::Preparing, E::BaselineReady) => S::Starting,
            (S::Starting | S::Resetting, E::ProbesPassed) => S::Ready,
            (S::Ready | S::Unhealthy(_) | S::Failed(_), E::ResetRequested) => S::Resetting,
            (S::Preparing | S::Starting | S::Resetting | S::Stopping, E::StepFailed(trouble)) => S::Failed(trouble),
            (S::Ready | S::Unhealthy(_), E::ProbesFailed(trouble)) => S::Unhealthy(trouble),
            (S::Ready | S::Unhealthy(_), E::Recovered | E::Swapped) => S::Ready,
            (state, event) => {
                return Err(Refused { state: state.name(), event });
            }
        };
        Ok(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trouble() -> Trouble {
        Trouble { reason: "r".into(), hint: "h".into() }
    }

    fn states() -> Vec<InstanceState> {
        use InstanceState as S;
        let troubled = [S::Unhealthy(trouble()), S::Failed(trouble())];
        [S::Down, S::Preparing, S::Starting, S::Ready, S::Resetting, S::Stopping].into_iter().chain(troubled).collect()
    }

    #[test]
    fn the_way_up_and_down() {
        use InstanceEvent as E;
        let mut state = InstanceState::Down;
        for (event, name) in [
            (E::UpRequested, "preparing"),
            (E::BaselineReady, "starting"),
            (E::ProbesPassed, "ready"),
            (E::ProbesFailed(trouble()), "unhealthy"),
            (E::Recovered, "ready"),
            (E::ResetRequested, "resetting"),
            (E::StepFailed(trouble()), "failed"),
            (E::ResetRequested, "resetting"),
            (E::ProbesPassed, "ready"),
            (E::DownRequested, "stopping"),
            (E::Removed, "down"),
        ] {
            state = state.after(event).expect("a move of the diagram");
            assert_eq!(state.name(), name);
        }
    }

    #[test]
    fn down_is_possible_from_everywhere_and_ready_only_through_probes() {
        for state in states() {
            assert_eq!(state.after(InstanceEvent::DownRequested), Ok(InstanceState::Stopping), "{}", state.name());
            let passed = state.after(InstanceEvent::ProbesPassed);
            let may = matches!(state, InstanceState::Starting | InstanceState::Resetting);
            assert_eq!(passed.is_ok(), may, "{}", state.name());
        }
    }

    #[test]
    fn what_is_down_is_neither_reset_nor_probed() {
        for event in [InstanceEvent::ResetRequested, InstanceEvent::Recovered, InstanceEvent::ProbesFailed(trouble())] {
            assert!(InstanceState::Down.after(event).is_err());
        }
    }

    #[test]
    fn resource_names_tell_generation_part_and_installation_apart() {
        let name = |text| EnvironmentName::parse(text).expect("valid");
        let id = InstanceId::serving(&name("mini"), &SiteName::parse("shopping").expect("valid"));
        assert_eq!(id.resource_name(3, None, "ab12cd34"), "arenad-mini-shopping-1-g3-ab12");
        assert_eq!(id.resource_name(3, Some("db"), "ab12cd34"), "arenad-mini-shopping-1-g3-db-ab12");
    }
}
