//! The health checks of a ready site: its shallow and deep probes and their schedules.

use std::time::Duration;

use super::probes::probe_list;
use super::site_context::SiteContext;
use super::steps::exactly_one;
use super::support::positive_period;
use crate::raw::environment::{RawDeep, RawHealth, RawShallow};
use crate::scope::Scope;
use crate::tree::excerpt;
use arenad_model::health::{HealthProbes, HealthSpec};
use arenad_model::probe::Probe;
use arenad_model::schedule::{CronSchedule, InvalidSchedule, Schedule};

/// Default pause between shallow rounds: short enough to detect a failure within one or two steps of an episode.
const SHALLOW_EVERY: Duration = Duration::from_secs(3);

/// Default timeout of a shallow probe.
const SHALLOW_TIMEOUT: Duration = Duration::from_secs(2);

/// Default number of consecutive shallow rounds that must fail; a single failure may be transient.
const SHALLOW_FAILURES: u32 = 2;

/// Default timeout of a deep probe, which may place an order or search an index.
const DEEP_TIMEOUT: Duration = Duration::from_secs(10);

/// Default number of consecutive deep rounds that must fail; they are too infrequent to wait for a second one.
const DEEP_FAILURES: u32 = 1;

/// Default time zone of cron expressions.
const TIME_ZONE: &str = "UTC";

/// Reads the health checks of a site. By default, they use its readiness probes.
pub(super) fn health(site: &SiteContext<'_>, scope: Scope<'_>, raw: Option<&RawHealth>, ready: &[Probe]) -> HealthSpec {
    let default = RawShallow::default();
    let shallow_raw = raw.and_then(|raw| raw.shallow.as_ref()).unwrap_or(&default);
    HealthSpec {
        shallow: shallow(site, scope.key("shallow"), shallow_raw, ready),
        deep: raw.and_then(|raw| raw.deep.as_ref()).and_then(|raw| deep(site, scope.key("deep"), raw)),
    }
}

fn shallow(site: &SiteContext<'_>, scope: Scope<'_>, raw: &RawShallow, ready: &[Probe]) -> HealthProbes {
    let probes = match &raw.probes {
        Some(probes) => probe_list(site, scope.key("probes"), probes),
        None => ready.to_vec(),
    };
    HealthProbes {
        schedule: Schedule::Every(positive_period(scope.key("every"), raw.every.as_ref(), SHALLOW_EVERY)),
        timeout: positive_period(scope.key("timeout"), raw.timeout.as_ref(), SHALLOW_TIMEOUT),
        failures: raw.failures.unwrap_or(SHALLOW_FAILURES),
        probes,
    }
}

fn deep(site: &SiteContext<'_>, scope: Scope<'_>, raw: &RawDeep) -> Option<HealthProbes> {
    let probes = raw.probes.as_ref().map(|probes| probe_list(site, scope.key("probes"), probes));
    let timeout = positive_period(scope.key("timeout"), raw.timeout.as_ref(), DEEP_TIMEOUT);
    Some(HealthProbes {
        schedule: schedule(scope, raw)?,
        timeout,
        failures: raw.failures.unwrap_or(DEEP_FAILURES),
        probes: probes?,
    })
}

fn schedule(scope: Scope<'_>, raw: &RawDeep) -> Option<Schedule> {
    if exactly_one(scope, &["every", "cron"], "the schedule")? == "every" {
        if raw.time_zone.is_some() {
            scope
                .key("time_zone")
                .key_error("conflict", "`every` counts the same in every time zone")
                .help("remove `time_zone`, or give times of the day with `cron`")
                .report();
        }
        let every = raw.every.as_ref()?;
        return Some(Schedule::Every(positive_period(scope.key("every"), Some(every), Duration::ZERO)));
    }
    cron(scope, raw.cron.as_deref()?, raw.time_zone.as_deref()).map(Schedule::Cron)
}

/// Reads the keys `cron` and `time_zone`.
pub(super) fn cron(scope: Scope<'_>, expression: &str, time_zone: Option<&str>) -> Option<CronSchedule> {
    let zone = time_zone.unwrap_or(TIME_ZONE);
    match CronSchedule::parse(expression, zone) {
        Ok(schedule) => return Some(schedule),
        Err(InvalidSchedule::TimeZone) => {
            unknown_zone(scope.key("time_zone"), zone);
            // The expression has not been checked yet.
            if let Err(error) = CronSchedule::parse(expression, TIME_ZONE) {
                bad_expression(scope.key("cron"), expression, &error);
            }
        }
        Err(error) => bad_expression(scope.key("cron"), expression, &error),
    }
    None
}

fn bad_expression(scope: Scope<'_>, expression: &str, error: &InvalidSchedule) {
    let shown = excerpt(expression);
    let message = match error {
        InvalidSchedule::Expression(reason) => format!("invalid cron expression `{shown}`: {reason}"),
        InvalidSchedule::NeverDue | InvalidSchedule::TimeZone => format!("no day of any year matches `{shown}`"),
    };
    scope
        .error("value", message)
        .expected("five fields (minute, hour, day of month, month, day of week), such as `*/5 * * * *`")
        .report();
}

fn unknown_zone(scope: Scope<'_>, name: &str) {
    scope
        .error("value", format!("there is no time zone `{}`", excerpt(name)))
        .expected("a name of the IANA database, such as `UTC` or `Europe/Berlin`")
        .report();
}
