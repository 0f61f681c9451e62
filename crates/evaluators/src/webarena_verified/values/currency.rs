//! `currency`: the amount, without regard to the currency.
//!
//! Source of the way in which an amount is found in a text: price-parser 0.5, `extract_price_text` and `parse_number`,
//! for ASCII.

use std::str::FromStr;
use std::sync::LazyLock;

use bigdecimal::BigDecimal;
use fancy_regex::Regex;
use serde_json::Value;

use super::{Normal, finite, refuse_empty};
use crate::text::numbers::Decimal;
use crate::text::python;
use crate::webarena_verified::failure::ReadingFailure;

/// The largest difference between equal amounts: 0.1.
static TOLERANCE: LazyLock<BigDecimal> = LazyLock::new(|| BigDecimal::new(1.into(), 1));

pub(super) fn normalise(value: &Value) -> Result<Normal, ReadingFailure> {
    refuse_empty(value)?;
    let text = python::to_str(value);
    let is_negative = text.starts_with('-');
    let text = if is_negative { text.replace('-', "") } else { text };
    // The last separator is the decimal one. Without any separator it is the comma.
    let is_point_decimal = text.rfind('.') > text.rfind(',');
    let amount = amount(&text, is_point_decimal)
        .and_then(Decimal::of_float)
        .ok_or_else(|| ReadingFailure::raised(format!("{value} is not an amount")))?;
    Ok(Normal::Decimal(if is_negative { amount.negated() } else { amount }))
}

fn amount(text: &str, is_point_decimal: bool) -> Option<f64> {
    // A number, possibly with separators and blanks in it, and not followed by a per cent sign.
    static NUMBER: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"([.]?\d[\d\s.,']*)\s*?(?:[^%\d]|$)").expect("a pattern of ours"));
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let Some(found) = NUMBER.captures(&text).ok()? else {
        return text.to_lowercase().contains("free").then_some(0.0);
    };
    let number = found.get(1)?.as_str().trim_end_matches([',', '.']).replace('\'', "");
    let number = if number.matches('.').count() == 1 { &number } else { number.trim_start_matches([',', '.']) };
    let number = number.replace(' ', "");
    let number = if is_point_decimal { number.replace(',', "") } else { number.replace('.', "").replace(',', ".") };
    number.parse().ok()
}

/// Whether the amounts differ by at most 0.1.
pub(super) fn equal(one: &Decimal, other: &Decimal) -> Result<bool, ReadingFailure> {
    Ok(finite(one, other)?.is_some_and(|(one, other)| (one - other).abs() <= *TOLERANCE))
}

/// Parses a decimal constant of this crate.
pub(super) fn decimal(text: &str) -> BigDecimal {
    BigDecimal::from_str(text).expect("a decimal of ours")
}
