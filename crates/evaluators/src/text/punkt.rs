//! Splitting into sentences: NLTK's Punkt algorithm for texts that are already in lower case.
//!
//! Evaluators convert answers to lower case before they tokenise them. The parts of the algorithm that examine capital
//! letters therefore have no effect and are omitted.

use std::ops::Range;
use std::sync::LazyLock;

use fancy_regex::Regex;

use super::patterns::{self, PatternEngine};
use super::punkt_english::{ABBREVIATIONS, COLLOCATIONS, SENTENCE_STARTERS};
use super::python;
use super::tokens::Nltk;

/// The parameters in which NLTK's versions differ.
struct Language {
    /// A word, for the search within a sentence.
    word: Regex,
    /// Closing quotes and brackets, which belong to the previous sentence.
    closing: Regex,
    number: Regex,
    initial: Regex,
    /// Characters that end a word at any place.
    non_word: &'static str,
    /// Whether ASCII's four separators are white space, as in Python's `re` but not in `regex`.
    has_separators: bool,
}

static OLD: LazyLock<Language> = LazyLock::new(|| Language::of(Nltk::V3_8_1));
static NEW: LazyLock<Language> = LazyLock::new(|| Language::of(Nltk::V3_10_4));

impl Language {
    fn of(version: Nltk) -> Self {
        /// Dashes and ellipses, each of which is one token.
        const MULTI_CHAR: &str = r"(?:-{2,}|\.{2,}|(?:\.\s){2,}\.)";
        const WORD_START: &str = r#"[^("`{\[:;&#*@)}\]\-,]"#;
        let (engine, non_word, closing) = match version {
            Nltk::V3_8_1 => (PatternEngine::Re, r#")";}]*:@'({[?!"#, r#""')\]}"#),
            // In this version quotes outside ASCII count as quotes.
            Nltk::V3_10_4 => (PatternEngine::Regex, r#")";}]*:@'({[‘’“”«»?!"#, r#""')\]}‘’“”«»"#),
        };
        let class = format!("[{}]", non_word.replace(']', r"\]").replace('[', r"\["));
        let word = format!(
            r"{MULTI_CHAR}|(?={WORD_START})\S+?(?=\s|$|{class}|{MULTI_CHAR}|,(?=$|\s|{class}|{MULTI_CHAR}))|\S"
        );
        let closing = format!(r"^[{closing}]+?(?:\s+|(?=--)|(?=\n)|(?!.|\n))");
        Self {
            word: patterns::ours(&word, engine),
            closing: patterns::ours(&closing, engine),
            number: patterns::ours(r"^-?[.,]?\d[\d,.\-]*\.?$", engine),
            initial: patterns::ours(r"^[^\W\d]\.$", engine),
            non_word,
            has_separators: engine == PatternEngine::Re,
        }
    }

    fn is_space(&self, c: char) -> bool {
        c.is_whitespace() || (self.has_separators && python::is_space(c))
    }
}

/// Returns the sentences of a text in lower case, without the white space between them.
pub(super) fn sentences(text: &str, version: Nltk) -> Vec<&str> {
    let language = match version {
        Nltk::V3_8_1 => &OLD,
        Nltk::V3_10_4 => &NEW,
    };
    let slices = slices(text, language);
    let mut sentences = Vec::new();
    // Closing quotes and brackets behind a full stop belong to the sentence that it ends.
    let mut taken = 0;
    for (index, slice) in slices.iter().enumerate() {
        let start = slice.start + taken;
        taken = 0;
        let mut end = slice.end;
        if let Some(next) = slices.get(index + 1)
            && let Ok(Some(found)) = language.closing.find(text.get(next.clone()).unwrap_or_default())
        {
            end = next.start + python::strip_end(found.as_str()).len();
            taken = found.end();
        }
        sentences.extend(text.get(start..end).filter(|sentence| !sentence.is_empty()));
    }
    sentences
}

fn slices(text: &str, language: &Language) -> Vec<Range<usize>> {
    let mut slices = Vec::new();
    let mut last_break = 0;
    for end in candidates(text, language) {
        let context = &text[end.context.clone()];
        if ends_sentence(context, language) {
            slices.push(last_break..end.at + 1);
            last_break = end.next.unwrap_or(end.at + 1);
        }
    }
    slices.push(last_break..python::strip_end(text).len().max(last_break));
    slices
}

/// A full stop, question mark or exclamation mark that may end a sentence.
struct Candidate {
    /// The position of the mark in the text.
    at: usize,
    /// The range from the previous word to the next one.
    context: Range<usize>,
    /// The start of the next word, if white space precedes it.
    next: Option<usize>,
}

/// Returns the candidates. Several marks in a row behind one word are one candidate: the last of them.
fn candidates(text: &str, language: &Language) -> Vec<Candidate> {
    let mut found: Vec<Candidate> = Vec::new();
    let mut previous = 0..0;
    for (at, _) in text.match_indices(['.', '?', '!']) {
        let Some((after, next)) = following(text, at + 1, language) else { continue };
        // The previous word begins behind the last white space, but not before the word of the previous mark.
        let space = text[previous.end..at].rfind([' ', '\t', '\n', '\r', '\x0b', '\x0c']).filter(|index| *index > 0);
        let start = space.map_or(previous.start, |index| previous.end + index + 1);
        if start < previous.end {
            found.pop();
        }
        previous = start..at;
        found.push(Candidate { at, context: start..after, next });
    }
    found
}

/// Returns the end of the text that belongs to a mark, and the start of the next word if white space precedes it.
/// Returns `None` if the text continues without a break, or ends.
fn following(text: &str, from: usize, language: &Language) -> Option<(usize, Option<usize>)> {
    let rest = &text[from..];
    let first = rest.chars().next()?;
    if language.non_word.contains(first) {
        return Some((from + first.len_utf8(), None));
    }
    let word = rest.trim_start_matches(|c| language.is_space(c));
    let begin = from + (rest.len() - word.len());
    if begin == from || word.is_empty() {
        return None;
    }
    let length = word.find(|c| language.is_space(c)).unwrap_or(word.len());
    Some((begin + length, Some(begin)))
}

/// Whether a sentence ends before the last token.
fn ends_sentence(context: &str, language: &Language) -> bool {
    let tokens: Vec<&str> = context.split('\n').flat_map(|line| words(line, language)).collect();
    tokens.windows(2).any(|pair| is_break(pair[0], pair[1], language))
}

fn words<'a>(line: &'a str, language: &Language) -> Vec<&'a str> {
    language.word.find_iter(line).filter_map(Result::ok).map(|found| found.as_str()).collect()
}

/// Whether a sentence ends with a token, judged by the token itself and then by the next one.
fn is_break(token: &str, next: &str, language: &Language) -> bool {
    if !is_break_alone(token) {
        // Behind an abbreviation or an ellipsis a sentence ends only before a capital letter.
        return false;
    }
    if !token.ends_with('.') {
        return true;
    }
    let without_stop = kind(token, language).trim_end_matches_once('.');
    let next_kind = kind(next, language);
    let next_kind = if is_break_alone(next) { next_kind.trim_end_matches_once('.') } else { next_kind };
    if COLLOCATIONS.contains(&(without_stop, next_kind)) {
        return false;
    }
    let is_initial = language.initial.is_match(token).unwrap_or_default();
    let may_be_abbreviation = is_initial || without_stop == "##number##";
    !(may_be_abbreviation && cannot_start(next, next_kind))
}

/// Whether a sentence ends with a token, judged by the token alone.
fn is_break_alone(token: &str) -> bool {
    if [".", "?", "!"].contains(&token) {
        return true;
    }
    if !token.ends_with('.') || token.ends_with("..") {
        return false;
    }
    let word = &token[..token.len() - 1];
    let tail = word.rsplit('-').next().unwrap_or(word);
    !ABBREVIATIONS.contains(word) && !ABBREVIATIONS.contains(tail)
}

/// Returns the token as the model knows it: all numbers are the same token.
fn kind<'a>(token: &'a str, language: &Language) -> &'a str {
    if language.number.is_match(token).unwrap_or_default() { "##number##" } else { token }
}

/// Whether a sentence cannot begin with a token.
fn cannot_start(token: &str, kind: &str) -> bool {
    if [";", ":", ",", ".", "!", "?"].contains(&token) {
        return true;
    }
    let is_lower = token.chars().next().is_some_and(char::is_lowercase);
    is_lower && !SENTENCE_STARTERS.contains(&kind)
}

trait TrimOnce {
    fn trim_end_matches_once(&self, end: char) -> &Self;
}

impl TrimOnce for str {
    /// Removes one final `end`, unless the text consists of it alone.
    fn trim_end_matches_once(&self, end: char) -> &Self {
        match self.strip_suffix(end) {
            Some(rest) if !rest.is_empty() => rest,
            _ => self,
        }
    }
}
