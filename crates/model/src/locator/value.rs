//! The values that locators read.

use jiff::Timestamp;

/// A value of a site, with its type.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// SQL's `NULL`, JSON's `null`, or a value that was not found.
    Null,
    /// A truth value of SQL, JSON or JavaScript.
    Bool(bool),
    /// An integer, wide enough for the integers of every database.
    Integer(i128),
    /// An exact decimal number, as written by the database.
    Decimal(String),
    /// A binary floating-point number.
    Float(f64),
    /// A text in Unicode.
    Text(String),
    /// Bytes that are not text.
    Bytes(Vec<u8>),
    /// A point in time. A time without a zone is interpreted as UTC, which the sites' databases use.
    Timestamp(Timestamp),
    /// A list or an object, as compact JSON text.
    Json(String),
    /// A table, as returned by an SQL statement.
    Rows(Rows),
}

/// A table: the names of its columns and its rows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rows {
    /// The names of the columns, in query order.
    pub columns: Vec<String>,
    /// The outer vector is in query order, the inner vectors are in column order.
    pub rows: Vec<Vec<Value>>,
}

impl Rows {
    /// Returns the value that the table stands for: its cell if it has only one, null if it has no rows, and otherwise
    /// the table itself.
    pub fn value(mut self) -> Value {
        match (self.columns.len(), self.rows.len()) {
            (_, 0) => Value::Null,
            (1, 1) => self.rows.pop().and_then(|mut row| row.pop()).unwrap_or(Value::Null),
            _ => Value::Rows(self),
        }
    }
}

impl Value {
    /// Returns the name of the type in JSON.
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

    /// Returns the value as a text, for example to become part of a URL. Tables cannot be represented as a text.
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
