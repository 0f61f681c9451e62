//! Python's conversion of texts to numbers: `float()`, `int()`, and decimals.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use bigdecimal::BigDecimal;

use super::python;

/// `float(text)`; `None` if Python raises. The white space around numbers does not include the four information separators,
/// unlike that of `str.strip()`.
#[must_use]
pub(crate) fn float(text: &str) -> Option<f64> {
    let text = text.trim();
    // Most texts are words, and only `inf`, `infinity` and `nan` are numbers.
    if text.starts_with(|c: char| c.is_ascii_alphabetic() && !matches!(c, 'i' | 'I' | 'n' | 'N')) {
        return None;
    }
    // Rust accepts the same texts as Python, except for underscores between digits.
    without_underscores(text)?.parse().ok()
}

/// `int(text)`; `None` if Python raises or if the number has more than 38 digits.
#[must_use]
pub(crate) fn int(text: &str) -> Option<i128> {
    without_underscores(text.trim())?.parse().ok()
}

/// Removes underscores; `None` if one of them is not between two digits.
fn without_underscores(text: &str) -> Option<Cow<'_, str>> {
    let text = python::ascii_digits(text);
    let bytes = text.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        let is_digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
        if *byte == b'_' && !(is_digit(at.checked_sub(1)) && is_digit(Some(at + 1))) {
            return None;
        }
    }
    Some(if text.contains('_') { Cow::Owned(text.replace('_', "")) } else { text })
}

/// `Decimal(str(number))` of a float or an integer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Decimal {
    /// The number as Python prints it.
    text: String,
    /// `None` for infinity.
    value: Option<BigDecimal>,
}

impl Decimal {
    /// Converts a float; `None` for NaN.
    #[must_use]
    pub(crate) fn of_float(float: f64) -> Option<Self> {
        if float.is_nan() {
            return None;
        }
        if float.is_infinite() {
            let text = if float > 0.0 { "Infinity" } else { "-Infinity" };
            return Some(Self { text: text.to_owned(), value: None });
        }
        let text = python::float_repr(float);
        let value = BigDecimal::from_str(&text).ok();
        Some(Self { text: written(text), value })
    }

    /// Converts an integer, which is always finite.
    #[must_use]
    pub(crate) fn of_int(int: i128) -> Self {
        Self { text: int.to_string(), value: Some(BigDecimal::from(int)) }
    }

    /// Returns the number with the opposite sign.
    #[must_use]
    pub(crate) fn negated(self) -> Self {
        let text = self.text.strip_prefix('-').map_or_else(|| format!("-{}", self.text), str::to_owned);
        Self { text, value: self.value.map(|value| -value) }
    }

    /// Returns the value, or `None` if it is infinite.
    #[must_use]
    pub(crate) fn value(&self) -> Option<&BigDecimal> {
        self.value.as_ref()
    }
}

/// `str(Decimal(text))` of a float's text. It has an exponent only below 1e-6, or if digits would have to be added.
fn written(text: String) -> String {
    let Some((mantissa, exponent)) = text.split_once('e') else { return text };
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |mantissa| ("-", mantissa));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-6..0).contains(&exponent) {
        let zeros = "0".repeat(usize::try_from(-exponent - 1).unwrap_or_default());
        return format!("{sign}0.{zeros}{}", mantissa.replace('.', ""));
    }
    format!("{sign}{mantissa}E{exponent:+}")
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_python_reads_them() {
        for (text, expected) in
            [(" 1_000.5 ", Some(1000.5)), ("1e3", Some(1000.0)), ("+.5", Some(0.5)), ("5.", Some(5.0))]
        {
            assert_eq!(float(text), expected, "{text}");
        }
        for wrong in ["", "1__0", "_1", "1_", "0x1", "1,000", "e5", "."] {
            assert_eq!(float(wrong), None, "{wrong}");
        }
        assert_eq!(float("-Infinity"), Some(f64::NEG_INFINITY));
        assert_eq!((int(" -01_2 "), int("1.0")), (Some(-12), None));
        for (float, text) in [(1e22, "1E+22"), (8e-5, "0.00008"), (-1.5e-7, "-1.5E-7"), (5.0, "5.0")] {
            assert_eq!(Decimal::of_float(float).map(|decimal| decimal.to_string()).as_deref(), Some(text));
        }
    }
}
