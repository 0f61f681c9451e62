//! What the benchmarks' own code answered, and what arenad answers.

mod benchmark;
mod seen;
mod strict;
mod vectors;
mod visual;
mod webarena;
