//! Python's `re` on top of `fancy_regex`: it accepts and refuses the same patterns, and `$` has the same meaning.

use std::cell::RefCell;
use std::collections::HashMap;
use std::iter::Peekable;
use std::rc::Rc;
use std::str::Chars;

use fancy_regex::{Regex, RegexBuilder};

/// The reason why a pattern has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PatternError {
    /// The pattern is invalid, in Python as well.
    #[error("invalid regular expression {0:?}")]
    Invalid(String),
    /// Matching takes too many steps.
    #[error("matching {0:?} takes too long")]
    TooLong(String),
}

/// The way in which a pattern is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// `re.match`: at the beginning of the text.
    Match,
    /// `re.search(..., re.IGNORECASE)`: at any place.
    SearchIgnoringCase,
    /// `re.search`: at any place.
    Search,
    /// `re.fullmatch(..., re.IGNORECASE)`: the whole text.
    WholeIgnoringCase,
    /// `re.fullmatch(..., re.DOTALL)`: the whole text; `.` matches any character.
    WholeWithLines,
}

/// A cache of compiled patterns.
#[derive(Debug, Default)]
pub struct Patterns(RefCell<HashMap<(String, Mode), Compiled>>);

/// `None` if the pattern is invalid.
type Compiled = Option<Rc<Regex>>;

impl Patterns {
    /// Whether a text matches.
    ///
    /// # Errors
    ///
    /// Returns an error if the pattern is invalid in Python, or if matching takes too many steps.
    pub(crate) fn is_match(&self, pattern: &str, mode: Mode, text: &str) -> Result<bool, PatternError> {
        let key = (pattern.to_owned(), mode);
        let regex = self.0.borrow_mut().entry(key).or_insert_with(|| compile(pattern, mode).map(Rc::new)).clone();
        let regex = regex.ok_or_else(|| PatternError::Invalid(pattern.to_owned()))?;
        regex.is_match(text).map_err(|_| PatternError::TooLong(pattern.to_owned()))
    }
}

fn compile(pattern: &str, mode: Mode) -> Option<Regex> {
    let inner = translate(pattern, PatternEngine::Re)?;
    let anchored = match mode {
        Mode::Match => format!(r"\A(?:{inner})"),
        Mode::Search | Mode::SearchIgnoringCase => inner,
        Mode::WholeIgnoringCase | Mode::WholeWithLines => format!(r"\A(?:{inner})\z"),
    };
    RegexBuilder::new(&anchored)
        .case_insensitive(matches!(mode, Mode::SearchIgnoringCase | Mode::WholeIgnoringCase))
        .dot_matches_new_line(mode == Mode::WholeWithLines)
        .build()
        .ok()
}

/// Python's engines for regular expressions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PatternEngine {
    /// `re` of the standard library.
    Re,
    /// The package `regex`, whose character classes are those of Unicode, as in Rust.
    Regex,
}

/// Compiles a pattern of this crate with Python's meaning.
pub(super) fn ours(pattern: &str, engine: PatternEngine) -> Regex {
    let translated = translate(pattern, engine).expect("a pattern of ours");
    Regex::new(&translated).expect("a pattern of ours")
}

/// White space in `re`: Unicode's and the four information separators.
const SPACE: &str = r"\s\x1c-\x1f";
/// Word characters in `re`: letters, numbers of all kinds and the underscore, without combining marks.
const WORD: &str = r"\p{L}\p{N}_";

/// Translates a pattern to the syntax of `fancy_regex`; `None` if Python refuses it.
///
/// Python's `$` also matches before a line feed at the end of the text, and its `\Z` only at the very end. Within
/// `[...]` the operators of Rust's set notation are ordinary characters.
fn translate(pattern: &str, engine: PatternEngine) -> Option<String> {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut chars = pattern.chars().peekable();
    let mut before = PrecedingItem::Nothing;
    while let Some(c) = chars.next() {
        let is_repeat = matches!(c, '*' | '+' | '?') || (c == '{' && is_repetition(chars.clone()));
        if is_repeat {
            if before != PrecedingItem::Item {
                return None;
            }
            out.push(c);
            while c == '{' && !out.ends_with('}') {
                out.push(chars.next()?);
            }
            // The suffixes of lazy and possessive repetitions.
            out.extend(chars.next_if(|c| matches!(c, '?' | '+')));
            before = PrecedingItem::Repetition;
            continue;
        }
        before = PrecedingItem::Item;
        match c {
            '\\' => {
                let c = chars.next()?;
                if matches!(c, 'A' | 'b' | 'B' | 'Z') {
                    before = PrecedingItem::Nothing;
                }
                out.push_str(&match (c, engine) {
                    ('Z', _) => r"\z".to_owned(),
                    ('b', PatternEngine::Re) => format!("(?:(?<=[{WORD}])(?![{WORD}])|(?<![{WORD}])(?=[{WORD}]))"),
                    ('B', PatternEngine::Re) => format!("(?:(?<=[{WORD}])(?=[{WORD}])|(?<![{WORD}])(?![{WORD}]))"),
                    _ => escape(c, engine)?,
                });
            }
            '[' => class(&mut chars, &mut out, engine)?,
            '^' => {
                before = PrecedingItem::Nothing;
                out.push('^');
            }
            '$' => {
                before = PrecedingItem::Nothing;
                out.push_str(r"(?=\n?\z)");
            }
            '|' => {
                before = PrecedingItem::Nothing;
                out.push('|');
            }
            '(' => {
                before = PrecedingItem::Nothing;
                out.push('(');
                // In `(?:`, `(?=` and `(?P<name>` the question mark is not a repetition.
                out.extend(chars.next_if_eq(&'?'));
            }
            // Python treats a brace that does not begin a repetition as an ordinary character.
            '{' => out.push_str(r"\{"),
            c => out.push(c),
        }
    }
    Some(out)
}

/// The item before a repetition.
#[derive(Clone, Copy, PartialEq)]
enum PrecedingItem {
    /// Nothing that could be repeated.
    Nothing,
    /// A repetition, which cannot be repeated again.
    Repetition,
    /// An item that can be repeated.
    Item,
}

/// Translates the character behind a backslash; `None` if Python does not have this escape.
fn escape(c: char, engine: PatternEngine) -> Option<String> {
    match c {
        's' if engine == PatternEngine::Re => Some(format!("[{SPACE}]")),
        'S' if engine == PatternEngine::Re => Some(format!("[^{SPACE}]")),
        'w' if engine == PatternEngine::Re => Some(format!("[{WORD}]")),
        'W' if engine == PatternEngine::Re => Some(format!("[^{WORD}]")),
        c if c.is_ascii_alphabetic() && !"AbBdDsSwWafnrtvxuU".contains(c) => None,
        c if c.is_ascii_alphanumeric() => Some(format!("\\{c}")),
        c if c.is_ascii() => Some(format!(r"\x{:02x}", u32::from(c))),
        c => Some(c.to_string()),
    }
}

/// Translates a character class, from behind its opening bracket to its closing one.
fn class(chars: &mut Peekable<Chars<'_>>, out: &mut String, engine: PatternEngine) -> Option<()> {
    out.push('[');
    out.extend(chars.next_if_eq(&'^'));
    if chars.next_if_eq(&']').is_some() {
        out.push_str(r"\]");
    }
    loop {
        match chars.next()? {
            ']' => break,
            '\\' => out.push_str(&escape(chars.next()?, engine)?),
            c @ ('[' | '&' | '~') => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out.push(']');
    Some(())
}

/// Whether the text behind a brace makes it a repetition: `3}`, `3,}`, `,3}`, `3,4}`.
fn is_repetition(rest: impl Iterator<Item = char>) -> bool {
    let inner: Vec<char> = rest.take_while(|c| c.is_ascii_digit() || *c == ',' || *c == '}').collect();
    let Some(end) = inner.iter().position(|c| *c == '}') else { return false };
    let commas = inner[..end].iter().filter(|c| **c == ',').count();
    end > 0 && commas <= 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_they_mean_in_python() {
        let patterns = Patterns::default();
        let cases = [
            ("^a$", Mode::Match, "a\n", true),
            (r"^a\Z", Mode::Match, "a\n", false),
            ("b", Mode::Match, "ab", false),
            ("b", Mode::Search, "ab", true),
            ("^(a|ab)$", Mode::WholeIgnoringCase, "AB", true),
            ("^a.b$", Mode::WholeIgnoringCase, "a\nb", false),
            ("^a.b$", Mode::WholeWithLines, "a\nb", true),
            ("^[]a[&~-]+$", Mode::Match, "]a[&~-", true),
            (r"^\d+\[comment\]$", Mode::Match, "12[comment]", true),
            ("^a{x}$", Mode::Match, "a{x}", true),
            (r"^(?!from$|to$).*$", Mode::SearchIgnoringCase, "from", false),
        ];
        for (pattern, mode, text, expected) in cases {
            assert_eq!(patterns.is_match(pattern, mode, text), Ok(expected), "{pattern} {text:?}");
        }
        for wrong in [r"^\z$", "^[$", "^(a$", r"^\p{L}$", "^*$", "a**", "a{2}{3}"] {
            assert!(matches!(patterns.is_match(wrong, Mode::Match, "a"), Err(PatternError::Invalid(_))), "{wrong}");
        }
    }
}
