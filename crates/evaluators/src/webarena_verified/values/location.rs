//! `location-name`: names that are similar by at least 80 %, in any order of words.
//!
//! Source: thefuzz 0.22, `fuzz.token_sort_ratio`, on RapidFuzz 3.

use serde_json::Value;

use super::Normal;
use crate::text::python::{self, is_falsy};
use crate::webarena_verified::failure::ReadingFailure;

/// The least similarity of equal names, in per cent.
const THRESHOLD: f64 = 80.0;

pub(super) fn normalise(value: &Value) -> Result<Normal, ReadingFailure> {
    match value {
        Value::Null => Err(ReadingFailure::raised("the name is missing")),
        value if is_falsy(value) => Ok(Normal::Text(String::new())),
        value => Ok(Normal::Text(python::strip(&python::to_str(value).to_lowercase()).to_owned())),
    }
}

/// Whether the names are similar enough after their words have been sorted.
pub(super) fn equal(one: &str, other: &str) -> bool {
    if one.is_empty() || other.is_empty() {
        return one == other;
    }
    let (one, other) = (sorted_words(one), sorted_words(other));
    ratio(&one, &other).round_ties_even() >= THRESHOLD
}

/// Sorts the words. ASCII characters other than letters and digits separate words; non-ASCII characters are removed.
fn sorted_words(text: &str) -> Vec<u8> {
    let text: String = text
        .chars()
        .filter(char::is_ascii)
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { ' ' })
        .collect();
    let mut words: Vec<&str> = text.split_whitespace().collect();
    words.sort_unstable();
    words.join(" ").into_bytes()
}

/// Returns the share of the longest common subsequence in two texts, in per cent.
#[expect(clippy::cast_precision_loss, reason = "texts are short of 2^52 letters")]
fn ratio(one: &[u8], other: &[u8]) -> f64 {
    let (short, long) = if one.len() < other.len() { (one, other) } else { (other, one) };
    let sum = (short.len() + long.len()) as f64;
    // The subsequence is at most as long as the shorter text. This check also limits the running time.
    if sum > 0.0 && 200.0 * short.len() as f64 / sum < THRESHOLD - 1.0 {
        return 0.0;
    }
    let distance = sum - 2.0 * common(short, long) as f64;
    let normalised = if sum > 0.0 { distance / sum } else { 0.0 };
    (1.0 - normalised) * 100.0
}

/// Returns the length of the longest common subsequence.
fn common(one: &[u8], other: &[u8]) -> usize {
    let mut row = vec![0; other.len() + 1];
    for left in one {
        let mut diagonal = 0;
        for (at, right) in other.iter().enumerate() {
            let above = row[at + 1];
            row[at + 1] = if left == right { diagonal + 1 } else { above.max(row[at]) };
            diagonal = above;
        }
    }
    row[other.len()]
}
