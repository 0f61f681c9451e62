//! What the benchmarks' own code answered, and what arenad answers.

mod benchmark;
mod seen;
mod strict;
mod vectors;
mod verified;
mod visual;
mod webarena;
