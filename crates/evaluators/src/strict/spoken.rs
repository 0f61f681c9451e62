//! Extraction of an answer from its surroundings: Markdown, JSON, a sentence that repeats the task.

use std::borrow::Cow;

use serde_json::Value;

use super::words::fold;
use crate::text::number_words;

/// Words that may stand before an answer, in addition to the words of the task.
const FRAME: [&str; 46] = [
    "the",
    "a",
    "an",
    "final",
    "correct",
    "my",
    "our",
    "your",
    "its",
    "answer",
    "answers",
    "result",
    "response",
    "solution",
    "value",
    "name",
    "number",
    "total",
    "is",
    "are",
    "was",
    "were",
    "it",
    "it's",
    "this",
    "that",
    "there",
    "here",
    "so",
    "thus",
    "therefore",
    "hence",
    "of",
    "for",
    "to",
    "in",
    "on",
    "at",
    "by",
    "from",
    "with",
    "based",
    "i",
    "found",
    "which",
    "called",
];

/// Words that change the meaning of the following text.
const TURNS: [&str; 26] = [
    "not", "no", "never", "cannot", "isn't", "aren't", "wasn't", "weren't", "doesn't", "don't", "neither", "nor", "or",
    "either", "maybe", "perhaps", "possibly", "might", "may", "could", "unless", "except", "if", "whether", "wrong",
    "than",
];

/// Words that mark a value as rounded.
const ABOUT: [&str; 8] = ["about", "approximately", "approx.", "around", "roughly", "circa", "~", "≈"];

/// Keys of a JSON object that contain an answer.
const KEYS: [&str; 8] = ["answer", "final_answer", "result", "response", "value", "output", "retrieved_data", "text"];

/// Returns the answer as it is, followed by the answer without its markup. Each text is a part of the previous one.
pub(super) fn unwrapped(answer: &str) -> Vec<String> {
    let mut texts = vec![answer.to_owned()];
    // The deepest nesting is Markdown within JSON within a code fence.
    for _ in 0..4 {
        let last = texts[texts.len() - 1].trim();
        let Some(inner) = inner(last).filter(|inner| inner != last) else { break };
        texts.push(inner);
    }
    texts
}

fn inner(text: &str) -> Option<String> {
    if text.starts_with(['{', '[', '"'])
        && let Ok(value) = serde_json::from_str::<Value>(text)
    {
        return plain(&value);
    }
    if let Some(fenced) = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```")) {
        let language = fenced.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(0);
        let is_line = fenced[language..].starts_with('\n');
        return Some(fenced[if is_line { language } else { 0 }..].trim().to_owned());
    }
    let bare = text.replace("**", "").replace('`', "");
    let bare = bare.trim().trim_start_matches('#').trim_start();
    let is_paired = |sign: char| bare.len() > 2 && bare.starts_with(sign) && bare.ends_with(sign);
    let bare = match ['*', '_'].into_iter().find(|sign| is_paired(*sign)) {
        Some(sign) => bare.trim_matches(sign),
        None => bare,
    };
    let bare = bare.strip_prefix("- ").or_else(|| bare.strip_prefix("* ")).unwrap_or(bare);
    Some(bare.trim().to_owned())
}

/// Returns the answer in a JSON document: a single value, or several values on separate lines.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => Some(if *truth { "yes" } else { "no" }.to_owned()),
        Value::Array(items) => items.iter().map(plain).collect::<Option<Vec<_>>>().map(|items| items.join("\n")),
        Value::Object(entries) => match entries.iter().collect::<Vec<_>>()[..] {
            [(_, only)] => plain(only),
            _ => KEYS.iter().find_map(|key| entries.get(*key)).and_then(plain),
        },
        Value::Null => None,
    }
}

/// Returns the texts that follow a frame in a folded text, the whole text first. A frame consists of words of the task
/// and `FRAME`, and ends with `is` or a colon.
pub(super) fn framed<'a>(folded: &'a str, intent: &str) -> Vec<&'a str> {
    let intent = Intent::of(intent);
    let mut rests = vec![without_about(folded)];
    for (at, c) in folded.char_indices().filter(|(_, c)| " :=".contains(*c)) {
        let (before, rest) = (&folded[..at], folded[at + c.len_utf8()..].trim_start());
        let is_end = c != ' ' || [" is", " are", " was", " were", "it's"].iter().any(|verb| before.ends_with(verb));
        let is_frame = |word: &str| !TURNS.contains(&word) && (FRAME.contains(&word) || intent.has(word));
        if is_end && !rest.is_empty() && words(before).all(|word| is_frame(&word)) {
            rests.push(without_about(rest));
        }
    }
    rests
}

pub(super) fn without_about(text: &str) -> &str {
    let text = text.trim();
    let after = |about: &&str| {
        let (start, rest) = text.split_at_checked(about.len())?;
        let is_whole = !about.ends_with(char::is_alphabetic) || rest.starts_with(char::is_whitespace);
        (is_whole && start.eq_ignore_ascii_case(about)).then_some(rest)
    };
    ABOUT.iter().find_map(after).map_or(text, str::trim_start)
}

/// Whether an answer begins with `word`, such as `yes` or `no`, and does not revoke it later.
pub(super) fn begins_with(folded: &str, word: &str) -> bool {
    let Some(rest) = folded.strip_prefix(word).filter(|rest| rest.starts_with([',', '.', ';', ':', '!'])) else {
        return false;
    };
    let turns = |word: &str| TURNS.contains(&word) || ["yes", "but", "however", "although", "though"].contains(&word);
    !words(rest).any(|word| turns(&word))
}

/// Returns the words of a folded text without the punctuation around them.
pub(super) fn words(folded: &str) -> impl Iterator<Item = Cow<'_, str>> {
    let words = folded.split(|c: char| !c.is_alphanumeric() && c != '\'').map(|word| word.trim_matches('\''));
    words.filter(|word| !word.is_empty()).map(Cow::Borrowed)
}

/// The words of a task.
pub(super) struct Intent(Vec<String>);

impl Intent {
    pub(super) fn of(intent: &str) -> Self {
        Self(words(&fold(intent)).map(Cow::into_owned).collect())
    }

    /// Whether the task contains this word, in the singular or the plural.
    pub(super) fn has(&self, word: &str) -> bool {
        let stem = |word: &str| word.trim_end_matches("es").trim_end_matches('s').to_owned();
        self.0.iter().any(|own| own == word || (word.len() > 3 && stem(own) == stem(word)))
    }

    /// Whether the task asks for latitude and longitude.
    pub(super) fn asks_coordinates(&self) -> bool {
        self.has("coordinates") || self.has("latitude")
    }

    /// Whether the task asks for an amount, such as money, instead of a count.
    pub(super) fn asks_how_much(&self) -> bool {
        let pairs = self.0.windows(2).any(|pair| pair[0] == "how" && pair[1] == "much");
        pairs || ["price", "cost", "spend", "spent", "refund", "amount", "payment"].iter().any(|word| self.has(word))
    }
}

/// Returns the value of the English number word at the start of the words, from `zero` to `ninety-nine`, and the number
/// of words that it takes.
pub(super) fn number_word(words: &[Cow<'_, str>]) -> Option<(u32, usize)> {
    if let Some(small) = words.first().and_then(|word| number_words::small(word)) {
        return Some((small, 1));
    }
    let tens = words.first().and_then(|word| number_words::tens(word))?;
    match words.get(1).and_then(|word| number_words::small(word)).filter(|small| (1..10).contains(small)) {
        Some(small) => Some((tens + small, 2)),
        None => Some((tens, 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_comes_off() {
        for (answer, inner) in [
            ("**Sprite**", "Sprite"),
            ("`a_b`", "a_b"),
            ("```\nSprite\n```", "Sprite"),
            ("```json\n{\"answer\": \"**Sprite**\", \"why\": 1}\n```", "Sprite"),
            ("{\"zip\": 15213}", "15213"),
            ("[\"a\", \"b\"]", "a\nb"),
            ("\"\\u2122\"", "™"),
            ("*yes*", "yes"),
            ("TMN_bBn9Z48qVbUFZV45", "TMN_bBn9Z48qVbUFZV45"),
            ("2 * 3 * 4", "2 * 3 * 4"),
        ] {
            assert_eq!(unwrapped(answer).last().map(String::as_str), Some(inner), "{answer}");
        }
        assert_eq!(unwrapped("plain").len(), 1);
    }

    #[test]
    fn a_frame_says_nothing_new() {
        let is_framed = |text: &str, rest: &str| framed(text, "What is the zip code of Yale?").contains(&rest);
        assert!(is_framed("the zip code of yale is 06516", "06516"));
        assert!(is_framed("answer: 06516", "06516") && is_framed("it's about 748m", "748m"));
        assert!(!is_framed("the zip code of harvard is 06516", "06516"));
        assert!(!is_framed("the zip code is not: 06516", "06516"));
        assert!(begins_with("yes, it is closed", "yes") && !begins_with("yes, or no", "yes"));
        assert!(!begins_with("yesterday, it", "yes") && !begins_with("no, but yes", "no"));
    }

    #[test]
    fn numbers_are_words() {
        let value = |text: &str| number_word(&words(text).collect::<Vec<_>>());
        assert_eq!(
            (value("two"), value("twenty-one"), value("forty"), value("tooth")),
            (Some((2, 1)), Some((21, 2)), Some((40, 1)), None)
        );
    }
}
