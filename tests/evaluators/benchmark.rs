//! The benchmarks' own task files.

use std::path::PathBuf;

/// Reads a file of the benchmarks' data. Tests that call this are `#[ignore]`d; `scripts/test.sh` runs them if the data
/// exists.
pub fn file(path: &str) -> String {
    let folder = std::env::var_os("ARENAD_BENCHMARK_DATA").expect("ARENAD_BENCHMARK_DATA names the benchmarks' data");
    let path = PathBuf::from(folder).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
