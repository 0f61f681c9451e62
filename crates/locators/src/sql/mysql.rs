//! Queries of the worker to MySQL and MariaDB.

use std::path::Path;

use jiff::Timestamp;
use jiff::civil::{DateTime, date};
use jiff::tz::TimeZone;
use sqlx::mysql::{MySqlConnectOptions, MySqlRow, MySqlSslMode};
use sqlx::{AssertSqlSafe, Column, ConnectOptions, Row, TypeInfo, ValueRef};

use super::worker::SqlQuery;
use super::{Query, UnreadableValue, close, collect, refused};
use crate::LocateError;
use arenad_model::locator::json::{parsed, text_or_bytes};
use arenad_model::locator::{Rows, Value};
use arenad_probes::sql_worker::SOCKET;

pub(super) async fn query(folder: &Path, question: &SqlQuery) -> Result<Rows, LocateError> {
    let options = MySqlConnectOptions::new()
        .socket(folder.join(SOCKET))
        .username(&question.user)
        .password(&question.password)
        .database(&question.database)
        .ssl_mode(MySqlSslMode::Disabled)
        // `prepare` sets all session options in one exchange.
        .pipes_as_concat(false)
        .no_engine_substitution(false)
        .timezone(None)
        .set_names(false);
    let failed = |error: sqlx::Error| refused(&error, question.limit);
    let mut connection = options.connect().await.map_err(failed)?;
    // AssertSqlSafe: the text contains only numbers that arenad itself supplies.
    sqlx::raw_sql(AssertSqlSafe(question.prepare.as_str())).execute(&mut connection).await.map_err(failed)?;
    // AssertSqlSafe: the statement has passed the guard, and its arguments are bound.
    let mut statement = sqlx::query(AssertSqlSafe(question.statement.as_str())).persistent(false);
    for text in &question.bound {
        statement = statement.bind(text);
    }
    let rows = collect(statement.fetch(&mut connection), question.limit, columns, cells).await?;
    close(connection).await;
    Ok(rows)
}

/// Returns the statements that set up the session. The SQL mode is the one whose rules the guard follows. MariaDB
/// executes comments that begin with `M!`, MySQL those with one of its own versions; each has its own name for the time
/// limit.
pub(super) fn prepare(query: &Query<'_>) -> String {
    let (ms, seconds) = (query.limit_ms(), query.limit.as_secs_f64());
    format!(
        "SET SESSION sql_mode = 'NO_ENGINE_SUBSTITUTION', time_zone = '+00:00', lock_wait_timeout = 1, innodb_lock_wait_timeout = 1 \
         /*!50708 , max_execution_time = {ms} */ /*M!100100 , max_statement_time = {seconds:.3} */; START TRANSACTION READ ONLY"
    )
}

fn columns(row: &MySqlRow) -> Vec<String> {
    row.columns().iter().map(|column| column.name().to_owned()).collect()
}

fn cells(row: &MySqlRow) -> Result<Vec<Value>, UnreadableValue> {
    (0..row.len()).map(|index| cell(row, index)).collect()
}

fn cell(row: &MySqlRow, index: usize) -> Result<Value, UnreadableValue> {
    let raw = row.try_get_raw(index)?;
    if raw.is_null() {
        return Ok(Value::Null);
    }
    let kind = raw.type_info().name().to_owned();
    let bytes: Vec<u8> = row.try_get_unchecked(index)?;
    value(&kind, bytes)
        .ok_or_else(|| format!("column {} has a `{kind}` that is not understood", row.columns()[index].name()).into())
}

/// Converts a value of the binary protocol: numbers are little-endian, times consist of their parts, the rest is text.
fn value(kind: &str, bytes: Vec<u8>) -> Option<Value> {
    Some(match kind {
        "BOOLEAN" => match bytes.first()? {
            0 => Value::Bool(false),
            1 => Value::Bool(true),
            // TINYINT(1) may hold values other than 0 and 1.
            other => Value::Integer(i128::from(other.cast_signed())),
        },
        "TINYINT" | "SMALLINT" | "MEDIUMINT" | "INT" | "BIGINT" => Value::Integer(signed(&bytes)?),
        "YEAR" => Value::Integer(unsigned(&bytes)?),
        kind if kind.ends_with(" UNSIGNED") => Value::Integer(unsigned(&bytes)?),
        "BIT" => Value::Integer(bytes.iter().fold(0, |number, byte| number << 8 | i128::from(*byte))),
        "FLOAT" => Value::Float(f64::from(f32::from_le_bytes(bytes.try_into().ok()?))),
        "DOUBLE" => Value::Float(f64::from_le_bytes(bytes.try_into().ok()?)),
        "DECIMAL" => Value::Decimal(String::from_utf8(bytes).ok()?),
        "DATETIME" | "TIMESTAMP" => time(&bytes)?,
        "DATE" => Value::Text(calendar_date(&bytes)?),
        "TIME" => Value::Text(duration(&bytes)?),
        "JSON" => parsed(String::from_utf8(bytes).ok()?),
        // Text with a binary collation is indistinguishable from bytes here.
        _ => text_or_bytes(bytes),
    })
}

fn unsigned(bytes: &[u8]) -> Option<i128> {
    let mut wide = [0; 16];
    wide.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(i128::from_le_bytes(wide))
}

fn signed(bytes: &[u8]) -> Option<i128> {
    let unused = 128_u32.checked_sub(u32::try_from(bytes.len()).ok()? * 8)?;
    let wide = unsigned(bytes)?;
    // Shifting up and down again extends the sign.
    Some(if unused == 128 { 0 } else { wide << unused >> unused })
}

/// Parses length, year, month, day, hour, minute, second and microseconds; trailing zero parts are omitted.
fn time(bytes: &[u8]) -> Option<Value> {
    let at = parts(bytes);
    if at[..2] == [0, 0] {
        return Some(Value::Text("0000-00-00 00:00:00".to_owned()));
    }
    let number = |index: usize| i8::try_from(at[index]).ok();
    let nanosecond = i32::try_from(at[6] * 1000).ok()?;
    let day = date(i16::try_from(at[0]).ok()?, number(1)?, number(2)?);
    let civil: DateTime = day.at(number(3)?, number(4)?, number(5)?, nanosecond);
    let at: Timestamp = civil.to_zoned(TimeZone::UTC).ok()?.timestamp();
    Some(Value::Timestamp(at))
}

fn calendar_date(bytes: &[u8]) -> Option<String> {
    let at = parts(bytes);
    Some(format!("{:04}-{:02}-{:02}", at[0], at[1], at[2]))
}

fn parts(bytes: &[u8]) -> [u32; 7] {
    let byte = |index: usize| u32::from(bytes.get(index).copied().unwrap_or_default());
    let micros = (0..4).fold(0, |number, index| number | byte(8 + index) << (8 * index));
    [byte(1) | byte(2) << 8, byte(3), byte(4), byte(5), byte(6), byte(7), micros]
}

/// Parses length, sign, days, hours, minutes, seconds and microseconds.
fn duration(bytes: &[u8]) -> Option<String> {
    let byte = |index: usize| u32::from(bytes.get(index).copied().unwrap_or_default());
    let wide = |from: usize| (0..4).fold(0, |number, index| number | byte(from + index) << (8 * index));
    let sign = if byte(1) == 1 { "-" } else { "" };
    let hours = wide(2).checked_mul(24)?.checked_add(byte(6))?;
    let fraction = match wide(9) {
        0 => String::new(),
        micros => format!(".{micros:06}"),
    };
    Some(format!("{sign}{hours:02}:{:02}:{:02}{fraction}", byte(7), byte(8)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_values_become_typed_ones() {
        let is = |kind, bytes: &[u8], expected| assert_eq!(value(kind, bytes.to_vec()), Some(expected), "{kind}");
        is("BOOLEAN", &[1], Value::Bool(true));
        is("BOOLEAN", &[254], Value::Integer(-2));
        is("TINYINT", &[255], Value::Integer(-1));
        is("BIGINT", &[254, 255, 255, 255, 255, 255, 255, 255], Value::Integer(-2));
        is("BIGINT UNSIGNED", &[255; 8], Value::Integer(i128::from(u64::MAX)));
        is("YEAR", &[231, 7], Value::Integer(2023));
        is("DECIMAL", b"19.90", Value::Decimal("19.90".to_owned()));
        is("DATE", &[4, 231, 7, 5, 9], Value::Text("2023-05-09".to_owned()));
        is("TIME", &[12, 1, 1, 0, 0, 0, 2, 3, 4, 1, 0, 0, 0], Value::Text("-26:03:04.000001".to_owned()));
        is("TIME", &[0], Value::Text("00:00:00".to_owned()));
        is("VARBINARY", b"abc", Value::Text("abc".to_owned()));
        is("BLOB", &[0xff, 0], Value::Bytes(vec![0xff, 0]));
        let at = "2023-05-09T01:02:03.000004Z".parse().expect("a time");
        is("DATETIME", &[11, 231, 7, 5, 9, 1, 2, 3, 4, 0, 0, 0], Value::Timestamp(at));
        is("DATETIME", &[0], Value::Text("0000-00-00 00:00:00".to_owned()));
        assert_eq!(value("DOUBLE", vec![1]), None);
    }
}
