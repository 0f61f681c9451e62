//! `unidecode.unidecode`: transliteration of any text to ASCII.

use std::fmt::Write;

use super::transliteration_table::{NOTHING, OTHER};

/// Converts a text to ASCII and lower case, as `unidecode(text).casefold()` does for a text in NFKC without control
/// characters.
#[must_use]
pub(crate) fn transliterate(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii() {
            out.push(c.to_ascii_lowercase());
        } else if let Ok(at) = OTHER.binary_search_by_key(&c, |(other, _)| *other) {
            out.push_str(OTHER[at].1);
        } else if !of_a_kind(c, &mut out) && !is_in(NOTHING, c) {
            let ascii = deunicode::deunicode_char(c).unwrap_or_default();
            out.extend(ascii.chars().map(|c| c.to_ascii_lowercase()));
        }
    }
    out
}

/// Writes characters that Unidecode spells by a rule: Braille patterns of more than six dots, and letters in circles
/// and boxes. Returns whether `c` is one of them.
fn of_a_kind(c: char, out: &mut String) -> bool {
    let letter = |first: char| char::from(b'a' + u8::try_from(u32::from(c) - u32::from(first)).unwrap_or_default());
    let _ = match c {
        '\u{2840}'..='\u{28ff}' => {
            let dots = (0..8).filter(|dot| u32::from(c) >> dot & 1 == 1).map(|dot| char::from(b'1' + dot));
            write!(out, "[d{}]", dots.collect::<String>())
        }
        '\u{1f150}'..='\u{1f169}' => write!(out, "({})", letter('\u{1f150}')),
        '\u{1f170}'..='\u{1f189}' => write!(out, "[{}]", letter('\u{1f170}')),
        _ => return false,
    };
    true
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
            assert_eq!(transliterate(text), expected);
        }
        assert_eq!(transliterate("a\u{1f600}b\u{200b}シ"), "abshi");
        assert_eq!(transliterate("⠿⡀⣿⟩🆗🆕🅐🅱⸺🙰"), "=[d7][d12345678]> [ok][new](a)[b]----et");
    }

    #[test]
    fn tables_are_sorted() {
        assert!(OTHER.is_sorted_by(|one, next| one.0 < next.0));
        assert!(NOTHING.iter().all(|(first, last)| first <= last));
        assert!(NOTHING.is_sorted_by(|one, next| one.1 < next.0));
    }
}
