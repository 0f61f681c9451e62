//! The life of an instance as a value.
//!
#![doc = include_str!("instance_states.md")]
//!
//! `after` is total: every pair of state and event either moves or is refused with its reason. The diagram is
//! generated from `after` by this module's test, which prints it where the file is another.

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

/// A state without what is known of its trouble, as it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstanceStatus {
    /// [`InstanceState::Down`].
    Down,
    /// [`InstanceState::Preparing`].
    Preparing,
    /// [`InstanceState::Starting`].
    Starting,
    /// [`InstanceState::Ready`].
    Ready,
    /// [`InstanceState::Unhealthy`].
    Unhealthy,
    /// [`InstanceState::Resetting`].
    Resetting,
    /// [`InstanceState::Stopping`].
    Stopping,
    /// [`InstanceState::Failed`].
    Failed,
}

impl InstanceStatus {
    const ALL: [Self; 8] = [
        Self::Down,
        Self::Preparing,
        Self::Starting,
        Self::Ready,
        Self::Unhealthy,
        Self::Resetting,
        Self::Stopping,
        Self::Failed,
    ];

    /// Returns the state's name in tables, JSON and the store.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Down => "down",
            Self::Preparing => "preparing",
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Unhealthy => "unhealthy",
            Self::Resetting => "resetting",
            Self::Stopping => "stopping",
            Self::Failed => "failed",
        }
    }

    /// Returns the state of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }
}

impl InstanceState {
    /// The state without its trouble.
    pub fn status(&self) -> InstanceStatus {
        match self {
            Self::Down => InstanceStatus::Down,
            Self::Preparing => InstanceStatus::Preparing,
            Self::Starting => InstanceStatus::Starting,
            Self::Ready => InstanceStatus::Ready,
            Self::Unhealthy(_) => InstanceStatus::Unhealthy,
            Self::Resetting => InstanceStatus::Resetting,
            Self::Stopping => InstanceStatus::Stopping,
            Self::Failed(_) => InstanceStatus::Failed,
        }
    }

    /// The state's name in tables, JSON and the store.
    pub fn name(&self) -> &'static str {
        self.status().name()
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

    fn events() -> Vec<(&'static str, InstanceEvent)> {
        use InstanceEvent as E;
        vec![
            ("UpRequested", E::UpRequested),
            ("BaselineReady", E::BaselineReady),
            ("ProbesPassed", E::ProbesPassed),
            ("ResetRequested", E::ResetRequested),
            ("Swapped", E::Swapped),
            ("DownRequested", E::DownRequested),
            ("Removed", E::Removed),
            ("StepFailed", E::StepFailed(trouble())),
            ("ProbesFailed", E::ProbesFailed(trouble())),
            ("Recovered", E::Recovered),
        ]
    }

    /// State, event, the state that follows; `-` where the event is refused.
    const TABLE: &str = "
        down       UpRequested     preparing
        down       BaselineReady   -
        down       ProbesPassed    -
        down       ResetRequested  -
        down       Swapped         -
        down       DownRequested   stopping
        down       Removed         -
        down       StepFailed      -
        down       ProbesFailed    -
        down       Recovered       -
        preparing  UpRequested     -
        preparing  BaselineReady   starting
        preparing  ProbesPassed    -
        preparing  ResetRequested  -
        preparing  Swapped         -
        preparing  DownRequested   stopping
        preparing  Removed         -
        preparing  StepFailed      failed
        preparing  ProbesFailed    -
        preparing  Recovered       -
        starting   UpRequested     -
        starting   BaselineReady   -
        starting   ProbesPassed    ready
        starting   ResetRequested  -
        starting   Swapped         -
        starting   DownRequested   stopping
        starting   Removed         -
        starting   StepFailed      failed
        starting   ProbesFailed    -
        starting   Recovered       -
        ready      UpRequested     -
        ready      BaselineReady   -
        ready      ProbesPassed    -
        ready      ResetRequested  resetting
        ready      Swapped         ready
        ready      DownRequested   stopping
        ready      Removed         -
        ready      StepFailed      -
        ready      ProbesFailed    unhealthy
        ready      Recovered       ready
        unhealthy  UpRequested     -
        unhealthy  BaselineReady   -
        unhealthy  ProbesPassed    -
        unhealthy  ResetRequested  resetting
        unhealthy  Swapped         ready
        unhealthy  DownRequested   stopping
        unhealthy  Removed         -
        unhealthy  StepFailed      -
        unhealthy  ProbesFailed    unhealthy
        unhealthy  Recovered       ready
        resetting  UpRequested     -
        resetting  BaselineReady   -
        resetting  ProbesPassed    ready
        resetting  ResetRequested  -
        resetting  Swapped         -
        resetting  DownRequested   stopping
        resetting  Removed         -
        resetting  StepFailed      failed
        resetting  ProbesFailed    -
        resetting  Recovered       -
        stopping   UpRequested     -
        stopping   BaselineReady   -
        stopping   ProbesPassed    -
        stopping   ResetRequested  -
        stopping   Swapped         -
        stopping   DownRequested   stopping
        stopping   Removed         down
        stopping   StepFailed      failed
        stopping   ProbesFailed    -
        stopping   Recovered       -
        failed     UpRequested     preparing
        failed     BaselineReady   -
        failed     ProbesPassed    -
        failed     ResetRequested  resetting
        failed     Swapped         -
        failed     DownRequested   stopping
        failed     Removed         -
        failed     StepFailed      -
        failed     ProbesFailed    -
        failed     Recovered       -
    ";

    #[test]
    fn every_pair_of_state_and_event_moves_as_the_table_says() {
        let table: Vec<Vec<&str>> = TABLE.lines().map(|line| line.split_whitespace().collect()).collect();
        let lines: Vec<&[&str]> = table.iter().map(Vec::as_slice).filter(|line| !line.is_empty()).collect();
        let mut seen = 0;
        for state in states() {
            for (name, event) in events() {
                let line = lines.iter().find(|line| line[0] == state.name() && line[1] == name);
                let expected = line.unwrap_or_else(|| panic!("no line for {} and {name}", state.name()))[2];
                let moved = state.after(event.clone());
                match &moved {
                    Ok(next) => assert_eq!(next.name(), expected, "{} after {name}", state.name()),
                    Err(refused) => {
                        assert_eq!(expected, "-", "{} after {name}", state.name());
                        assert_eq!((refused.state, &refused.event), (state.name(), &event));
                    }
                }
                seen += 1;
            }
        }
        assert_eq!((seen, lines.len()), (80, 80), "one line for each pair");
    }

    #[test]
    fn every_name_is_read_back() {
        for state in states() {
            assert_eq!(InstanceStatus::named(state.name()), Some(state.status()));
        }
        assert_eq!(InstanceStatus::named("asleep"), None);
    }

    /// The module's diagram and table, from `after` alone.
    fn drawn() -> String {
        let mut drawn = "```text\n".to_owned();
        for state in states() {
            let mut moves: Vec<(&str, Vec<&str>)> = Vec::new();
            for (name, event) in events() {
                let Ok(next) = state.after(event) else { continue };
                match moves.iter_mut().find(|(to, _)| *to == next.name()) {
                    Some((_, names)) => names.push(name),
                    None => moves.push((next.name(), vec![name])),
                }
            }
            for (index, (to, names)) in moves.iter().enumerate() {
                let from = if index == 0 { state.name() } else { "" };
                drawn.push_str(&format!("{from:<10} ──► {to:<10} {}\n", names.join(", ")));
            }
        }
        drawn.push_str("```\n");
        drawn
    }

    #[test]
    fn the_diagram_is_the_one_that_after_draws() {
        let drawn = drawn();
        assert!(include_str!("instance_states.md") == drawn, "crates/model/src/instance_states.md has to be:\n{drawn}");
    }

    #[test]
    fn resource_names_tell_generation_part_and_installation_apart() {
        let name = |text| EnvironmentName::parse(text).expect("valid");
        let id = InstanceId::serving(&name("mini"), &SiteName::parse("shopping").expect("valid"));
        assert_eq!(id.resource_name(3, None, "ab12cd34"), "arenad-mini-shopping-1-g3-ab12");
        assert_eq!(id.resource_name(3, Some("db"), "ab12cd34"), "arenad-mini-shopping-1-g3-db-ab12");
    }
}
