//! Whether an answer equals or contains a reference, and with which leniency.

use super::addresses::NormalUrl;
use super::hedges::without_markers;
use super::leniency::Leniency;
use super::numbers::{Amount, CURRENCIES, LocatedNumber, scan};
use super::spoken::{Intent, begins_with, framed, number_word, unwrapped, words as words_of};
use super::words::{fold, same, says};
use crate::text::python;

/// An answer and its task.
pub(super) struct Said<'a> {
    intent: &'a str,
    /// The answer as it is, followed by the answer without its markup.
    texts: Vec<String>,
}

impl<'a> Said<'a> {
    pub(super) fn of(answer: &str, intent: &'a str) -> Self {
        Self { intent, texts: unwrapped(answer) }
    }

    /// Returns the answer and its texts without markup, each with the leniency that it requires.
    fn readings(&self) -> impl Iterator<Item = (&str, Leniency)> {
        let leniency = |index| if index == 0 { Leniency::Spelling } else { Leniency::Markup };
        self.texts.iter().enumerate().map(move |(index, text)| (text.as_str(), leniency(index)))
    }

    /// Returns the leniency with which the answer equals a reference, or `None` if it does not.
    pub(super) fn is(&self, reference: &str) -> Option<Leniency> {
        let plain = self.readings().find(|(text, _)| same(reference, text)).map(|(_, leniency)| leniency);
        plain.or_else(|| self.readings().find_map(|(text, _)| self.is_framed(reference, text)))
    }

    fn is_framed(&self, reference: &str, text: &str) -> Option<Leniency> {
        let folded = fold(text);
        let wanted = fold(reference);
        let wanted = python::unquote(&wanted).trim();
        for (index, rest) in framed(&folded, self.intent).into_iter().enumerate() {
            let rest = rest.trim_end_matches(['.', '!']).trim();
            if is_code(wanted, rest) {
                return Some(Leniency::Digits);
            }
            if is_address(wanted, rest) {
                return Some(Leniency::Spelling);
            }
            if is_number_word(wanted, rest) {
                return Some(Leniency::NumberWord);
            }
            if same(wanted, rest) || (index > 0 && rest == wanted) {
                return Some(Leniency::Sentence);
            }
        }
        (["yes", "no"].contains(&wanted) && begins_with(&folded, wanted)).then_some(Leniency::Sentence)
    }

    /// Returns the leniency with which the answer contains a reference, or `None` if it does not.
    pub(super) fn says(&self, reference: &str) -> Option<Leniency> {
        let wanted = fold(reference);
        let wanted = python::unquote(&wanted).trim();
        match Amount::of(wanted) {
            Some(amount) => {
                let number = self.readings().find(|(text, _)| self.says_number(text, &amount, wanted));
                number.map(|(_, leniency)| leniency).or_else(|| self.says_in_words(&amount))
            }
            None => {
                let said = self.readings().find(|(text, _)| says(text, reference));
                said.map(|(_, leniency)| if leniency == Leniency::Spelling { Leniency::Words } else { leniency })
            }
        }
    }

    /// Whether a text contains the number. A number of one digit has to be spelt as in the reference, because codes
    /// with leading zeros and amounts of money are not counts. If the task asks how much, an amount of money is
    /// accepted.
    fn says_number(&self, text: &str, amount: &Amount, wanted: &str) -> bool {
        let text = fold(&without_markers(text));
        let intent = Intent::of(self.intent);
        let is_plain = |written: &str| {
            let digits = written.trim_matches(CURRENCIES);
            let is_code = digits.starts_with('0') && digits[1..].starts_with(|c: char| c.is_ascii_digit());
            written == wanted || (intent.asks_how_much() && !is_code && !digits.starts_with('+'))
        };
        let fits = |number: &LocatedNumber| wanted.len() > 1 || is_plain(text[number.at.clone()].trim());
        let may_be_cut = intent.asks_coordinates();
        scan(&text).iter().any(|number| number.is(amount, wanted, may_be_cut) && fits(number))
    }

    /// Accepts a number as an English word if it counts an item of the task or stands alone, and a statement that there
    /// are none for zero.
    fn says_in_words(&self, amount: &Amount) -> Option<Leniency> {
        let intent = Intent::of(self.intent);
        for (text, _) in self.readings() {
            let folded = fold(text);
            if amount.digits() == "0" && says_none(&folded, &intent) {
                return Some(Leniency::Zero);
            }
            let said: Vec<_> = words_of(&folded).collect();
            for at in 0..said.len() {
                let Some((value, count)) = number_word(&said[at..]) else { continue };
                let before = at.checked_sub(1).map(|before| &*said[before]);
                let is_tail = before.and_then(|_| number_word(&said[at - 1..])).is_some_and(|(_, count)| count == 2);
                let after = said.get(at + count);
                let is_count = after.is_some_and(|after| intent.has(after))
                    || (after.is_none()
                        && before
                            .is_none_or(|before| ["is", "are", "was", "were", "answer", "total"].contains(&before)));
                if value.to_string() == amount.digits() && !is_tail && is_count {
                    return Some(Leniency::NumberWord);
                }
            }
        }
        None
    }
}

/// Whether an answer states that there are none of the items in the task.
fn says_none(folded: &str, intent: &Intent) -> bool {
    let said: Vec<_> = words_of(folded).collect();
    let has = |words: &[&str]| said.iter().any(|word| words.contains(&&**word));
    if has(&["but", "except", "however", "or", "unless", "not"]) || folded.contains(|c: char| ('1'..='9').contains(&c))
    {
        return false;
    }
    let starts = [
        "there", "are", "is", "were", "was", "i", "we", "the", "answer", "has", "have", "received", "made", "he", "she",
    ];
    let mut rest = said.iter().skip_while(|word| starts.contains(&&***word) || intent.has(word));
    match rest.next().map(|word| &**word) {
        Some("none" | "zero" | "nothing") => true,
        Some("no") => rest.next().is_some_and(|word| intent.has(word)),
        _ => false,
    }
}

/// Whether a text is the expected long number, with punctuation between its digits, such as a telephone number or an
/// ISBN.
fn is_code(wanted: &str, text: &str) -> bool {
    let is_long = wanted.len() >= 9 && wanted.bytes().all(|byte| byte.is_ascii_digit());
    let has_signs = text.chars().all(|c| c.is_ascii_digit() || " -().+".contains(c));
    if !is_long || !has_signs || text.starts_with(['-', '.']) {
        return false;
    }
    // A telephone number may begin with its country code.
    let text = text.strip_prefix("+1").or_else(|| text.strip_prefix("1-")).unwrap_or(text);
    text.chars().filter(char::is_ascii_digit).eq(wanted.chars())
}

/// Whether a text is the expected address of a site, with or without its scheme.
fn is_address(wanted: &str, text: &str) -> bool {
    let bare = |text: &str| text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")).map(str::to_owned);
    let Some(wanted) = bare(wanted) else { return false };
    let text = bare(text).unwrap_or_else(|| text.to_owned());
    !text.contains(char::is_whitespace)
        && NormalUrl::of(&format!("http://{text}")).is(&NormalUrl::of(&format!("http://{wanted}")))
}

fn is_number_word(wanted: &str, text: &str) -> bool {
    let said: Vec<_> = words_of(text).collect();
    number_word(&said).is_some_and(|(value, count)| count == said.len() && value.to_string() == wanted)
}
