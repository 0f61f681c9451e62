//! The benchmarks' own task files, where they lie.

use std::path::PathBuf;

/// A file of the benchmarks' data, or nothing when the caller has not said where they are.
pub fn file(path: &str) -> Option<String> {
    let folder = PathBuf::from(std::env::var_os("ARENAD_BENCHMARK_DATA")?);
    let path = folder.join(path);
    Some(std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}
