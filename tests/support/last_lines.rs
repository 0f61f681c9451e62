//! The ends of logs, for failed tests.

use std::path::Path;

/// Returns the last lines of a file; nothing if it cannot be read.
pub fn last_lines(path: &Path, number: usize) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(number)..].join("\n")
}
