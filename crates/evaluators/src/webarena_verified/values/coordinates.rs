//! `coordinates`: latitude and longitude in degrees.
//!
//! Source of the format of texts: geopy 2.4, `Point.from_string`, for ASCII in lower case, which excludes compass
//! points.

use std::sync::LazyLock;

use fancy_regex::Regex;
use serde_json::Value;

use super::Normal;
use crate::text::python::is_falsy;
use crate::text::{json, numbers};
use crate::webarena_verified::failure::ReadingFailure;

/// The largest difference between equal coordinates, in degrees.
const TOLERANCE: f64 = 1e-5;

/// Reads a list of two numbers or texts as one pair instead of two alternatives. Returns `None` for any other value.
pub(super) fn pair(value: &Value) -> Option<Result<Normal, ReadingFailure>> {
    match value {
        Value::Array(items) => match &items[..] {
            [latitude, longitude] if [latitude, longitude].into_iter().all(is_scalar) => {
                Some(degrees(latitude).and_then(|latitude| point(latitude, degrees(longitude)?)))
            }
            _ => None,
        },
        _ => None,
    }
}

fn is_scalar(value: &Value) -> bool {
    matches!(value, Value::Bool(_) | Value::Number(_) | Value::String(_)) || json::beyond(value).is_some()
}

pub(super) fn normalise(value: &Value) -> Result<Normal, ReadingFailure> {
    let wrong = || ReadingFailure::raised(format!("{value} is not a pair of coordinates"));
    match value {
        value if is_falsy(value) => Err(wrong()),
        Value::String(text) => parse(text).ok_or_else(wrong),
        Value::Object(entries) => {
            let key = |word: &str, other: &str| {
                entries.iter().find_map(|(key, value)| {
                    let key = key.to_lowercase();
                    let fits = (key.chars().count() >= 2 && word.starts_with(&key)) || key == other;
                    fits.then_some(value)
                })
            };
            let (Some(latitude), Some(longitude)) = (key("latitude", "latitude"), key("longitude", "lng")) else {
                return Err(wrong());
            };
            point(degrees(latitude)?, degrees(longitude)?)
        }
        Value::Array(items) => match &items[..] {
            [latitude, longitude] => point(degrees(latitude)?, degrees(longitude)?),
            _ => Err(wrong()),
        },
        _ => Err(wrong()),
    }
}

/// `float(value or 0.0)`.
fn degrees(value: &Value) -> Result<f64, ReadingFailure> {
    let degrees = match value {
        value if is_falsy(value) => Some(0.0),
        Value::Bool(value) => Some(f64::from(u8::from(*value))),
        Value::Number(number) => number.as_f64(),
        Value::String(text) => numbers::float(text),
        other => json::beyond(other).and_then(|text| text.parse().ok()),
    };
    degrees.ok_or_else(|| ReadingFailure::raised(format!("{value} is not a number of degrees")))
}

/// Wraps the longitude to -180..180 degrees. A latitude beyond 90 degrees is an error.
fn point(latitude: f64, longitude: f64) -> Result<Normal, ReadingFailure> {
    if !latitude.is_finite() || !longitude.is_finite() || latitude.abs() > 90.0 {
        return Err(ReadingFailure::raised(format!("{latitude}, {longitude} is nowhere")));
    }
    let longitude = if longitude.abs() > 180.0 {
        match longitude % 360.0 {
            rest if rest < -180.0 => rest + 360.0,
            rest if rest >= 180.0 => rest - 360.0,
            // Adding zero avoids -0.
            rest => rest + 0.0,
        }
    } else {
        longitude
    };
    Ok(Normal::Point { latitude, longitude })
}

/// Parses two angles: degrees, minutes with `'` or `m`, seconds with `"` or `s`; an altitude may follow.
fn parse(text: &str) -> Option<Normal> {
    static POINT: LazyLock<Regex> = LazyLock::new(|| {
        let number = r"\d+(?:\.\d+)?";
        let angle = |name: &str| {
            format!(
                "(?P<{name}>[+-]?{number})(?:[*D\\s][ ]*(?:(?P<{name}_minutes>{number})['m][ ]*)?\
                 (?:(?P<{name}_seconds>{number})[\"s][ ]*)?)?"
            )
        };
        let gap = r"\s*[,;/\s]\s*";
        let pattern = format!(
            r"^.*?{}{gap}{}(?:{gap}[+-]?{number}[ ]*(?:km|m|mi|ft|nm|nmi))?\s*$",
            angle("latitude"),
            angle("longitude")
        );
        Regex::new(&pattern).expect("a pattern of ours")
    });
    let text = text.replace("''", "\"");
    let found = POINT.captures(&text).ok()??;
    let number = |name: &str| found.name(name).map_or(Some(0.0), |group| group.as_str().parse::<f64>().ok());
    let angle = |name: &str| {
        let degrees = number(name)?;
        let (minutes, seconds) = (number(&format!("{name}_minutes"))?, number(&format!("{name}_seconds"))?);
        // geopy adds the parts in this way: each is divided separately, and the sum starts at zero.
        let more = minutes / 60.0 + seconds / 3600.0;
        Some(if degrees < 0.0 { degrees - more } else { degrees + more })
    };
    point(angle("latitude")?, angle("longitude")?).ok()
}

/// Whether both coordinates agree within the tolerance.
pub(super) fn equal(one: (f64, f64), other: (f64, f64)) -> bool {
    (one.0 - other.0).abs() <= TOLERANCE && (one.1 - other.1).abs() <= TOLERANCE
}
