//! The text of one file of a definition, and positions in it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Maximum size of a file, in bytes. The longest known definition (all of WebArena) is below 30 KiB. The limit leaves
/// ample room and bounds the time spent on a hostile file.
pub const SOURCE_MAX_BYTES: usize = 256 * 1024;

/// One file, read once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceFile {
    /// The path relative to the root folder, as diagnostics show it.
    pub path: PathBuf,
    /// The complete text of the file.
    pub text: String,
}

impl SourceFile {
    /// Wraps a text that was read from `path`, relative to the root folder.
    pub fn new(path: impl Into<PathBuf>, text: impl Into<String>) -> Self {
        Self { path: path.into(), text: text.into() }
    }

    /// The path with forward slashes, as diagnostics show it.
    pub(crate) fn shown_path(&self) -> String {
        self.path.to_string_lossy().replace('\\', "/")
    }

    /// The line of that number, without its end; empty when there is none.
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
    /// The line, beginning with 1.
    pub line: usize,
    /// The column in characters, beginning with 1.
    pub column: usize,
}

impl Position {
    /// The first character of a file.
    pub(crate) const START: Self = Self { line: 1, column: 1 };

    /// The position of the byte at `offset` in `text`.
    pub(crate) fn of_offset(text: &[u8], offset: usize) -> Self {
        let before = &text[..offset.min(text.len())];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |index| index + 1);
        let column = String::from_utf8_lossy(&before[start..]).chars().count() + 1;
        Self { line, column }
    }
}

/// A range of a file: from `start` up to, not including, `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    /// Position of the first character.
    pub start: Position,
    /// The character after the last one.
    pub end: Position,
}

impl Span {
    /// The first character of a file.
    pub(crate) const START: Self = Self { start: Position::START, end: Position::START };

    /// The range of no characters at `position`.
    pub(crate) fn at(position: Position) -> Self {
        Self { start: position, end: position }
    }

    /// How many characters of the first line the range covers; at least one, so that there is something to point at.
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
