//! Values as JSON for comparison: tables become lists, and exact numbers stay exact.

use std::str::FromStr;

use bigdecimal::BigDecimal;
use serde_json::{Number, Value as Json};

use arenad_model::hex::hex;
use arenad_model::locator::Value;

/// Converts a value to JSON. A table of one column becomes the list of its cells; any other table becomes a list of
/// rows, each a list. Numbers that JSON cannot represent exactly become texts.
#[must_use]
pub(super) fn of(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(value) => Json::Bool(*value),
        Value::Integer(value) => i64::try_from(*value).map_or_else(|_| Json::from(value.to_string()), Json::from),
        Value::Float(value) => Number::from_f64(*value).map_or_else(|| Json::from(value.to_string()), Json::Number),
        Value::Decimal(text) => exact(text).map_or_else(|| Json::from(text.as_str()), |number| self::number(&number)),
        Value::Text(text) => Json::from(text.as_str()),
        Value::Bytes(bytes) => Json::from(hex(bytes)),
        Value::Timestamp(at) => Json::from(at.to_string()),
        Value::Json(text) => serde_json::from_str(text).unwrap_or_else(|_| Json::from(text.as_str())),
        Value::Rows(table) => {
            let is_list = table.columns.len() == 1;
            let row = |cells: &Vec<Value>| match cells.as_slice() {
                [only] if is_list => of(only),
                cells => cells.iter().map(of).collect(),
            };
            table.rows.iter().map(row).collect()
        }
    }
}

/// Converts a number to JSON: to a number if it is represented exactly, otherwise to a text.
#[must_use]
pub(super) fn number(number: &BigDecimal) -> Json {
    let text = number.normalized().to_plain_string();
    let parsed =
        serde_json::from_str::<Json>(&text).ok().filter(|parsed| exact(&parsed.to_string()).as_ref() == Some(number));
    parsed.unwrap_or_else(|| Json::from(text))
}

/// The longest number, in characters. Longer ones do not occur in tasks.
const DIGITS_MAX: usize = 400;

/// Parses a text that is only a decimal number. Exponents are limited to about the range of JSON's own numbers, because
/// larger ones would require unbounded memory.
#[must_use]
pub(super) fn exact(text: &str) -> Option<BigDecimal> {
    let text = text.trim();
    let (digits, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let is_small = exponent.parse::<i32>().is_ok_and(|exponent| exponent.abs() <= 400);
    let unsigned = digits.strip_prefix(['-', '+']).unwrap_or(digits);
    let is_plain = unsigned.bytes().any(|byte| byte.is_ascii_digit())
        && unsigned.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        && unsigned.bytes().filter(|byte| *byte == b'.').count() <= 1;
    if !is_small || !is_plain || text.len() > DIGITS_MAX {
        return None;
    }
    BigDecimal::from_str(text).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use arenad_model::locator::Rows;

    #[test]
    fn tables_are_lists_and_numbers_stay_exact() {
        let table = |columns: &[&str], rows| {
            Value::Rows(Rows { columns: columns.iter().map(|name| (*name).to_owned()).collect(), rows })
        };
        assert_eq!(of(&table(&["a"], vec![vec![Value::Integer(1)], vec![Value::Null]])), json!([1, null]));
        let two = table(&["a", "b"], vec![vec![Value::Text("x".to_owned()), Value::Bool(true)]]);
        assert_eq!(of(&two), json!([["x", true]]));
        assert_eq!(of(&Value::Decimal("12.50".to_owned())), json!(12.5));
        assert_eq!(
            of(&Value::Decimal("0.1000000000000000055511151231257827".to_owned())),
            json!("0.1000000000000000055511151231257827")
        );
        assert_eq!(of(&Value::Integer(i128::from(u64::MAX))), json!(u64::MAX.to_string()));
    }

    #[test]
    fn numbers_are_read_exactly_and_within_bounds() {
        assert_eq!(exact(" 12.50 "), exact("1.25e1"));
        assert_eq!(exact("+5"), exact("5.0"));
        for text in ["", ".", "1e999999999", "1.2.3", "0x1", "1_0", "£5", "NaN", "inf", "--1"] {
            assert_eq!(exact(text), None, "{text}");
        }
    }
}
