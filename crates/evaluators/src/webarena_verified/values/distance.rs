//! `distance`: metres, from texts such as `5 km`, `1,200 ft`, `110k`.

mod expression;
mod units;

use std::sync::LazyLock;

use bigdecimal::BigDecimal;
use fancy_regex::Regex;
use serde_json::Value;

use self::expression::Quantity;
use super::{Normal, currency, finite, refuse_empty};
use crate::text::numbers::{self, Decimal};
use crate::text::python;
use crate::webarena_verified::failure::ReadingFailure;

pub(super) fn normalise(value: &Value) -> Result<Normal, ReadingFailure> {
    static KILO: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"(?i)(\d+(?:\.\d+)?)\s*k(?=\s|$)").expect("a pattern of ours"));
    let wrong = || ReadingFailure::raised(format!("{value} is not a distance with a unit"));
    refuse_empty(value)?;
    let text = python::to_str(value);
    let text = KILO.replace_all(&text, "${1} km");
    if numbers::float(&text).is_some() {
        return Err(wrong());
    }
    let metres = match expression::metres(&text) {
        Some(Quantity::Whole(whole)) => Some(Decimal::of_int(whole)),
        Some(Quantity::Float(float)) => Decimal::of_float(float),
        None => None,
    };
    metres.map(Normal::Decimal).ok_or_else(wrong)
}

/// Whether the distances differ by at most ten metres, or by at most 2 % of the longer one.
pub(super) fn equal(one: &Decimal, other: &Decimal) -> Result<bool, ReadingFailure> {
    static SHARE: LazyLock<BigDecimal> = LazyLock::new(|| currency::decimal("0.02"));
    static LEAST: LazyLock<BigDecimal> = LazyLock::new(|| currency::decimal("10"));
    let Some((one, other)) = finite(one, other)? else {
        // 2 % of infinity is infinite, too.
        return Ok([one, other].iter().any(|metres| metres.to_string() == "Infinity"));
    };
    let share = one.max(other) * &*SHARE;
    Ok((one - other).abs() <= *(&share).max(&*LEAST))
}
