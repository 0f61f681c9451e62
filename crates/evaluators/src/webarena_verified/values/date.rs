//! `date` and `month`.

use std::sync::LazyLock;

use fancy_regex::Regex;
use serde_json::Value;

use super::Normal;
use crate::text::dates::{self, ParsedDate};
use crate::text::numbers;
use crate::text::python::{self, is_falsy};
use crate::webarena_verified::failure::ReadingFailure;
use crate::webarena_verified::reading::ReadingOptions;
use arenad_verdict::Profile;

/// Reads a `date`: year, month and day.
pub(super) fn normalise(value: &Value, reading: &ReadingOptions<'_>) -> Result<Normal, ReadingFailure> {
    static COMMA: LazyLock<Regex> = LazyLock::new(|| Regex::new(",(?! )").expect("a pattern of ours"));
    let text = value.as_str().filter(|text| !text.is_empty());
    let text = text.ok_or_else(|| ReadingFailure::raised(format!("{value} is not a date")))?;
    let text = COMMA.replace_all(text, ", ");
    let parsed = dates::parse(&text, reading.today, reading.today.0);
    let is_whole = |parsed: &ParsedDate| parsed.year.is_some() && parsed.month.is_some() && parsed.day.is_some();
    // The benchmark completes a date with the day of the evaluation. In the strict profile an incomplete date is
    // invalid.
    let day = parsed
        .filter(|parsed| reading.profile == Profile::Compat || is_whole(parsed))
        .and_then(|parsed| parsed.completed(reading.today));
    let (year, month, day) = day.ok_or_else(|| ReadingFailure::raised(format!("{text:?} is not a date")))?;
    Ok(Normal::Text(format!("{year:04}-{month:02}-{day:02}")))
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Reads a `month` and returns its English name.
pub(super) fn month(value: &Value, reading: &ReadingOptions<'_>) -> Result<Normal, ReadingFailure> {
    let wrong = || ReadingFailure::raised(format!("{value} is not a month"));
    let number = match value {
        Value::Bool(value) => Some(i128::from(*value)),
        Value::Number(number) => Some(number.as_f64().filter(|float| float.fract() == 0.0).map_or(0, |float| {
            // A number outside the range of `i128` is outside the range of months, too.
            #[expect(clippy::cast_possible_truncation, reason = "saturates, and no month is that large")]
            let whole = float as i128;
            whole
        })),
        other if is_falsy(other) => return Err(wrong()),
        other => numbers::int(&python::to_str(other)),
    };
    let number = match number {
        Some(number) => number,
        None => {
            let text = python::to_str(value);
            let parsed = dates::parse(python::strip(&text), (2000, 1, 1), reading.today.0).ok_or_else(wrong)?;
            parsed.month.map_or(1, i128::from)
        }
    };
    let name = usize::try_from(number).ok().filter(|number| *number > 0).and_then(|number| MONTHS.get(number - 1));
    name.map(|name| Normal::Text((*name).to_owned())).ok_or_else(wrong)
}
