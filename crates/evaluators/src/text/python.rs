//! Python's string methods and `str()`, on whose details the benchmarks' verdicts depend.

use std::borrow::Cow;
use std::fmt::Write;
use std::ops::RangeInclusive;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::json;

/// `str.isspace()` of one character: Unicode's white space and the four information separators.
pub(super) fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// `str.split()`.
pub(crate) fn split(text: &str) -> impl Iterator<Item = &str> {
    text.split(is_space).filter(|part| !part.is_empty())
}

/// `str.rstrip()`.
#[must_use]
pub(crate) fn strip_end(text: &str) -> &str {
    text.trim_end_matches(is_space)
}

/// `str.strip()`.
#[must_use]
pub(crate) fn strip(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// Removes one pair of quotes as the benchmarks do: single quotes, otherwise double quotes.
#[must_use]
pub(crate) fn unquote(text: &str) -> &str {
    let quote = ['\'', '"'].into_iter().find(|quote| text.starts_with(*quote) && text.ends_with(*quote));
    match quote {
        // A single quote character is its own pair: Python's slice of it is empty.
        Some(_) if text.len() == 1 => "",
        Some(_) => &text[1..text.len() - 1],
        None => text,
    }
}

/// `int(text)` as a float, because the benchmarks compare floats. The text may have white space at both ends, a sign,
/// and single underscores between digits.
#[must_use]
pub(crate) fn int(text: &str) -> Option<f64> {
    let text = &*ascii_digits(text.trim());
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_plain = digits.split('_').all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    if is_plain { text.replace('_', "").parse().ok() } else { None }
}

/// The decimal digits of all scripts but ASCII's.
static DIGIT: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"[\p{Nd}&&[^0-9]]").expect("a pattern of ours"));

/// Converts the decimal digits of all scripts to ASCII; Python's numbers may have any.
#[must_use]
pub(super) fn ascii_digits(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let ascii = |found: &regex::Captures<'_>| {
        found[0].chars().next().and_then(deunicode::deunicode_char).unwrap_or_default().to_owned()
    };
    DIGIT.replace_all(text, ascii)
}

/// Digits that are not decimal ones of a script: raised, lowered and circled ones, and those of scripts without a zero.
const OTHER_DIGITS: [RangeInclusive<char>; 20] = [
    '\u{b2}'..='\u{b3}',
    '\u{b9}'..='\u{b9}',
    '\u{1369}'..='\u{1371}',
    '\u{19da}'..='\u{19da}',
    '\u{2070}'..='\u{2070}',
    '\u{2074}'..='\u{2079}',
    '\u{2080}'..='\u{2089}',
    '\u{2460}'..='\u{2468}',
    '\u{2474}'..='\u{247c}',
    '\u{2488}'..='\u{2490}',
    '\u{24ea}'..='\u{24ea}',
    '\u{24f5}'..='\u{24fd}',
    '\u{24ff}'..='\u{24ff}',
    '\u{2776}'..='\u{277e}',
    '\u{2780}'..='\u{2788}',
    '\u{278a}'..='\u{2792}',
    '\u{10a40}'..='\u{10a43}',
    '\u{10e60}'..='\u{10e68}',
    '\u{11052}'..='\u{1105a}',
    '\u{1f100}'..='\u{1f10a}',
];

/// `str.isdigit()` of one character.
pub(crate) fn is_digit(c: char) -> bool {
    c.is_ascii_digit()
        || DIGIT.is_match(c.encode_utf8(&mut [0; 4]))
        || OTHER_DIGITS.iter().any(|digits| digits.contains(&c))
}

/// `not value` in Python.
#[must_use]
pub(crate) fn is_falsy(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(entries) => entries.is_empty(),
    }
}

/// `str(value)` of the result of a page's script: `None`, `True`, `['a', 'b']`, `{'a': 1}`; texts stay unchanged.
#[must_use]
pub fn to_str(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => repr(other),
    }
}

/// `repr(value)`.
#[must_use]
pub(crate) fn repr(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) => number_repr(number),
        Value::String(text) => text_repr(text),
        Value::Array(items) => format!("[{}]", items.iter().map(repr).collect::<Vec<_>>().join(", ")),
        Value::Object(_) if let Some(number) = json::beyond(value) => number.to_owned(),
        Value::Object(entries) => {
            let entries: Vec<String> =
                entries.iter().map(|(key, value)| format!("{}: {}", text_repr(key), repr(value))).collect();
            format!("{{{}}}", entries.join(", "))
        }
    }
}

/// A browser's integer arrives as a Python integer; `1e21` and larger numbers arrive as floats.
fn number_repr(number: &serde_json::Number) -> String {
    match number.as_f64() {
        Some(float) if !number.is_i64() && !number.is_u64() => float_repr(float),
        _ => number.to_string(),
    }
}

/// `repr(float)`: the shortest digits that denote the same number, with an exponent below 1e-4 and from 1e16 on.
#[must_use]
pub fn float_repr(float: f64) -> String {
    if !float.is_finite() {
        return float.to_string().to_lowercase();
    }
    let magnitude = float.abs();
    if magnitude != 0.0 && !(1e-4..1e16).contains(&magnitude) {
        let text = format!("{float:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let exponent: i32 = exponent.parse().unwrap_or_default();
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    let text = float.to_string();
    if text.contains('.') { text } else { text + ".0" }
}

/// Returns a text in single quotes, or in double quotes if it contains single but no double ones.
fn text_repr(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::from(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c if is_printable(c) => out.push(c),
            c => {
                let code = u32::from(c);
                let _ = match code {
                    0..=0xff => write!(out, "\\x{code:02x}"),
                    0x100..=0xffff => write!(out, "\\u{code:04x}"),
                    _ => write!(out, "\\U{code:08x}"),
                };
            }
        }
    }
    out.push(quote);
    out
}

/// `str.isprintable()` of one character, for the characters of pages. Control characters, separators except the blank,
/// format characters and private use are not printable.
fn is_printable(c: char) -> bool {
    if c == ' ' {
        return true;
    }
    let is_format = matches!(c, '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{180e}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{e000}'..='\u{f8ff}'
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{f0000}'..='\u{10ffff}');
    !c.is_control() && !c.is_whitespace() && !is_format
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The expected values are the output of CPython 3.11.
    #[test]
    fn values_print_as_in_python() {
        let cases = [
            (json!(null), "None"),
            (json!(true), "True"),
            (json!(5), "5"),
            (json!(5.5), "5.5"),
            (json!(1e22), "1e+22"),
            (json!(1e-7), "1e-07"),
            (json!(0.1), "0.1"),
            (json!("a'b"), "a'b"),
            (json!(["a", 'b']), "['a', 'b']"),
            (json!(["it's"]), "[\"it's\"]"),
            (json!(["it's \"x\""]), "['it\\'s \"x\"']"),
            (json!(["a\n\u{a0}\u{200b}é"]), "['a\\n\\xa0\\u200bé']"),
            (json!({"a": [1, null]}), "{'a': [1, None]}"),
        ];
        for (value, expected) in cases {
            assert_eq!(to_str(&value), expected);
        }
    }
}
