//! The number of standbys of a site at a given time, which the most recent entry of its schedule determines.
//!
//! ```text
//!   0 8 * * 1-5  4   ┌────┐ 4       ┌────┐
//!   0 18 * * 1-5 1   ┘    └─────────┘    └───────── 1
//! ```

use jiff::Timestamp;

use super::schedule::CronSchedule;

/// A number of standbys, and the times from which it applies.
#[derive(Debug, Clone, PartialEq)]
pub struct StandbyTime {
    /// The times at which the number changes.
    pub from: CronSchedule,
    /// The number of standbys from then on.
    pub count: usize,
}

/// Returns the number that applies at a time, or `None` if no entry has become due yet. Of several entries that become
/// due at the same time, the last in the file applies.
pub fn count_at(schedule: &[StandbyTime], now: Timestamp) -> Option<usize> {
    let come = schedule.iter().filter_map(|entry| Some((entry.from.last_until(now)?, entry.count)));
    come.max_by_key(|(at, _)| *at).map(|(_, count)| count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn working_hours(zone: &str) -> Vec<StandbyTime> {
        let entry = |cron, count| StandbyTime { from: CronSchedule::parse(cron, zone).expect("valid"), count };
        vec![entry("0 8 * * 1-5", 4), entry("0 18 * * 1-5", 1)]
    }

    fn at(schedule: &[StandbyTime], now: &str) -> Option<usize> {
        count_at(schedule, now.parse().expect("a time"))
    }

    #[test]
    fn the_last_entry_that_has_come_counts() {
        let schedule = working_hours("UTC");
        // 2023-06-02 is a Friday.
        assert_eq!(at(&schedule, "2023-06-02T07:59:59Z"), Some(1));
        assert_eq!(at(&schedule, "2023-06-02T08:00:00Z"), Some(4));
        assert_eq!(at(&schedule, "2023-06-02T17:59:59.9Z"), Some(4));
        assert_eq!(at(&schedule, "2023-06-02T18:00:00Z"), Some(1));
        assert_eq!(at(&schedule, "2023-06-04T12:00:00Z"), Some(1), "over the weekend");
        assert_eq!(at(&[], "2023-06-04T12:00:00Z"), None);
    }

    #[test]
    fn hours_are_those_of_the_time_zone() {
        let schedule = working_hours("Europe/Berlin");
        assert_eq!(at(&schedule, "2023-06-02T06:00:00Z"), Some(4), "in summer");
        assert_eq!(at(&schedule, "2023-12-01T06:00:00Z"), Some(1), "in winter");
        assert_eq!(at(&schedule, "2023-12-01T07:00:00Z"), Some(4));
    }

    #[test]
    fn of_entries_at_the_same_time_the_last_counts() {
        let entry = |count| StandbyTime { from: CronSchedule::parse("0 8 * * *", "UTC").expect("valid"), count };
        assert_eq!(at(&[entry(2), entry(3)], "2023-06-02T09:00:00Z"), Some(3));
    }
}
