//! Queries of the worker to PostgreSQL.

use std::path::Path;

use jiff::civil::date;
use jiff::{Timestamp, ToSpan};
use serde_json::Value as Json;
use sqlx::postgres::{PgConnectOptions, PgRow, PgSslMode, PgTypeKind};
use sqlx::{AssertSqlSafe, Column, ConnectOptions, Row, TypeInfo, ValueRef};

use super::worker::SqlQuery;
use super::{Query, UnreadableValue, close, collect, refused};
use crate::LocateError;
use arenad_model::locator::json::{self, parsed};
use arenad_model::locator::{Rows, Value};

/// Microseconds from 1970 to 2000, the start of PostgreSQL's time scale.
const EPOCH_MICROS: i64 = 946_684_800_000_000;

pub(super) async fn query(folder: &Path, question: &SqlQuery) -> Result<Rows, LocateError> {
    let options = PgConnectOptions::new_without_pgpass()
        .socket(folder)
        .port(5432)
        .username(&question.user)
        .password(&question.password)
        .database(&question.database)
        .ssl_mode(PgSslMode::Disable);
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

/// Returns the statements that begin the transaction. A superuser, which some images use for their sites, becomes a
/// role that can read every table and do nothing else.
pub(super) fn prepare(query: &Query<'_>) -> String {
    let ms = query.limit_ms();
    format!(
        "BEGIN READ ONLY; SET LOCAL statement_timeout = {ms}; SET LOCAL lock_timeout = 1000; SET LOCAL timezone = 'UTC'; \
         SET LOCAL standard_conforming_strings = on; SET LOCAL datestyle = 'ISO'; \
         SELECT set_config('role', 'pg_read_all_data', true) WHERE current_setting('is_superuser') = 'on' \
         AND EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'pg_read_all_data')"
    )
}

fn columns(row: &PgRow) -> Vec<String> {
    row.columns().iter().map(|column| column.name().to_owned()).collect()
}

fn cells(row: &PgRow) -> Result<Vec<Value>, UnreadableValue> {
    (0..row.len()).map(|index| cell(row, index)).collect()
}

fn cell(row: &PgRow, index: usize) -> Result<Value, UnreadableValue> {
    let raw = row.try_get_raw(index)?;
    if raw.is_null() {
        return Ok(Value::Null);
    }
    let info = raw.type_info().into_owned();
    let bytes = raw.as_bytes().map_err(|error| UnreadableValue::from(error.to_string()))?;
    let kind = if matches!(info.kind(), PgTypeKind::Enum(_)) { "TEXT" } else { info.name() };
    value(kind, bytes).ok_or_else(|| {
        let column = row.columns()[index].name();
        format!(
            "column {column} has the type {}, which is not understood; cast it, as in `{column}::text`",
            info.name()
        )
        .into()
    })
}

/// Converts a value in the binary format, whose numbers are big-endian.
fn value(kind: &str, bytes: &[u8]) -> Option<Value> {
    Some(match kind {
        "BOOL" => Value::Bool(*bytes.first()? != 0),
        "INT2" => Value::Integer(i16::from_be_bytes(bytes.try_into().ok()?).into()),
        "INT4" => Value::Integer(i32::from_be_bytes(bytes.try_into().ok()?).into()),
        "INT8" => Value::Integer(i64::from_be_bytes(bytes.try_into().ok()?).into()),
        "OID" => Value::Integer(u32::from_be_bytes(bytes.try_into().ok()?).into()),
        "FLOAT4" => Value::Float(f32::from_be_bytes(bytes.try_into().ok()?).into()),
        "FLOAT8" => Value::Float(f64::from_be_bytes(bytes.try_into().ok()?)),
        "NUMERIC" => Value::Decimal(numeric(bytes)?),
        "JSON" => parsed(String::from_utf8(bytes.to_vec()).ok()?),
        // A version byte precedes the text.
        "JSONB" => parsed(String::from_utf8(bytes.get(1..)?.to_vec()).ok()?),
        "BYTEA" => Value::Bytes(bytes.to_vec()),
        "TIMESTAMPTZ" | "TIMESTAMP" => match i64::from_be_bytes(bytes.try_into().ok()?) {
            i64::MAX => Value::Text("infinity".to_owned()),
            i64::MIN => Value::Text("-infinity".to_owned()),
            micros => Value::Timestamp(Timestamp::from_microsecond(micros.checked_add(EPOCH_MICROS)?).ok()?),
        },
        "DATE" => {
            let days = i32::from_be_bytes(bytes.try_into().ok()?);
            Value::Text(date(2000, 1, 1).checked_add(days.days()).ok()?.to_string())
        }
        "UUID" => Value::Text(uuid(bytes)?),
        "VOID" => Value::Null,
        kind if kind.ends_with("[]") => array(kind.strip_suffix("[]")?, bytes)?,
        "TEXT" | "VARCHAR" | "CHAR" | "NAME" | "UNKNOWN" | "XML" | "\"CHAR\"" | "citext" => {
            Value::Text(String::from_utf8(bytes.to_vec()).ok()?)
        }
        _ => return None,
    })
}

/// Parses the number of digits, the weight of the first, the sign and the number of digits after the point, followed by
/// the digits in base 10000.
fn numeric(bytes: &[u8]) -> Option<String> {
    let words: Vec<u16> = bytes.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect();
    let [_, weight, sign, scale, digits @ ..] = words.as_slice() else { return None };
    let weight = weight.cast_signed();
    let sign = match sign {
        0x0000 => "",
        0x4000 => "-",
        0xC000 => return Some("NaN".to_owned()),
        0xD000 => return Some("Infinity".to_owned()),
        0xF000 => return Some("-Infinity".to_owned()),
        _ => return None,
    };
    let digit = |place: i16| {
        let index = usize::try_from(i32::from(weight) - i32::from(place)).ok();
        index.and_then(|index| digits.get(index)).copied().unwrap_or_default()
    };
    let whole: String = (0..=weight.max(0)).rev().map(|place| format!("{:04}", digit(place))).collect();
    let whole = match whole.trim_start_matches('0') {
        "" => "0",
        whole => whole,
    };
    let scale = usize::from(*scale);
    let groups = i16::try_from(scale.div_ceil(4)).ok()?;
    let fraction: String = (1..=groups).map(|place| format!("{:04}", digit(-place))).collect();
    let point = if scale > 0 { "." } else { "" };
    Some(format!("{sign}{whole}{point}{}", &fraction[..scale]))
}

fn uuid(bytes: &[u8]) -> Option<String> {
    let digits = arenad_model::hex::hex(bytes);
    (bytes.len() == 16).then(|| {
        let part = |from: usize, to: usize| &digits[from..to];
        [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-")
    })
}

/// Parses a one-dimensional array: number of dimensions, a flag for nulls, the element's type, the length and the first
/// index; then the elements, each with its length, where -1 means null.
fn array(kind: &str, bytes: &[u8]) -> Option<Value> {
    let number = |at: usize| Some(i32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let mut list = Vec::new();
    match number(0)? {
        0 => {}
        1 => {
            let mut at = 20;
            for _ in 0..number(12)? {
                let length = number(at)?;
                at += 4;
                let Ok(length) = usize::try_from(length) else {
                    list.push(Json::Null);
                    continue;
                };
                list.push(json::plain(&value(kind, bytes.get(at..at + length)?)?));
                at += length;
            }
        }
        _ => return None,
    }
    Some(Value::Json(Json::Array(list).to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[u16]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    #[test]
    fn decimals_are_exact() {
        let is = |bytes: &[u16], expected: &str| assert_eq!(numeric(&words(bytes)).as_deref(), Some(expected));
        is(&[0, 0, 0, 0], "0");
        is(&[0, 0, 0, 2], "0.00");
        is(&[2, 0, 0, 2, 19, 9000], "19.90");
        is(&[1, u16::MAX, 0x4000, 3, 50], "-0.005");
        is(&[1, 2, 0, 0, 12], "1200000000");
        is(&[3, 1, 0, 5, 1, 2345, 6780], "12345.67800");
        is(&[1, (-2_i16).cast_unsigned(), 0, 8, 7], "0.00000007");
        is(&[0, 0, 0xC000, 0], "NaN");
        assert_eq!(numeric(&[0, 1]), None);
    }

    #[test]
    fn binary_values_become_typed_ones() {
        let is = |kind, bytes: &[u8], expected| assert_eq!(value(kind, bytes), Some(expected), "{kind}");
        is("BOOL", &[1], Value::Bool(true));
        is("INT4", &[255, 255, 255, 254], Value::Integer(-2));
        is("TIMESTAMPTZ", &0_i64.to_be_bytes(), Value::Timestamp("2000-01-01T00:00:00Z".parse().expect("a time")));
        is("TIMESTAMP", &i64::MAX.to_be_bytes(), Value::Text("infinity".to_owned()));
        is("DATE", &(-1_i32).to_be_bytes(), Value::Text("1999-12-31".to_owned()));
        is("JSONB", b"\x01{\"a\": 1.10}", Value::Json("{\"a\": 1.10}".to_owned()));
        is("UUID", &[0x11; 16], Value::Text("11111111-1111-1111-1111-111111111111".to_owned()));
        let header: Vec<u8> = [1_i32, 1, 23, 2, 1].iter().flat_map(|number| number.to_be_bytes()).collect();
        let list = [header.as_slice(), &4_i32.to_be_bytes(), &7_i32.to_be_bytes(), &(-1_i32).to_be_bytes()].concat();
        is("INT4[]", &list, Value::Json("[7,null]".to_owned()));
        assert_eq!(value("INTERVAL", &[0; 16]), None);
    }
}
