//! The clock of a site's containers.

use jiff::Timestamp;

use super::site_context::SiteContext;
use crate::raw::environment::{RawClock, RawClockMode};
use crate::scope::Scope;
use crate::tree::excerpt;
use arenad_model::clock::{Clock, ClockMode, ClockStart};

/// The word for the time at which a snapshot was taken.
const SNAPSHOT: &str = "snapshot";

/// Years in which a clock may start; outside this range, programs fail in unpredictable ways.
const YEARS: std::ops::RangeInclusive<i16> = 1980..=2037;

pub(super) fn clock(site: &SiteContext<'_>, scope: Scope<'_>, raw: &RawClock) -> Option<Clock> {
    let mode = match raw.mode {
        Some(RawClockMode::Frozen) => ClockMode::Frozen,
        Some(RawClockMode::Running) | None => ClockMode::Running,
    };
    let services_scope = scope.key("services");
    let services = match &raw.services {
        None => site.names.clone(),
        Some(names) => names
            .iter()
            .enumerate()
            .filter_map(|(index, name)| site.own_service(services_scope.index(index), name))
            .collect(),
    };
    Some(Clock { start: start(scope.key("start"), raw.start.as_deref().unwrap_or(SNAPSHOT))?, mode, services })
}

fn start(scope: Scope<'_>, text: &str) -> Option<ClockStart> {
    if text == SNAPSHOT {
        return Some(ClockStart::Snapshot);
    }
    let time = text.parse::<Timestamp>().ok();
    let is_usual = |time: &Timestamp| YEARS.contains(&time.to_zoned(jiff::tz::TimeZone::UTC).year());
    match time.filter(is_usual) {
        Some(time) => Some(ClockStart::At(time)),
        None => {
            let what = if time.is_some() { "not a time that programs can be shown" } else { "not a time" };
            scope
                .error("value", format!("`{}` is {what}", excerpt(text)))
                .expected("`snapshot`, or a time from 1980 to 2037 with its zone, such as `2024-03-01T12:00:00Z`")
                .report();
            None
        }
    }
}
