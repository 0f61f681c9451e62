//! The benchmark's types: the normal form of their values, and the equality of two values.
//!
//! Source: `webarena_verified/core/evaluation/data_types`.

mod address;
mod boolean;
mod coordinates;
mod currency;
mod date;
mod distance;
mod duration;
mod encoded;
mod location;
mod markdown;
mod number;
#[cfg(test)]
mod tests;
mod text;
pub(super) mod url;

use bigdecimal::BigDecimal;
use serde_json::{Value, json};

use self::address::PostalAddress;
use self::url::Url;
use super::failure::ReadingFailure;
use super::reading::{ReadingOptions, is_pattern};
use crate::text::numbers::Decimal;
use crate::text::patterns::{Mode, PatternError, Patterns};
use crate::text::python::{self, is_falsy};
use arenad_verdict::Profile;

pub(super) use self::text::normalise_text;

/// A type of the benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// Base64; the decoded texts are compared as they are.
    Base64,
    /// `true`, `yes`, `y`, `1`, `t`, `on`, and their opposites.
    Boolean,
    /// Latitude and longitude in degrees.
    Coordinates,
    /// An amount of money, without regard to the currency.
    Currency,
    /// A date with year, month and day.
    Date,
    /// A distance, in metres.
    Distance,
    /// A duration, in seconds.
    Duration,
    /// An empty value, or one of the words for it.
    Empty,
    /// An address in the United States.
    FullAddress,
    /// A JSON document in a text.
    Json,
    /// A name that has to be similar by at least 80 %.
    LocationName,
    /// Markdown with normalised line ends, blanks, markers and links.
    Markdown,
    /// The English name of a month.
    Month,
    /// A number, in digits or in English words.
    Number,
    /// A text in ASCII and lower case.
    Text,
    /// Texts separated by commas, in any order.
    TextList,
    /// A URL with its query.
    Url,
}

impl ValueKind {
    /// Returns the type of a name in the benchmark's schemas.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "currency" => Self::Currency,
            "date" => Self::Date,
            "duration" => Self::Duration,
            "distance" => Self::Distance,
            "coordinates" => Self::Coordinates,
            "full_address" => Self::FullAddress,
            "url" => Self::Url,
            "boolean" => Self::Boolean,
            "string" => Self::Text,
            "string_list" => Self::TextList,
            "number" | "integer" => Self::Number,
            "month" => Self::Month,
            "null" => Self::Empty,
            "json" => Self::Json,
            "markdown" => Self::Markdown,
            "base64" => Self::Base64,
            "location-name" => Self::LocationName,
            _ => return None,
        })
    }
}

/// A value in its normal form.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Normal {
    Text(String),
    Number(f64),
    Boolean(bool),
    Nothing,
    Decimal(Decimal),
    Seconds(f64),
    Point { latitude: f64, longitude: f64 },
    Address(PostalAddress),
    List(Vec<String>),
    Url(Url),
}

/// A value of a type, with its alternatives. Where only one alternative counts, it is the first.
#[derive(Debug, Clone, PartialEq)]
pub struct TypedValue {
    kind: ValueKind,
    alternatives: Vec<Normal>,
}

impl TypedValue {
    /// Reads a value. A list of two or more items contains alternatives.
    ///
    /// # Errors
    ///
    /// Returns an error if the value does not fit the type, or if the benchmark's result is unknown.
    pub fn read(kind: ValueKind, value: &Value, reading: &ReadingOptions<'_>) -> Result<Self, ReadingFailure> {
        // A list that is not a pair of coordinates contains two alternatives.
        if kind == ValueKind::Coordinates
            && let Some(Ok(point)) = coordinates::pair(value)
        {
            return Ok(Self { kind, alternatives: vec![point] });
        }
        let alternatives = match value {
            Value::Array(_) if reading.is_literal() => {
                return Err(ReadingFailure::raised("a list cannot be an alternative here"));
            }
            Value::Array(items) if items.len() < 2 => {
                return Err(ReadingFailure::raised("alternatives are two and more"));
            }
            Value::Array(items) => items.iter().map(|item| normalise(kind, item, reading)).collect::<Result<_, _>>()?,
            single => vec![normalise(kind, single, reading)?],
        };
        Ok(Self { kind, alternatives })
    }

    /// Reads a text without alternatives.
    ///
    /// # Errors
    ///
    /// Every text can be read; the return type is that of [`Self::read`].
    pub(super) fn text(text: &str, reading: &ReadingOptions<'_>) -> Result<Self, ReadingFailure> {
        Self::read(ValueKind::Text, &Value::from(text), reading)
    }

    pub(super) fn kind(&self) -> ValueKind {
        self.kind
    }

    pub(super) fn first(&self) -> &Normal {
        &self.alternatives[0]
    }

    /// Whether any alternative is a pattern.
    pub(super) fn is_pattern(&self) -> bool {
        self.alternatives.iter().any(|alternative| is_pattern(&alternative.to_text()))
    }

    pub(super) fn urls(&self) -> impl Iterator<Item = &Url> {
        self.alternatives.iter().filter_map(|alternative| match alternative {
            Normal::Url(url) => Some(url),
            _ => None,
        })
    }

    /// Returns the value as JSON: decimals as texts, durations in seconds, several alternatives as a list.
    #[must_use]
    pub(crate) fn to_json(&self) -> Value {
        match &self.alternatives[..] {
            [single] => single.to_json(),
            several => several.iter().map(Normal::to_json).collect(),
        }
    }

    /// Returns the alternatives as JSON.
    #[must_use]
    pub fn alternatives(&self) -> Vec<Value> {
        self.alternatives.iter().map(Normal::to_json).collect()
    }

    /// Whether an actual value equals `self`, the expected one. `reading` must be the options with which `self` was
    /// read.
    ///
    /// # Errors
    ///
    /// Returns an error if the benchmark's code raises, or if its result is unknown.
    pub fn equals(&self, actual: &Self, reading: &ReadingOptions<'_>) -> Result<bool, ReadingFailure> {
        let profile = reading.profile;
        if self.kind != actual.kind {
            return Ok(false);
        }
        match self.kind {
            ValueKind::Text => text::equal(self, actual, profile, reading.patterns),
            ValueKind::Base64 => encoded::equal(self, actual, profile, reading.patterns),
            ValueKind::Url => url::equal(self, actual, reading),
            // The benchmark compares the first alternatives only.
            ValueKind::Currency | ValueKind::Coordinates | ValueKind::FullAddress if profile == Profile::Compat => {
                one_equal(self.first(), actual.first())
            }
            _ => {
                for expected in &self.alternatives {
                    for actual in &actual.alternatives {
                        if one_equal_of(self.kind, expected, actual)? {
                            return Ok(true);
                        }
                    }
                }
                Ok(false)
            }
        }
    }

    /// Whether one of the expected patterns matches the actual value. In compat the actual value's patterns count as
    /// well.
    fn is_matched(
        &self,
        actual: &Self,
        mode: Mode,
        profile: Profile,
        patterns: &Patterns,
    ) -> Result<bool, ReadingFailure> {
        let sides: &[(&Self, &Self)] =
            if profile == Profile::Strict { &[(self, actual)] } else { &[(self, actual), (actual, self)] };
        for (side, other) in sides {
            for pattern in side.texts().filter(|text| is_pattern(text)) {
                for text in other.texts() {
                    match patterns.is_match(pattern, mode, text) {
                        Ok(true) => return Ok(true),
                        Ok(false) => {}
                        // An invalid pattern is an ordinary text.
                        Err(PatternError::Invalid(_)) => break,
                        Err(error) => return Err(error.into()),
                    }
                }
            }
        }
        Ok(false)
    }

    fn texts(&self) -> impl Iterator<Item = &str> {
        self.alternatives.iter().filter_map(|alternative| match alternative {
            Normal::Text(text) => Some(text.as_str()),
            _ => None,
        })
    }
}

impl Normal {
    pub(super) fn to_json(&self) -> Value {
        match self {
            Self::Text(text) => json!(text),
            Self::Number(number) => json!(number),
            Self::Boolean(value) => json!(value),
            Self::Nothing => Value::Null,
            Self::Decimal(decimal) => json!(decimal.to_string()),
            Self::Seconds(seconds) => json!(seconds),
            Self::Point { latitude, longitude } => json!({ "latitude": latitude, "longitude": longitude }),
            Self::Address(address) => address.to_json(),
            Self::List(items) => json!(items),
            Self::Url(url) => url.to_json(),
        }
    }

    /// Returns Python's `str()` of the value, as far as patterns need it.
    pub(super) fn to_text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Url(url) => url.to_string(),
            other => python::to_str(&other.to_json()),
        }
    }
}

/// Reads one value. If the benchmark's result for an agent's value is unknown, the value does not fit its type, because
/// only a task may leave a verdict open.
fn normalise(kind: ValueKind, value: &Value, reading: &ReadingOptions<'_>) -> Result<Normal, ReadingFailure> {
    match normalised(kind, value, reading) {
        Err(ReadingFailure::Unsupported(reason)) if !reading.is_strict() => Err(ReadingFailure::Raised(reason)),
        other => other,
    }
}

fn normalised(kind: ValueKind, value: &Value, reading: &ReadingOptions<'_>) -> Result<Normal, ReadingFailure> {
    // Most types first convert a text to ASCII and lower case.
    let cleaned = || match value {
        Value::String(text) => Value::from(normalise_text(text, reading)),
        other => other.clone(),
    };
    match kind {
        ValueKind::Text => text::normalise(value, reading),
        ValueKind::TextList => text::list(&cleaned()),
        ValueKind::LocationName => location::normalise(&cleaned()),
        ValueKind::Number => number::normalise(&cleaned()),
        ValueKind::Currency => currency::normalise(&cleaned()),
        ValueKind::Boolean => boolean::normalise(&cleaned()),
        ValueKind::Empty => boolean::empty(value),
        ValueKind::Date => date::normalise(&cleaned(), reading),
        ValueKind::Month => date::month(&cleaned(), reading),
        ValueKind::Duration => duration::normalise(&cleaned()),
        ValueKind::Distance => distance::normalise(&cleaned()),
        ValueKind::Coordinates => coordinates::normalise(&cleaned()),
        ValueKind::Json => encoded::json_text(&cleaned()),
        ValueKind::Base64 => encoded::base64(value, reading),
        ValueKind::Markdown => markdown::normalise(value),
        ValueKind::Url => url::normalise(value, reading).map(Normal::Url),
        ValueKind::FullAddress => address::normalise(value, reading),
    }
}

fn one_equal_of(kind: ValueKind, expected: &Normal, actual: &Normal) -> Result<bool, ReadingFailure> {
    match (kind, expected, actual) {
        (ValueKind::LocationName, Normal::Text(expected), Normal::Text(actual)) => {
            Ok(location::equal(expected, actual))
        }
        (ValueKind::Distance, Normal::Decimal(expected), Normal::Decimal(actual)) => distance::equal(expected, actual),
        _ => one_equal(expected, actual),
    }
}

fn one_equal(expected: &Normal, actual: &Normal) -> Result<bool, ReadingFailure> {
    Ok(match (expected, actual) {
        (Normal::Decimal(expected), Normal::Decimal(actual)) => return currency::equal(expected, actual),
        (Normal::Seconds(expected), Normal::Seconds(actual)) => duration::equal(*expected, *actual),
        (
            Normal::Point { latitude, longitude },
            Normal::Point { latitude: other_latitude, longitude: other_longitude },
        ) => coordinates::equal((*latitude, *longitude), (*other_latitude, *other_longitude)),
        (expected, actual) => expected == actual,
    })
}

/// Refuses an empty value that is not a number, as most types do.
fn refuse_empty(value: &Value) -> Result<(), ReadingFailure> {
    match value {
        Value::Number(_) | Value::Bool(_) => Ok(()),
        other if is_falsy(other) => Err(ReadingFailure::raised("the value is empty")),
        _ => Ok(()),
    }
}

/// Returns both values, or `None` if one is infinite. Python cannot subtract infinity from infinity.
fn finite<'a>(
    one: &'a Decimal,
    other: &'a Decimal,
) -> Result<Option<(&'a BigDecimal, &'a BigDecimal)>, ReadingFailure> {
    match (one.value(), other.value()) {
        (Some(one), Some(other)) => Ok(Some((one, other))),
        (None, None) if one == other => Err(ReadingFailure::raised("infinity has no distance from infinity")),
        _ => Ok(None),
    }
}
