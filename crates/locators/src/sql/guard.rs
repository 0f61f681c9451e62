//! Parses a statement word by word, as its server would, and accepts only statements that read.
//!
//! Input that servers, their versions or their settings parse in different ways is refused rather than interpreted:
//! control characters, a carriage return that does not end a line, spaces beyond ASCII, two string literals in a row,
//! two minus signs without a space.
//!
//! The guard is the second of three layers. The first is the account's rights; the third is the transaction, which the
//! server keeps read-only and ends in time. The guard looks for what those two permit: functions that sleep, lock, run
//! other statements, or reach the server's files and network for an account that has the right.

#[cfg(test)]
mod servers;
#[cfg(test)]
mod tests;
mod words;

use self::words::{BEGINNINGS, FILES, WRITERS, WRITERS_AND_FUNCTIONS, refuse_function};
use arenad_model::locator::Arguments;
use arenad_model::site::DatabaseEngine;

/// A part of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatementPiece<'a> {
    /// Text that is sent unchanged.
    Text(&'a str),
    /// The place at which the argument with this index is bound.
    Argument(usize),
}

/// Splits a statement into its pieces, by the quoting rules of `dialect`:
///
/// - MySQL and MariaDB, without `ANSI_QUOTES` and `NO_BACKSLASH_ESCAPES`;
/// - PostgreSQL with `standard_conforming_strings`, where only `E'…'` has backslash escapes;
/// - SQLite, which also quotes names in square brackets and has no backslash escapes.
///
/// Errors: the column, and the reason for the refusal.
pub fn guard<'a>(
    dialect: DatabaseEngine,
    statement: &'a str,
    arguments: &Arguments,
) -> Result<Vec<StatementPiece<'a>>, (usize, StatementRefusal)> {
    let mut reader = StatementReader { dialect, text: statement, at: 0, arguments, pieces: Vec::new(), sent: 0 };
    let read = reader.check_characters().and_then(|()| reader.read());
    let column = statement.get(..reader.at).unwrap_or(statement).chars().count() + 1;
    read.map_err(|reason| (column, reason))?;
    Ok(reader.pieces)
}

arenad_model::text_error! {
    /// The reason why a statement is not sent.
    pub struct StatementRefusal;
}

struct StatementReader<'a, 'b> {
    dialect: DatabaseEngine,
    text: &'a str,
    at: usize,
    arguments: &'b Arguments,
    pieces: Vec<StatementPiece<'a>>,
    /// Position up to which the text is in `pieces`.
    sent: usize,
}

impl<'a> StatementReader<'a, '_> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn starts(&self, text: &str) -> bool {
        self.rest().starts_with(text)
    }

    /// Refuses control characters: PostgreSQL ends comments at any carriage return, MySQL accepts control characters
    /// where a comment needs a space, SQLite stops at a null.
    fn check_characters(&mut self) -> Result<(), StatementRefusal> {
        let ends_a_line = |at: usize| self.text[at..].starts_with("\r\n");
        let is_refused = |(at, c): &(usize, char)| match c {
            '\n' | '\t' => false,
            '\r' => !ends_a_line(*at),
            c => c.is_control() || *c == '\u{feff}',
        };
        match self.text.char_indices().find(is_refused) {
            Some((at, c)) => {
                self.at = at;
                Err(format!("the character U+{:04X} is refused: servers differ on what it means", u32::from(c)).into())
            }
            None => Ok(()),
        }
    }

    fn read(&mut self) -> Result<(), StatementRefusal> {
        let mut before = String::new();
        let mut is_first = true;
        let mut is_after_text = false;
        loop {
            self.skip_blank()?;
            let Some(c) = self.rest().chars().next() else { break };
            let start = self.at;
            let is_text = self.begins_text();
            if is_text && is_after_text {
                return Err("a text follows a text, which some servers read as one; join them by an operator".into());
            }
            is_after_text = is_text;
            if self.begins_escaped() && !is_first {
                self.at += 2;
                self.skip_text('\'', true)?;
                before.clear();
                continue;
            }
            if is_word_start(c) {
                let word = self.word().to_ascii_lowercase();
                let result = self.judge(&before, &word, is_first);
                if result.is_err() {
                    self.at = start;
                }
                result?;
                before = word;
                is_first = false;
                continue;
            }
            before.clear();
            if c.is_ascii_digit() {
                self.number()?;
                continue;
            }
            match c {
                '`' if self.dialect == DatabaseEngine::Postgres => return Err("names are quoted by `\"` here".into()),
                '\'' | '"' | '`' => self.quoted(c)?,
                '[' if self.dialect == DatabaseEngine::Sqlite => self.quoted(']')?,
                '$' if self.dialect == DatabaseEngine::Postgres => self.dollar()?,
                '{' => self.place()?,
                ';' => return self.end(),
                '\\' => return Err("a backslash stands outside of a text".into()),
                '?' if self.dialect != DatabaseEngine::Postgres => return Err(unnamed()),
                '@' | ':' | '$' if self.dialect == DatabaseEngine::Sqlite => return Err(unnamed()),
                '(' => self.at += 1,
                c if !c.is_ascii() => return Err(format!("`{}` stands outside of quotes", c.escape_debug()).into()),
                c if is_first => {
                    return Err(format!("`{c}` begins no query; it may begin with `SELECT` or `WITH`").into());
                }
                c => self.at += c.len_utf8(),
            }
        }
        if is_first {
            return Err("nothing is asked".into());
        }
        self.send(self.text.len());
        Ok(())
    }

    /// Returns an error if a word may not occur at its position.
    fn judge(&mut self, before: &str, word: &str, is_first: bool) -> Result<(), StatementRefusal> {
        if is_first && !BEGINNINGS.contains(&word) {
            let word = word.to_uppercase();
            return Err(format!(
                "a locator only reads: `{word}` begins no query; it may begin with `SELECT` or `WITH`"
            )
            .into());
        }
        if self.dialect == DatabaseEngine::Postgres && word == "u" && (self.starts("&\"") || self.starts("&'")) {
            return Err("names and texts with Unicode escapes are not understood".into());
        }
        self.refuse_file(word)?;
        // `SHOW CREATE` is the only use of `create` that reads.
        if (before, word) == ("show", "create") {
            return Ok(());
        }
        let is_called = self.is_called();
        if WRITERS.contains(&word) && !(is_called && WRITERS_AND_FUNCTIONS.contains(&word)) {
            return Err(format!("a locator only reads: `{}` writes or locks", word.to_uppercase()).into());
        }
        if matches!((before, word), ("for", "share" | "no" | "key") | ("lock", "in") | ("next", "value")) {
            return Err(format!(
                "a locator only reads: `{} {}` locks or counts on",
                before.to_uppercase(),
                word.to_uppercase()
            )
            .into());
        }
        if is_called { refuse_function(word) } else { Ok(()) }
    }

    /// Refuses views through which PostgreSQL reads its own files.
    fn refuse_file(&self, name: &str) -> Result<(), StatementRefusal> {
        if self.dialect == DatabaseEngine::Postgres && FILES.contains(&name) {
            return Err(format!("a locator only reads tables: `{name}` reads a file of the server's").into());
        }
        Ok(())
    }

    /// Returns whether a parenthesis follows, so that the name before it is a function's.
    fn is_called(&self) -> bool {
        let mut ahead = StatementReader {
            dialect: self.dialect,
            text: self.text,
            at: self.at,
            arguments: self.arguments,
            pieces: Vec::new(),
            sent: 0,
        };
        // A comment that must be refused is refused when the reader reaches it.
        ahead.skip_blank().is_err() || ahead.starts("(")
    }

    fn word(&mut self) -> &'a str {
        let rest = self.rest();
        let is_part =
            |c: char| is_word_start(c) || c.is_ascii_digit() || (c == '$' && self.dialect != DatabaseEngine::Sqlite);
        let end = rest.find(|c: char| !is_part(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    /// Returns whether a PostgreSQL string literal with backslash escapes begins here.
    fn begins_escaped(&self) -> bool {
        self.dialect == DatabaseEngine::Postgres && (self.starts("e'") || self.starts("E'"))
    }

    /// Returns whether a string literal begins here, except one that a word introduces.
    fn begins_text(&self) -> bool {
        let is_dollar = || self.dialect == DatabaseEngine::Postgres && self.starts("$");
        self.starts("'")
            || (self.dialect == DatabaseEngine::Mysql && self.starts("\""))
            || self.begins_escaped()
            || is_dollar()
    }

    /// Reads a number. Some servers read a number that runs into a word as two tokens, others as one.
    fn number(&mut self) -> Result<(), StatementRefusal> {
        let bytes = self.rest().as_bytes();
        let digits =
            |from: usize| bytes[from.min(bytes.len())..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let mut end = digits(0);
        if bytes.first() == Some(&b'0') && matches!(bytes.get(1), Some(b'x' | b'X')) {
            end = 2 + bytes[2..].iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        } else {
            if bytes.get(end) == Some(&b'.') {
                end += 1 + digits(end + 1);
            }
            if matches!(bytes.get(end), Some(b'e' | b'E')) {
                let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
                let exponent = digits(end + 1 + sign);
                end += if exponent > 0 { 1 + sign + exponent } else { 0 };
            }
        }
        self.at += end;
        match self.rest().chars().next() {
            Some(c) if is_word_start(c) || c == '$' => Err("a number runs into a word; put a space or quotes".into()),
            _ => Ok(()),
        }
    }

    /// Reads a string literal or a quoted name, which may be a function's.
    fn quoted(&mut self, close: char) -> Result<(), StatementRefusal> {
        let start = self.at;
        self.at += 1;
        let is_text = close == '\'' || (close == '"' && self.dialect == DatabaseEngine::Mysql);
        let inner = self.skip_text(close, is_text && self.dialect == DatabaseEngine::Mysql)?;
        let name = inner.to_ascii_lowercase();
        let mut read = if is_text { Ok(()) } else { self.refuse_file(&name) };
        if read.is_ok() && self.is_called() {
            read = refuse_function(&name);
        }
        if read.is_err() {
            self.at = start;
        }
        read
    }

    /// Skips to the end of quoted text whose opening quote has been read, and returns its content. A doubled quote
    /// stands for one.
    fn skip_text(&mut self, close: char, has_escapes: bool) -> Result<&'a str, StatementRefusal> {
        let start = self.at;
        let mut chars = self.rest().char_indices().peekable();
        while let Some((offset, c)) = chars.next() {
            if c == '\\' && has_escapes {
                chars.next();
            } else if c == close {
                if close != ']' && chars.next_if(|(_, next)| *next == close).is_some() {
                    continue;
                }
                let inner = &self.text[start..start + offset];
                self.at = start + offset + c.len_utf8();
                return self.without_places(inner);
            }
        }
        Err("a quote is not closed".into())
    }

    fn without_places(&self, inner: &'a str) -> Result<&'a str, StatementRefusal> {
        match self.arguments.0.iter().find(|(name, _)| inner.contains(&format!("{{{name}}}"))) {
            Some((name, _)) => {
                Err(format!("`{{{name}}}` stands inside of quotes; arguments are bound, so write it bare").into())
            }
            None => Ok(inner),
        }
    }

    /// Reads a dollar-quoted string of PostgreSQL: `$tag$ text $tag$`.
    fn dollar(&mut self) -> Result<(), StatementRefusal> {
        let rest = &self.rest()[1..];
        let end = rest.find(|c: char| !is_word_start(c) && !c.is_ascii_digit()).unwrap_or(rest.len());
        if !rest[end..].starts_with('$') || rest.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(unnamed());
        }
        let tag = &self.rest()[..end + 2];
        let inner = &self.rest()[tag.len()..];
        let close = inner.find(tag).ok_or("a dollar quote is not closed")?;
        self.without_places(&inner[..close])?;
        self.at += tag.len() + close + tag.len();
        Ok(())
    }

    /// Returns the reason why a `{` does not begin a known argument.
    fn unbound(&self) -> String {
        let name = self.rest()[1..].split_once('}').map(|(name, _)| name).unwrap_or_default();
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        if is_name { format!("no argument was given for `{{{name}}}`") } else { "`{` begins no argument".to_owned() }
    }

    /// Reads the `{name}` of an argument.
    fn place(&mut self) -> Result<(), StatementRefusal> {
        let index = self.arguments.0.iter().position(|(name, _)| self.starts(&format!("{{{name}}}")));
        let index = index.ok_or_else(|| self.unbound())?;
        self.send(self.at);
        self.pieces.push(StatementPiece::Argument(index));
        self.at += self.arguments.0[index].0.len() + 2;
        self.sent = self.at;
        Ok(())
    }

    /// Reads the end of the statement: nothing may follow a semicolon.
    fn end(&mut self) -> Result<(), StatementRefusal> {
        self.send(self.at);
        self.at += 1;
        self.skip_blank()?;
        if self.rest().is_empty() { Ok(()) } else { Err("a second statement follows; a locator is one".into()) }
    }

    fn send(&mut self, end: usize) {
        if end > self.sent {
            self.pieces.push(StatementPiece::Text(&self.text[self.sent..end]));
        }
        self.sent = end;
    }

    /// Skips whitespace and comments.
    fn skip_blank(&mut self) -> Result<(), StatementRefusal> {
        loop {
            let rest = self.rest();
            self.at = self.text.len() - rest.trim_start_matches(is_blank).len();
            let rest = self.rest();
            let is_mysql = self.dialect == DatabaseEngine::Mysql;
            if is_mysql && rest.strip_prefix("--").is_some_and(|rest| rest.starts_with(|c| !is_blank(c))) {
                // Some clients read a comment here, the server two signs.
                return Err("two minus signs without a space; put one between or behind them".into());
            }
            let end = if rest.starts_with("--") || (is_mysql && rest.starts_with('#')) {
                rest.find('\n').map_or(rest.len(), |end| end + 1)
            } else if let Some(inner) = rest.strip_prefix("/*") {
                if inner.starts_with(['!', 'M', '+']) {
                    return Err("this comment is code or a hint to the server".into());
                }
                self.comment_end(rest)?
            } else {
                return Ok(());
            };
            let comment = &rest[..end];
            if comment.contains('\\') {
                return Err("a comment has a backslash".into());
            }
            self.without_places(comment)?;
            self.at += end;
        }
    }

    /// Finds the end of a comment; in PostgreSQL, comments may be nested.
    fn comment_end(&self, rest: &str) -> Result<usize, StatementRefusal> {
        let mut depth = 0_usize;
        let mut at = 0;
        while at < rest.len() {
            let here = &rest[at..];
            if here.starts_with("/*") {
                if depth > 0 && self.dialect != DatabaseEngine::Postgres {
                    return Err("a comment begins within a comment".into());
                }
                depth += 1;
                at += 2;
            } else if here.starts_with("*/") {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return Ok(at);
                }
            } else {
                at += here.chars().next().map_or(1, char::len_utf8);
            }
        }
        Err("a comment is not closed".into())
    }
}

/// Returns whether every server reads the character as whitespace. No other whitespace occurs, because control
/// characters have been refused.
fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}

/// Letters beyond ASCII are parts of words for every server. Most servers, but not all, treat all other characters
/// beyond ASCII the same.
fn is_word_start(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_' || (!c.is_ascii() && c.is_alphanumeric())
}

fn unnamed() -> StatementRefusal {
    "parameters have names here: write `{name}` and give the argument".into()
}
