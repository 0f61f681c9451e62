//! What the benchmarks' own code answered, and what arenad answers.

#[path = "../differential/answers.rs"]
mod answers;
mod benchmark;
mod corpus;
mod decided;
mod mended;
mod seen;
mod strict;
mod vectors;
mod verified;
mod visual;
mod webarena;
