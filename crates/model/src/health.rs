//! Health of ready instances: the schedule of the probe rounds, and the conclusions from their outcomes.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;

use super::cause::Cause;
use super::probe::Probe;
use super::schedule::Schedule;

/// The probes by which a ready instance is watched.
#[derive(Debug, Clone, PartialEq)]
pub struct HealthSpec {
    /// The cheap probes, which run often.
    pub shallow: HealthProbes,
    /// The thorough probes, which run rarely. `None` means that there are none.
    pub deep: Option<HealthProbes>,
}

impl HealthSpec {
    /// Returns the probes of a depth.
    pub fn at(&self, depth: Depth) -> Option<&HealthProbes> {
        match depth {
            Depth::Shallow => Some(&self.shallow),
            Depth::Deep => self.deep.as_ref(),
        }
    }
}

/// Probes that run in rounds, on a schedule.
#[derive(Debug, Clone, PartialEq)]
pub struct HealthProbes {
    /// The schedule of the rounds.
    pub schedule: Schedule,
    /// The maximum duration of one probe.
    pub timeout: Duration,
    /// The number of consecutive rounds that must fail before the instance counts as unhealthy.
    pub failures: u32,
    /// The probes of a round. There is at least one.
    pub probes: Vec<Probe>,
}

/// The depth of health probes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Depth {
    /// The probes show whether the site responds.
    Shallow,
    /// The probes show whether the site works.
    Deep,
}

impl Depth {
    /// Both depths, the more frequent one first.
    pub const ALL: [Self; 2] = [Self::Shallow, Self::Deep];

    /// Returns the name in definitions, JSON and the store.
    pub fn name(self) -> &'static str {
        match self {
            Self::Shallow => "shallow",
            Self::Deep => "deep",
        }
    }
}

impl fmt::Display for Depth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A moment on two clocks: the monotonic clock, which measures pauses, and the wall clock, which calendar schedules
/// use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The monotonic time since an arbitrary start.
    pub uptime: Duration,
    /// The time on the wall clock.
    pub wall: Timestamp,
}

/// The maximum pause before the wall clock is read again, because it may have been set forward or back.
const CALENDAR_LOOK: Duration = Duration::from_secs(60);

/// The failure that a round of probes found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Miss {
    /// The description of the failure.
    pub reason: String,
    /// The cause, if a person can take a specific action against it.
    pub cause: Option<Cause>,
}

/// The rounds of one depth since the instance last became ready: the time of the next round, and the recent outcomes.
#[derive(Debug, Clone)]
pub(crate) struct Vigil {
    schedule: Schedule,
    failures: u32,
    /// The pause after a failed round, if it is shorter than the schedule's pause. The next round then confirms the
    /// failure or shows the recovery soon.
    retry: Duration,
    misses: u32,
    miss: Option<Miss>,
    due_at: Option<Duration>,
    due_on: Option<Timestamp>,
}

impl Vigil {
    fn begin(probes: &HealthProbes, retry: Duration, now: Moment) -> Self {
        let schedule = probes.schedule.clone();
        let failures = probes.failures;
        let mut vigil = Self { schedule, failures, retry, misses: 0, miss: None, due_at: None, due_on: None };
        vigil.plan(now);
        vigil
    }

    /// Returns the time until the next round, which is zero if the round is due.
    fn pause(&mut self, now: Moment) -> Duration {
        let until = |at: Duration| at.saturating_sub(now.uptime);
        let pause = self.due_at.map(until);
        let Schedule::Cron(cron) = &self.schedule else {
            return pause.unwrap_or_default();
        };
        if self.due_on.is_none_or(|on| now.wall < on) {
            // The occurrence is the same as before, unless the wall clock was set back.
            self.due_on = cron.next_after(now.wall);
        }
        let on = self.due_on.map_or(CALENDAR_LOOK, |on| {
            Duration::try_from(on.duration_since(now.wall)).unwrap_or_default().min(CALENDAR_LOOK)
        });
        pause.map_or(on, |at| at.min(on))
    }

    fn note(&mut self, outcome: Result<(), Miss>, now: Moment) {
        self.misses = if outcome.is_ok() { 0 } else { self.misses.saturating_add(1) };
        self.miss = outcome.err();
        self.plan(now);
    }

    /// Makes the outcome of the last round count at once, regardless of the number of failures that the definition
    /// tolerates.
    fn condemn(&mut self) {
        self.misses = self.misses.max(self.failures);
    }

    fn hurry(&mut self, now: Moment) {
        self.due_at = Some(now.uptime);
    }

    fn plan(&mut self, now: Moment) {
        let retry = (self.misses > 0).then_some(self.retry);
        let pause = match &self.schedule {
            Schedule::Every(period) => Some(retry.map_or(*period, |retry| retry.min(*period))),
            Schedule::Cron(cron) => {
                self.due_on = cron.next_after(now.wall);
                retry
            }
        };
        self.due_at = pause.map(|pause| now.uptime + pause);
    }

    fn has_failed(&self) -> bool {
        self.misses >= self.failures
    }
}

/// The pause after a failed shallow round. It is short because the next round decides whether the instance is
/// unhealthy.
const SHALLOW_RETRY: Duration = Duration::from_secs(1);

/// The pause after a failed deep round. It is shorter than most schedules, so that a recovery does not go unnoticed
/// until the next night, but long enough that an unhealthy site does not have to serve thorough probes every second.
const DEEP_RETRY: Duration = Duration::from_secs(15);

/// The rounds of both depths of an instance that serves.
#[derive(Debug, Clone)]
pub struct Vigils {
    shallow: Vigil,
    deep: Option<Vigil>,
}

impl Vigils {
    /// Starts the schedules when the instance has become ready. That moment counts as a round that passed.
    pub fn begin(spec: &HealthSpec, now: Moment) -> Self {
        Self {
            shallow: Vigil::begin(&spec.shallow, SHALLOW_RETRY, now),
            deep: spec.deep.as_ref().map(|deep| Vigil::begin(deep, DEEP_RETRY, now)),
        }
    }

    /// Returns the time until the next round of a depth, which is zero if the round is due. `None` means that the depth
    /// has no rounds.
    pub fn pause(&mut self, depth: Depth, now: Moment) -> Option<Duration> {
        match depth {
            Depth::Shallow => Some(self.shallow.pause(now)),
            Depth::Deep => self.deep.as_mut().map(|deep| deep.pause(now)),
        }
    }

    /// Records the outcome of a round.
    pub fn note(&mut self, depth: Depth, outcome: Result<(), Miss>, now: Moment) {
        match (depth, &mut self.deep) {
            (Depth::Shallow, deep) => {
                let recovers = outcome.is_ok() && self.shallow.misses > 0;
                self.shallow.note(outcome, now);
                // The failure of the deep probes may have had the same cause as the failure from which the site has
                // recovered.
                if let Some(deep) = deep.as_mut().filter(|deep| recovers && deep.misses > 0) {
                    deep.hurry(now);
                }
            }
            (Depth::Deep, Some(deep)) => deep.note(outcome, now),
            (Depth::Deep, None) => {}
        }
    }

    /// Records that a round found a container that does not run. No further round needs to confirm this.
    pub fn note_gone(&mut self, depth: Depth, miss: &Miss, now: Moment) {
        self.note(depth, Err(miss.clone()), now);
        if depth == Depth::Deep {
            self.shallow.note(Err(miss.clone()), now);
        }
        self.shallow.condemn();
    }

    /// Returns the failure that makes the instance unhealthy, if there is one.
    pub fn trouble(&self) -> Option<Miss> {
        self.first_miss(Vigil::has_failed)
    }

    /// Returns the failure of the last shallow round or else of the last deep round, whether or not it makes the instance
    /// unhealthy.
    pub fn missed(&self) -> Option<Miss> {
        self.first_miss(|vigil| vigil.misses > 0)
    }

    fn first_miss(&self, counts: impl Fn(&Vigil) -> bool) -> Option<Miss> {
        let shallow = Some(&self.shallow).filter(|vigil| counts(vigil)).and_then(|vigil| vigil.miss.clone());
        let deep = self.deep.as_ref().filter(|vigil| counts(vigil)).and_then(|vigil| vigil.miss.as_ref());
        shallow.or_else(|| deep.map(|miss| Miss { reason: format!("deep probe {}", miss.reason), cause: miss.cause }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::CronSchedule;

    /// Returns a specification without probes, because the tests do not depend on the probes themselves.
    fn spec(deep: Option<Schedule>) -> HealthSpec {
        let probes = |schedule, failures| HealthProbes {
            schedule,
            timeout: Duration::from_secs(1),
            failures,
            probes: Vec::new(),
        };
        HealthSpec {
            shallow: probes(Schedule::Every(Duration::from_secs(3)), 2),
            deep: deep.map(|schedule| probes(schedule, 1)),
        }
    }

    fn every(seconds: u64) -> Option<Schedule> {
        Some(Schedule::Every(Duration::from_secs(seconds)))
    }

    fn cron(expression: &str) -> Option<Schedule> {
        Some(Schedule::Cron(CronSchedule::parse(expression, "UTC").expect("valid")))
    }

    /// Returns the moment that many seconds after noon, at which the tests begin.
    fn at(seconds: u64) -> Moment {
        Moment { uptime: Duration::from_secs(seconds), wall: noon() + Duration::from_secs(seconds) }
    }

    fn noon() -> Timestamp {
        "2023-06-01T12:00:00Z".parse().expect("a time")
    }

    fn pause(vigils: &mut Vigils, depth: Depth, now: Moment) -> u64 {
        vigils.pause(depth, now).expect("there are such rounds").as_secs()
    }

    fn failed() -> Result<(), Miss> {
        Err(miss("search: no hits"))
    }

    fn miss(reason: &str) -> Miss {
        Miss { reason: reason.to_owned(), cause: Some(Cause::NoSpace) }
    }

    #[test]
    fn rounds_follow_each_other_at_the_schedules_pace() {
        let mut vigils = Vigils::begin(&spec(every(60)), at(0));
        assert_eq!(pause(&mut vigils, Depth::Shallow, at(0)), 3);
        assert_eq!(pause(&mut vigils, Depth::Shallow, at(2)), 1);
        assert_eq!(pause(&mut vigils, Depth::Shallow, at(100)), 0, "a round that is late is due once");
        vigils.note(Depth::Shallow, Ok(()), at(100));
        assert_eq!(pause(&mut vigils, Depth::Shallow, at(100)), 3);
        assert_eq!(pause(&mut vigils, Depth::Deep, at(59)), 1, "each depth counts for itself");
        assert_eq!(Vigils::begin(&spec(None), at(0)).pause(Depth::Deep, at(0)), None);
    }

    #[test]
    fn cron_rounds_are_due_at_times_of_the_calendar() {
        let mut vigils = Vigils::begin(&spec(cron("*/5 * * * *")), at(10));
        assert_eq!(pause(&mut vigils, Depth::Deep, at(10)), 60, "the calendar is looked at again before");
        assert_eq!(pause(&mut vigils, Depth::Deep, at(260)), 40);
        assert_eq!(pause(&mut vigils, Depth::Deep, at(300)), 0);
        assert_eq!(pause(&mut vigils, Depth::Deep, at(1000)), 0, "what was missed is made up for once");
        vigils.note(Depth::Deep, Ok(()), at(1000));
        assert_eq!(pause(&mut vigils, Depth::Deep, at(1150)), 50);
    }

    #[test]
    fn a_calendar_that_is_put_forward_or_back_delays_nothing() {
        let mut vigils = Vigils::begin(&spec(cron("0 12 * * *")), at(0));
        let tomorrow = Moment { uptime: Duration::from_secs(30), wall: noon() + Duration::from_secs(86_400) };
        assert_eq!(pause(&mut vigils, Depth::Deep, tomorrow), 0);
        let yesterday = |seconds| Moment {
            uptime: Duration::from_secs(seconds),
            wall: noon() - Duration::from_secs(90) + Duration::from_secs(seconds),
        };
        assert_eq!(pause(&mut vigils, Depth::Deep, yesterday(60)), 30);
        assert_eq!(pause(&mut vigils, Depth::Deep, yesterday(90)), 0);
    }

    #[test]
    fn as_many_failures_in_a_row_as_the_definition_says_are_trouble() {
        let mut vigils = Vigils::begin(&spec(None), at(0));
        vigils.note(Depth::Shallow, failed(), at(3));
        assert_eq!((vigils.trouble(), vigils.missed()), (None, Some(miss("search: no hits"))));
        assert_eq!(pause(&mut vigils, Depth::Shallow, at(3)), 1, "the second look comes sooner");
        vigils.note(Depth::Shallow, Ok(()), at(4));
        vigils.note(Depth::Shallow, failed(), at(7));
        assert_eq!(vigils.trouble(), None, "not in a row");
        vigils.note(Depth::Shallow, failed(), at(8));
        assert_eq!(vigils.trouble(), Some(miss("search: no hits")));
        vigils.note(Depth::Shallow, Ok(()), at(9));
        assert_eq!((vigils.trouble(), vigils.missed()), (None, None));
    }

    #[test]
    fn a_deep_failure_is_trouble_of_its_own_until_a_deep_round_passes() {
        let mut vigils = Vigils::begin(&spec(cron("0 3 * * *")), at(0));
        vigils.note(Depth::Deep, failed(), at(100));
        assert_eq!(vigils.trouble(), Some(miss("deep probe search: no hits")), "with its cause");
        vigils.note(Depth::Shallow, Ok(()), at(103));
        assert!(vigils.trouble().is_some(), "a good shallow round proves nothing about it");
        assert_eq!(pause(&mut vigils, Depth::Deep, at(103)), 12, "the recovery is not left to the next night");
        vigils.note(Depth::Deep, Ok(()), at(115));
        assert_eq!(vigils.trouble(), None);
    }

    #[test]
    fn the_deep_probes_look_again_at_once_when_the_site_answers_again() {
        let mut vigils = Vigils::begin(&spec(every(600)), at(0));
        vigils.note(Depth::Shallow, failed(), at(3));
        vigils.note(Depth::Deep, failed(), at(3));
        assert_eq!(pause(&mut vigils, Depth::Deep, at(4)), 14);
        vigils.note(Depth::Shallow, Ok(()), at(4));
        assert_eq!(pause(&mut vigils, Depth::Deep, at(4)), 0);
    }

    #[test]
    fn a_container_that_is_gone_is_trouble_at_once_and_no_matter_of_depth() {
        for depth in Depth::ALL {
            let mut vigils = Vigils::begin(&spec(every(600)), at(0));
            vigils.note_gone(depth, &miss("the container of web ended"), at(5));
            assert_eq!(vigils.trouble(), Some(miss("the container of web ended")));
        }
    }
}
