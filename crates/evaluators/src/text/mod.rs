//! Operations on texts that reproduce the benchmarks' Python code.

pub(crate) mod dates;
pub(crate) mod json;
pub(crate) mod number_words;
pub(crate) mod numbers;
pub mod patterns;
mod punkt;
mod punkt_english;
pub mod python;
pub(crate) mod python_list;
pub(crate) mod raised;
mod tokens;
pub(crate) mod transliteration;
mod transliteration_table;
pub mod urls;

pub use tokens::{Nltk, word_tokenize};
