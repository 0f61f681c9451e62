//! Comparison of the agent's answer with a rule. Answers are read leniently: case, white space, quotes, a final full
//! stop and the spelling of a number do not count, and a list may be written in several ways.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::matching::{self, Fit, is_near, is_permutation, number};
use super::tree;
use crate::strict::words::{fold, same, says};
use arenad_model::locator::Value;
use arenad_model::task::{Matcher, Rule};

/// The words that state that a task is impossible, in lower case. The list is closed, because an explanation beside
/// them could also be an answer.
const UNACHIEVABLE: [&str; 12] = [
    "n/a",
    "na",
    "not applicable",
    "not available",
    "not possible",
    "impossible",
    "infeasible",
    "not feasible",
    "unachievable",
    "not achievable",
    "cannot be done",
    "this task cannot be done",
];

/// Whether an answer states only that the task is impossible.
pub(super) fn says_unachievable(answer: &str) -> bool {
    UNACHIEVABLE.iter().any(|words| same(words, answer))
}

/// Applies a rule to an answer.
pub(super) fn fit(rule: &Rule, answer: &str, captured: &BTreeMap<String, Value>) -> Fit {
    match &rule.matcher {
        Matcher::Equals(expected) => Fit::of(is_answer(&tree::of(expected), answer)),
        Matcher::Contains(expected) => {
            let missing = expected.iter().map(plain).find(|expected| !says(answer, expected));
            missing.map_or(Fit::Yes, |missing| Fit::because(format!("it does not say {}", Json::from(missing))))
        }
        Matcher::Matches(pattern) => matching::matches(pattern, answer, rule.ignore_case),
        Matcher::Number(expected, margin) => match number(&Json::from(answer)) {
            Some(number) => Fit::of(is_near(expected, margin, &number)),
            None => Fit::because("it says no number, or more than one"),
        },
        Matcher::Set(expected) => {
            Fit::of(lists(answer).iter().any(|list| is_permutation(expected, list, |a, b| is_answer(a, b))))
        }
        Matcher::Json(expected) => matching::subset_of(expected, &Json::from(unfenced(answer))),
        Matcher::Count(bounds) => matching::count(bounds, lists(answer).first().map_or(0, Vec::len)),
        Matcher::Difference(name, bounds) => {
            matching::difference(bounds, captured.get(name), number(&Json::from(answer)), name)
        }
        Matcher::SameAs(name) => match captured.get(name) {
            Some(before) => Fit::of(is_answer(&tree::of(before), answer)),
            None => matching::never_captured(name),
        },
    }
}

/// Returns a single expected value as a text.
fn plain(value: &Value) -> String {
    match tree::of(value) {
        Json::String(text) => text,
        other => other.to_string(),
    }
}

/// Whether an answer is the expected value.
fn is_answer(expected: &Json, answer: &str) -> bool {
    match expected {
        Json::Null => answer.trim().is_empty(),
        Json::Bool(expected) => {
            let words = if *expected { ["yes", "true"] } else { ["no", "false"] };
            words.iter().any(|word| same(word, answer))
        }
        Json::Number(number) => {
            same(&number.to_string(), answer) || matching::same(expected, &Json::from(answer), false)
        }
        Json::String(text) => same(text, answer),
        Json::Array(members) => lists(answer).iter().any(|list| {
            list.len() == members.len() && members.iter().zip(list).all(|(member, item)| is_answer(member, item))
        }),
        Json::Object(_) => matching::same(expected, &Json::from(unfenced(answer)), false),
    }
}

/// Returns the content of a code block if the whole text is one.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let inner = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    inner.and_then(|inner| inner.split_once('\n')).map_or(text, |(_, inner)| inner.trim())
}

/// Returns the lists that an answer may denote, the most explicit first: JSON; lines; parts between commas or
/// semicolons; the same with "and" between the last ones. Items may contain commas, so every interpretation counts.
fn lists(answer: &str) -> Vec<Vec<String>> {
    let text = unfenced(answer);
    if let Some(Json::Array(members)) = matching::parsed(text) {
        let plain = |member: &Json| member.as_str().map_or_else(|| member.to_string(), str::to_owned);
        return vec![members.iter().map(plain).collect()];
    }
    let bare = text.strip_prefix(['[', '(']).and_then(|rest| rest.strip_suffix([']', ')'])).unwrap_or(text);
    let lines: Vec<String> = parts(bare.lines());
    let commas: Vec<String> = parts(bare.split([',', ';', '\n']));
    let ands: Vec<String> =
        commas.iter().flat_map(|part| parts(part.split(" and ").flat_map(|part| part.split(" & ")))).collect();
    let mut ways = Vec::new();
    if lines.len() > 1 || commas.len() <= 1 {
        ways.push(lines);
    }
    for way in [commas, ands] {
        if !ways.contains(&way) {
            ways.push(way);
        }
    }
    ways
}

/// Removes list markers from the parts and leaves out empty ones.
fn parts<'a>(parts: impl Iterator<Item = &'a str>) -> Vec<String> {
    let bare = |part: &str| {
        let part = part.trim().trim_start_matches(['-', '*', '•']).trim_start();
        let digits = part.len() - part.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let numbered = part[digits..].strip_prefix([')', '.']).filter(|rest| digits > 0 && rest.starts_with(' '));
        let part = numbered.unwrap_or(part).trim();
        let part = part.strip_prefix("and ").unwrap_or(part).trim();
        part.to_owned()
    };
    parts.map(bare).filter(|part| !fold(part).is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use arenad_model::task::{Bounds, Margin};

    fn fits(matcher: Matcher, answer: &str) -> bool {
        fit(&Rule { matcher, ignore_case: false }, answer, &BTreeMap::new()) == Fit::Yes
    }

    fn text(text: &str) -> Value {
        Value::Text(text.to_owned())
    }

    #[test]
    fn answers_are_read_as_people_read_them() {
        for (expected, answer) in [
            (json!("Larkmoor lamp"), " \"larkmoor  LAMP.\" "),
            (json!(1234.5), "$1,234.50"),
            (json!(3), "3."),
            (json!(true), "Yes."),
            (json!(null), "  "),
            (json!(["a", 2]), "[\"A\", 2]"),
            (json!({ "a": 1 }), "```json\n{\"a\": 1}\n```"),
        ] {
            assert!(is_answer(&expected, answer), "{expected} {answer}");
        }
        for (expected, answer) in [
            (json!("lamp"), "a lamp"),
            (json!(3), "3 or 4"),
            (json!(3), "33"),
            (json!(true), "yes and no"),
            (json!(null), "nothing"),
            (json!(["a", "b"]), "b, a"),
            (json!(5), ""),
        ] {
            assert!(!is_answer(&expected, answer), "{expected} {answer}");
        }
    }

    #[test]
    fn lists_are_written_in_several_ways() {
        let set = || Matcher::Set(vec![text("Smith, John"), text("Ann and Bob"), text("Eve")]);
        for answer in [
            "[\"Eve\", \"Ann and Bob\", \"Smith, John\"]",
            "- Smith, John\n- Ann and Bob\n- Eve",
            "1. Eve\n2. Smith, John\n3. Ann and Bob.",
        ] {
            assert!(fits(set(), answer), "{answer}");
        }
        let set = || Matcher::Set(vec![text("a"), text("b"), text("c")]);
        for answer in ["a, b, c", "a; c; b", "c, a, and b", "a, b and c", "(a, b, c)", "a & b & c", "A\nB\nC"] {
            assert!(fits(set(), answer), "{answer}");
        }
        for answer in ["a, b", "a, b, c, d", "a, b, b", "", "abc", "a b c", "a, b, c, c"] {
            assert!(!fits(set(), answer), "{answer}");
        }
        assert!(fits(Matcher::Set(vec![Value::Decimal("12.5".to_owned()), Value::Integer(3)]), "3 and $12.50"));
        assert!(fits(Matcher::Count(Bounds::exactly(2.into())), "x\ny"));
        assert!(!fits(Matcher::Count(Bounds::exactly(0.into())), "x"));
    }

    #[test]
    fn numbers_and_words_are_whole() {
        let near =
            || Matcher::Number("12.5".parse().expect("a number"), Margin::Absolute("0.01".parse().expect("a number")));
        assert!(fits(near(), "It was $12.51 in all."));
        assert!(!fits(near(), "12.5 for 3 items"));
        assert!(!fits(near(), "none"));
        assert!(fits(Matcher::Contains(vec![text("Rowan"), Value::Integer(10)]), "ROWAN has 10 posts"));
        assert!(!fits(Matcher::Contains(vec![Value::Integer(10)]), "100 posts"));
        assert!(fits(Matcher::Matches("^2022-1[0-2]$".to_owned()), " 2022-11 "));
    }

    #[test]
    fn only_the_usual_words_say_that_a_task_cannot_be_done() {
        for answer in ["N/A", "n/a.", "\"Impossible\"", " Not  achievable ", "INFEASIBLE"] {
            assert!(says_unachievable(answer), "{answer}");
        }
        for answer in ["", "N/A, but the price is 5", "the price is N/A", "no", "0", "not"] {
            assert!(!says_unachievable(answer), "{answer}");
        }
    }
}
