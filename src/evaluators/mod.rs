//! Judges what an agent did. Pure: values come in, verdicts go out.

pub mod question;
pub mod text;
pub mod verdict;
pub mod webarena;
pub mod webarena_verified;
