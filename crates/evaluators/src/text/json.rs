//! Python's `json`: parsing and printing.
//!
//! Python accepts more than `serde_json`: `NaN` and `Infinity`, numbers of any size, halves of surrogate pairs, deep
//! nesting. Numbers that [`Value`] cannot contain are kept as Python prints them ([`beyond`]). A half of a surrogate
//! pair, which a Rust text cannot contain, becomes a character for private use at the end of plane 16; Python's rules
//! for texts treat both alike.

use serde_json::{Map, Number, Value};

use super::python;

/// The errors of Python's `json` other than a syntax error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum JsonError {
    /// `RecursionError`: the text is nested too deeply.
    #[error("JSON is nested too deep")]
    Depth,
    /// `ValueError`: an integer has more digits than Python converts.
    #[error("a number in JSON has more than {DIGITS_MAX} digits")]
    Digits,
}

/// The deepest nesting that Python accepts: its limit of 1000 calls without the calls around the parser.
const DEPTH_MAX: usize = 980;
/// The largest number of digits that Python converts to an integer.
const DIGITS_MAX: usize = 4300;

/// `json.loads(text)`; returns `None` if the text is not JSON.
///
/// # Errors
///
/// Returns an error if Python raises any other error than `JSONDecodeError`.
pub(crate) fn parse(text: &str) -> Result<Option<Value>, JsonError> {
    let mut reader = JsonParser { text, at: 0, error: None };
    reader.blank();
    let value = reader.value(0);
    reader.blank();
    match (value, reader.error) {
        (_, Some(error)) => Err(error),
        (value, None) => Ok(value.filter(|_| reader.at == text.len())),
    }
}

/// The only key of an object that stands for a number.
const BEYOND: &str = "\u{10ffff}";

/// Returns a number that [`Value`] cannot contain, as Python prints it: `nan`, `inf`, `-inf`, or an integer beyond 64
/// bits.
#[must_use]
pub(crate) fn beyond(value: &Value) -> Option<&str> {
    match value {
        Value::Object(entries) if entries.len() == 1 => entries.get(BEYOND).and_then(Value::as_str),
        _ => None,
    }
}

/// Returns the value for a report: numbers that JSON does not have become texts.
#[must_use]
pub(crate) fn shown(value: &Value) -> Value {
    match value {
        Value::Object(entries) => match beyond(value) {
            Some(number) => Value::from(number),
            None => Value::Object(entries.iter().map(|(key, value)| (key.clone(), shown(value))).collect()),
        },
        Value::Array(items) => items.iter().map(shown).collect(),
        other => other.clone(),
    }
}

/// Whether a text contains halves of surrogate pairs, which Python cannot encode.
#[must_use]
pub(crate) fn has_half_pair(text: &str) -> bool {
    text.contains(|c: char| c >= HALVES)
}

/// The first of the characters that stand for halves of surrogate pairs.
const HALVES: char = '\u{10f800}';

struct JsonParser<'a> {
    text: &'a str,
    at: usize,
    error: Option<JsonError>,
}

impl JsonParser<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, text: &str) -> Option<()> {
        if self.rest().starts_with(text) {
            self.at += text.len();
            Some(())
        } else {
            None
        }
    }

    fn blank(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        match self.peek()? {
            b'"' => self.string().map(Value::from),
            opening @ (b'{' | b'[') => {
                if depth >= DEPTH_MAX {
                    self.error = Some(JsonError::Depth);
                    return None;
                }
                self.at += 1;
                self.blank();
                if opening == b'{' { self.object(depth) } else { self.array(depth) }
            }
            _ => self.constant().or_else(|| self.number()),
        }
    }

    fn constant(&mut self) -> Option<Value> {
        let constants = [
            ("null", Value::Null),
            ("true", Value::Bool(true)),
            ("false", Value::Bool(false)),
            ("NaN", number_beyond("nan")),
            ("Infinity", number_beyond("inf")),
            ("-Infinity", number_beyond("-inf")),
        ];
        constants.into_iter().find_map(|(name, value)| self.take(name).map(|()| value))
    }

    fn array(&mut self, depth: usize) -> Option<Value> {
        let mut items = Vec::new();
        if self.take("]").is_some() {
            return Some(Value::Array(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.blank();
            if self.take("]").is_some() {
                return Some(Value::Array(items));
            }
            self.take(",")?;
            self.blank();
        }
    }

    fn object(&mut self, depth: usize) -> Option<Value> {
        let mut entries = Map::new();
        if self.take("}").is_some() {
            return Some(Value::Object(entries));
        }
        loop {
            let key = self.string()?;
            self.blank();
            self.take(":")?;
            self.blank();
            let value = self.value(depth + 1)?;
            entries.insert(key, value);
            self.blank();
            if self.take("}").is_some() {
                return Some(Value::Object(entries));
            }
            self.take(",")?;
            self.blank();
        }
    }

    fn digits(&mut self) -> usize {
        let from = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        self.at - from
    }

    fn number(&mut self) -> Option<Value> {
        let from = self.at;
        let _ = self.take("-");
        if self.take("0").is_none() && self.digits() == 0 {
            return None;
        }
        let end = self.at;
        let mut is_float = false;
        if self.take(".").is_some() {
            is_float = self.digits() > 0;
        }
        if !is_float {
            // A point without digits is not part of the number, so the text is not JSON.
            self.at = end;
        }
        let end = self.at;
        if self.take("e").or_else(|| self.take("E")).is_some() {
            let _ = self.take("+").or_else(|| self.take("-"));
            if self.digits() > 0 {
                is_float = true;
            } else {
                self.at = end;
            }
        }
        let text = &self.text[from..self.at];
        if is_float {
            let float: f64 = text.parse().ok()?;
            return Some(
                Number::from_f64(float)
                    .map_or_else(|| number_beyond(if float > 0.0 { "inf" } else { "-inf" }), Value::Number),
            );
        }
        if text.trim_start_matches('-').len() > DIGITS_MAX {
            self.error = Some(JsonError::Digits);
            return None;
        }
        let whole = text.parse::<i64>().map(Value::from).or_else(|_| text.parse::<u64>().map(Value::from));
        Some(whole.unwrap_or_else(|_| number_beyond(text)))
    }

    fn string(&mut self) -> Option<String> {
        self.take("\"")?;
        let mut out = String::new();
        loop {
            let rest = self.rest();
            let end = rest.find(|c: char| c == '"' || c == '\\' || c < ' ')?;
            out.push_str(&rest[..end]);
            let stop = rest.as_bytes()[end];
            self.at += end + 1;
            match stop {
                b'"' => return Some(out),
                b'\\' => {
                    let c = self.escape()?;
                    out.push(c);
                }
                _ => return None,
            }
        }
    }

    fn escape(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += 1;
        Some(match c {
            b'"' | b'\\' | b'/' => char::from(c),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let unit = self.unit()?;
                let after = self.at;
                if (0xd800..0xdc00).contains(&unit) && self.take("\\u").is_some() {
                    let low = self.unit()?;
                    if (0xdc00..0xe000).contains(&low) {
                        return char::from_u32(0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00));
                    }
                    self.at = after;
                }
                char::from_u32(unit).or_else(|| char::from_u32(u32::from(HALVES) + unit - 0xd800))?
            }
            _ => return None,
        })
    }

    fn unit(&mut self) -> Option<u32> {
        let digits = self.rest().get(..4).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        let unit = u32::from_str_radix(digits, 16).ok()?;
        self.at += 4;
        Some(unit)
    }
}

fn number_beyond(text: &str) -> Value {
    Value::Object(Map::from_iter([(BEYOND.to_owned(), Value::from(text))]))
}

/// `json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)`.
#[must_use]
pub(crate) fn dump_sorted(value: &Value) -> String {
    match value {
        _ if beyond(value).is_some() => match beyond(value).unwrap_or_default() {
            "nan" => "NaN".to_owned(),
            "inf" => "Infinity".to_owned(),
            "-inf" => "-Infinity".to_owned(),
            whole => whole.to_owned(),
        },
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
        // Python's floats keep their decimal point.
        Value::Number(_) => python::repr(value),
        Value::String(value) => text(value),
        other => other.to_string(),
    }
}

fn text(value: &str) -> String {
    Value::from(value).to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn printed(text: &str) -> Option<String> {
        parse(text).expect("no other error").as_ref().map(python::repr)
    }

    /// The expected values are the output of CPython 3.11.
    #[test]
    fn json_is_read_as_python_reads_it() {
        let cases = [
            ("[1, -0, 1.50, 1e3, 1E-2]", "[1, 0, 1.5, 1000.0, 0.01]"),
            ("[121.48886955472557]", "[121.48886955472557]"),
            ("[NaN, Infinity, -Infinity, 1e999]", "[nan, inf, -inf, inf]"),
            ("[123456789012345678901234567890]", "[123456789012345678901234567890]"),
            ("{\"a\": 1, \"b\": 2, \"a\": 3}", "{'a': 3, 'b': 2}"),
            (r#"["\ud83c\udd97\u00e9\/\n"]"#, "['🆗é/\\n']"),
        ];
        for (text, expected) in cases {
            assert_eq!(printed(text).as_deref(), Some(expected), "{text}");
        }
        for wrong in [
            "",
            "[1.]",
            "[01]",
            "[1,]",
            "{1:2}",
            "nan",
            "-",
            "\"\n\"",
            "\u{feff}[]",
            "[] []",
            "'a'",
            "\"\\x\"",
            "[--1]",
        ] {
            assert_eq!(printed(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_no_value_holds_is_kept() {
        let value = parse(r#"{"a": "x\ud800y"}"#).expect("no other error").expect("JSON");
        assert!(has_half_pair(value["a"].as_str().unwrap_or_default()));
        assert_eq!(shown(&parse("[NaN, 1]").expect("no other error").expect("JSON")), json!(["nan", 1]));
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(parse(&nested(900)).expect("no other error").is_some());
        assert_eq!(parse(&nested(1100)), Err(JsonError::Depth));
        assert_eq!(parse(&"1".repeat(5000)), Err(JsonError::Digits));
    }
}
