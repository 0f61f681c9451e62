//! What locators find.

use jiff::Timestamp;

/// A value of a site, with its type.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Nothing: SQL's `NULL`, JSON's `null`, or nothing found.
    Null,
    /// True or false.
    Bool(bool),
    /// A whole number, wide enough for every database's.
    Integer(i128),
    /// An exact decimal number, as the database writes it.
    Decimal(String),
    /// A binary floating-point number.
    Float(f64),
    /// Text.
    Text(String),
    /// Bytes that are no text.
    Bytes(Vec<u8>),
    /// A point in time. One without a zone counts as UTC, in which the sites' databases keep theirs.
    Timestamp(Timestamp),
    /// A list or an object, as compact JSON text.
    Json(String),
    /// A table.
    Rows(Rows),
}

/// A table.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rows {
    /// The columns' names.
    pub columns: Vec<String>,
    /// Outer vector in query order, inner in column order.
    pub rows: Vec<Vec<Value>>,
}

impl Rows {
    /// The value that a table stands for: a single cell itself, no row at all nothing, else the table.
    pub fn value(mut self) -> Value {
        match (self.columns.len(), self.rows.len()) {
            (_, 0) => Value::Null,
            (1, 1) => self.rows.pop().and_then(|mut row| row.pop()).unwrap_or(Value::Null),
            _ => Value::Rows(self),
        }
    }
}

impl Value {
    /// The type's name in JSON.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "bool",
            Self::Integer(_) => "integer",
            Self::Decimal(_) => "decimal",
            Self::Float(_) => "float",
            Self::Text(_) => "text",
            Self::Bytes(_) => "bytes",
            Self::Timestamp(_) => "timestamp",
            Self::Json(_) => "json",
            Self::Rows(_) => "rows",
        }
    }

    /// The value as a text, as where it becomes part of an address; tables have none.
    pub fn text(&self) -> Option<String> {
        match self {
            Self::Null => Some(String::new()),
            Self::Bool(value) => Some(value.to_string()),
            Self::Integer(value) => Some(value.to_string()),
            Self::Float(value) => Some(value.to_string()),
            Self::Decimal(text) | Self::Text(text) | Self::Json(text) => Some(text.clone()),
            Self::Timestamp(at) => Some(at.to_string()),
            Self::Bytes(bytes) => Some(crate::hex::hex(bytes)),
            Self::Rows(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_cell_is_its_value_and_no_row_is_nothing() {
        let table = |columns: usize, rows: Vec<Vec<Value>>| Rows { columns: vec!["c".to_owned(); columns], rows };
        assert_eq!(table(1, vec![vec![Value::Integer(3)]]).value(), Value::Integer(3));
        assert_eq!(table(1, vec![]).value(), Value::Null);
        assert!(matches!(table(2, vec![vec![Value::Null, Value::Null]]).value(), Value::Rows(_)));
        assert!(matches!(table(1, vec![vec![Value::Null], vec![Value::Null]]).value(), Value::Rows(_)));
    }
}
