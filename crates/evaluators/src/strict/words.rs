//! Whether a text contains words and numbers, as opposed to sequences of characters.

use std::ops::Range;

use super::numbers::{self, Amount};
use crate::text::python;

/// Endings that do not make a different word for these tasks, whose references are often stems.
const ENDINGS: [&str; 12] = ["s", "es", "'s", "d", "ed", "ing", "er", "ers", "ship", "ships", "up", "ups"];

/// Folds a text for comparison: lower case, plain quotes and dashes, single blanks, no invisible characters.
pub(crate) fn fold(text: &str) -> String {
    let plain: String = text
        .to_lowercase()
        .chars()
        .filter(|c| !matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}'))
        .map(|c| match c {
            '‘' | '’' | '‛' | '′' => '\'',
            '“' | '”' | '„' | '″' => '"',
            '‐' | '‑' | '–' | '−' => '-',
            c => c,
        })
        .collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether two texts are equal except for case, white space, quotes around them, a final full stop, and the spelling of
/// numbers.
pub(crate) fn same(reference: &str, text: &str) -> bool {
    let bare = |text: &str| {
        let folded = fold(text);
        let bare = python::unquote(&folded).trim();
        units(bare.strip_suffix(['.', '!']).unwrap_or(bare).trim_end())
    };
    let (reference, text) = (bare(reference), bare(text));
    if reference == text {
        return true;
    }
    match (Amount::of(&reference), Amount::of(&text)) {
        (Some(reference), Some(text)) => reference == text,
        _ => false,
    }
}

/// Whether a text contains a reference. A number may have any spelling; words have to be whole and consecutive. `100`
/// does not contain `10`, and `start` does not contain `art`.
pub(crate) fn says(text: &str, reference: &str) -> bool {
    let (text, reference) = (fold(text), fold(reference));
    let reference = python::unquote(&reference).trim();
    match Amount::of(reference) {
        Some(amount) => numbers::amounts(&text).iter().any(|found| found.is(&amount)),
        None => has_words(&text, reference) || has_words(&units(&text), &units(reference)),
    }
}

/// Whether a text contains any of several alternatives.
pub(super) fn says_any(text: &str, references: &str) -> bool {
    references.split(crate::webarena::OR).any(|reference| says(text, reference))
}

/// Whether a text contains consecutive whole words.
pub(crate) fn has_words(text: &str, words: &str) -> bool {
    places(text, words).next().is_some()
}

/// Returns the positions of consecutive whole words in a text.
pub(super) fn positions(text: &str, words: &str) -> Vec<Range<usize>> {
    places(text, words).collect()
}

fn places<'a>(text: &'a str, words: &'a str) -> impl Iterator<Item = Range<usize>> + 'a {
    let ends_of = (words.chars().next(), words.chars().next_back());
    text.match_indices(words).map(|(at, found)| at..at + found.len()).filter(move |place| match ends_of {
        (Some(first), Some(last)) => begins(&text[..place.start], first) && ends(&text[place.end..], last),
        _ => false,
    })
}

/// Whether a word that begins with `first` may follow this text.
fn begins(before: &str, first: char) -> bool {
    let mut chars = before.chars().rev();
    match chars.next() {
        None => true,
        Some(c) if first.is_ascii_digit() && ".,".contains(c) => !chars.next().is_some_and(|c| c.is_ascii_digit()),
        Some(c) => !joins(c, first),
    }
}

/// Whether a word that ends with `last` may precede this text.
fn ends(after: &str, last: char) -> bool {
    let word_end = after.find(|c: char| !c.is_alphanumeric() && c != '\'').unwrap_or(after.len());
    let mut chars = after.chars();
    match chars.next() {
        None => true,
        Some(c) if last.is_ascii_digit() && ".,".contains(c) => !chars.next().is_some_and(|c| c.is_ascii_digit()),
        Some(_) if last.is_alphabetic() && ENDINGS.contains(&&after[..word_end]) => true,
        Some(c) => !joins(last, c),
    }
}

/// Whether two adjacent characters belong to one word. Scripts without blanks between words are excluded.
fn joins(one: char, other: char) -> bool {
    let is_part = |c: char| c.is_alphanumeric() && c < '\u{2e80}';
    is_part(one) && is_part(other)
}

/// The names of units, by their normal form.
const UNITS: [(&str, &[&str]); 7] = [
    ("m", &["meter", "meters", "metre", "metres"]),
    ("km", &["kilometer", "kilometers", "kilometre", "kilometres", "kms"]),
    ("mi", &["mile", "miles"]),
    ("ft", &["foot", "feet"]),
    ("h", &["hr", "hrs", "hour", "hours"]),
    ("min", &["mins", "minute", "minutes"]),
    ("s", &["sec", "secs", "second", "seconds"]),
];

/// Removes the blanks between numbers and units, and replaces the names of units by their normal form: `1.7 kilometers`
/// becomes `1.7km`.
fn units(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let is_behind_number = out.ends_with(|c: char| c.is_ascii_digit());
        let unit = rest.strip_prefix(' ').unwrap_or(rest);
        if is_behind_number && unit.starts_with(|c: char| c.is_ascii_alphabetic()) {
            let end = unit.find(|c: char| !c.is_alphanumeric()).unwrap_or(unit.len());
            let word = &unit[..end];
            let known = UNITS.iter().find(|(_, names)| names.contains(&word));
            out.push_str(known.map_or(word, |(unit, _)| *unit));
            rest = &unit[end..];
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_whole() {
        for (text, reference) in [
            ("Allentown, Art, AskReddit", "art"),
            ("see http://h/media/B00NIN2O28.1.jpg", "B00NIN2O28.1.jpg"),
            ("two roller skates", "roller skate"),
            ("a long-distance relationship", "relation"),
            ("It’s 1.7 km away", "1.7km"),
            ("It’s 1.7 kilometers away", "1.7km"),
            ("914 kilometres", "914km"),
            ("vote vote--user-upvoted", "vote vote--user-upvoted"),
            ("found on H/item&id=4208.", "item&id=4208"),
            ("“Why not Zoidberg?”", "\"why not zoidberg?\""),
            ("東京タワーです", "タワー"),
            ("the answer is\n\u{a0}Yes.", "yes"),
        ] {
            assert!(says(text, reference), "{text}: {reference}");
        }
        for (text, reference) in [
            ("it starts", "art"),
            ("item&id=42081", "item&id=4208"),
            ("xB00NIN2O28.1.jpg", "B00NIN2O28.1.jpg"),
            ("mental", "men"),
            ("21.7 km", "1.7km"),
            ("3,1.7km", "1.7km"),
            ("", "yes"),
            ("anything", ""),
        ] {
            assert!(!says(text, reference), "{text}: {reference}");
        }
    }

    #[test]
    fn the_same_may_be_written_differently() {
        for (reference, text) in [
            ("Yes", "yes."),
            ("1,234.50", "1234.5"),
            ("748m", "748 m"),
            ("748m", "748 meters."),
            ("Erik  Linder-Norén", "'Erik Linder–norén'"),
        ] {
            assert!(same(reference, text), "{reference}: {text}");
        }
        for (reference, text) in [("06516", "6516"), ("Yes", "yes, no"), ("5", "$5"), ("1.7km", "1.7 mi")] {
            assert!(!same(reference, text), "{reference}: {text}");
        }
    }
}
