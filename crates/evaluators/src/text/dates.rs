//! `dateutil.parser.parse` of python-dateutil 2.9 for ASCII texts, month first: finds the date in a text.
//!
//! The time of day and the zone are parsed, because they determine whether the text is a date at all, but they are not
//! kept. Source: dateutil `parser/_parser.py`.

mod calendar;
mod lexer;

pub(crate) use calendar::days_in;
pub use calendar::{Day, today};

use calendar::with_century;
use lexer::NumberToken;

/// The parts of a date in a text. dateutil takes missing parts from the day of the call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ParsedDate {
    /// The year with its century.
    pub year: Option<u32>,
    /// The month, 1 to 12.
    pub month: Option<u32>,
    /// The day of the month, 1 to 31.
    pub day: Option<u32>,
    /// The day of the week; 0 is Monday.
    pub weekday: Option<u32>,
}

impl ParsedDate {
    /// Returns the day that dateutil returns. Missing parts are taken from `default`. If the text names a day of the
    /// week but no day, the result is the next such day.
    #[must_use]
    pub(crate) fn completed(&self, default: Day) -> Option<Day> {
        let (year, month) = (self.year.unwrap_or(default.0), self.month.unwrap_or(default.1));
        let day = self.day.unwrap_or_else(|| default.2.min(days_in(year, month)));
        let Some(weekday) = self.weekday.filter(|_| self.day.is_none()) else { return Some((year, month, day)) };
        let small = |number: u32| i8::try_from(number).ok();
        let date = jiff::civil::Date::new(i16::try_from(year).ok()?, small(month)?, small(day)?).ok()?;
        let now = u32::try_from(date.weekday().to_monday_zero_offset()).ok()?;
        let date = date.checked_add(jiff::Span::new().days(i64::from((weekday + 7 - now) % 7))).ok()?;
        let part = |number: i8| u32::try_from(number).ok();
        Some((u32::try_from(date.year()).ok()?, part(date.month())?, part(date.day())?))
    }
}

const WEEKDAYS: [&[&str]; 7] = [
    &["mon", "monday"],
    &["tue", "tuesday"],
    &["wed", "wednesday"],
    &["thu", "thursday"],
    &["fri", "friday"],
    &["sat", "saturday"],
    &["sun", "sunday"],
];
const MONTHS: [&[&str]; 12] = [
    &["jan", "january"],
    &["feb", "february"],
    &["mar", "march"],
    &["apr", "april"],
    &["may"],
    &["jun", "june"],
    &["jul", "july"],
    &["aug", "august"],
    &["sep", "sept", "september"],
    &["oct", "october"],
    &["nov", "november"],
    &["dec", "december"],
];
const UNITS: [&[&str]; 3] = [&["h", "hour", "hours"], &["m", "minute", "minutes"], &["s", "second", "seconds"]];
const HALVES: [&[&str]; 2] = [&["am", "a"], &["pm", "p"]];
const JUMPS: [&str; 18] =
    [" ", ".", ",", ";", "-", "/", "'", "at", "on", "and", "ad", "m", "t", "of", "st", "nd", "rd", "th"];
const UTC: [&str; 4] = ["UTC", "GMT", "Z", "z"];

fn index_of(lists: &[&[&str]], token: &str) -> Option<usize> {
    let token = token.to_ascii_lowercase();
    lists.iter().position(|names| names.contains(&token.as_str()))
}

fn month(token: &str) -> Option<u32> {
    index_of(&MONTHS, token).and_then(|index| u32::try_from(index + 1).ok())
}

fn unit(token: &str) -> Option<usize> {
    index_of(&UNITS, token)
}

fn half(token: &str) -> Option<usize> {
    index_of(&HALVES, token)
}

fn is_jump(token: &str) -> bool {
    JUMPS.contains(&token.to_ascii_lowercase().as_str())
}

fn is_digits(token: &str) -> bool {
    !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the parts of the date in a text, or `None` if dateutil raises. `default` completes the date for the check
/// that the day exists; `present` is the current year.
#[must_use]
pub(crate) fn parse(text: &str, default: Day, present: u32) -> Option<ParsedDate> {
    let mut reader = DateParser { tokens: lexer::tokens(text), present, ..DateParser::default() };
    reader.read()?;
    let mut parsed = reader.dates.resolve()?;
    if parsed == ParsedDate::default() && reader.hour.is_none() && !reader.has_other {
        return None;
    }
    if let Some(year) = parsed.year
        && year < 100
        && !reader.dates.is_century_given
    {
        parsed.year = Some(with_century(year, present));
    }
    let (year, month) = (parsed.year.unwrap_or(default.0), parsed.month.unwrap_or(default.1));
    let fits = (1..=9999).contains(&year) && (1..=12).contains(&month);
    let day = parsed.day.unwrap_or_else(|| default.2.min(days_in(year, month.clamp(1, 12))));
    parsed.weekday = reader.weekday;
    let is_day = fits && (1..=days_in(year, month)).contains(&day);
    let is_time = reader.hour.is_none_or(|hour| hour < 24) && reader.is_rest_of_time_fine;
    (is_day && is_time).then_some(parsed)
}

/// The numbers that may be years, months or days, in the order of the text.
#[derive(Default)]
struct Dates {
    values: Vec<u32>,
    year: Option<usize>,
    month: Option<usize>,
    is_century_given: bool,
}

impl Dates {
    /// Adds a number in digits. At least three digits are a year.
    fn push_digits(&mut self, digits: &str) -> Option<()> {
        let is_year = is_digits(digits) && digits.len() > 2;
        self.is_century_given |= is_year;
        let value = digits.parse().ok()?;
        if is_year { self.push_year(value) } else { self.push(value) }
    }

    /// Adds a number. A number above 100 is a year.
    fn push_value(&mut self, number: &NumberToken) -> Option<()> {
        let is_year = number.is_more_than_hundred();
        self.is_century_given |= is_year;
        let value = number.whole()?;
        if is_year { self.push_year(value) } else { self.push(value) }
    }

    fn push_year(&mut self, value: u32) -> Option<()> {
        self.push(value)?;
        self.year.replace(self.values.len() - 1).is_none().then_some(())
    }

    fn push_month(&mut self, value: u32) -> Option<()> {
        self.push(value)?;
        self.month.replace(self.values.len() - 1).is_none().then_some(())
    }

    #[expect(clippy::unnecessary_wraps, reason = "as the others that push")]
    fn push(&mut self, value: u32) -> Option<()> {
        self.values.push(value);
        Some(())
    }

    fn could_be_day(&self, number: &NumberToken) -> Option<bool> {
        let last = match (self.month, self.year) {
            (None, _) => 31,
            (Some(month), year) => {
                let month = self.values[month];
                if !(1..=12).contains(&month) {
                    return None;
                }
                days_in(year.map_or(2000, |year| self.values[year]), month)
            }
        };
        Some(number.is_between(1, last))
    }

    /// Determines which number is the year, the month and the day.
    fn resolve(&self) -> Option<ParsedDate> {
        let parsed = |year: Option<u32>, month: Option<u32>, day: Option<u32>| {
            Some(ParsedDate { year, month, day, weekday: None })
        };
        let values = &self.values;
        let known = usize::from(self.year.is_some()) + usize::from(self.month.is_some());
        if (known > 0 && known == values.len()) || (values.len() == 3 && known == 2) {
            let at = |index: Option<usize>| index.map(|index| values[index]);
            let day = (0..values.len()).find(|index| Some(*index) != self.year && Some(*index) != self.month);
            return parsed(at(self.year), at(self.month), at(day));
        }
        match (&values[..], self.month) {
            ([], _) => Some(ParsedDate::default()),
            ([value], None) => Some(year_or_day(*value)),
            ([_], Some(_)) => parsed(None, Some(values[0]), None),
            ([one, other], Some(at)) => {
                let (month, rest) = if at == 0 { (one, other) } else { (other, one) };
                Some(ParsedDate { month: Some(*month), ..year_or_day(*rest) })
            }
            ([one, other], None) => {
                if *one > 31 {
                    parsed(Some(*one), Some(*other), None)
                } else if *other > 31 {
                    parsed(Some(*other), Some(*one), None)
                } else {
                    parsed(None, Some(*one), Some(*other))
                }
            }
            ([one, two, three], at) => {
                let (year, month, day) = match at {
                    Some(0) if *two > 31 => (two, one, three),
                    Some(0) => (three, one, two),
                    Some(1) if *one > 31 => (one, two, three),
                    Some(1) => (three, two, one),
                    Some(_) if *two > 31 => (two, three, one),
                    Some(_) => (one, three, two),
                    None if *one > 31 || self.year == Some(0) => (one, two, three),
                    None if *one > 12 => (three, two, one),
                    None => (three, one, two),
                };
                parsed(Some(*year), Some(*month), Some(*day))
            }
            _ => None,
        }
    }
}

fn year_or_day(value: u32) -> ParsedDate {
    if value > 31 {
        ParsedDate { year: Some(value), ..ParsedDate::default() }
    } else {
        ParsedDate { day: Some(value), ..ParsedDate::default() }
    }
}

/// Reads the tokens from left to right.
#[derive(Default)]
struct DateParser {
    tokens: Vec<String>,
    present: u32,
    weekday: Option<u32>,
    at: usize,
    dates: Dates,
    hour: Option<u32>,
    is_rest_of_time_fine: bool,
    zone: Option<String>,
    /// The offset of the zone, in seconds. Only its presence matters.
    offset: Option<i64>,
    /// Whether the text contains parts other than year, month and day.
    has_other: bool,
}

impl DateParser {
    fn token(&self, at: usize) -> Option<&str> {
        self.tokens.get(at).map(String::as_str)
    }

    fn is_at(&self, at: usize, token: &str) -> bool {
        self.token(at) == Some(token)
    }

    fn read(&mut self) -> Option<()> {
        self.is_rest_of_time_fine = true;
        while self.at < self.tokens.len() {
            let token = self.tokens[self.at].clone();
            if super::numbers::float(&token).is_some() {
                self.number(&token)?;
            } else if let Some(weekday) = index_of(&WEEKDAYS, &token) {
                self.weekday = u32::try_from(weekday).ok();
                self.has_other = true;
            } else if let Some(month) = month(&token) {
                self.month(month)?;
            } else if let Some(half) = half(&token) {
                // dateutil raises if there is no hour or if it is above 12.
                let hour = self.hour.filter(|hour| *hour <= 12)?;
                self.hour = Some(adjusted(hour, half));
            } else if self.could_be_zone(&token) {
                self.zone(token);
            } else if self.hour.is_some() && (token == "+" || token == "-") {
                self.offset(token == "+")?;
            } else if !is_jump(&token) {
                return None;
            }
            self.at += 1;
        }
        Some(())
    }

    /// Reads `Jan`, `Jan-01`, `Jan-01-99` or `Jan of 01`.
    fn month(&mut self, month: u32) -> Option<()> {
        self.dates.push_month(month)?;
        let at = self.at;
        let Some(next) = self.token(at + 1) else { return Some(()) };
        if next == "-" || next == "/" {
            let separator = next.to_owned();
            let day = self.token(at + 2)?.to_owned();
            self.dates.push_digits(&day)?;
            if self.is_at(at + 3, &separator) {
                let year = self.token(at + 4)?.to_owned();
                self.dates.push_digits(&year)?;
                self.at += 2;
            }
            self.at += 2;
        } else if self.is_at(at + 1, " ")
            && self.is_at(at + 3, " ")
            && self.token(at + 2).is_some_and(|token| token.eq_ignore_ascii_case("of"))
            && let Some(year) = self.token(at + 4)
        {
            if is_digits(year) {
                let year: u32 = year.parse().ok()?;
                let year = if year >= 100 { year } else { with_century(year, self.present) };
                self.dates.is_century_given = true;
                self.dates.push_year(year)?;
            }
            self.at += 4;
        }
        Some(())
    }

    fn could_be_zone(&self, token: &str) -> bool {
        self.hour.is_some() && self.zone.is_none() && self.offset.is_none() && is_zone_name(token)
    }

    /// Reads the name of a time zone, such as `GMT`. If an offset follows, as in `GMT+3`, inverts its sign: dateutil
    /// reads this as "my time plus three hours is GMT".
    fn zone(&mut self, token: String) {
        let is_utc = UTC.iter().any(|zone| zone.eq_ignore_ascii_case(&token));
        self.offset = UTC.iter().any(|zone| zone.to_ascii_lowercase() == token).then_some(0);
        self.zone = Some(token);
        if let Some(sign) = self.tokens.get_mut(self.at + 1).filter(|sign| *sign == "+" || *sign == "-") {
            *sign = if sign == "+" { "-".to_owned() } else { "+".to_owned() };
            self.offset = None;
            if is_utc {
                self.zone = None;
            }
        }
    }

    /// Reads `-0300`, `-03:00` or `-3`, and the name of a zone in parentheses after it.
    fn offset(&mut self, is_plus: bool) -> Option<()> {
        let at = self.at;
        let digits = self.token(at + 1)?.to_owned();
        let int = |text: &str| super::numbers::int(text).and_then(|number| i64::try_from(number).ok());
        let (hours, minutes) = if digits.len() == 4 {
            (int(&digits[..2])?, int(&digits[2..])?)
        } else if self.is_at(at + 2, ":") {
            let minutes = int(self.token(at + 3)?)?;
            self.at += 2;
            (int(&digits)?, minutes)
        } else if digits.len() <= 2 {
            (int(&digits)?, 0)
        } else {
            return None;
        };
        let seconds = hours.saturating_mul(3600).saturating_add(minutes.saturating_mul(60));
        self.offset = Some(if is_plus { seconds } else { -seconds });
        // dateutil looks ahead from the position that it has reached here.
        let at = self.at;
        if self.token(at + 2).is_some_and(is_jump)
            && self.is_at(at + 3, "(")
            && self.is_at(at + 5, ")")
            && let Some(name) = self.token(at + 4)
            && name.len() >= 3
            && self.zone.is_none()
            && is_zone_name(name)
        {
            self.zone = Some(name.to_owned());
            self.at += 4;
        }
        self.at += 1;
        Some(())
    }

    fn number(&mut self, token: &str) -> Option<()> {
        let number = NumberToken::of(token)?;
        let (at, length, count) = (self.at, token.len(), self.tokens.len());
        let next = self.token(at + 1).map(str::to_owned);
        let next_is = |token: &str| next.as_deref() == Some(token);
        if self.dates.values.len() == 3
            && (length == 2 || length == 4)
            && self.hour.is_none()
            && next.as_deref().is_none_or(|next| next != ":" && unit(next).is_none())
        {
            // 19990101T23[59]
            self.hour = Some(whole(&token[..2])?);
            if length == 4 {
                self.below_sixty(whole(&token[2..])?);
            }
        } else if length == 6 || (length > 6 && token.find('.') == Some(6)) {
            // YYMMDD or HHMMSS[.ss]
            if self.dates.values.is_empty() && !token.contains('.') {
                for part in [&token[..2], &token[2..4], &token[4..]] {
                    self.dates.push_digits(part)?;
                }
            } else {
                self.hour = Some(whole(&token[..2])?);
                self.below_sixty(whole(&token[2..4])?);
                self.seconds(&token[4..])?;
            }
        } else if length == 8 || length == 12 || length == 14 {
            // YYYYMMDD[hhmm[ss]]
            self.dates.is_century_given |= is_digits(&token[..4]);
            self.dates.push_year(whole(&token[..4])?)?;
            self.dates.push_digits(&token[4..6])?;
            self.dates.push_digits(&token[6..8])?;
            if length > 8 {
                self.hour = Some(whole(&token[8..10])?);
                self.below_sixty(whole(&token[10..12])?);
                if length > 12 {
                    self.below_sixty(whole(&token[12..])?);
                }
            }
        } else if let Some((unit, end)) = self.unit_of(at) {
            // 12h, 12 h, h12
            match unit {
                0 => {
                    self.hour = Some(number.whole()?);
                }
                1 => self.below_sixty(number.whole()?),
                2 => self.seconds(token)?,
                // A number behind seconds has no meaning.
                _ => {}
            }
            self.has_other |= unit < 3;
            self.at = end;
        } else if at + 2 < count && next_is(":") {
            // HH:MM[:SS[.ss]]
            self.hour = Some(number.whole()?);
            let minutes = NumberToken::of(&self.tokens[at + 2])?;
            self.below_sixty(minutes.whole()?);
            if at + 4 < count && self.is_at(at + 3, ":") {
                let seconds = self.tokens[at + 4].clone();
                self.seconds(&seconds)?;
                self.at += 2;
            }
            self.at += 2;
        } else if next_is("-") || next_is("/") || next_is(".") {
            self.separated(token, next.as_deref().unwrap_or_default())?;
        } else if next.as_deref().is_none_or(is_jump) {
            if let Some(half) = self.token(at + 2).and_then(half) {
                // 12 am
                self.hour = Some(adjusted(number.whole()?, half));
                self.at += 1;
            } else {
                self.dates.push_value(&number)?;
            }
            self.at += 1;
        } else if let Some(half) = next.as_deref().and_then(half)
            && number.is_below(24)
        {
            // 12am
            self.hour = Some(adjusted(number.whole()?, half));
            self.at += 1;
        } else if self.dates.could_be_day(&number)? {
            self.dates.push_value(&number)?;
        } else {
            return None;
        }
        Some(())
    }

    /// Reads `01-01[-01]` or `01-Jan[-01]`.
    fn separated(&mut self, token: &str, separator: &str) -> Option<()> {
        let at = self.at;
        self.dates.push_digits(token)?;
        if let Some(second) = self.token(at + 2).filter(|second| !is_jump(second)).map(str::to_owned) {
            if is_digits(&second) {
                self.dates.push_digits(&second)?;
            } else {
                self.dates.push_month(month(&second)?)?;
            }
            if self.is_at(at + 3, separator) {
                let third = self.token(at + 4)?.to_owned();
                match month(&third) {
                    Some(month) => self.dates.push_month(month)?,
                    None => self.dates.push_digits(&third)?,
                }
                self.at += 2;
            }
            self.at += 1;
        }
        self.at += 1;
        Some(())
    }

    /// Returns the unit of a number, which is 3 behind seconds, and the last token that belongs to it.
    fn unit_of(&self, at: usize) -> Option<(usize, usize)> {
        let unit_at = |at: Option<usize>| at.and_then(|at| self.token(at)).and_then(unit);
        let is_blank = |at: Option<usize>| at.and_then(|at| self.token(at)) == Some(" ");
        if let Some(unit) = unit_at(Some(at + 1)) {
            return Some((unit, at + 1));
        }
        if is_blank(Some(at + 1))
            && let Some(unit) = unit_at(Some(at + 2))
        {
            return Some((unit, at + 2));
        }
        if let Some(unit) = unit_at(at.checked_sub(1)) {
            return Some((unit + 1, at));
        }
        if at > 1 && at + 1 == self.tokens.len() && is_blank(at.checked_sub(1)) {
            return unit_at(at.checked_sub(2)).map(|unit| (unit + 1, at));
        }
        None
    }

    fn below_sixty(&mut self, value: u32) {
        self.has_other = true;
        self.is_rest_of_time_fine &= value < 60;
    }

    /// Reads `SS[.ss]`.
    fn seconds(&mut self, text: &str) -> Option<()> {
        let (seconds, fraction) = text.split_once('.').unwrap_or((text, "0"));
        if !fraction.is_empty() && !is_digits(fraction) {
            return None;
        }
        self.below_sixty(whole(seconds)?);
        Some(())
    }
}

fn is_zone_name(token: &str) -> bool {
    token.len() <= 5 && (token.bytes().all(|byte| byte.is_ascii_uppercase()) || UTC.contains(&token))
}

fn whole(digits: &str) -> Option<u32> {
    super::numbers::int(digits).and_then(|number| u32::try_from(number).ok())
}

fn adjusted(hour: u32, half: usize) -> u32 {
    match (hour, half) {
        (..12, 1) => hour + 12,
        (12, 0) => 0,
        _ => hour,
    }
}

#[cfg(test)]
mod tests;
