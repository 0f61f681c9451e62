//! Detection of answers without commitment: alternatives, negations, long lists.
//!
//! A rule such as `must_include` finds the expected words at any place, so an answer that names all candidates contains
//! the right one, too. This module examines the context of the expected words: a denial, several alternatives, or more
//! values than the task requires. A longer answer that finally states its result is not hedged.

use std::collections::BTreeSet;
use std::ops::Range;

use super::numbers::{self, Amount};
use super::spoken::{Intent, number_word, words};
use super::words::{fold, positions, same};
use crate::text::python;

/// The beginning of the reason of a check that failed because of a hedged answer.
pub(crate) const HEDGED: &str = "hedged answer: ";

/// The number of other values that an answer may contain beside the references.
const NUMBERS_MAX: usize = 7;
const PARTS_MAX: usize = 10;
const COLOURS_MAX: usize = 2;

const COLOURS: [&str; 17] = [
    "red", "orange", "yellow", "green", "blue", "purple", "violet", "pink", "brown", "black", "white", "grey", "gray",
    "gold", "silver", "cyan", "beige",
];

/// Words that deny the following text, directly or behind an article or a preposition.
const DENIALS: [&str; 12] = [
    "not",
    "isn't",
    "aren't",
    "wasn't",
    "weren't",
    "never",
    "neither",
    "nor",
    "without",
    "except",
    "excluding",
    "unlike",
];
const PASSED_OVER: [&str; 10] = ["a", "an", "the", "in", "at", "on", "by", "to", "exactly", "really"];

/// Words that leave open which of several values is meant.
const DOUBTS: [&str; 8] = ["maybe", "perhaps", "possibly", "not sure", "unsure", "i guess", "might be", "could be"];

/// An answer and its expected content.
pub(super) struct Claim<'a> {
    answer: &'a str,
    intent: Intent,
    /// The numbers that occur in the task.
    known: Vec<String>,
    /// The expected content: of each entry, one alternative.
    wanted: Vec<Vec<String>>,
}

/// A number in a folded text.
struct MentionedNumber {
    at: Range<usize>,
    /// Its digits as a plain decimal number.
    digits: String,
    is_wanted: bool,
}

impl<'a> Claim<'a> {
    pub(super) fn new<'b>(answer: &'a str, intent: &str, wanted: impl Iterator<Item = Vec<&'b str>>) -> Self {
        let bare = |reference: &str| python::unquote(&fold(reference)).trim().to_owned();
        let wanted = wanted.map(|any| any.into_iter().map(bare).collect()).collect();
        let known = numbers::scan(&fold(intent)).into_iter().map(|number| number.amount.digits().to_owned()).collect();
        Self { answer, intent: Intent::of(intent), known, wanted }
    }

    /// Describes how the answer hedges; returns `None` if it does not.
    pub(super) fn hedge(&self) -> Option<String> {
        let text = fold(&without_markers(self.answer));
        let said = self.yes_and_no(&text).or_else(|| self.colours(&text));
        let said = said.or_else(|| self.alternatives(&text));
        let said = said.or_else(|| if self.concludes() { None } else { self.too_many(&text) });
        said.map(|said| format!("{HEDGED}{said}"))
    }

    fn references(&self) -> impl Iterator<Item = &str> {
        self.wanted.iter().flatten().map(String::as_str)
    }

    /// Detects an answer with both `yes` and `no` to a question that requires one of them.
    fn yes_and_no(&self, text: &str) -> Option<String> {
        let asks = |word: &str| self.references().any(|reference| same(word, reference));
        let (yes, no) = (asks("yes"), asks("no"));
        let is_alone = |at: &Range<usize>| {
            let after = text[at.end..].trim_start();
            after.is_empty()
                || !after.starts_with(char::is_alphanumeric)
                || ["or ", "and "].iter().any(|c| after.starts_with(c))
        };
        let opposite = match (yes, no) {
            (true, false) => positions(text, "no").iter().any(is_alone),
            (false, true) => !positions(text, "yes").is_empty(),
            _ => false,
        };
        opposite.then(|| "it says yes and no".to_owned())
    }

    /// Detects too many colours in an answer to a question that requires one.
    fn colours(&self, text: &str) -> Option<String> {
        self.references().find(|reference| COLOURS.contains(reference))?;
        let is_other = |colour: &&&str| {
            let is_wanted = self.references().any(|reference| words(reference).any(|word| word == **colour));
            !is_wanted && !self.intent.has(colour)
        };
        let said: BTreeSet<_> = words(text).collect();
        let others = COLOURS.iter().filter(is_other).filter(|colour| said.iter().any(|word| word == **colour)).count();
        (others > COLOURS_MAX).then(|| format!("it names {others} other colours"))
    }

    /// Detects an expected entry whose every mention is denied or is one of several alternatives.
    fn alternatives(&self, text: &str) -> Option<String> {
        let values = self.values(text);
        let runs = runs(text, &values);
        let has_doubt = DOUBTS.iter().any(|doubt| !positions(text, doubt).is_empty());
        let others = values.iter().any(|value| !value.is_wanted);
        let how = |reference: &str, at: &Range<usize>| {
            if is_denied(&text[..at.start]) {
                return Some(format!("it denies {reference:?}"));
            }
            let overlaps = |value: &MentionedNumber| value.at.start < at.end && at.start < value.at.end;
            let run = runs.iter().find(|run| values[run.start..run.end].iter().any(overlaps));
            let is_number = Amount::of(reference).is_some();
            let in_run = run.is_some_and(|run| values[run.start..run.end].iter().any(|value| !value.is_wanted));
            if is_number && (in_run || (has_doubt && others)) {
                return Some(format!("{reference:?} is one of several numbers"));
            }
            self.is_alternative(text, at).then(|| format!("{reference:?} is one of several alternatives"))
        };
        self.wanted.iter().find_map(|any| {
            let mut first = None;
            for reference in any {
                for at in self.mentions(text, reference, &values) {
                    match how(reference, &at) {
                        None => return None,
                        said => first = first.or(said),
                    }
                }
            }
            first
        })
    }

    fn mentions(&self, text: &str, reference: &str, values: &[MentionedNumber]) -> Vec<Range<usize>> {
        match Amount::of(reference) {
            Some(amount) => {
                let is_meant =
                    |value: &&MentionedNumber| value.digits == amount.digits() || value.digits.starts_with(reference);
                values.iter().filter(|value| value.is_wanted).filter(is_meant).map(|value| value.at.clone()).collect()
            }
            None => positions(text, reference),
        }
    }

    /// Whether `or` connects a mention to text that is not a reference.
    fn is_alternative(&self, text: &str, at: &Range<usize>) -> bool {
        let before = text[..at.start].trim_end_matches(|c: char| !c.is_alphanumeric());
        let after = text[at.end..].trim_start_matches(|c: char| c.is_alphanumeric() || c == '\'');
        let after = after.trim_start_matches(|c: char| !c.is_alphanumeric());
        let other = before.strip_suffix("or").filter(|rest| rest.ends_with(|c: char| !c.is_alphanumeric()));
        if let Some(other) = other {
            let other = other.trim_end_matches(|c: char| !c.is_alphanumeric());
            return !self.references().any(|reference| other.ends_with(bare(reference)));
        }
        let Some(other) = after.strip_prefix("or ").filter(|other| *other != "so" && !other.starts_with("so ")) else {
            return false;
        };
        let other = ["the ", "a ", "an "].iter().find_map(|article| other.strip_prefix(article)).unwrap_or(other);
        let other = other.trim_start_matches(|c: char| !c.is_alphanumeric());
        !self.references().any(|reference| other.starts_with(bare(reference)))
    }

    /// Detects more numbers or other items than an answer needs.
    fn too_many(&self, text: &str) -> Option<String> {
        let asks_number = self.references().any(|reference| Amount::of(reference).is_some());
        let others: BTreeSet<String> =
            self.values(text).into_iter().filter(|value| !value.is_wanted).map(|value| value.digits).collect();
        if asks_number && others.len() > NUMBERS_MAX + self.wanted.len() {
            return Some(format!("it says {} other numbers", others.len()));
        }
        let rest = self.without_mentions(&fold_lines(self.answer));
        let is_new = |part: &&str| words(part).any(|word| !self.intent.has(&word)) && words(part).count() <= 8;
        let parts: BTreeSet<&str> =
            rest.split([',', ';', '\n', '|', '•', '\t']).map(str::trim).filter(is_new).collect();
        (parts.len() > PARTS_MAX + 2 * self.wanted.len()).then(|| format!("it lists {} other things", parts.len()))
    }

    /// Whether the first or the last of several statements gives the result in a form that differs from all others.
    fn concludes(&self) -> bool {
        let text = fold_lines(self.answer);
        let ends = |text: &str| text.ends_with(['.', '!', '?']);
        let mut statements: Vec<String> = vec![String::new()];
        for line in text.split('\n') {
            for word in line.split(' ').filter(|word| !word.is_empty()) {
                if let Some(last) = statements.last_mut() {
                    last.push_str(word);
                    last.push(' ');
                }
                if ends(word) {
                    statements.push(String::new());
                }
            }
            statements.push(String::new());
        }
        statements.retain(|statement| words(statement).next().is_some());
        let shape = |statement: &str| -> Vec<String> {
            words(statement)
                .filter(|word| !word.starts_with(|c: char| c.is_ascii_digit()))
                .map(|word| word.into_owned())
                .collect()
        };
        let shapes: Vec<Vec<String>> = statements.iter().map(|statement| shape(statement)).collect();
        let gives = |at: usize| {
            let statement = &statements[at];
            let values = self.values(statement);
            let is_said = |any: &Vec<String>| {
                any.iter().any(|reference| !self.mentions(statement, reference, &values).is_empty())
            };
            let others = values.iter().filter(|value| !value.is_wanted).count();
            let rest = self.without_mentions(statement);
            let has_word = words(&rest).any(|word| {
                self.intent.has(&word)
                    || ["answer", "total", "result", "therefore", "altogether", "sum"].contains(&&*word)
            });
            let is_unique = shapes.iter().filter(|shape| **shape == shapes[at]).count() == 1;
            let parts = rest.split([',', ';', '|']).filter(|part| words(part).next().is_some()).count();
            self.wanted.iter().all(is_said)
                && others <= 1
                && has_word
                && is_unique
                && parts <= 3 + 2 * self.wanted.len()
        };
        statements.len() > 1 && (gives(0) || gives(statements.len() - 1))
    }

    /// Returns the numbers of a folded text, without the numbers of the task, years, and numbers inside a textual
    /// reference.
    fn values(&self, text: &str) -> Vec<MentionedNumber> {
        let amounts: Vec<(Amount, &str)> =
            self.references().filter_map(|reference| Some((Amount::of(reference)?, reference))).collect();
        let texts = self.references().filter(|reference| Amount::of(reference).is_none());
        let covered: Vec<Range<usize>> = texts.flat_map(|reference| positions(text, reference)).collect();
        let may_be_cut = self.intent.asks_coordinates();
        let is_year = |digits: &str| digits.len() == 4 && (digits.starts_with("19") || digits.starts_with("20"));
        let asks_year = amounts.iter().any(|(amount, _)| is_year(amount.digits()));
        let mut values: Vec<MentionedNumber> = Vec::new();
        for number in numbers::scan(text) {
            let is_covered = covered.iter().any(|range| range.start <= number.at.start && number.at.end <= range.end);
            let is_wanted = amounts.iter().any(|(amount, reference)| number.is(amount, reference, may_be_cut));
            let digits = number.amount.digits().to_owned();
            let is_known = is_covered || self.known.contains(&digits) || (is_year(&digits) && !asks_year);
            if is_wanted || !is_known {
                values.push(MentionedNumber { at: number.at, digits, is_wanted });
            }
        }
        let mut from = 0;
        let places: Vec<(usize, &str)> = words(text)
            .map(|word| {
                let at = text[from..].find(&*word).map_or(from, |at| from + at);
                from = at + word.len();
                (at, &text[at..from])
            })
            .collect();
        for (index, (at, word)) in places.iter().enumerate() {
            let Some((value, 1)) = number_word(&[(*word).into()]).filter(|(value, _)| *value != 1) else { continue };
            let is_second = index > 0
                && places[index - 1].0 + places[index - 1].1.len() + 1 == *at
                && number_word(&[places[index - 1].1.into(), (*word).into()]).is_some_and(|(_, count)| count == 2);
            if is_second || self.intent.has(word) {
                continue;
            }
            let digits = value.to_string();
            let is_wanted = amounts.iter().any(|(amount, _)| amount.digits() == digits);
            values.push(MentionedNumber { at: *at..at + word.len(), digits, is_wanted });
        }
        values.sort_by_key(|value| value.at.start);
        values
    }

    /// Removes all references from a folded text.
    fn without_mentions(&self, text: &str) -> String {
        let mut references: Vec<&str> = self.references().filter(|reference| !reference.is_empty()).collect();
        references.sort_by_key(|reference| std::cmp::Reverse(reference.len()));
        references.into_iter().fold(text.to_owned(), |text, reference| text.replace(reference, " "))
    }
}

fn bare(reference: &str) -> &str {
    reference.trim_matches(|c: char| !c.is_alphanumeric())
}

/// Whether the words before a mention deny it.
fn is_denied(before: &str) -> bool {
    let clause = before.rfind(['.', ',', ';', ':', '!', '?', '(']).map_or(before, |at| &before[at + 1..]);
    let said: Vec<_> = words(clause).collect();
    let mut back = said.iter().rev().skip_while(|word| PASSED_OVER.contains(&&***word));
    match back.next().map(|word| &**word) {
        Some("than") => back.next().is_some_and(|word| word == "rather" || word == "other"),
        Some("of") => back.next().is_some_and(|word| word == "instead"),
        Some(word) => DENIALS.contains(&word),
        None => false,
    }
}

/// Returns the groups of adjacent numbers that form alternatives or a list, as ranges of indices.
fn runs(text: &str, values: &[MentionedNumber]) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for index in 0..values.len() {
        let is_tied = index > 0 && ties(&text[values[index - 1].at.end..values[index].at.start]);
        match runs.last_mut() {
            Some(run) if is_tied => run.end = index + 1,
            _ => runs.push(index..index + 1),
        }
    }
    runs
}

/// Whether the text between two numbers makes them alternatives or a list: signs, `or`, `and`, `to`.
fn ties(between: &str) -> bool {
    const LINKS: [&str; 9] = ["or", "and", "to", "nor", "maybe", "perhaps", "possibly", "through", "versus"];
    let said: Vec<_> = words(between).collect();
    if said.iter().any(|word| word == "or") {
        return said.len() <= 3;
    }
    let is_sign = |c: char| c.is_whitespace() || c.is_alphabetic() || ".,;/|&~-≈".contains(c);
    said.iter().all(|word| LINKS.contains(&&**word)) && between.chars().all(is_sign)
}

/// Folds each line of a text.
fn fold_lines(text: &str) -> String {
    without_markers(text).lines().map(fold).collect::<Vec<_>>().join("\n")
}

/// Removes the numbers of a numbered list, `1.` or `1)`, `2.` and so on, if it has at least two items.
pub(super) fn without_markers(text: &str) -> String {
    let mut places: Vec<Range<usize>> = Vec::new();
    let mut from = 0;
    loop {
        let next = (places.len() + 1).to_string();
        let found = text[from..].match_indices(&next).map(|(at, _)| from + at).find(|at| {
            let before = text[..*at].chars().next_back();
            let mut after = text[at + next.len()..].chars();
            before.is_none_or(|c| c.is_whitespace() || c == '(')
                && after.next().is_some_and(|c| ".)".contains(c))
                && after.next().is_some_and(char::is_whitespace)
        });
        let Some(at) = found else { break };
        places.push(at..at + next.len() + 1);
        from = at + next.len();
    }
    let items: BTreeSet<&str> = places.windows(2).map(|pair| text[pair[0].end..pair[1].start].trim()).collect();
    let is_empty = |item: &&str| !item.contains(char::is_alphanumeric);
    let has_lines =
        places.iter().all(|place| text[..place.start].trim_end_matches(' ').ends_with('\n') || place.start == 0);
    // `It may be 1. It may be 2.` and `1., 2., 3.` are not lists.
    if places.len() < 2 || items.iter().any(is_empty) || (!has_lines && items.len() < places.len() - 1) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for place in places {
        out.push_str(&text[from..place.start]);
        out.push('•');
        from = place.end;
    }
    out + &text[from..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hedge(answer: &str, intent: &str, wanted: &[&str]) -> Option<String> {
        Claim::new(answer, intent, wanted.iter().map(|any| any.split(" |OR| ").collect())).hedge()
    }

    #[test]
    fn answers_that_name_everything_hedge() {
        let all: String = (0..1000).map(|number| format!("{number}, ")).collect();
        let lines: String = (0..1000).map(|number| format!("{number} reviews\n")).collect();
        let digits: String = (0..10).map(|number| format!("{number} reviews ")).collect();
        for (answer, wanted) in [
            ("Not 6, but 7", "6"),
            ("5 or 6", "6"),
            ("between 5 and 6", "6"),
            ("either 6 reviews or 7 reviews", "6"),
            ("it is five or six", "6"),
            ("maybe 5 reviews. maybe there are 6 reviews", "6"),
            ("5-6", "6"),
            ("1976, 1977", "1976"),
            ("1., 2., 3., 4., 5., 6., 7., 8., 9., 10.", "6"),
            ("Yes and No", "yes"),
            ("Yes/No", "No"),
            ("Yes, or no.", "yes"),
            ("No... yes", "no"),
            ("red, green, blue, white", "red"),
            ("It may be 0. It may be 1. It may be 2. It may be 3. It may be 4. It may be 5. 6, 7, 8, 9", "0"),
            ("Sprite or Hollister", "Sprite"),
            ("It is not Sprite", "sprite"),
            (&all, "6"),
            (&lines, "0"),
            (&digits, "4"),
        ] {
            assert!(hedge(answer, "How many reviews?", &[wanted]).is_some(), "{answer}: {wanted}");
        }
        let names: Vec<String> = (0..40).map(|number| format!("Customer {}", char::from(b'a' + number % 26))).collect();
        for separator in [", ", "\n", "; "] {
            assert!(
                hedge(&(names.join(separator) + separator + "Jane Doe"), "Which customer?", &["Jane Doe"]).is_some()
            );
        }
    }

    #[test]
    fn answers_that_explain_do_not_hedge() {
        for (answer, intent, wanted) in [
            ("Not 6, but 7", "How many?", &["7"][..]),
            ("There are 6 reviews: 1. good 2. bad 3. fine", "How many reviews?", &["6"]),
            ("$10.00 + $37.41 = $47.41", "How much?", &["47.41"]),
            ("In March 2023, 6 reviews", "How many?", &["6"]),
            ("2 of them on 3/5/2023", "How many on 3/5/2023?", &["2"]),
            ("$5.49 to $375.19", "What is the range?", &["5.49", "375.19"]),
            ("40.4424191, -79.9397388", "Coordinates?", &["40.442", "-79.939"]),
            ("18, 14 and 19", "Speeds?", &["18", "14", "19"]),
            ("5 or 6? The answer is 6.", "How many?", &["6"]),
            ("Yes, there is no toll on the way", "Can it?", &["Yes"]),
            ("not only Ohio but also Maryland", "Which?", &["Ohio", "Maryland"]),
            ("yellow or gold", "Which colour?", &["yellow |OR| gold"]),
            ("748m or so", "How far?", &["748m"]),
            ("black and white", "Which colour?", &["white"]),
        ] {
            assert_eq!(hedge(answer, intent, wanted), None, "{answer}: {wanted:?}");
        }
        let orders: String = (0..20).map(|number| format!("order {} cost ${number}.50\n", 100 + number)).collect();
        assert_eq!(hedge(&format!("{orders}In total I spent $195.00."), "How much did I spend?", &["195"]), None);
    }
}
