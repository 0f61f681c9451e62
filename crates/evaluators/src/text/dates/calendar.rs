//! Days, months and centuries of the Gregorian calendar.

/// A date: year, month and day.
pub type Day = (u32, u32, u32);

/// Returns the current day in local time, as `datetime.now()` does.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the benchmarks' own code fills dates in from the present day")]
pub fn today() -> Day {
    let today = jiff::Zoned::now();
    let part = |number: i8| u32::try_from(number).unwrap_or(1);
    (u32::try_from(today.year()).unwrap_or(1), part(today.month()), part(today.day()))
}

/// Completes a year of two digits: the result lies within fifty years of the current year.
pub(super) fn with_century(year: u32, present: u32) -> u32 {
    let year = year + present / 100 * 100;
    if year >= present + 50 {
        year.saturating_sub(100)
    } else if year + 50 < present {
        year + 100
    } else {
        year
    }
}

/// Returns the number of days of a month.
#[must_use]
pub(crate) fn days_in(year: u32, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        _ => 31,
    }
}
