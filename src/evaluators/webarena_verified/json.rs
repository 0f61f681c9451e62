//! Python's `json`: what it reads and how it writes, where that differs from `serde_json`.

use serde_json::Value;

use super::trouble::Trouble;
use crate::evaluators::text::python;

/// `json.loads(text)`. Nothing if it is no JSON.
///
/// # Errors
///
/// When Python reads it and `serde_json` does not: `NaN`, `Infinity`, half a surrogate pair, very deep lists.
pub(super) fn parse(text: &str) -> Result<Option<Value>, Trouble> {
    match serde_json::from_str(text) {
        Ok(value) => Ok(Some(value)),
        Err(error) => {
            let says = error.to_string();
            let is_surrogate = says.starts_with("lone leading surrogate") || says.starts_with("unexpected end of hex");
            let is_beyond = text.contains("NaN") || text.contains("Infinity") || is_surrogate;
            if is_beyond || says.starts_with("recursion limit") || says.starts_with("number out of range") {
                return Err(Trouble::unsupported(format!("JSON that only Python reads: {says}")));
            }
            Ok(None)
        }
    }
}

/// `json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)`.
pub(super) fn dump_sorted(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            format!("[{}]", items.iter().map(dump_sorted).collect::<Vec<_>>().join(","))
        }
        Value::Object(entries) => {
            let mut keys: Vec<&String> = entries.keys().collect();
            keys.sort();
            let pairs: Vec<String> =
                keys.into_iter().map(|key| format!("{}:{}", text(key), dump_sorted(&entries[key]))).collect();
            format!("{{{}}}", pairs.join(","))
        }
        // Python's floats keep their point.
        Value::Number(_) => python::repr(value),
        Value::String(value) => text(value),
        other => other.to_string(),
    }
}

fn text(value: &str) -> String {
    Value::from(value).to_string()
}
