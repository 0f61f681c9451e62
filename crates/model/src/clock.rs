//! Clocks of sites that differ from the host's clock, and the settings for libfaketime.

use std::time::Duration;

use jiff::Timestamp;

use super::coverage::{Scratch, ScratchPlace};
use super::ids::ServiceName;

/// The tolerated deviation of a running clock. It is large because a busy host may delay the check.
const TOLERANCE: Duration = Duration::from_secs(120);

/// Patterns of the files in shared memory by which libfaketime shares the time between processes. A process id ends
/// each file name.
///
/// Source: `ft_shm_create` of libfaketime 0.9.10.
const SHARED_MEMORY: [&str; 2] = ["/dev/shm/faketime_shm_*", "/dev/shm/sem.faketime_sem_*"];

/// The clock of a site's containers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clock {
    /// The time that the clock shows at first.
    pub start: ClockStart,
    /// Whether the clock advances.
    pub mode: ClockMode,
    /// The services that see the clock. All others see the host's.
    pub services: Vec<ServiceName>,
}

/// The time that a clock shows when its containers are created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockStart {
    /// The time at which the containers' snapshot was taken. While a baseline is built, the host's time.
    Snapshot,
    /// This time, also while a baseline is built.
    At(Timestamp),
}

/// Whether a clock advances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockMode {
    /// The clock advances with the host's clock, from the creation of the containers.
    Running,
    /// The clock does not advance.
    Frozen,
}

/// The clock setting of containers that are created at a particular time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClockSetting {
    /// The time that the clock shows when the containers are created, in seconds since 1970 UTC.
    shows: i64,
    /// The time at which the containers are created, in seconds since 1970 UTC.
    made: i64,
    mode: ClockMode,
}

impl Clock {
    /// Returns the setting of containers that are created at `now`, or `None` if they use the host's clock. `taken` is
    /// the time of their snapshot, if they are created from one.
    pub fn setting(&self, taken: Option<Timestamp>, now: Timestamp) -> Option<ClockSetting> {
        let start = match self.start {
            ClockStart::Snapshot => taken?,
            ClockStart::At(start) => start,
        };
        Some(ClockSetting { shows: start.as_second(), made: now.as_second(), mode: self.mode })
    }

    /// Returns the paths that libfaketime itself writes outside the stores, and that a rewind does not restore.
    pub fn scratch(&self) -> impl Iterator<Item = Scratch> {
        self.services.iter().flat_map(|service| {
            SHARED_MEMORY.iter().map(|pattern| Scratch {
                service: service.clone(),
                place: ScratchPlace::Differs((*pattern).to_owned()),
                reason: "libfaketime shares the time between processes".to_owned(),
            })
        })
    }
}

impl ClockSetting {
    /// Returns the environment variables for libfaketime, by name.
    ///
    /// A running clock is given as an offset, so that all processes see the same clock regardless of when they start.
    /// Waiting is not affected, so time-outs keep their duration. File times are not affected either, because programs
    /// use them to decide whether compiled files are up to date.
    ///
    /// A process reads the setting once and keeps it. By default, libfaketime would read it again every ten seconds,
    /// but finds no setting in processes that have cleared their environment in the meantime, as nginx does.
    ///
    /// Source: the README of libfaketime 0.9.10.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        let time = match self.mode {
            ClockMode::Running => format!("{:+}", self.shows.saturating_sub(self.made)),
            ClockMode::Frozen => self.shows.to_string(),
        };
        let yes = || "1".to_owned();
        vec![
            ("FAKETIME", time),
            ("FAKETIME_FMT", "%s".to_owned()),
            ("FAKETIME_CACHE_DURATION", i32::MAX.to_string()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", yes()),
            ("DONT_FAKE_MONOTONIC", yes()),
            ("NO_FAKE_STAT", yes()),
        ]
    }

    /// Whether a container may show this time, in seconds since 1970 UTC, at `now`.
    pub fn allows(&self, shown: i64, now: Timestamp) -> bool {
        let elapsed = match self.mode {
            ClockMode::Running => now.as_second().saturating_sub(self.made),
            ClockMode::Frozen => 0,
        };
        let tolerance = if self.mode == ClockMode::Frozen { 1 } else { TOLERANCE.as_secs() };
        shown.abs_diff(self.shows.saturating_add(elapsed)) <= tolerance
    }

    /// Returns the time that the clock shows when the containers are created, as text.
    pub fn shows(&self) -> String {
        Timestamp::from_second(self.shows).map_or_else(|_| self.shows.to_string(), |time| time.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    fn clock(start: ClockStart, mode: ClockMode) -> Clock {
        Clock { start, mode, services: Vec::new() }
    }

    fn faketime(setting: &ClockSetting) -> String {
        setting.variables()[0].1.clone()
    }

    #[test]
    fn a_running_clock_is_an_offset_and_a_frozen_one_a_time() {
        let now = at("2026-01-02T00:00:00Z");
        let start = ClockStart::At(at("2026-01-01T00:00:00Z"));
        let running = clock(start, ClockMode::Running).setting(None, now).expect("a setting");
        assert_eq!(faketime(&running), "-86400");
        let frozen = clock(start, ClockMode::Frozen).setting(None, now).expect("a setting");
        assert_eq!(faketime(&frozen), "1767225600");
        let ahead = clock(ClockStart::At(at("2026-01-02T00:00:05Z")), ClockMode::Running).setting(None, now);
        assert_eq!(ahead.map(|setting| faketime(&setting)).as_deref(), Some("+5"));
    }

    #[test]
    fn a_clock_of_the_snapshot_is_the_hosts_while_there_is_none() {
        let (taken, now) = (at("2026-01-01T00:00:00Z"), at("2026-01-01T01:00:00Z"));
        let of_snapshot = clock(ClockStart::Snapshot, ClockMode::Running);
        assert_eq!(of_snapshot.setting(None, now), None);
        assert_eq!(of_snapshot.setting(Some(taken), now).map(|setting| faketime(&setting)).as_deref(), Some("-3600"));
    }

    #[test]
    fn what_a_container_shows_is_held_against_the_setting() {
        let (start, now) = (at("2024-03-01T12:00:00Z"), at("2026-01-01T00:00:00Z"));
        let later = at("2026-01-01T00:10:00Z");
        let running = clock(ClockStart::At(start), ClockMode::Running).setting(None, now).expect("a setting");
        assert!(running.allows(start.as_second() + 600, later) && !running.allows(later.as_second(), later));
        let frozen = clock(ClockStart::At(start), ClockMode::Frozen).setting(None, now).expect("a setting");
        assert!(frozen.allows(start.as_second(), later) && !frozen.allows(start.as_second() + 600, later));
        assert_eq!(frozen.shows(), "2024-03-01T12:00:00Z");
    }
}
