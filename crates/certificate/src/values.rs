//! Values in JSON that keeps every digit: numbers are texts, because JSON's readers round them.

use arenad_model::hex::{hex, unhex};
use arenad_model::locator::{Rows, Value};
use bigdecimal::BigDecimal;
use serde::{Deserialize, Serialize};

use crate::evidence::EvidenceError;

/// A value of a site, in a form that [`ExactValue::value`] turns back into the very same value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", content = "value", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum ExactValue {
    Null,
    Bool(bool),
    Integer(String),
    Decimal(String),
    /// The shortest decimal text that is read as this number.
    Float(String),
    Text(String),
    /// The bytes in hexadecimal digits.
    Bytes(String),
    Timestamp(String),
    /// The text of a list or an object.
    Json(String),
    Rows {
        columns: Vec<String>,
        rows: Vec<Vec<ExactValue>>,
    },
}

impl From<&Value> for ExactValue {
    fn from(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Integer(value) => Self::Integer(value.to_string()),
            Value::Decimal(text) => Self::Decimal(text.clone()),
            Value::Float(value) => Self::Float(format!("{value:?}")),
            Value::Text(text) => Self::Text(text.clone()),
            Value::Bytes(bytes) => Self::Bytes(hex(bytes)),
            Value::Timestamp(at) => Self::Timestamp(at.to_string()),
            Value::Json(text) => Self::Json(text.clone()),
            Value::Rows(Rows { columns, rows }) => Self::Rows {
                columns: columns.clone(),
                rows: rows.iter().map(|row| row.iter().map(Self::from).collect()).collect(),
            },
        }
    }
}

impl ExactValue {
    /// Returns the value.
    ///
    /// Errors: a text is not of its type.
    pub(crate) fn value(&self) -> Result<Value, EvidenceError> {
        let invalid = || EvidenceError::Value(format!("{self:?}"));
        Ok(match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(*value),
            Self::Integer(text) => Value::Integer(text.parse().map_err(|_| invalid())?),
            Self::Decimal(text) => Value::Decimal(text.clone()),
            Self::Float(text) => Value::Float(text.parse().map_err(|_| invalid())?),
            Self::Text(text) => Value::Text(text.clone()),
            Self::Bytes(digits) => Value::Bytes(unhex(digits).ok_or_else(invalid)?),
            Self::Timestamp(text) => Value::Timestamp(text.parse().map_err(|_| invalid())?),
            Self::Json(text) => Value::Json(text.clone()),
            Self::Rows { columns, rows } => Value::Rows(Rows {
                columns: columns.clone(),
                rows: rows.iter().map(|row| row.iter().map(Self::value).collect()).collect::<Result<_, _>>()?,
            }),
        })
    }
}

/// Returns a decimal number as its digits and its exponent, such as `150e-2`: 1.50 and 1.5 are written differently in
/// reports.
pub(crate) fn exact_number(number: &BigDecimal) -> String {
    let (digits, scale) = number.as_bigint_and_exponent();
    format!("{digits}e{}", -scale)
}

/// Reads the output of [`exact_number`].
pub(crate) fn number(text: &str) -> Result<BigDecimal, EvidenceError> {
    text.parse().map_err(|_| EvidenceError::Value(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn scalar() -> impl Strategy<Value = Value> {
        prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i128>().prop_map(Value::Integer),
            any::<f64>().prop_map(Value::Float),
            "-?[0-9]{1,40}\\.[0-9]{0,40}".prop_map(Value::Decimal),
            any::<String>().prop_map(Value::Text),
            any::<Vec<u8>>().prop_map(Value::Bytes),
            "\\{\"a\": [0-9]{1,40}\\.[0-9]{1,40}\\}".prop_map(Value::Json),
        ]
    }

    fn written(value: &Value) -> String {
        serde_json::to_string(&ExactValue::from(value)).expect("JSON")
    }

    proptest! {
        #[test]
        fn values_keep_every_digit(value in scalar(), columns in prop::collection::vec(any::<String>(), 0..3), cells in prop::collection::vec(scalar(), 0..4)) {
            for value in [value, Value::Rows(Rows { columns, rows: vec![cells] })] {
                let read: ExactValue = serde_json::from_str(&written(&value)).expect("a value");
                // Compared as texts, because NaN does not equal itself.
                prop_assert_eq!(format!("{:?}", read.value().expect("a value")), format!("{value:?}"));
            }
        }

        #[test]
        fn numbers_keep_their_digits_and_their_scale(digits in any::<i128>(), scale in -50_i64..50) {
            let given = BigDecimal::new(digits.into(), scale);
            let read = number(&exact_number(&given)).expect("a number");
            prop_assert_eq!(read.as_bigint_and_exponent(), given.as_bigint_and_exponent());
        }
    }

    #[test]
    fn a_time_is_kept_and_a_text_of_another_type_is_refused() {
        let at = Value::Timestamp("2026-01-02T03:04:05.000000006Z".parse().expect("a time"));
        assert_eq!(ExactValue::from(&at).value().expect("a value"), at);
        for wrong in [ExactValue::Integer("1.5".to_owned()), ExactValue::Bytes("0".to_owned())] {
            assert!(wrong.value().is_err(), "{wrong:?}");
        }
        assert!(number("one").is_err());
    }
}
