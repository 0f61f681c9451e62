//! Text as the benchmarks' Python code treats it.

mod punkt;
mod punkt_english;
pub mod python;
mod tokens;

pub use tokens::word_tokenize;
