//! Clocks of sites that show another time than the host's: what libfaketime is told.

use std::time::Duration;

use jiff::Timestamp;

use super::coverage::{Scratch, ScratchPlace};
use super::ids::ServiceName;

/// How far a running clock may be from what it should show when it is looked at: a busy host takes its time.
const TOLERANCE: Duration = Duration::from_secs(120);

/// The memory that libfaketime shares between processes, under names with their numbers.
///
/// Source: `ft_shm_create` of libfaketime 0.9.10.
const SHARED_MEMORY: [&str; 2] = ["/dev/shm/faketime_shm_*", "/dev/shm/sem.faketime_sem_*"];

/// The clock of a site's containers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clock {
    /// What it shows at first.
    pub start: ClockStart,
    /// Whether it moves.
    pub mode: ClockMode,
    /// The services that see it; none have the host's.
    pub services: Vec<ServiceName>,
}

/// What a clock shows when its containers are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockStart {
    /// The time at which the snapshot was taken that they are made from. While a baseline is made, the host's.
    Snapshot,
    /// This time, while a baseline is made too.
    At(Timestamp),
}

/// Whether a clock moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockMode {
    /// As the host's does, from when the containers were made.
    Running,
    /// It stands still.
    Frozen,
}

/// What containers are to be told that are made at some time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClockSetting {
    /// What the clock is to show at that time, in seconds since 1970.
    shows: i64,
    /// That time, in seconds since 1970.
    made: i64,
    mode: ClockMode,
}

impl Clock {
    /// The setting of containers that are made now; `None` where they have the host's clock. `taken` is when their snapshot
    /// was, if they are made from one.
    pub fn setting(&self, taken: Option<Timestamp>, now: Timestamp) -> Option<ClockSetting> {
        let start = match self.start {
            ClockStart::Snapshot => taken?,
            ClockStart::At(start) => start,
        };
        Some(ClockSetting { shows: start.as_second(), made: now.as_second(), mode: self.mode })
    }

    /// What libfaketime itself leaves outside of the stores, and a rewind leaves as it is.
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
    /// The environment variables that libfaketime reads, by name.
    ///
    /// Source: the README of libfaketime 0.9.10. A running clock is told as an offset, so that every process, whenever it
    /// begins, sees the same one. Waiting is not faked, so that time-outs last as long as ever, nor are the times of
    /// files, by which programs tell whether what they have compiled is still good. A program reads the time once and
    /// keeps it: left to itself, libfaketime would read it again every ten seconds and find nothing in those that have
    /// cleared their environment meanwhile, as nginx does.
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

    /// Whether a container may show that time, in seconds since 1970, now.
    pub fn allows(&self, shown: i64, now: Timestamp) -> bool {
        let elapsed = match self.mode {
            ClockMode::Running => now.as_second().saturating_sub(self.made),
            ClockMode::Frozen => 0,
        };
        let tolerance = if self.mode == ClockMode::Frozen { 1 } else { TOLERANCE.as_secs() };
        shown.abs_diff(self.shows.saturating_add(elapsed)) <= tolerance
    }

    /// What it should show, for people.
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
