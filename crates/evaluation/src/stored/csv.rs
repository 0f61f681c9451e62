//! Records of a CSV file with their places, for messages. The values that are judged come from the evaluators' own table.

/// A place in a text, in characters. Both numbers begin at 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextPosition {
    /// Number of the line.
    pub line: usize,
    /// Number of the character in its line.
    pub column: usize,
}

impl TextPosition {
    /// The place of the first character of a text.
    pub const START: Self = Self { line: 1, column: 1 };

    /// Returns the place behind a text.
    #[must_use]
    pub fn after(text: &str) -> Self {
        let mut position = Self::START;
        text.chars().for_each(|c| position.advance(c));
        position
    }

    fn advance(&mut self, c: char) {
        if c == '\n' {
            *self = Self { line: self.line + 1, column: 1 };
        } else {
            self.column += 1;
        }
    }
}

/// A cell, without its quotes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CsvCell {
    pub(super) position: TextPosition,
    pub(super) text: String,
}

/// A record, which may have several lines.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CsvRecord {
    pub(super) position: TextPosition,
    pub(super) cells: Vec<CsvCell>,
}

/// Splits a text into records. Quotes count at the beginning of a cell only, and lines without content are left out.
///
/// Errors: the place of quotes that are never closed.
pub(super) fn records(text: &str) -> Result<Vec<CsvRecord>, TextPosition> {
    let mut records = Vec::new();
    let mut here = TextPosition::START;
    let mut record = CsvRecord { position: here, cells: Vec::new() };
    let mut cell = CsvCell { position: here, text: String::new() };
    let (mut is_quoted, mut is_start, mut has_content) = (false, true, false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        here.advance(c);
        match c {
            '"' if is_quoted && chars.peek() == Some(&'"') => {
                chars.next();
                here.advance('"');
                cell.text.push('"');
            }
            '"' if is_quoted => is_quoted = false,
            c if is_quoted => cell.text.push(c),
            '"' if is_start => (is_quoted, is_start, has_content) = (true, false, true),
            ',' => {
                record.cells.push(std::mem::replace(&mut cell, CsvCell { position: here, text: String::new() }));
                (is_start, has_content) = (true, true);
            }
            '\n' | '\r' => {
                if c == '\r' && chars.peek() == Some(&'\n') {
                    chars.next();
                    here.advance('\n');
                }
                let last = std::mem::replace(&mut cell, CsvCell { position: here, text: String::new() });
                let mut ended = std::mem::replace(&mut record, CsvRecord { position: here, cells: Vec::new() });
                if has_content {
                    ended.cells.push(last);
                    records.push(ended);
                }
                (is_start, has_content) = (true, false);
            }
            c => {
                cell.text.push(c);
                is_start = false;
                has_content |= c != ' ' && c != '\t';
            }
        }
    }
    if is_quoted {
        return Err(cell.position);
    }
    if has_content {
        record.cells.push(cell);
        records.push(record);
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_have_their_places() {
        let found = records("a,b\r\n\r\n\"é\n\"\"x\",  2\n \t\n3").expect("records");
        let cells = |record: &CsvRecord| -> Vec<(usize, usize, String)> {
            let cells = record.cells.iter();
            cells.map(|cell| (cell.position.line, cell.position.column, cell.text.clone())).collect()
        };
        assert_eq!(cells(&found[0]), [(1, 1, "a".to_owned()), (1, 3, "b".to_owned())]);
        assert_eq!(cells(&found[1]), [(3, 1, "é\n\"x".to_owned()), (4, 6, "  2".to_owned())]);
        assert_eq!((cells(&found[2]), found.len()), (vec![(6, 1, "3".to_owned())], 3));
        assert_eq!(records("a\n1,\"x\n"), Err(TextPosition { line: 2, column: 3 }));
    }
}
