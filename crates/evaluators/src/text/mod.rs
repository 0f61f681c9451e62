//! Operations on texts that reproduce the benchmarks' Python code.

pub mod dates;
pub mod json;
pub mod number_words;
pub mod numbers;
pub mod patterns;
mod punkt;
mod punkt_english;
pub mod python;
mod tokens;
pub mod transliteration;
mod transliteration_table;
pub mod urls;

pub use tokens::{Nltk, word_tokenize};
