//! What the benchmarks' own code answered, and what arenad answers.

mod vectors;
mod webarena;
