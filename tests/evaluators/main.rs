//! What the benchmarks' own code answered, and what arenad answers.

mod benchmark;
mod vectors;
mod verified;
mod webarena;
