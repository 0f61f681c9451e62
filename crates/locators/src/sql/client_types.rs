//! The types of the text that a database's client prints. A second exchange asks for the types of the columns, and only
//! if there are values to convert.

use jiff::Timestamp;

use arenad_model::hex::unhex;
use arenad_model::locator::json::parsed;
use arenad_model::locator::{Rows, Value};
use arenad_model::site::DatabaseEngine;

/// Returns a statement whose single row names the types of another statement's columns (PostgreSQL).
pub(super) fn postgres_statement(statement: &str, columns: usize) -> String {
    let names: Vec<String> = (0..columns).map(|number| format!("c{number}")).collect();
    let types: Vec<String> = names.iter().map(|name| format!("pg_typeof({name})")).collect();
    let statement = statement.trim().trim_end_matches(';');
    format!("SELECT {} FROM ({statement}\n) AS arenad({}) LIMIT 1", types.join(", "), names.join(", "))
}

/// Parses the types that a MySQL client prints with `--column-type-info`, which precede the rows.
pub(super) fn mysql_types(printed: &str, columns: usize) -> Vec<String> {
    let types = printed.lines().filter_map(|line| line.strip_prefix("Type:"));
    types.take(columns).map(|kind| kind.trim().to_owned()).collect()
}

/// Converts text to the types of its columns. Text that cannot be parsed as its type remains text.
pub(super) fn give(engine: DatabaseEngine, rows: &mut Rows, types: &[String]) {
    if types.len() != rows.columns.len() {
        return;
    }
    for row in &mut rows.rows {
        for (cell, kind) in row.iter_mut().zip(types) {
            let Value::Text(text) = cell else { continue };
            let typed = match engine {
                DatabaseEngine::Postgres => postgres(kind, text),
                DatabaseEngine::Mysql => mysql(kind, text),
                DatabaseEngine::Sqlite => None,
            };
            if let Some(typed) = typed {
                *cell = typed;
            }
        }
    }
}

fn postgres(kind: &str, text: &str) -> Option<Value> {
    match kind {
        "boolean" => Some(Value::Bool(text == "t")),
        "smallint" | "integer" | "bigint" | "oid" => text.parse().ok().map(Value::Integer),
        "numeric" => Some(Value::Decimal(text.to_owned())),
        "real" | "double precision" => text.parse().ok().map(Value::Float),
        "json" | "jsonb" => Some(parsed(text.to_owned())),
        "bytea" => unhex(text.strip_prefix("\\x")?).map(Value::Bytes),
        // The session's time zone is UTC.
        "timestamp with time zone" => time(text.strip_suffix("+00")?),
        "timestamp without time zone" => time(text),
        _ => None,
    }
}

fn mysql(kind: &str, text: &str) -> Option<Value> {
    match kind {
        "TINY" | "SHORT" | "INT24" | "LONG" | "LONGLONG" | "YEAR" => text.parse().ok().map(Value::Integer),
        "DECIMAL" | "NEWDECIMAL" => Some(Value::Decimal(text.to_owned())),
        "FLOAT" | "DOUBLE" => text.parse().ok().map(Value::Float),
        "JSON" => Some(parsed(text.to_owned())),
        "DATETIME" | "TIMESTAMP" | "DATETIME2" | "TIMESTAMP2" => time(text),
        _ => None,
    }
}

/// Parses a time such as `2023-05-09 01:02:03.5` as UTC.
fn time(text: &str) -> Option<Value> {
    let at: Timestamp = format!("{}Z", text.replacen(' ', "T", 1)).parse().ok()?;
    Some(Value::Timestamp(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_become_what_their_columns_are() {
        let at = || Value::Timestamp("2023-05-09T01:02:03.5Z".parse().expect("a time"));
        for (kind, text, expected) in [
            ("boolean", "f", Some(Value::Bool(false))),
            ("bigint", "-7", Some(Value::Integer(-7))),
            ("numeric", "1.50", Some(Value::Decimal("1.50".to_owned()))),
            ("double precision", "1e3", Some(Value::Float(1000.0))),
            ("bytea", "\\x00ff", Some(Value::Bytes(vec![0, 255]))),
            ("bytea", "\\x0", None),
            ("jsonb", "{\"a\": 1}", Some(Value::Json("{\"a\": 1}".to_owned()))),
            ("timestamp with time zone", "2023-05-09 01:02:03.5+00", Some(at())),
            ("timestamp without time zone", "2023-05-09 01:02:03.5", Some(at())),
            ("timestamp without time zone", "infinity", None),
            ("text", "7", None),
        ] {
            assert_eq!(postgres(kind, text), expected, "{kind} {text}");
        }
        assert_eq!(mysql("LONGLONG", "18446744073709551615"), Some(Value::Integer(u64::MAX.into())));
        assert_eq!(mysql("NEWDECIMAL", "19.90"), Some(Value::Decimal("19.90".to_owned())));
        assert_eq!(mysql("DATETIME", "2023-05-09 01:02:03.5"), Some(at()));
        assert_eq!(mysql("DATETIME", "0000-00-00 00:00:00"), None);
        assert_eq!(mysql("VAR_STRING", "7"), None);
    }

    #[test]
    fn types_are_those_before_the_rows() {
        let printed = "Field   1:  `a`\nCatalog:    `def`\nType:       LONGLONG\nCollation:  binary (63)\n\nField   2:  `b`\nType:       VAR_STRING\n\n\
                       +---+---+\n| a | b |\n| 1 | x\nType:       JSON |\n";
        assert_eq!(mysql_types(printed, 2), ["LONGLONG", "VAR_STRING"]);
    }

    #[test]
    fn a_statement_is_asked_for_its_types_whole() {
        assert_eq!(
            postgres_statement("select 1, 2 -- two\n;", 2),
            "SELECT pg_typeof(c0), pg_typeof(c1) FROM (select 1, 2 -- two\n\n) AS arenad(c0, c1) LIMIT 1"
        );
    }
}
