//! `string` and `string_list`, and the normal form of texts that most types start from.

use std::sync::LazyLock;

use fancy_regex::Regex;
use serde_json::Value;
use unicode_normalization::UnicodeNormalization;

use super::{Normal, TypedValue};
use crate::text::patterns::{Mode, Patterns};
use crate::text::python::{self, is_falsy};
use crate::text::transliteration::transliterate;
use crate::webarena_verified::failure::ReadingFailure;
use crate::webarena_verified::reading::ReadingOptions;
use arenad_verdict::Profile;

/// Any hyphen beside a letter. Hyphens between digits are kept.
static HYPHEN: LazyLock<Regex> = LazyLock::new(|| {
    const HYPHENS: &str = r"[\x{2d}\x{2010}-\x{2015}\x{2212}\x{ad}]";
    Regex::new(&format!("(?<=[a-zA-Z]){HYPHENS}|{HYPHENS}(?=[a-zA-Z])")).expect("a pattern of ours")
});

/// Converts a text to ASCII and lower case with single blanks, removes symbols such as ™, and replaces the sites'
/// addresses by placeholders. Patterns stay unchanged.
pub(in super::super) fn normalise_text(text: &str, reading: &ReadingOptions<'_>) -> String {
    if text.is_empty() || reading.is_pattern(text) {
        return text.to_owned();
    }
    let mut text = if text.contains("http") { reading.derender_text(text) } else { text.to_owned() };
    if !text.is_ascii() {
        text = text.chars().filter(|c| !['™', '®', '℠', '©'].contains(c)).nfkc().collect();
    }
    if text.contains(['-', '\u{ad}']) || !text.is_ascii() {
        text = HYPHEN.replace_all(&text, " ").into_owned();
    }
    // Removes control characters except the white space of lines.
    let text: String = text
        .chars()
        .filter_map(|c| match c {
            '\t' | '\n' | '\r' => Some(' '),
            c if c.is_ascii_control() => None,
            c => Some(c),
        })
        .collect();
    let text = transliterate(&text);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Reads a `string`; a falsy value is an empty text.
pub(super) fn normalise(value: &Value, reading: &ReadingOptions<'_>) -> Result<Normal, ReadingFailure> {
    if is_falsy(value) {
        return Ok(Normal::Text(String::new()));
    }
    let text = match value {
        Value::String(text) if reading.is_pattern(text) => python::strip(text).to_owned(),
        Value::String(text) => normalise_text(text, reading),
        other => python::to_str(other).to_lowercase(),
    };
    Ok(Normal::Text(text))
}

/// Whether the texts are equal, one is matched by a pattern, or they are equal without the quotes and punctuation at
/// their ends.
pub(super) fn equal(
    expected: &TypedValue,
    actual: &TypedValue,
    profile: Profile,
    patterns: &Patterns,
) -> Result<bool, ReadingFailure> {
    if expected.is_matched(actual, Mode::WholeIgnoringCase, profile, patterns)? {
        return Ok(true);
    }
    let bare = |text: &str| text.trim_matches(['\'', '"', '`', '.', ',', ';', ':', '!', '?']).to_owned();
    Ok(expected
        .texts()
        .any(|expected| actual.texts().any(|actual| expected == actual || bare(expected) == bare(actual))))
}

/// Reads a `string_list`: texts separated by commas. They are sorted.
pub(super) fn list(value: &Value) -> Result<Normal, ReadingFailure> {
    if is_falsy(value) {
        return Err(ReadingFailure::raised("the list is empty"));
    }
    let text = python::to_str(value);
    let mut items: Vec<String> =
        text.split(',').map(python::strip).filter(|item| !item.is_empty()).map(str::to_owned).collect();
    if items.is_empty() {
        return Err(ReadingFailure::raised("the list has no items"));
    }
    items.sort();
    Ok(Normal::List(items))
}
