//! Compares arenad's answers with the recorded answers of the benchmarks' own code.

#[path = "../differential/answers.rs"]
mod answers;
mod benchmark;
mod corpus;
mod decided;
mod mended;
mod mind2web;
mod seen;
mod strict;
mod turkingbench;
mod vectors;
mod verified;
mod visual;
mod webarena;
mod webcanvas;
