//! Comparison of a site's value with a rule. The expected value determines how the found value is read, because
//! databases and pages return numbers as texts, and truth values as numbers.

use std::collections::BTreeMap;

use bigdecimal::BigDecimal;
use regex::RegexBuilder;
use serde_json::Value as Json;
use unicode_normalization::UnicodeNormalization as _;

use super::{tree, words};
use crate::strict::numbers::{Amount, amounts};
use crate::strict::words as text;
use arenad_model::locator::Value;
use arenad_model::task::{Bounds, Margin, Matcher, Rule};

/// The largest size of a compiled pattern, in bytes.
const PATTERN_MAX: usize = 1 << 20;

/// The result of applying a rule to a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fit {
    /// The value satisfies the rule.
    Yes,
    /// The value does not satisfy the rule. The reason is given if it does not follow from the found and the expected
    /// value.
    No(Option<String>),
    /// The rule cannot be applied, independently of the agent.
    Never(String),
}

impl Fit {
    pub(super) fn of(fits: bool) -> Self {
        if fits { Self::Yes } else { Self::No(None) }
    }

    pub(super) fn because(reason: impl Into<String>) -> Self {
        Self::No(Some(reason.into()))
    }
}

/// Applies a rule to a site's value.
pub(super) fn site(rule: &Rule, found: &Json, captured: &BTreeMap<String, Value>) -> Fit {
    let case = rule.ignore_case;
    match &rule.matcher {
        Matcher::Equals(expected) => Fit::of(same(&tree::of(expected), found, case)),
        Matcher::Contains(expected) => contains(expected, found, case),
        Matcher::Matches(pattern) => match plain(found) {
            Some(text) => matches(pattern, &text, case),
            None => Fit::because(not_one_text(found)),
        },
        Matcher::Number(expected, margin) => match number(found) {
            Some(number) => Fit::of(is_near(expected, margin, &number)),
            None => Fit::because("it says no number, or more than one"),
        },
        Matcher::Set(expected) => Fit::of(is_permutation(expected, &members(found), |a, b| same(a, b, case))),
        Matcher::Json(expected) => subset_of(expected, found),
        Matcher::Count(bounds) => count(bounds, members(found).len()),
        Matcher::Difference(name, bounds) => difference(bounds, captured.get(name), number(found), name),
        Matcher::SameAs(name) => match captured.get(name) {
            Some(before) => Fit::of(same(&tree::of(before), found, false)),
            None => never_captured(name),
        },
    }
}

pub(super) fn never_captured(name: &str) -> Fit {
    Fit::Never(format!("`{name}` was not captured when the episode began"))
}

/// Normalises a text for comparison: composed (NFC), without white space at its ends.
fn normal(text: &str, ignore_case: bool) -> String {
    let composed: String = text.trim().nfc().collect();
    if ignore_case { composed.to_lowercase() } else { composed }
}

/// Whether a found value is the expected one.
pub(super) fn same(expected: &Json, found: &Json, ignore_case: bool) -> bool {
    match (expected, found) {
        (Json::Null, Json::Null) => true,
        (Json::Bool(expected), Json::Bool(found)) => expected == found,
        (Json::Bool(expected), Json::Number(found)) => found.as_i64() == Some(i64::from(*expected)),
        (Json::Bool(expected), Json::String(found)) => {
            let words = if *expected { ["true", "t", "1"] } else { ["false", "f", "0"] };
            words.contains(&found.trim().to_ascii_lowercase().as_str())
        }
        (Json::Number(expected), Json::Number(_) | Json::String(_)) => {
            let expected = tree::exact(&expected.to_string());
            expected.is_some() && expected == sole_number(found)
        }
        (Json::String(expected), Json::String(found)) => normal(expected, ignore_case) == normal(found, ignore_case),
        // A found number has lost its original spelling.
        (Json::String(expected), Json::Number(found)) => {
            let expected = tree::exact(expected);
            expected.is_some() && expected == tree::exact(&found.to_string())
        }
        (Json::Array(expected), Json::Array(found)) => {
            expected.len() == found.len()
                && expected.iter().zip(found).all(|(expected, found)| same(expected, found, ignore_case))
        }
        (Json::Object(expected), Json::Object(found)) => {
            let is_same =
                |(key, value): (&String, &Json)| found.get(key).is_some_and(|found| same(value, found, ignore_case));
            expected.len() == found.len() && expected.iter().all(is_same)
        }
        (Json::Array(_) | Json::Object(_), Json::String(text)) => {
            parsed(text).is_some_and(|found| same(expected, &found, ignore_case))
        }
        _ => false,
    }
}

/// Parses a text that is a JSON array or object.
pub(super) fn parsed(text: &str) -> Option<Json> {
    serde_json::from_str::<Json>(text).ok().filter(|json| json.is_array() || json.is_object())
}

/// Returns the number that a value consists of.
fn sole_number(found: &Json) -> Option<BigDecimal> {
    match found {
        Json::Number(number) => tree::exact(&number.to_string()),
        Json::String(found) => tree::exact(found)
            .or_else(|| Amount::of(&text::fold(found)).and_then(|amount| tree::exact(amount.digits()))),
        _ => None,
    }
}

/// Returns the number that a value consists of, or the only one that it contains.
pub(super) fn number(found: &Json) -> Option<BigDecimal> {
    sole_number(found).or_else(|| {
        let said = amounts(&text::fold(found.as_str()?));
        match said.as_slice() {
            [only] => tree::exact(only.digits()),
            _ => None,
        }
    })
}

/// Whether a number is close enough to the expected one.
pub(super) fn is_near(expected: &BigDecimal, margin: &Margin, found: &BigDecimal) -> bool {
    let allowed = match margin {
        Margin::Absolute(margin) => margin.clone(),
        Margin::Percent(percent) => expected.abs() * percent / BigDecimal::from(100),
    };
    (found - expected).abs() <= allowed
}

/// Returns a single value as a text.
fn plain(found: &Json) -> Option<String> {
    match found {
        Json::String(text) => Some(text.clone()),
        Json::Bool(_) | Json::Number(_) => Some(found.to_string()),
        Json::Null | Json::Array(_) | Json::Object(_) => None,
    }
}

fn not_one_text(found: &Json) -> &'static str {
    if found.is_null() { "nothing was found" } else { "several values were found, and one text is expected" }
}

/// Checks whether a pattern matches at any place in a text.
pub(super) fn matches(pattern: &str, found: &str, ignore_case: bool) -> Fit {
    let compiled = RegexBuilder::new(pattern).case_insensitive(ignore_case).size_limit(PATTERN_MAX).build();
    match compiled {
        Ok(regex) => Fit::of(regex.is_match(&normal(found, false))),
        Err(error) => Fit::Never(format!("the pattern cannot be used: {error}")),
    }
}

fn contains(expected: &[Value], found: &Json, ignore_case: bool) -> Fit {
    let list = match found {
        Json::Array(members) => Some(members.clone()),
        _ => None,
    };
    let text = plain(found);
    let missing = expected.iter().map(tree::of).find(|expected| match (&list, &text) {
        (Some(members), _) => !members.iter().any(|member| same(expected, member, ignore_case)),
        (None, Some(text)) => !says(text, expected, ignore_case),
        (None, None) => true,
    });
    match missing {
        None => Fit::Yes,
        Some(_) if list.is_none() && text.is_none() => Fit::because(not_one_text(found)),
        Some(missing) => Fit::because(format!("{missing} is not in it")),
    }
}

/// Whether a text contains the expected whole words, or a number of the expected value.
fn says(found: &str, expected: &Json, ignore_case: bool) -> bool {
    match expected {
        Json::Number(number) => {
            let number = tree::exact(&number.to_string());
            amounts(&text::fold(found)).iter().any(|amount| tree::exact(amount.digits()) == number)
        }
        _ => {
            let folded = |text: &str| normal(text, ignore_case).split_whitespace().collect::<Vec<_>>().join(" ");
            text::has_words(&folded(found), &folded(expected.as_str().unwrap_or_default()))
        }
    }
}

/// Returns the items of a list, none for `null`, or the value itself as the only item.
fn members(found: &Json) -> Vec<Json> {
    match found {
        Json::Array(members) => members.clone(),
        Json::Null => Vec::new(),
        Json::String(text) => match parsed(text) {
            Some(Json::Array(members)) => members,
            _ => vec![found.clone()],
        },
        other => vec![other.clone()],
    }
}

/// Whether the found values are a permutation of the expected ones.
pub(super) fn is_permutation<T>(expected: &[Value], found: &[T], is_same: impl Fn(&Json, &T) -> bool) -> bool {
    let mut left: Vec<&T> = found.iter().collect();
    let mut take = |expected: &Value| {
        let expected = tree::of(expected);
        let at = left.iter().position(|found| is_same(&expected, found));
        at.map(|at| left.swap_remove(at)).is_some()
    };
    expected.len() == found.len() && expected.iter().all(&mut take)
}

/// Checks whether the found JSON contains everything in the expected text.
pub(super) fn subset_of(expected: &str, found: &Json) -> Fit {
    let parsed_found = found.as_str().and_then(parsed);
    let found = parsed_found.as_ref().unwrap_or(found);
    match serde_json::from_str::<Json>(expected) {
        Ok(expected) => match missing(&expected, found, "") {
            None => Fit::Yes,
            Some(place) => Fit::because(format!("it differs at `{}`", if place.is_empty() { "/" } else { &place })),
        },
        Err(error) => Fit::Never(format!("the expected value is not JSON: {error}")),
    }
}

/// Returns the JSON pointer of the first value that is missing or differs.
fn missing(expected: &Json, found: &Json, place: &str) -> Option<String> {
    match (expected, found) {
        (Json::Object(expected), Json::Object(found)) => expected.iter().find_map(|(key, expected)| {
            let place = format!("{place}/{}", key.replace('~', "~0").replace('/', "~1"));
            match found.get(key) {
                Some(found) => missing(expected, found, &place),
                None => Some(place),
            }
        }),
        (Json::Array(expected), Json::Array(found)) if expected.len() == found.len() => {
            let pairs = expected.iter().zip(found).enumerate();
            pairs
                .into_iter()
                .find_map(|(index, (expected, found))| missing(expected, found, &format!("{place}/{index}")))
        }
        (Json::Object(_) | Json::Array(_), _) => Some(place.to_owned()),
        _ => (!same(expected, found, false)).then(|| place.to_owned()),
    }
}

/// Checks the number of items against the bounds.
pub(super) fn count(bounds: &Bounds, found: usize) -> Fit {
    match bounds.hold(&BigDecimal::from(u64::try_from(found).unwrap_or(u64::MAX))) {
        true => Fit::Yes,
        false => Fit::because(format!("there are {found}")),
    }
}

/// Checks the change of a number since the start of the episode against the bounds.
pub(super) fn difference(bounds: &Bounds, before: Option<&Value>, now: Option<BigDecimal>, name: &str) -> Fit {
    let Some(before) = before else { return never_captured(name) };
    let Some(before) = number(&tree::of(before)) else {
        return Fit::Never(format!("`{name}` was {} when the episode began, which is not a number", tree::of(before)));
    };
    let Some(now) = now else { return Fit::because("it is not a number") };
    let difference = now - &before;
    match bounds.hold(&difference) {
        true => Fit::Yes,
        false => Fit::because(format!(
            "it was {}, so the difference is {}, not {}",
            before.normalized().to_plain_string(),
            difference.normalized().to_plain_string(),
            words::bounds(bounds)
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn fits(matcher: Matcher, found: &Json) -> bool {
        let captured = BTreeMap::from([("before".to_owned(), Value::Decimal("10.50".to_owned()))]);
        site(&Rule { matcher, ignore_case: false }, found, &captured) == Fit::Yes
    }

    fn decimal(text: &str) -> BigDecimal {
        BigDecimal::from_str(text).expect("a number")
    }

    fn texts(texts: &[&str]) -> Vec<Value> {
        texts.iter().map(|text| Value::Text((*text).to_owned())).collect()
    }

    #[test]
    fn the_expected_type_decides_how_the_found_value_is_read() {
        for (expected, found) in [
            (json!(12.5), json!("12.50")),
            (json!(12.5), json!("£12.50")),
            (json!(1234), json!("1,234")),
            (json!(0.1), json!(0.1)),
            (json!(true), json!(1)),
            (json!(false), json!("f")),
            (json!("100001"), json!(100_001)),
            (json!("12.50"), json!(12.5)),
            (json!(" Cafe\u{301} "), json!("Caf\u{e9}")),
            (json!(null), json!(null)),
            (json!([1, "a"]), json!(["1", "a"])),
            (json!({ "a": 1 }), json!("{\"a\": 1.0}")),
        ] {
            assert!(same(&expected, &found, false), "{expected} {found}");
        }
        for (expected, found) in [
            (json!(12.5), json!("12.5 and 3")),
            (json!(1), json!("007")),
            (json!(0.1), json!("0.1000000000000000055")),
            (json!(0), json!(null)),
            (json!(""), json!(null)),
            (json!(true), json!(2)),
            (json!("a"), json!("A")),
            (json!("1"), json!(true)),
            (json!([1, 2]), json!([2, 1])),
            (json!({ "a": 1 }), json!({ "a": 1, "b": 2 })),
        ] {
            assert!(!same(&expected, &found, false), "{expected} {found}");
        }
        assert!(same(&json!("a"), &json!("A"), true));
    }

    #[test]
    fn texts_contain_whole_words_and_lists_members() {
        for (expected, found, is_in) in [
            ("Larkmoor lamp", json!("the  Larkmoor\nlamp, red"), true),
            ("art", json!("start"), false),
            ("10", json!("100"), false),
            ("lamp", json!("Lamp"), false),
            ("a", json!(["b", "a"]), true),
            ("a", json!(["ab"]), false),
            ("a", json!(null), false),
        ] {
            assert_eq!(fits(Matcher::Contains(texts(&[expected])), &found), is_in, "{expected} {found}");
        }
        assert!(fits(Matcher::Contains(vec![Value::Integer(12)]), &json!("12.00 in all")));
        assert!(!fits(Matcher::Contains(vec![Value::Integer(12)]), &json!("112")));
    }

    #[test]
    fn numbers_lie_within_their_margins() {
        let near = |margin| move |found: Json| fits(Matcher::Number(decimal("200"), margin), &found);
        assert!(near(Margin::Absolute(decimal("0.01")))(json!("$200.01")));
        assert!(!near(Margin::Absolute(decimal("0.01")))(json!(200.011)));
        assert!(near(Margin::Percent(decimal("5")))(json!("190")));
        assert!(!near(Margin::Percent(decimal("5")))(json!("189.99")));
        assert!(!near(Margin::Percent(decimal("5")))(json!("200 of 300")));
        assert!(!near(Margin::Percent(decimal("5")))(json!(null)));
    }

    #[test]
    fn counts_differences_and_subsets_are_judged() {
        let between = Bounds { at_least: Some(decimal("1")), at_most: Some(decimal("2")) };
        for (found, holds) in [(json!([]), false), (json!([1]), true), (json!("x"), true), (json!(null), false)] {
            assert_eq!(fits(Matcher::Count(between.clone()), &found), holds, "{found}");
        }
        let by = |text| Matcher::Difference("before".to_owned(), Bounds::exactly(decimal(text)));
        assert!(fits(by("-0.5"), &json!("10.00")));
        assert!(!fits(by("0"), &json!(10)));
        let unknown = Rule { matcher: Matcher::SameAs("other".to_owned()), ignore_case: false };
        assert!(matches!(site(&unknown, &json!(1), &BTreeMap::new()), Fit::Never(_)));
        assert!(fits(Matcher::SameAs("before".to_owned()), &json!("10.5")));
        let subset = |text: &str| Matcher::Json(text.to_owned());
        let found = json!({ "a": { "b": [1, { "c": "x", "d": 2 }] }, "e": null });
        assert!(fits(subset(r#"{"a": {"b": [1, {"c": "x"}]}}"#), &found));
        assert!(fits(subset(r#"{"e": null}"#), &found));
        let wrong = Rule { matcher: subset(r#"{"a": {"b": [1, {"d": 3}]}}"#), ignore_case: false };
        assert_eq!(site(&wrong, &found, &BTreeMap::new()), Fit::because("it differs at `/a/b/1/d`"));
    }

    proptest! {
        #[test]
        fn sets_are_equal_in_any_order_and_with_nothing_missing(mut members in prop::collection::vec("[a-c]{1,2}", 1..6), at in 0usize..6) {
            let expected: Vec<Value> = members.iter().cloned().map(Value::Text).collect();
            let holds = |members: &[String]| fits(Matcher::Set(expected.clone()), &json!(members));
            members.reverse();
            prop_assert!(holds(&members));
            let at = at % members.len();
            let mut fewer = members.clone();
            fewer.remove(at);
            prop_assert!(!holds(&fewer));
            members.push("z".to_owned());
            prop_assert!(!holds(&members));
        }

        #[test]
        fn no_found_value_makes_a_matcher_panic(text in "\\PC{0,40}", number in any::<f64>(), exponent in -9_000_000_000i64..9_000_000_000) {
            for found in [json!(text), json!(number), json!(format!("1e{exponent}")), json!([text]), json!({ "a": text })] {
                fits(Matcher::Equals(Value::Integer(1)), &found);
                fits(Matcher::Contains(texts(&["a"])), &found);
                fits(Matcher::Number(decimal("1"), Margin::Percent(decimal("1"))), &found);
                fits(Matcher::Difference("before".to_owned(), Bounds::exactly(decimal("1"))), &found);
                fits(Matcher::Json("{\"a\": 1}".to_owned()), &found);
            }
        }
    }
}
