//! The text of one file of a definition, and positions in it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Maximum size of a file, in bytes. The longest known definition (all of WebArena) is below 30 KiB. The limit leaves
/// ample room and bounds the time spent on a hostile file.
pub const SOURCE_MAX_BYTES: usize = 256 * 1024;

/// One file, read once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceFile {
    /// Path relative to the root folder, as diagnostics show it.
    pub path: PathBuf,
    /// Complete text of the file.
    pub text: String,
}

impl SourceFile {
    /// Creates a file from its text and its path relative to the root folder.
    pub fn new(path: impl Into<PathBuf>, text: impl Into<String>) -> Self {
        Self { path: path.into(), text: text.into() }
    }

    /// Returns the path with forward slashes, as diagnostics show it.
    pub(crate) fn shown_path(&self) -> String {
        self.path.to_string_lossy().replace('\\', "/")
    }

    /// Returns a line by its number, without its end, or an empty text if the line does not exist.
    pub(crate) fn line(&self, number: usize) -> &str {
        let line = number.checked_sub(1).and_then(|index| self.text.split('\n').nth(index)).unwrap_or_default();
        // Columns do not count a byte order mark, so the line has none either.
        let line = line.strip_prefix('\u{feff}').unwrap_or(line);
        line.strip_suffix('\r').unwrap_or(line)
    }
}

/// A place in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Position {
    /// Line number, beginning with 1.
    pub line: usize,
    /// Column in characters, beginning with 1.
    pub column: usize,
}

impl Position {
    /// The first character of a file.
    pub(crate) const START: Self = Self { line: 1, column: 1 };

    /// Returns the position of the byte at `offset` in `text`.
    pub(crate) fn of_offset(text: &[u8], offset: usize) -> Self {
        let before = &text[..offset.min(text.len())];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |index| index + 1);
        let column = String::from_utf8_lossy(&before[start..]).chars().count() + 1;
        Self { line, column }
    }
}

/// A range of a file, from `start` up to and excluding `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    /// Position of the first character.
    pub start: Position,
    /// Position after the last character.
    pub end: Position,
}

impl Span {
    /// The empty range at the beginning of a file.
    pub(crate) const START: Self = Self { start: Position::START, end: Position::START };

    /// Returns the empty range at `position`.
    pub(crate) fn at(position: Position) -> Self {
        Self { start: position, end: position }
    }

    /// Returns the number of characters that the range covers in its first line. It is at least 1, so that a marker is
    /// visible.
    pub(crate) fn width_on(self, line: &str) -> usize {
        let rest = line.chars().count().saturating_sub(self.start.column - 1);
        let width = if self.end.line == self.start.line {
            self.end.column.saturating_sub(self.start.column)
        } else {
            line.trim_end().chars().count().saturating_sub(self.start.column - 1)
        };
        width.min(rest).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_not_bytes() {
        let text = "a: 1\nüber: x";
        let offset = text.find('x').expect("it is there");
        assert_eq!(Position::of_offset(text.as_bytes(), offset), Position { line: 2, column: 7 });
    }

    #[test]
    fn lines_come_without_their_ends() {
        let file = SourceFile::new("x.yaml", "one\r\ntwo");
        assert_eq!(file.line(1), "one");
        assert_eq!(file.line(2), "two");
        assert_eq!(file.line(3), "");
        assert_eq!(file.line(0), "");
    }
}
