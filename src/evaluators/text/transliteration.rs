//! `unidecode.unidecode`: any text in ASCII letters.

use super::transliteration_table::{NOTHING, OTHER, UNKNOWN};

/// A character of which nobody here knows what Unidecode makes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("what Unidecode makes of {0:?} (U+{code:04X}) is not known", code = u32::from(*.0))]
pub struct Unknown(pub char);

/// The text in ASCII and lower case, as `unidecode(text).casefold()` gives it for a text in NFKC, controls left out.
///
/// # Errors
///
/// When the text has a character whose transliteration is not known.
pub fn transliterate(text: &str) -> Result<String, Unknown> {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii() {
            out.push(c.to_ascii_lowercase());
        } else if let Ok(at) = OTHER.binary_search_by_key(&c, |(other, _)| *other) {
            out.push_str(OTHER[at].1);
        } else if is_in(UNKNOWN, c) {
            return Err(Unknown(c));
        } else if !is_in(NOTHING, c) {
            let ascii = deunicode::deunicode_char(c).unwrap_or_default();
            out.extend(ascii.chars().map(|c| c.to_ascii_lowercase()));
        }
    }
    Ok(out)
}

fn is_in(ranges: &[(u32, u32)], c: char) -> bool {
    let code = u32::from(c);
    let after = ranges.partition_point(|(first, _)| *first <= code);
    after > 0 && code <= ranges[after - 1].1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_become_ascii() {
        let cases = [("Café Straße", "cafe strasse"), ("北京", "bei jing "), ("Ёлка, Щука", "iolka, shchuka")];
        for (text, expected) in cases {
            assert_eq!(transliterate(text).expect(text), expected);
        }
        assert_eq!(transliterate("a\u{1f600}b\u{200b}シ"), Ok("abshi".to_owned()));
        assert_eq!(transliterate("⠿⡀"), Err(Unknown('⡀')));
    }

    #[test]
    fn tables_are_sorted() {
        assert!(OTHER.is_sorted_by(|one, next| one.0 < next.0));
        for ranges in [NOTHING, UNKNOWN] {
            assert!(ranges.iter().all(|(first, last)| first <= last));
            assert!(ranges.is_sorted_by(|one, next| one.1 < next.0));
        }
    }
}
