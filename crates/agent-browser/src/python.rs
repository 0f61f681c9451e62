//! The texts that Python makes of values, as observations contain them.

use serde_json::Value as Json;

/// Returns `repr(text)`.
pub(crate) fn repr(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::with_capacity(text.len() + 2);
    out.push(quote);
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' => out.push_str("\\\\"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c if is_printable(c) => out.push(c),
            c => out.push_str(&match u32::from(c) {
                code @ 0..=0xff => format!("\\x{code:02x}"),
                code @ 0..=0xffff => format!("\\u{code:04x}"),
                code => format!("\\U{code:08x}"),
            }),
        }
    }
    out.push(quote);
    out
}

/// Whether `str.isprintable` holds for the character. Rust's table has the same categories, and leaves combining
/// characters alone if another character precedes them.
fn is_printable(c: char) -> bool {
    matches!(c, '\'' | '"' | '\\') || ['a', c].iter().collect::<String>().escape_debug().eq(['a', c])
}

/// Returns `str(value)` of a value of the protocol.
pub(crate) fn str_of(value: &Json) -> String {
    match value {
        Json::Null => "None".to_owned(),
        Json::Bool(true) => "True".to_owned(),
        Json::Bool(false) => "False".to_owned(),
        Json::Number(number) => number.to_string(),
        Json::String(text) => text.clone(),
        Json::Array(items) => format!("[{}]", items.iter().map(repr_of).collect::<Vec<_>>().join(", ")),
        Json::Object(members) => {
            let members = members.iter().map(|(key, value)| format!("{}: {}", repr(key), repr_of(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
    }
}

fn repr_of(value: &Json) -> String {
    value.as_str().map_or_else(|| str_of(value), repr)
}

/// Whether `str.isspace` holds for the character.
pub(crate) fn is_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{1c}'..='\u{1f}')
}

/// Whether `text.strip()` is empty.
pub(crate) fn is_blank(text: &str) -> bool {
    text.chars().all(is_space)
}

/// Returns `" ".join(text.split())`.
pub(crate) fn joined_words(text: &str) -> String {
    text.split(is_space).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // The expected texts are what CPython 3.11 prints.
    #[test]
    fn texts_are_quoted_as_python_quotes_them() {
        for (text, expected) in [
            ("Add to Cart", "'Add to Cart'"),
            ("it's", "\"it's\""),
            ("\"it's\"", "'\"it\\'s\"'"),
            ("say \"x\"", "'say \"x\"'"),
            ("a\\b\n\t\r", "'a\\\\b\\n\\t\\r'"),
            ("\u{f104}", "'\\uf104'"),
            ("\u{a0}x", "'\\xa0x'"),
            ("\u{0}\u{7f}", "'\\x00\\x7f'"),
            ("é ü 日本 😀", "'é ü 日本 😀'"),
            ("e\u{301}", "'e\u{301}'"),
            ("\u{200b}", "'\\u200b'"),
            ("\u{e0001}", "'\\U000e0001'"),
            ("", "''"),
        ] {
            assert_eq!(repr(text), expected, "{text:?}");
        }
    }

    #[test]
    fn values_are_written_as_python_writes_them() {
        assert_eq!(str_of(&json!(true)), "True");
        assert_eq!(str_of(&json!(false)), "False");
        assert_eq!(str_of(&json!("menu")), "menu");
        assert_eq!(str_of(&json!(0)), "0");
        assert_eq!(str_of(&json!(0.5)), "0.5");
        assert_eq!(str_of(&json!(["a", 1, null])), "['a', 1, None]");
        assert_eq!(joined_words(" a \n\t b\u{a0}c "), "a b c");
        assert!(is_blank("\u{1f} \n") && !is_blank(" x"));
    }
}
