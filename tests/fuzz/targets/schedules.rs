//! Cron expressions of definitions, and their time zones.

use arenad_model::schedule::CronSchedule;
use jiff::Timestamp;

use crate::target::{FuzzTarget, InputCheck, parts};

pub const TARGET: FuzzTarget = FuzzTarget {
    words: &[
        "* ",
        "*/5",
        "0 ",
        "59 ",
        "23 ",
        "31 ",
        "30 2 ",
        "L",
        "W",
        "#5",
        "LW",
        "?",
        "-",
        ",",
        "/0",
        "/",
        "JAN",
        "FEB",
        "MON-SUN",
        "@daily",
        "@yearly",
        "@reboot",
        "Europe/Berlin",
        "America/Sao_Paulo",
        "Pacific/Apia",
        "Antarctica/Troll",
        "UTC",
    ],
    ..FuzzTarget::new("schedules", open)
};

/// Times near irregular changes of clocks: a leap day, both changes of Berlin's clocks, the day that Samoa skipped.
const MOMENTS: [&str; 5] = [
    "2024-02-29T12:00:00Z",
    "2025-03-30T00:59:30Z",
    "2025-10-26T00:30:00Z",
    "2011-12-29T23:00:00Z",
    "1970-01-01T00:00:00Z",
];

fn open() -> InputCheck {
    Box::new(|input| {
        let [expression, zone] = parts::<2>(input);
        let zone = zone.trim();
        let schedule = match CronSchedule::parse(&expression, if zone.is_empty() { "UTC" } else { zone }) {
            Ok(schedule) => schedule,
            Err(error) => return error.to_string().chars().take(40).collect(),
        };
        for moment in MOMENTS {
            let now: Timestamp = moment.parse().expect("a time");
            let Some(next) = schedule.next_after(now) else { continue };
            assert!(next > now, "{expression:?} is due at {next}, after {now}");
            if let Some(last) = schedule.last_until(now) {
                assert!(last <= now, "{expression:?} was due at {last}, until {now}");
            }
        }
        "a schedule".to_owned()
    })
}
