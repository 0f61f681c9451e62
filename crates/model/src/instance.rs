//! The life of an instance as a state machine.
//!
#![doc = include_str!("instance_states.md")]
//!
//! `after` is total: every pair of state and event either leads to a state or is refused with a reason. A test of this
//! module generates the diagram from `after`, and prints it if the file differs.

use std::fmt;

use super::ids::{EnvironmentName, SiteId, SiteName};

/// The name of an instance: environment, site and number, such as `mini/shopping/1`.
///
/// The name stays the same over resets. The generation changes when a reset replaces or restores the containers.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InstanceId {
    /// The environment of the site.
    pub environment: EnvironmentName,
    /// The site that the instance runs.
    pub site: SiteName,
    /// The number among the instances of the site, from 1.
    pub number: u32,
}

impl InstanceId {
    /// Returns the name of a site's serving instance.
    pub fn serving(environment: &EnvironmentName, site: &SiteName) -> Self {
        Self { environment: environment.clone(), site: site.clone(), number: 1 }
    }

    /// Returns the site that the instance runs.
    pub fn site_id(&self) -> SiteId {
        SiteId { environment: self.environment.clone(), site: self.site.clone() }
    }

    /// Returns the id under which the generations of all instances of the site are filed: that of the instance with
    /// number 1. A standby is made for the site, and a generation may leave one instance and later serve in another, so
    /// its containers, networks, volumes and trees bear this id and not that of an instance.
    #[must_use]
    pub fn owner(&self) -> Self {
        Self { number: 1, ..self.clone() }
    }

    /// Returns a list of instances for a message: `mini/shopping/1, mini/reddit/1`.
    pub fn listed(instances: &[Self]) -> String {
        let ids: Vec<String> = instances.iter().map(Self::to_string).collect();
        ids.join(", ")
    }

    /// Returns the name of an object in the engine, such as a container. It contains the number if that is not 1, the
    /// generation, the service if the site has several, and the first characters of the installation's id, because names
    /// are global in the engine.
    pub fn resource_name(&self, generation: u64, part: Option<&str>, installation: &str) -> String {
        let Self { environment, site, number } = self;
        let part = part.map(|part| format!("-{part}")).unwrap_or_default();
        let tag = installation.get(..4).unwrap_or(installation);
        // Names of sites have no `_`.
        let number = if *number == 1 { String::new() } else { format!("_{number}") };
        format!("arenad-{environment}-{site}{number}-g{generation}{part}-{tag}")
    }
}

/// The error for a text that is not the name of an instance.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` does not name an instance; names of instances have the form ENVIRONMENT/SITE/NUMBER")]
pub struct InvalidInstanceId(String);

/// Parses the form that `Display` writes.
impl std::str::FromStr for InstanceId {
    type Err = InvalidInstanceId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let mut parts = text.split('/');
            let environment = EnvironmentName::parse(parts.next()?).ok()?;
            let site = SiteName::parse(parts.next()?).ok()?;
            let number = parts.next()?.parse().ok()?;
            Some(Self { environment, site, number })
        };
        // An id has one form only: neither a fourth part nor `+1` or `01` as number.
        let parsed = parse().filter(|id: &Self| id.to_string() == text);
        parsed.ok_or_else(|| InvalidInstanceId(text.to_owned()))
    }
}

impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.environment, self.site, self.number)
    }
}

/// A failure, and an action that the operator can take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceFailure {
    /// The description of the failure, with its causes.
    pub reason: String,
    /// The action, as an instruction for the operator.
    pub hint: String,
}

/// The state of an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstanceState {
    /// The instance does not exist.
    Down,
    /// The images and the baseline of the instance are being made.
    Preparing,
    /// The containers are being created from the baseline, started and probed.
    Starting,
    /// The instance passed its start-up probes and still passes its periodic ones.
    Ready,
    /// The instance was ready and no longer passes its probes.
    Unhealthy(InstanceFailure),
    /// The instance is being brought back to its snapshot.
    Resetting,
    /// The instance is being removed.
    Stopping,
    /// The last attempt to bring the instance up, to reset it or to remove it failed. No client can reach it.
    Failed(InstanceFailure),
}

/// A state without the description of a failure, in the form in which it is stored.
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
    /// Returns the state without the description of a failure.
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

    /// Returns the state's name in tables, JSON and the store.
    pub fn name(&self) -> &'static str {
        self.status().name()
    }

    /// Whether clients reach the instance. The periodic probes run only in these states.
    pub fn serves(&self) -> bool {
        matches!(self, Self::Ready | Self::Unhealthy(_))
    }

    /// Returns the failure, in the states that have one.
    pub fn trouble(&self) -> Option<&InstanceFailure> {
        match self {
            Self::Unhealthy(trouble) | Self::Failed(trouble) => Some(trouble),
            _ => None,
        }
    }
}

/// An event in the life of an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstanceEvent {
    /// A request to bring the instance up was admitted.
    UpRequested,
    /// The snapshot from which the instance starts exists.
    BaselineReady,
    /// All start-up probes passed in one round.
    ProbesPassed,
    /// A request to reset the instance was admitted.
    ResetRequested,
    /// A standby that had passed its own probes took over.
    Swapped,
    /// A request to remove the instance was admitted.
    DownRequested,
    /// All containers of the instance were removed.
    Removed,
    /// A step of bringing the instance up, resetting it or removing it failed.
    StepFailed(InstanceFailure),
    /// The instance failed enough rounds of its periodic probes, or one of its containers ended.
    ProbesFailed(InstanceFailure),
    /// The instance passes its periodic probes again.
    Recovered,
}

/// The refusal of an event that is not possible in the current state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an instance that is {state} cannot take {event:?}")]
pub struct Refused {
    /// The name of the current state.
    pub state: &'static str,
    /// The event that was refused.
    pub event: InstanceEvent,
}

impl InstanceState {
    /// Returns the state that follows an event.
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

    fn trouble() -> InstanceFailure {
        InstanceFailure { reason: "r".into(), hint: "h".into() }
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

    /// Columns: the state, the event, and the state that follows, or `-` if the event is refused.
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

    #[test]
    fn the_diagram_is_the_one_that_after_draws() {
        let drawn = crate::diagram::drawn(&states(), &events(), InstanceState::name, |state, event| {
            state.after(event.clone()).ok()
        });
        assert!(include_str!("instance_states.md") == drawn, "crates/model/src/instance_states.md has to be:\n{drawn}");
    }

    #[test]
    fn ids_are_read_as_they_are_written() {
        let environment = EnvironmentName::parse("mini").expect("valid");
        let id = InstanceId::serving(&environment, &SiteName::parse("shopping").expect("valid"));
        assert_eq!(id.to_string().parse(), Ok(id));
        for text in [
            "",
            "mini",
            "mini/shopping",
            "mini/shopping/",
            "mini/shopping/01",
            "mini/shopping/+1",
            "Mini/a/1",
            "mini/a/1/2",
        ] {
            assert!(text.parse::<InstanceId>().is_err(), "{text}");
        }
    }

    #[test]
    fn resource_names_tell_generation_part_and_installation_apart() {
        let name = |text| EnvironmentName::parse(text).expect("valid");
        let id = InstanceId::serving(&name("mini"), &SiteName::parse("shopping").expect("valid"));
        assert_eq!(id.resource_name(3, None, "ab12cd34"), "arenad-mini-shopping-g3-ab12");
        assert_eq!(id.resource_name(3, Some("db"), "ab12cd34"), "arenad-mini-shopping-g3-db-ab12");
        let second = InstanceId { number: 2, ..id };
        assert_eq!(second.resource_name(3, None, "ab12cd34"), "arenad-mini-shopping_2-g3-ab12");
        assert_eq!(second.owner().resource_name(3, None, "ab12cd34"), "arenad-mini-shopping-g3-ab12");
    }
}
