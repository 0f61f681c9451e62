//! Answers of annotators, in the types that pandas gives them, and the cleaning of values.
//!
//! Source: `src/utils/cleaning.py`.

use serde_json::Value;

use crate::text::numbers::float;
use crate::text::python;

/// One answer of one annotator.
#[derive(Debug, Clone, PartialEq)]
pub enum Label {
    /// A text, in columns of any texts.
    Text(String),
    /// An integer, in columns without empty cells.
    Integer(i128),
    /// A float other than NaN.
    Float(f64),
    /// A truth value, in columns of nothing else.
    Boolean(bool),
    /// An empty cell of a column of numbers, whose object equals no other.
    Nan,
    /// An empty cell of another column; these cells share one object.
    SharedNan,
}

impl Label {
    /// Reads a label from JSON, in which `null` is an empty cell.
    #[must_use]
    pub fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::SharedNan,
            Value::Bool(value) => Self::Boolean(*value),
            Value::String(text) => Self::Text(text.clone()),
            Value::Number(number) => match (number.as_i128(), number.as_f64()) {
                (Some(integer), _) => Self::Integer(integer),
                (None, Some(float)) => Self::Float(float),
                (None, None) => Self::Text(number.to_string()),
            },
            // A cell of evidence that equals no other.
            Value::Object(entries) if entries.contains_key("empty") => Self::Nan,
            other => Self::Text(python::repr(other)),
        }
    }

    /// Returns the label as JSON for evidence, where empty cells of numbers differ from other empty cells.
    #[must_use]
    pub fn stored(&self) -> Value {
        match self {
            Self::Nan => serde_json::json!({ "empty": "number" }),
            other => other.value(),
        }
    }

    /// Returns the label as JSON.
    #[must_use]
    pub fn value(&self) -> Value {
        match self {
            Self::Text(text) => Value::from(text.as_str()),
            Self::Integer(integer) => match (i64::try_from(*integer), u64::try_from(*integer)) {
                (Ok(integer), _) => Value::from(integer),
                (_, Ok(integer)) => Value::from(integer),
                _ => Value::from(integer.to_string()),
            },
            Self::Float(float) => Value::from(*float),
            Self::Boolean(value) => Value::from(*value),
            Self::Nan | Self::SharedNan => Value::Null,
        }
    }

    /// Returns whether the cell is empty.
    #[must_use]
    pub fn is_nan(&self) -> bool {
        matches!(self, Self::Nan | Self::SharedNan)
    }

    /// `str(label)`.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Integer(integer) => integer.to_string(),
            Self::Float(float) => python::float_repr(*float),
            Self::Boolean(value) => if *value { "True" } else { "False" }.to_owned(),
            Self::Nan | Self::SharedNan => "nan".to_owned(),
        }
    }

    /// `float(label)`; `None` if Python raises.
    #[must_use]
    pub fn float(&self) -> Option<f64> {
        match self {
            Self::Text(text) => float(text),
            #[expect(clippy::cast_precision_loss, reason = "Python rounds as well")]
            Self::Integer(integer) => Some(*integer as f64),
            Self::Float(float) => Some(*float),
            Self::Boolean(value) => Some(f64::from(u8::from(*value))),
            Self::Nan | Self::SharedNan => Some(f64::NAN),
        }
    }

    /// Whether both are the same key of a Python dictionary: `1`, `1.0` and `True` are.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text(one), Self::Text(other)) => one == other,
            (Self::SharedNan, Self::SharedNan) => true,
            (Self::Integer(one), Self::Integer(other)) => one == other,
            (Self::Text(_) | Self::Nan | Self::SharedNan, _) | (_, Self::Text(_) | Self::Nan | Self::SharedNan) => {
                false
            }
            _ => self.float() == other.float(),
        }
    }

    /// `clean_values` of one label.
    #[must_use]
    pub fn cleaned(&self) -> String {
        match self {
            Self::Text(text) => try_numeric(text),
            other => other.float().and_then(numeric).unwrap_or_else(|| other.text()),
        }
    }
}

/// `try_numeric`: a text that Python reads as a number is written as an integer if it is one, otherwise as a float.
#[must_use]
pub fn try_numeric(text: &str) -> String {
    float(text).and_then(numeric).unwrap_or_else(|| text.to_owned())
}

/// `None` for infinity and NaN, at which `int()` raises.
fn numeric(number: f64) -> Option<String> {
    if !number.is_finite() {
        return None;
    }
    if number == 0.0 {
        return Some("0".to_owned());
    }
    Some(if number.fract() == 0.0 { format!("{number:.0}") } else { python::float_repr(number) })
}

/// `clean_values` of the values of a page: a missing one is empty.
#[must_use]
pub fn clean_values(values: &[Option<String>]) -> Vec<String> {
    values.iter().map(|value| value.as_deref().map(try_numeric).unwrap_or_default()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected values are the output of the benchmark's code.
    #[test]
    fn numbers_are_rewritten() {
        let cases = [
            ("3.0", "3"),
            ("007", "7"),
            (" 5 ", "5"),
            ("1_000", "1000"),
            ("1e5", "100000"),
            ("٣", "3"),
            ("-0.0", "0"),
            (".5", "0.5"),
            ("1e22", "10000000000000000000000"),
            ("1e-7", "1e-07"),
            ("inf", "inf"),
            ("nan", "nan"),
            ("1e400", "1e400"),
            ("$5", "$5"),
            ("", ""),
        ];
        for (text, expected) in cases {
            assert_eq!(try_numeric(text), expected, "{text}");
        }
    }

    #[test]
    fn one_and_true_are_the_same_key() {
        let (one, yes, float) = (Label::Integer(1), Label::Boolean(true), Label::Float(1.0));
        assert!(one.is_same(&yes) && yes.is_same(&float) && !one.is_same(&Label::Text("1".to_owned())));
        assert!(Label::SharedNan.is_same(&Label::SharedNan) && !Label::Nan.is_same(&Label::Nan));
    }
}
