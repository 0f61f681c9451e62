//! `duration`: seconds, from texts such as `2h 30m`, `1:35 hours`, `4:13`.
//!
//! Source of the formats: pytimeparse2 1.7.1, without dateutil in the calculation (`as_timedelta=False`).

use std::sync::LazyLock;

use fancy_regex::Regex;
use serde_json::Value;

use super::Normal;
use crate::text::numbers;
use crate::text::python::{self, is_falsy};
use crate::webarena_verified::failure::ReadingFailure;

/// Seconds of each unit, by the name of its group in the formats.
const UNITS: [(&str, f64); 8] = [
    ("years", 31_536_000.0),
    ("months", 2_592_000.0),
    ("weeks", 604_800.0),
    ("days", 86_400.0),
    ("hours", 3_600.0),
    ("minutes", 60.0),
    ("seconds", 1.0),
    ("milliseconds", 1e-3),
];

/// The formats in the order in which they are tried.
static FORMATS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let years = r"(?P<years>[\d.]+)\s*(?:ys?|yrs?.?|years?)";
    let months = r"(?P<months>[\d.]+)\s*(?:mos?.?|mths?.?|months?)";
    let weeks = r"(?P<weeks>[\d.]+)\s*(?:w|wks?|weeks?)";
    let days = r"(?P<days>[\d.]+)\s*(?:d|dys?|days?)";
    let hours = r"(?P<hours>[\d.]+)\s*(?:h|hrs?|hours?)";
    let minutes = r"(?P<minutes>[\d.]+)\s*(?:m|(mins?)|(minutes?))";
    let seconds = r"(?P<seconds>[\d.]+)\s*(?:s|secs?|seconds?)";
    let millis = r"(?P<milliseconds>[\d.]+)\s*(?:ms|msecs?|millis|milliseconds?)";
    let clock = r"(?P<minutes>\d{2}):(?P<seconds>\d{2}(?:\.\d+)?)";
    let opt = |unit: &str| format!(r"(?:{unit}\s*(?:[,/]\s*)?)?\s*");
    let tail = format!(r"{}{}(?:{seconds})?\s*(?:{millis})?", opt(hours), opt(minutes));
    let formats = [
        format!("{}{}{}{}{tail}", opt(years), opt(months), opt(weeks), opt(days)),
        format!("{}{}{tail}", opt(weeks), opt(days)),
        r"(?P<minutes>\d{1,2}):(?P<seconds>\d{2}(?:\.\d+)?)".to_owned(),
        format!(r"{}{}(?P<hours>\d+):{clock}", opt(weeks), opt(days)),
        format!(r"(?P<days>\d+):(?P<hours>\d{{2}}):{clock}"),
        r":(?P<seconds>\d{2}(?:\.\d+)?)".to_owned(),
        years.to_owned(),
        months.to_owned(),
    ];
    formats.map(|format| Regex::new(&format!(r"(?i)^\s*{format}\s*$")).expect("a pattern of ours")).into()
});

pub(super) fn normalise(value: &Value) -> Result<Normal, ReadingFailure> {
    static HOURS: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(\d+):(\d+)\s*hours?").expect("a pattern of ours"));
    let wrong = || ReadingFailure::raised(format!("{value} is not a duration with a unit"));
    if is_falsy(value) {
        return Err(wrong());
    }
    let text = python::to_str(value);
    let text = if value.is_string() { HOURS.replace_all(&text, "${1}h${2}m").into_owned() } else { text };
    if numbers::float(&text).is_some() {
        return Err(wrong());
    }
    let seconds = parse(&text).ok_or_else(wrong)?;
    // Python's durations have a resolution of one microsecond and a maximum of 999,999,999 days.
    let micros = (seconds * 1e6).round_ties_even() / 1e6;
    if !micros.is_finite() || micros.abs() >= 86_400.0 * 1e9 {
        return Err(wrong());
    }
    Ok(Normal::Seconds(micros))
}

/// `pytimeparse2.parse(text)`; `None` if it fails.
fn parse(text: &str) -> Option<f64> {
    let bare = text.replacen('.', "", 1).replacen('-', "", 1).replacen('+', "", 1);
    if !bare.is_empty() && bare.bytes().all(|byte| byte.is_ascii_digit()) {
        return numbers::float(text);
    }
    let text = text.trim_start();
    let (sign, text) = match text.chars().next() {
        Some('-') => (-1.0, &text[1..]),
        // The package's pattern for the sign accepts the bar as well.
        Some('+' | '|') => (1.0, &text[1..]),
        _ => (1.0, text),
    };
    let text = text.trim_start();
    if text.contains('\n') {
        return None;
    }
    for format in FORMATS.iter() {
        let Some(found) = format.captures(text).ok()?.filter(|found| !found[0].trim().is_empty()) else {
            continue;
        };
        let group = |name: &str| found.name(name).map(|group| group.as_str());
        return sum(&group).map(|sum| sign * sum);
    }
    numbers::float(text).map(|seconds| sign * seconds)
}

/// Adds all parts. Hours, minutes, days and milliseconds have to be numbers; the other parts are ignored if they are
/// not.
fn sum<'a>(group: &dyn Fn(&str) -> Option<&'a str>) -> Option<f64> {
    let mut sum = 0.0;
    for (name, factor) in UNITS {
        let Some(text) = group(name).filter(|text| !text.is_empty()) else { continue };
        let number = numbers::float(text);
        let is_exact = matches!(name, "hours" | "minutes" | "days" | "milliseconds");
        match number {
            Some(number) => sum += number * factor,
            None if is_exact => return None,
            None => {}
        }
    }
    Some(sum)
}

/// Whether the durations differ by at most three minutes, or by at most a tenth of the longer one.
pub(super) fn equal(one: f64, other: f64) -> bool {
    (one - other).abs() <= (one.max(other) * 0.1).max(180.0)
}
