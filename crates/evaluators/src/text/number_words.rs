//! English number words from `zero` to `ninety`, with their values.

const SMALL: [&str; 20] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];

const TENS: [&str; 8] = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];

/// Returns the value of a word from `zero` to `nineteen`.
pub(crate) fn small(word: &str) -> Option<u32> {
    place(&SMALL, word)
}

/// Returns the value of a word from `twenty` to `ninety`.
pub(crate) fn tens(word: &str) -> Option<u32> {
    place(&TENS, word).map(|at| at * 10 + 20)
}

fn place(words: &[&str], word: &str) -> Option<u32> {
    words.iter().position(|known| *known == word).and_then(|at| u32::try_from(at).ok())
}
