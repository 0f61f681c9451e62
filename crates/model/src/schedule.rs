//! Schedules: at regular intervals, or by a cron expression in a time zone. The time is an argument.

use std::fmt;
use std::time::Duration;

use cron::Cron;
use cron::parser::{CronParser, Seconds, Year};
use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};

/// The number of fields: minute, hour, day of month, month, day of week.
const FIELDS: usize = 5;

/// The times at which a recurring action is due.
#[derive(Debug, Clone, PartialEq)]
pub enum Schedule {
    /// The action is due this long after its last run.
    Every(Duration),
    /// The action is due at the times of a cron expression.
    Cron(CronSchedule),
}

/// A cron expression of five fields, in a time zone.
#[derive(Debug, Clone, PartialEq)]
pub struct CronSchedule {
    expression: String,
    time_zone: String,
    /// The value is boxed because it is large and most schedules have none.
    cron: Box<Cron>,
    zone: TimeZone,
}

/// The reason why a cron expression or its time zone is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSchedule {
    /// The expression is malformed.
    #[error("invalid cron expression: {0}")]
    Expression(String),
    /// The expression is well-formed, but no day matches it.
    #[error("no day of any year matches it")]
    NeverDue,
    /// The time zone is unknown.
    #[error("there is no such time zone")]
    TimeZone,
}

impl CronSchedule {
    /// Parses an expression, with the name of a time zone of the IANA database such as `Europe/Berlin`.
    pub fn parse(expression: &str, time_zone: &str) -> Result<Self, InvalidSchedule> {
        // The bundled database has the same zones on every host, and no file is read.
        let zone = TimeZoneDatabase::bundled().get(time_zone).map_err(|_| InvalidSchedule::TimeZone)?;
        let fields = expression.split_whitespace().count();
        if fields != FIELDS && !expression.trim_start().starts_with('@') {
            return Err(InvalidSchedule::Expression(format!("it has {fields} fields")));
        }
        let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
        let cron = parser.parse(expression).map_err(|error| InvalidSchedule::Expression(plain(&error.to_string())))?;
        let schedule =
            Self { expression: expression.to_owned(), time_zone: time_zone.to_owned(), cron: Box::new(cron), zone };
        match schedule.next_after(Timestamp::UNIX_EPOCH) {
            Some(_) => Ok(schedule),
            None => Err(InvalidSchedule::NeverDue),
        }
    }

    /// Returns the first time after `now` that matches the expression.
    pub fn next_after(&self, now: Timestamp) -> Option<Timestamp> {
        let next = self.cron.find_next_occurrence(&now.to_zoned(self.zone.clone()), false);
        next.ok().map(|next| next.timestamp())
    }

    /// Returns the last time that matches the expression, up to and including `now`.
    pub fn last_until(&self, now: Timestamp) -> Option<Timestamp> {
        let last = self.cron.find_previous_occurrence(&now.to_zoned(self.zone.clone()), true);
        last.ok().map(|last| last.timestamp())
    }

    /// Returns the expression as it was written.
    pub fn expression(&self) -> &str {
        &self.expression
    }

    /// Returns the name of the time zone.
    pub fn time_zone(&self) -> &str {
        &self.time_zone
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Every(period) => write!(f, "every {period:?}"),
            Self::Cron(cron) => cron.fmt(f),
        }
    }
}

impl fmt::Display for CronSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.expression, self.time_zone)
    }
}

/// Adapts the parser's message to arenad's style: without the name of the error type, in lower case, and without a full
/// stop.
fn plain(reason: &str) -> String {
    let reason = reason.split_once(": ").map_or(reason, |(_, reason)| reason).trim_end_matches('.');
    let mut letters = reason.chars();
    letters.next().map(|first| first.to_lowercase().collect::<String>() + letters.as_str()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    fn next(expression: &str, zone: &str, now: &str) -> String {
        let schedule = CronSchedule::parse(expression, zone).expect("valid");
        schedule.next_after(at(now)).expect("it comes").to_string()
    }

    #[test]
    fn the_next_time_is_later_than_now() {
        assert_eq!(next("*/5 * * * *", "UTC", "2023-06-01T12:00:00Z"), "2023-06-01T12:05:00Z");
        assert_eq!(next("*/5 * * * *", "UTC", "2023-06-01T12:04:59.9Z"), "2023-06-01T12:05:00Z");
        assert_eq!(next("@daily", "UTC", "2023-06-01T12:00:00Z"), "2023-06-02T00:00:00Z");
    }

    #[test]
    fn hours_are_those_of_the_time_zone_in_summer_and_in_winter() {
        assert_eq!(next("0 3 * * *", "Europe/Berlin", "2023-06-01T12:00:00Z"), "2023-06-02T01:00:00Z");
        assert_eq!(next("0 3 * * *", "Europe/Berlin", "2023-12-01T12:00:00Z"), "2023-12-02T02:00:00Z");
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        assert!(matches!(CronSchedule::parse("61 * * * *", "UTC"), Err(InvalidSchedule::Expression(_))));
        assert!(matches!(CronSchedule::parse("* * * * * *", "UTC"), Err(InvalidSchedule::Expression(_))));
        assert_eq!(CronSchedule::parse("0 0 31 2 *", "UTC"), Err(InvalidSchedule::NeverDue));
        assert_eq!(CronSchedule::parse("* * * * *", "Europe/Berlyn"), Err(InvalidSchedule::TimeZone));
    }
}
