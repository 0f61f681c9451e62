//! CSV files as pandas 1.5 reads them by default: quoted cells over several lines, missing values, and the type of each
//! column.

use std::collections::HashMap;

use super::label::Label;
use crate::text::raised::Raised;

/// Cells that count as empty.
const EMPTY: [&str; 17] = [
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA",
    "NULL", "NaN", "n/a", "nan",
];

/// A table with typed cells.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Names of the columns, each once.
    pub columns: Vec<String>,
    /// The cells, by column.
    pub cells: Vec<Vec<Label>>,
    /// Number of rows below the header.
    pub rows: usize,
}

impl Table {
    /// Reads a CSV file with a header. If the first row is longer than the header, its first cells, and those of all other
    /// rows, are names of rows, which are left out.
    ///
    /// # Errors
    ///
    /// Returns an error if pandas raises, such as for rows that are longer than the header and the first row.
    pub fn read(text: &str) -> Result<Self, Raised> {
        let mut records = records(text.strip_prefix('\u{feff}').unwrap_or(text))?.into_iter();
        let header = records.next().ok_or_else(|| Raised::new("EmptyDataError", "no columns".to_owned()))?;
        let columns = unique(header);
        let records: Vec<Vec<String>> = records.collect();
        let width = records.first().map_or(0, Vec::len).max(columns.len());
        if let Some(at) = records.iter().position(|record| record.len() > width) {
            let what = format!("row {} has {} cells, expected {width}", at + 1, records[at].len());
            return Err(Raised::new("ParserError", what));
        }
        let names = width - columns.len();
        let rows = records.len();
        let cells = (0..columns.len())
            .map(|column| {
                let at = names + column;
                typed(&records.iter().map(|record| record.get(at).map(String::as_str)).collect::<Vec<_>>())
            })
            .collect();
        Ok(Self { columns, cells, rows })
    }

    /// Returns the column of a name.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<&[Label]> {
        let at = self.columns.iter().position(|column| column == name)?;
        Some(&self.cells[at])
    }

    /// Returns the positions of the columns whose names do not begin with a prefix.
    #[must_use]
    pub fn without_prefix(&self, prefix: &str) -> Vec<usize> {
        (0..self.columns.len()).filter(|at| !self.columns[*at].starts_with(prefix)).collect()
    }

    /// The rows of each combination of cells, ordered by their first rows, which are those that `drop_duplicates` keeps.
    /// Empty cells are equal. Without columns, each row is a group of its own.
    #[must_use]
    pub fn groups(&self, columns: &[usize]) -> Vec<Vec<usize>> {
        if columns.is_empty() {
            return (0..self.rows).map(|row| vec![row]).collect();
        }
        let mut groups: Vec<Vec<usize>> = Vec::new();
        let mut known = HashMap::new();
        for row in 0..self.rows {
            let key: Vec<String> = columns.iter().map(|column| key(&self.cells[*column][row])).collect();
            let group = *known.entry(key).or_insert(groups.len());
            if group == groups.len() {
                groups.push(Vec::new());
            }
            groups[group].push(row);
        }
        groups
    }

    /// Writes rows and columns as `to_csv(index=False)` does.
    #[must_use]
    pub fn write(&self, columns: &[usize], rows: &[usize]) -> String {
        let mut out = String::new();
        let mut line = |cells: Vec<String>| {
            // A single empty cell would be a blank line.
            let only = cells.len() == 1;
            let cells: Vec<String> = cells.iter().map(|cell| quoted(cell, only)).collect();
            out.push_str(&cells.join(","));
            out.push('\n');
        };
        line(columns.iter().map(|column| self.columns[*column].clone()).collect());
        for row in rows {
            let cell = |column: &usize| match &self.cells[*column][*row] {
                empty if empty.is_nan() => String::new(),
                other => other.text(),
            };
            line(columns.iter().map(cell).collect());
        }
        out
    }
}

fn quoted(cell: &str, is_only: bool) -> String {
    if cell.contains([',', '"', '\n']) || (is_only && cell.is_empty()) {
        return format!("\"{}\"", cell.replace('"', "\"\""));
    }
    cell.to_owned()
}

/// Equal cells have equal keys.
fn key(label: &Label) -> String {
    match label {
        Label::Text(text) => format!("t{text}"),
        Label::Nan | Label::SharedNan => "e".to_owned(),
        // Large integers may differ although they are the same float.
        Label::Integer(integer) => format!("n{integer}"),
        other => format!("n{}", other.cleaned()),
    }
}

/// Gives columns of the same name numbers, and columns without a name a name. Names that the file gives come first.
fn unique(mut header: Vec<String>) -> Vec<String> {
    let (unnamed, named): (Vec<usize>, Vec<usize>) = (0..header.len()).partition(|at| header[*at].is_empty());
    for at in &unnamed {
        header[*at] = format!("Unnamed: {at}");
    }
    let mut out = vec![String::new(); header.len()];
    for at in named.into_iter().chain(unnamed) {
        let (mut candidate, mut number) = (header[at].clone(), 0);
        while out.contains(&candidate) || (number > 0 && header.contains(&candidate)) {
            number += 1;
            candidate = format!("{}.{number}", header[at]);
        }
        out[at] = candidate;
    }
    out
}

/// Splits a text into records. Quotes count at the beginning of a cell only; blank lines are left out.
fn records(text: &str) -> Result<Vec<Vec<String>>, Raised> {
    let (mut records, mut record, mut cell) = (Vec::new(), Vec::new(), String::new());
    let mut chars = text.chars().peekable();
    // Within quotes; at the beginning of a cell; whether the record has anything but white space.
    let (mut is_quoted, mut is_start, mut has_content) = (false, true, false);
    while let Some(c) = chars.next() {
        if is_quoted {
            if c != '"' {
                cell.push(c);
            } else if chars.peek() == Some(&'"') {
                chars.next();
                cell.push('"');
            } else {
                is_quoted = false;
            }
            continue;
        }
        match c {
            '"' if is_start => {
                (is_quoted, is_start, has_content) = (true, false, true);
            }
            ',' => {
                record.push(std::mem::take(&mut cell));
                (is_start, has_content) = (true, true);
            }
            '\n' | '\r' => {
                if c == '\r' && chars.peek() == Some(&'\n') {
                    chars.next();
                }
                let content = std::mem::take(&mut cell);
                if has_content {
                    record.push(content);
                    records.push(std::mem::take(&mut record));
                }
                (is_start, has_content) = (true, false);
            }
            c => {
                cell.push(c);
                is_start = false;
                has_content |= c != ' ' && c != '\t';
            }
        }
    }
    if is_quoted {
        return Err(Raised::new("ParserError", "the text ends inside of quotes".to_owned()));
    }
    if has_content {
        record.push(cell);
        records.push(record);
    }
    Ok(records)
}

/// Gives the cells of a column their common type.
fn typed(cells: &[Option<&str>]) -> Vec<Label> {
    let is_empty = |cell: &Option<&str>| cell.is_none_or(|cell| EMPTY.contains(&cell) || cell == "null");
    let filled: Vec<&str> = cells.iter().filter(|cell| !is_empty(cell)).flatten().copied().collect();
    let map = |empty: Label, convert: &dyn Fn(&str) -> Option<Label>| -> Option<Vec<Label>> {
        cells
            .iter()
            .map(|cell| match cell {
                Some(text) if !is_empty(cell) => convert(text),
                _ => Some(empty.clone()),
            })
            .collect()
    };
    let text = |cell: &str| Some(Label::Text(cell.to_owned()));
    match Integers::of(&filled, filled.len() < cells.len()) {
        Integers::All => {
            return map(Label::Nan, &|cell| integer(cell).flatten().map(Label::Integer)).unwrap_or_default();
        }
        Integers::WithGaps => {
            #[expect(clippy::cast_precision_loss, reason = "pandas rounds as well")]
            let float = |number: i128| match number {
                // The value that pandas uses for gaps.
                number if number == i128::from(i64::MIN) => Label::Nan,
                number => Label::Float(number as f64),
            };
            return map(Label::Nan, &|cell| integer(cell).flatten().map(float)).unwrap_or_default();
        }
        Integers::TooLarge => return map(Label::SharedNan, &text).unwrap_or_default(),
        Integers::AsWritten => return cells.iter().map(|cell| Label::Text(cell.unwrap_or("").to_owned())).collect(),
        Integers::None => {}
    }
    if let Some(numbers) = map(Label::Nan, &|cell| number(cell).map(Label::Float)) {
        return numbers;
    }
    let truth = |cell: &str| match cell {
        truth if truth.eq_ignore_ascii_case("true") => Some(Label::Boolean(true)),
        truth if truth.eq_ignore_ascii_case("false") => Some(Label::Boolean(false)),
        _ => None,
    };
    map(Label::SharedNan, &truth).or_else(|| map(Label::SharedNan, &text)).unwrap_or_default()
}

/// The integers of a column, as pandas sees them: it tries 64 bits with a sign and then without one, each from the first
/// cell on.
enum Integers {
    /// The column has other cells, or none.
    None,
    /// All cells are integers.
    All,
    /// All cells are integers or empty. They become floats.
    WithGaps,
    /// A cell has more than 64 bits. The column becomes one of texts.
    TooLarge,
    /// A cell needs all 64 bits, and another one a sign or a gap. The column becomes one of texts, gaps included.
    AsWritten,
}

impl Integers {
    fn of(filled: &[&str], has_gaps: bool) -> Self {
        if filled.is_empty() {
            return Self::None;
        }
        let signed = i128::from(i64::MIN)..=i128::from(i64::MAX);
        let fits = |cell: &&&str| integer(cell).flatten().is_some_and(|number| signed.contains(&number));
        match filled.iter().find(|cell| !fits(cell)).map(|cell| integer(cell)) {
            None => return if has_gaps { Self::WithGaps } else { Self::All },
            Some(None) => return Self::None,
            Some(Some(_)) => {}
        }
        let mut has_sign = false;
        for cell in filled {
            match integer(cell) {
                None => return Self::None,
                Some(Some(number)) if (*signed.start()..=i128::from(u64::MAX)).contains(&number) => {
                    has_sign |= number < 0;
                }
                Some(_) => return Self::TooLarge,
            }
        }
        if has_gaps || has_sign { Self::AsWritten } else { Self::All }
    }
}

const SPACES: [char; 6] = [' ', '\t', '\n', '\r', '\u{b}', '\u{c}'];

/// Reads an integer; the inner value is `None` if it is too large.
fn integer(cell: &str) -> Option<Option<i128>> {
    let cell = cell.trim_matches(SPACES);
    let digits = cell.strip_prefix(['+', '-']).unwrap_or(cell);
    let is_plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| cell.strip_prefix('+').unwrap_or(cell).parse().ok())
}

/// Reads a float with the rounding of pandas' own `precise_xstrtod`.
fn number(cell: &str) -> Option<f64> {
    match cell.to_ascii_lowercase().as_str() {
        "inf" | "+inf" | "infinity" | "+infinity" => return Some(f64::INFINITY),
        "-inf" | "-infinity" => return Some(f64::NEG_INFINITY),
        _ => {}
    }
    const DIGITS_MAX: usize = 17;
    let bytes = cell.trim_matches(SPACES).as_bytes();
    let mut at = usize::from(bytes.first().is_some_and(|byte| matches!(byte, b'+' | b'-')));
    let is_negative = bytes.first() == Some(&b'-');
    let digit = |at: usize| bytes.get(at).filter(|byte| byte.is_ascii_digit()).map(|byte| f64::from(byte - b'0'));
    let (mut value, mut exponent, mut count) = (0.0_f64, 0_i32, 0_usize);
    while let Some(next) = digit(at) {
        if count < DIGITS_MAX {
            value = value * 10.0 + next;
            count += 1;
        } else {
            exponent += 1;
        }
        at += 1;
    }
    if bytes.get(at) == Some(&b'.') {
        at += 1;
        while let Some(next) = digit(at) {
            if count < DIGITS_MAX {
                value = value * 10.0 + next;
                count += 1;
                exponent -= 1;
            }
            at += 1;
        }
    }
    if count == 0 {
        return None;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        at += 1;
        let is_small = bytes.get(at) == Some(&b'-');
        at += usize::from(matches!(bytes.get(at), Some(b'+' | b'-')));
        let begin = at;
        let mut power = 0_i32;
        while bytes.get(at).is_some_and(u8::is_ascii_digit) && at - begin < DIGITS_MAX {
            power = power.saturating_mul(10).saturating_add(i32::from(bytes[at] - b'0'));
            at += 1;
        }
        if at == begin {
            return None;
        }
        exponent = exponent.saturating_add(if is_small { power.saturating_neg() } else { power });
    }
    if at != bytes.len() {
        return None;
    }
    let power = |exponent: i32| format!("1e{exponent}").parse::<f64>().unwrap_or(f64::INFINITY);
    value = match exponent {
        309.. => return None,
        1..=308 => value * power(exponent),
        -308..=0 => value / power(-exponent),
        _ => value / power((-308_i32).saturating_sub(exponent)) / power(308),
    };
    if value.is_infinite() { None } else { Some(if is_negative { -value } else { value }) }
}
