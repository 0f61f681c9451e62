//! `number` and `integer`, in digits or in English words.
//!
//! Source of the rules for words: word2number 1.1.

use serde_json::Value;

use super::{Normal, refuse_empty};
use crate::text::{json, number_words, numbers, python};
use crate::webarena_verified::failure::ReadingFailure;

pub(super) fn normalise(value: &Value) -> Result<Normal, ReadingFailure> {
    refuse_empty(value)?;
    match value {
        Value::Bool(value) => return Ok(Normal::Number(f64::from(u8::from(*value)))),
        Value::Number(number) => return Ok(Normal::Number(number.as_f64().unwrap_or(f64::NAN))),
        number if let Some(text) = json::beyond(number) => {
            let float: f64 = text.parse().unwrap_or(f64::NAN);
            // Python raises if an integer is too large for a float.
            if float.is_infinite() && !text.ends_with("inf") {
                return Err(ReadingFailure::raised("the number is too large for a float"));
            }
            return Ok(Normal::Number(float));
        }
        _ => {}
    }
    let text = python::to_str(value);
    let digits = text.replace([',', ' '], "");
    numbers::float(&digits)
        .or_else(|| words(&text))
        .map(Normal::Number)
        .ok_or_else(|| ReadingFailure::raised(format!("{value} is not a number")))
}

/// Returns the value of a word. `point` has none and is handled by the caller.
fn value_of(word: &str) -> Option<f64> {
    match word {
        "hundred" => Some(1e2),
        "thousand" => Some(1e3),
        "million" => Some(1e6),
        "billion" => Some(1e9),
        _ => number_words::small(word).or_else(|| number_words::tens(word)).map(f64::from),
    }
}

/// `word_to_num(text)`; `None` if it raises. Words that are not numbers are ignored.
fn words(text: &str) -> Option<f64> {
    let text = text.replace('-', " ").to_lowercase();
    let words: Vec<&str> =
        text.split_whitespace().filter(|word| *word == "point" || value_of(word).is_some()).collect();
    if words.is_empty() {
        return None;
    }
    let place = |name: &str| words.iter().position(|word| *word == name);
    let is_repeated = |name: &&str| words.iter().filter(|word| *word == name).count() > 1;
    if ["thousand", "million", "billion", "point"].iter().any(is_repeated) {
        return None;
    }
    let (whole, decimals) = match place("point") {
        Some(at) => (&words[..at], &words[at + 1..]),
        None => (&words[..], &[][..]),
    };
    let place = |name: &str| whole.iter().position(|word| *word == name);
    let (billion, million, thousand) = (place("billion"), place("million"), place("thousand"));
    // An absent multiplier counts as standing before all others.
    if (thousand.is_some() && (thousand < million || thousand < billion)) || (million.is_some() && million < billion) {
        return None;
    }
    let mut sum = 0.0;
    match whole {
        [] => {}
        [word] => sum = value_of(word)?,
        _ => {
            if let Some(at) = billion {
                sum += formed(&whole[..at])? * 1e9;
            }
            if let Some(at) = million {
                sum += formed(&whole[billion.map_or(0, |at| at + 1)..at])? * 1e6;
            }
            if let Some(at) = thousand {
                sum += formed(&whole[million.or(billion).map_or(0, |at| at + 1)..at])? * 1e3;
            }
            // The remainder follows the smallest multiplier. If that one ends the number, the next larger one is used.
            let last = whole.len() - 1;
            let rest = [thousand, million, billion].into_iter().flatten().find(|at| *at != last);
            if let Some(at) = rest {
                sum += formed(&whole[at + 1..])?;
            } else if billion.or(million).or(thousand).is_none() {
                sum += formed(whole)?;
            }
        }
    }
    if decimals.is_empty() { Some(sum) } else { Some(sum + fraction(decimals)?) }
}

/// Returns the number of up to four words, such as `two hundred and fifty one` without `and`.
fn formed(words: &[&str]) -> Option<f64> {
    let numbers: Vec<f64> = words.iter().map(|word| value_of(word)).collect::<Option<_>>()?;
    match numbers[..] {
        [one, two, three, four] => Some(one * two + three + four),
        [one, two, three] => Some(one * two + three),
        [one, two] if numbers.contains(&100.0) => Some(one * two),
        [one, two] => Some(one + two),
        [one, ..] => Some(one),
        [] => None,
    }
}

/// Returns the fraction from the words behind `point`, each a digit; 0 if any word is not a digit.
fn fraction(words: &[&str]) -> Option<f64> {
    let mut digits = String::from("0.");
    for word in words {
        match value_of(word) {
            Some(value) if value < 10.0 => digits.push_str(&value.to_string()),
            _ => return Some(0.0),
        }
    }
    digits.parse().ok()
}
