//! Lists of texts in Python's notation, which Turkle writes into its results where a field was sent more than once.

use std::iter::Peekable;
use std::str::Chars;

/// Reads a list such as `['a', "it's"]`; `None` if the text is anything else.
pub(crate) fn texts(text: &str) -> Option<Vec<String>> {
    let mut chars = text.strip_prefix('[')?.strip_suffix(']')?.chars().peekable();
    let mut found = Vec::new();
    while let Some(quote) = chars.next() {
        if !matches!(quote, '\'' | '"') {
            return None;
        }
        let mut item = String::new();
        loop {
            match chars.next()? {
                c if c == quote => break,
                '\\' => item.push(escaped(&mut chars)?),
                c => item.push(c),
            }
        }
        found.push(item);
        match chars.next() {
            None => break,
            Some(',') => {
                chars.next_if_eq(&' ');
            }
            Some(_) => return None,
        }
    }
    Some(found)
}

/// Reads the rest of an escape that `repr` writes, such as `\n`, `\x0b` or `\u200b`.
fn escaped(chars: &mut Peekable<Chars<'_>>) -> Option<char> {
    let digits = match chars.next()? {
        'n' => return Some('\n'),
        'r' => return Some('\r'),
        't' => return Some('\t'),
        same @ ('\\' | '\'' | '"') => return Some(same),
        'x' => 2,
        'u' => 4,
        'U' => 8,
        _ => return None,
    };
    let code: String = chars.by_ref().take(digits).collect();
    char::from_u32(u32::from_str_radix(&code, 16).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The texts are the output of `str(list)` in Python.
    #[test]
    fn lists_are_read_as_python_writes_them() {
        let read = |text: &str| texts(text);
        assert_eq!(
            read(r#"['a', "it's", 'two\nlines', '\u200b\x0b']"#),
            Some(vec!["a".to_owned(), "it's".to_owned(), "two\nlines".to_owned(), "\u{200b}\u{b}".to_owned(),])
        );
        assert_eq!(read("['only']"), Some(vec!["only".to_owned()]));
        for other in ["a|b", "['a'", "[1, 2]", "['a' 'b']", "", r"['\q']", "['a', 'b"] {
            assert_eq!(read(other), None, "{other}");
        }
        assert_eq!(read("[]"), Some(Vec::new()));
    }
}
