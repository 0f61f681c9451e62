//! dateutil's tokens: words, numbers, and single characters.

/// Splits a text into tokens. Dots stay within numbers and are split off words, which requires the whole dotted
/// sequence.
pub(super) fn tokens(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut chars = text.chars().filter(|c| *c != '\0').peekable();
    while let Some(first) = chars.next() {
        let mut state = match first {
            c if c.is_alphabetic() => LexerState::Word,
            c if c.is_ascii_digit() => LexerState::Number,
            c => {
                out.push(if c.is_whitespace() { " ".to_owned() } else { c.to_string() });
                continue;
            }
        };
        let mut token = String::from(first);
        let mut has_letters = false;
        while let Some(c) = chars.peek().copied() {
            has_letters |= matches!(state, LexerState::Word | LexerState::DottedWord);
            let is_after_dot = token.ends_with('.');
            state = match state {
                LexerState::Word if c.is_alphabetic() => LexerState::Word,
                LexerState::Word if c == '.' => LexerState::DottedWord,
                LexerState::Number if c.is_ascii_digit() => LexerState::Number,
                LexerState::Number if c == '.' || (c == ',' && token.len() >= 2) => LexerState::DottedNumber,
                LexerState::DottedWord if c == '.' || c.is_alphabetic() => LexerState::DottedWord,
                LexerState::DottedWord if c.is_ascii_digit() && is_after_dot => LexerState::DottedNumber,
                LexerState::DottedNumber if c == '.' || c.is_ascii_digit() => LexerState::DottedNumber,
                LexerState::DottedNumber if c.is_alphabetic() && is_after_dot => LexerState::DottedWord,
                _ => break,
            };
            token.push(c);
            chars.next();
        }
        let is_dotted = matches!(state, LexerState::DottedWord | LexerState::DottedNumber);
        if is_dotted && (has_letters || token.matches('.').count() > 1 || token.ends_with(['.', ','])) {
            let mut parts = split_dots(&token).into_iter();
            let mut first = parts.next().unwrap_or_default();
            if state == LexerState::DottedNumber && !first.contains('.') {
                first = first.replace(',', ".");
            }
            out.push(first);
            out.extend(parts.filter(|part| !part.is_empty()));
        } else if state == LexerState::DottedNumber && !token.contains('.') {
            out.push(token.replace(',', "."));
        } else {
            out.push(token);
        }
    }
    out
}

#[derive(Clone, Copy, PartialEq)]
enum LexerState {
    Word,
    Number,
    DottedWord,
    DottedNumber,
}

/// Splits a token at dots and commas, which become tokens of their own.
fn split_dots(token: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    for c in token.chars() {
        if c == '.' || c == ',' {
            parts.push(c.to_string());
            parts.push(String::new());
        } else if let Some(last) = parts.last_mut() {
            last.push(c);
        }
    }
    parts
}

/// A number in a text: digits with an optional fraction.
pub(super) struct NumberToken {
    whole: String,
    has_fraction: bool,
}

impl NumberToken {
    /// Parses a number; returns `None` if the token is not a finite one.
    pub(super) fn of(token: &str) -> Option<Self> {
        let (whole, fraction) = token.split_once('.').unwrap_or((token, ""));
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(whole) || !is_number(fraction) || (whole.is_empty() && fraction.is_empty()) {
            return None;
        }
        Some(Self { whole: whole.to_owned(), has_fraction: fraction.bytes().any(|byte| byte != b'0') })
    }

    /// Returns the number without its fraction, or `None` if it is too large for any part of a date.
    pub(super) fn whole(&self) -> Option<u32> {
        if self.whole.is_empty() { Some(0) } else { self.whole.parse().ok() }
    }

    pub(super) fn is_more_than_hundred(&self) -> bool {
        self.whole().is_none_or(|whole| whole > 100 || (whole == 100 && self.has_fraction))
    }

    pub(super) fn is_between(&self, first: u32, last: u32) -> bool {
        self.whole().is_some_and(|whole| whole >= first && (whole < last || (whole == last && !self.has_fraction)))
    }

    pub(super) fn is_below(&self, end: u32) -> bool {
        self.whole().is_some_and(|whole| whole < end)
    }
}
