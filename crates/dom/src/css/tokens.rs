//! The pieces of a selector's text: identifiers, escapes, strings, white space and comments.

/// A place in a selector, with functions that advance it past a piece, or leave it where it is.
#[derive(Debug, Clone)]
pub(super) struct Cursor {
    chars: Vec<char>,
    pub(super) at: usize,
}

impl Cursor {
    pub(super) fn new(text: &str) -> Self {
        Self { chars: text.replace('\0', "\u{fffd}").chars().collect(), at: 0 }
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.ahead(0)
    }

    pub(super) fn ahead(&self, by: usize) -> Option<char> {
        self.chars.get(self.at + by).copied()
    }

    pub(super) fn is_done(&self) -> bool {
        self.at >= self.chars.len()
    }

    pub(super) fn takes(&mut self, c: char) -> bool {
        let fits = self.peek() == Some(c);
        self.at += usize::from(fits);
        fits
    }

    /// One white space character; a carriage return with its line feed counts as one.
    pub(super) fn space(&mut self) -> bool {
        match self.peek() {
            Some('\r') if self.ahead(1) == Some('\n') => self.at += 2,
            Some(' ' | '\t' | '\r' | '\n' | '\u{c}') => self.at += 1,
            _ => return false,
        }
        true
    }

    pub(super) fn comment(&mut self) -> bool {
        if self.peek() != Some('/') || self.ahead(1) != Some('*') {
            return false;
        }
        let mut end = self.at + 2;
        while end + 1 < self.chars.len() {
            if self.chars[end] == '*' && self.chars[end + 1] == '/' {
                self.at = end + 2;
                return true;
            }
            end += 1;
        }
        false
    }

    /// White space and comments, any number.
    pub(super) fn spaces(&mut self) {
        while self.space() || self.comment() {}
    }

    /// An escape outside of a string, or `None`.
    fn escape(&mut self) -> Option<char> {
        if self.peek() != Some('\\') {
            return None;
        }
        match self.ahead(1) {
            None => {
                self.at += 1;
                Some('\u{fffd}')
            }
            Some(c) if c.is_ascii_hexdigit() => {
                self.at += 1;
                Some(self.code_point())
            }
            Some('\r' | '\n' | '\u{c}') => None,
            Some(c) => {
                self.at += 2;
                Some(c)
            }
        }
    }

    /// Up to six hexadecimal digits, and one white space after them.
    fn code_point(&mut self) -> char {
        let mut code = 0;
        for _ in 0..6 {
            let Some(digit) = self.peek().and_then(|c| c.to_digit(16)) else { break };
            code = code * 16 + digit;
            self.at += 1;
        }
        self.space();
        match char::from_u32(code) {
            Some('\0') | None => '\u{fffd}',
            Some(c) => c,
        }
    }

    /// An identifier without its escapes, or `None`.
    pub(super) fn identifier(&mut self) -> Option<String> {
        let begin = self.at;
        let mut out = String::new();
        if self.takes('-') {
            out.push('-');
            if self.takes('-') {
                out.push('-');
                self.rest_of_identifier(&mut out);
                return Some(out);
            }
        }
        match self.peek() {
            Some(c) if c.is_ascii_alphabetic() || c == '_' || c >= '\u{80}' => {
                out.push(c);
                self.at += 1;
            }
            _ => match self.escape() {
                Some(c) => out.push(c),
                None => {
                    self.at = begin;
                    return None;
                }
            },
        }
        self.rest_of_identifier(&mut out);
        Some(out)
    }

    fn rest_of_identifier(&mut self, out: &mut String) {
        loop {
            match self.peek() {
                Some(c) if c.is_ascii_alphanumeric() || c == '_' || c == '-' || c >= '\u{80}' => {
                    out.push(c);
                    self.at += 1;
                }
                _ => match self.escape() {
                    Some(c) => out.push(c),
                    None => return,
                },
            }
        }
    }

    /// A string in quotes or an identifier, or `None`.
    pub(super) fn value(&mut self) -> Option<String> {
        let quote = match self.peek() {
            Some(quote @ ('"' | '\'')) => quote,
            _ => return self.identifier(),
        };
        let begin = self.at;
        self.at += 1;
        let mut out = String::new();
        loop {
            match self.peek() {
                Some(c) if c == quote => {
                    self.at += 1;
                    return Some(out);
                }
                Some('\\') => match self.ahead(1) {
                    Some('\r' | '\n' | '\u{c}') => {
                        self.at += 1;
                        self.space();
                    }
                    Some(_) => out.extend(self.escape()),
                    None => break,
                },
                None | Some('\r' | '\n' | '\u{c}') => break,
                Some(c) => {
                    out.push(c);
                    self.at += 1;
                }
            }
        }
        self.at = begin;
        None
    }

    /// The digits at this place; `None` if there are none, or too many for a position in a document.
    pub(super) fn digits(&mut self) -> Option<i64> {
        let begin = self.at;
        while self.peek().is_some_and(|c| c.is_ascii_digit()) {
            self.at += 1;
        }
        let text: String = self.chars[begin..self.at].iter().collect();
        if text.is_empty() { None } else { Some(text.parse().unwrap_or(i64::MAX / 4)) }
    }

    /// A word in any case.
    pub(super) fn word(&mut self, word: &str) -> bool {
        let fits =
            word.chars().enumerate().all(|(at, c)| self.ahead(at).is_some_and(|own| own.eq_ignore_ascii_case(&c)));
        self.at += if fits { word.len() } else { 0 };
        fits
    }
}
