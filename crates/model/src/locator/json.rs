//! Conversion of values to JSON and of JSON to values.

use serde_json::{Value as Json, json};

use crate::hex::{hex, unhex};
use crate::locator::{Rows, Value};

/// Converts a value to JSON. Integers that fit into 64 bits and finite floating-point numbers become numbers, decimal
/// numbers become texts, bytes become hexadecimal texts, times follow RFC 3339, and tables become `{"columns": […],
/// "rows": [[{"type", "value"}, …], …]}`.
pub fn plain(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(value) => json!(value),
        Value::Integer(value) => i64::try_from(*value).map_or_else(|_| json!(value.to_string()), Json::from),
        Value::Float(value) => {
            serde_json::Number::from_f64(*value).map_or_else(|| json!(value.to_string()), Json::Number)
        }
        Value::Decimal(text) | Value::Text(text) => json!(text),
        Value::Bytes(bytes) => json!(hex(bytes)),
        Value::Timestamp(at) => json!(at.to_string()),
        Value::Json(text) => serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
        Value::Rows(rows) => {
            let cells: Vec<Vec<Json>> = rows.rows.iter().map(|row| row.iter().map(typed).collect()).collect();
            json!({ "columns": rows.columns, "rows": cells })
        }
    }
}

/// Converts a value to JSON with its type: `{"type": "integer", "value": 5}`.
pub fn typed(value: &Value) -> Json {
    json!({ "type": value.type_name(), "value": plain(value) })
}

/// Converts the output of [`typed`] back to a value. Returns `None` for any other JSON.
pub fn from_typed(json: &Json) -> Option<Value> {
    let value = &json["value"];
    let text = || value.as_str().map(str::to_owned);
    Some(match json["type"].as_str()? {
        "null" => Value::Null,
        "bool" => Value::Bool(value.as_bool()?),
        "integer" => Value::Integer(value.as_i64().map(i128::from).or_else(|| value.as_str()?.parse().ok())?),
        "float" => Value::Float(value.as_f64().or_else(|| value.as_str()?.parse().ok())?),
        "decimal" => Value::Decimal(text()?),
        "text" => Value::Text(text()?),
        "bytes" => Value::Bytes(unhex(value.as_str()?)?),
        "timestamp" => Value::Timestamp(value.as_str()?.parse().ok()?),
        "json" => Value::Json(value.to_string()),
        "rows" => {
            let columns = value["columns"].as_array()?.iter().map(|name| name.as_str().map(str::to_owned));
            let rows = value["rows"].as_array()?.iter().map(|row| row.as_array()?.iter().map(from_typed).collect());
            Value::Rows(Rows { columns: columns.collect::<Option<_>>()?, rows: rows.collect::<Option<_>>()? })
        }
        _ => return None,
    })
}

/// Converts JSON to a value of the corresponding type. Lists and objects remain JSON.
pub fn to_value(json: Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(value),
        Json::Number(number) => match number.as_i64().map(i128::from).or(number.as_u64().map(i128::from)) {
            Some(whole) => Value::Integer(whole),
            None => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::Text(text),
        Json::Array(_) | Json::Object(_) => Value::Json(json.to_string()),
    }
}

/// Parses JSON text as a value. Text that is not JSON remains text.
pub fn parsed(text: String) -> Value {
    match serde_json::from_str::<Json>(&text) {
        // The text is kept as it is, because its numbers may have more digits than a parsed number can hold.
        Ok(Json::Array(_) | Json::Object(_)) => Value::Json(text),
        Ok(json) => to_value(json),
        Err(_) => Value::Text(text),
    }
}

/// Returns bytes as text if they are UTF-8 without NUL, and otherwise as bytes.
pub fn text_or_bytes(bytes: Vec<u8>) -> Value {
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Value::Text(text),
        Ok(text) => Value::Bytes(text.into_bytes()),
        Err(error) => Value::Bytes(error.into_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_survive_the_way_through_json() {
        let rows = Rows { columns: vec!["a".to_owned()], rows: vec![vec![Value::Null], vec![Value::Bool(true)]] };
        for value in [
            Value::Null,
            Value::Bool(false),
            Value::Integer(-5),
            Value::Integer(i128::from(u64::MAX)),
            Value::Decimal("0.10".to_owned()),
            Value::Float(1.5),
            Value::Float(f64::INFINITY),
            Value::Text("é".to_owned()),
            Value::Bytes(vec![0, 255]),
            Value::Timestamp(jiff::Timestamp::from_microsecond(1_700_000_000_000_001).expect("a time")),
            Value::Json("[1,{\"a\":null}]".to_owned()),
            Value::Rows(rows),
        ] {
            assert_eq!(from_typed(&typed(&value)), Some(value.clone()), "{value:?}");
        }
        assert_eq!(from_typed(&json!({ "type": "integer", "value": "x" })), None);
    }
}
