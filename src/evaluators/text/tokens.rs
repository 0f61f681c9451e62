//! `nltk.word_tokenize` for text in lower case: sentences, then the Treebank rules as NLTK has extended them.

use std::sync::LazyLock;

use fancy_regex::Regex;

use super::punkt;

/// Patterns and what stands in their place, in order. Source: NLTK's `NLTKWordTokenizer`.
static BEFORE_PADDING: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    rules(&[
        // Starting quotes.
        ("([«“‘„]|[`]+)", " $1 "),
        ("^\"", "``"),
        ("(``)", " $1 "),
        ("([ (\\[{<])(\"|'{2})", "$1 `` "),
        (r"(?i)(')(?!re|ve|ll|m|t|s|d|n)(\w)\b", "$1 $2"),
        // Punctuation.
        (r#"([^.])(\.)([\])}>"'»”’ ]*)\s*$"#, "$1 $2 $3 "),
        (r"([:,])([^\d])", " $1 $2"),
        (r"([:,])$", " $1 "),
        (r"\.{2,}", " $0 "),
        (r"[;@#$%&]", " $0 "),
        (r#"([^.])(\.)([\])}>"']*)\s*$"#, "$1 $2$3 "),
        (r"[?!]", " $0 "),
        (r"([^'])' ", "$1 ' "),
        (r"[*]", " $0 "),
        // Brackets and dashes.
        (r"[\]\[(){}<>]", " $0 "),
        (r"--", " -- "),
    ])
});
static AFTER_PADDING: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    rules(&[
        // Ending quotes.
        ("([»”’])", " $1 "),
        ("''", " '' "),
        ("\"", " '' "),
        (r"\s+", " "),
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
    ])
});

fn rules<'a>(rules: &[(&str, &'a str)]) -> Vec<(Regex, &'a str)> {
    rules.iter().map(|(pattern, with)| (Regex::new(pattern).expect("a pattern of ours"), *with)).collect()
}

/// The tokens of a text in lower case.
#[must_use]
pub fn word_tokenize(text: &str) -> Vec<String> {
    punkt::sentences(text).into_iter().flat_map(treebank).collect()
}

fn treebank(sentence: &str) -> Vec<String> {
    let apply = |text: String, rules: &[(Regex, &str)]| {
        rules.iter().fold(text, |text, (pattern, with)| pattern.replace_all(&text, *with).into_owned())
    };
    let padded = format!(" {} ", apply(sentence.to_owned(), &BEFORE_PADDING));
    apply(padded, &AFTER_PADDING).split_whitespace().map(str::to_owned).collect()
}
