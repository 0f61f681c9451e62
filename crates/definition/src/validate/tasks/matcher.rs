//! The matchers of a task, which define the expected values.

use std::str::FromStr;

use bigdecimal::{BigDecimal, Zero};
use serde_json::Value as Json;

use super::TaskContext;
use crate::problems::quoted_list;
use crate::raw::tasks::{RawBounds, RawCount, RawDifference, RawMatcher};
use crate::raw::values::NumberOrVariable;
use crate::scope::Scope;
use crate::validate::steps::exactly_one;
use arenad_model::locator::Value;
use arenad_model::task::{Bounds, Margin, Matcher, Rule};

/// The keys of all matchers.
pub(super) const KINDS: [&str; 9] =
    ["equals", "contains", "matches", "number", "set", "json", "count", "difference", "same_as"];

/// The keys of options that belong to some matchers.
pub(super) const EXTRAS: [&str; 3] = ["tolerance", "percent", "ignore_case"];

/// The source of the matched value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MatchSubject {
    Site,
    Answer,
}

/// Reads the rule of a mapping. `others` are further keys, one of which may replace the matcher; then the result is
/// `None`.
pub(super) fn rule(
    context: &TaskContext<'_>,
    scope: Scope<'_>,
    raw: RawMatcher<'_>,
    subject: MatchSubject,
    others: &[&'static str],
) -> Option<Rule> {
    let kinds: Vec<&str> = KINDS.iter().chain(others).copied().collect();
    let kind = exactly_one(scope, &kinds, "the expected value")?;
    extras(scope, kind, raw, subject);
    if others.contains(&kind) {
        return None;
    }
    let matcher = match kind {
        // The key is present, so null means that no value is expected.
        "equals" => Matcher::Equals(raw.equals.map_or(Value::Null, value)),
        "contains" => Matcher::Contains(contained(scope.key("contains"), raw.contains?)),
        "matches" => {
            pattern(scope.key("matches"), raw.matches?)?;
            Matcher::Matches(raw.matches?.to_owned())
        }
        "number" => Matcher::Number(number(raw.number?)?, margin(scope, raw)),
        // A variable that has not been replaced has been reported.
        "set" => Matcher::Set(raw.set?.0.as_array()?.iter().map(value).collect()),
        "json" => Matcher::Json(json(scope.key("json"), raw.json?)?),
        "count" => Matcher::Count(match raw.count? {
            RawCount::Exactly(exactly) => Bounds::exactly(number(exactly)?),
            RawCount::Between(between) => bounds(scope.key("count"), between)?,
        }),
        "difference" => difference(context, scope.key("difference"), raw.difference?)?,
        _ => {
            let name = raw.same_as?;
            context.capture(scope.key("same_as"), name);
            Matcher::SameAs(name.to_owned())
        }
    };
    Some(Rule { matcher, ignore_case: raw.ignore_case.unwrap_or(false) })
}

/// Reports options that have no meaning with the matcher.
fn extras(scope: Scope<'_>, kind: &str, raw: RawMatcher<'_>, subject: MatchSubject) {
    for key in ["tolerance", "percent"] {
        if scope.has(key) && kind != "number" {
            let draft = scope.key(key).key_error("conflict", format!("`{key}` means nothing with `{kind}`"));
            draft.help("use `number` instead").report();
        }
    }
    if raw.tolerance.is_some() && raw.percent.is_some() {
        let draft = scope.key("percent").key_error("conflict", "both `tolerance` and `percent` are given");
        draft.help("remove one of the two").report();
    }
    if raw.ignore_case.is_none() {
        return;
    }
    let with: &[&str] = match subject {
        MatchSubject::Site => &["equals", "contains", "matches", "set"],
        MatchSubject::Answer => &["matches"],
    };
    if !with.contains(&kind) {
        let help = match subject {
            MatchSubject::Answer => "remove it: capitals of answers never count, but in patterns".to_owned(),
            MatchSubject::Site => format!("it belongs to {}", quoted_list(with.iter().copied())),
        };
        let draft =
            scope.key("ignore_case").key_error("conflict", format!("`ignore_case` means nothing with `{kind}`"));
        draft.help(help).report();
    }
}

/// Returns an expected value; lists and mappings become JSON text.
fn value(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => match number.as_i64() {
            Some(whole) => Value::Integer(whole.into()),
            None => Value::Decimal(number.to_string()),
        },
        Json::String(text) => Value::Text(text.clone()),
        Json::Array(_) | Json::Object(_) => Value::Json(json.to_string()),
    }
}

fn contained(scope: Scope<'_>, raw: &Json) -> Vec<Value> {
    let (items, is_list): (&[Json], bool) = match raw {
        Json::Array(items) => (items, true),
        one => (std::slice::from_ref(one), false),
    };
    if items.is_empty() {
        scope.error("value", "nothing is to be contained").expected("at least one text").report();
    }
    for (index, item) in items.iter().enumerate() {
        let scope = if is_list { scope.index(index) } else { scope };
        match item {
            Json::String(text) if text.trim().is_empty() => {
                scope.error("value", "an empty text is in everything").report();
            }
            Json::String(_) | Json::Number(_) => {}
            _ => scope.error("value", "this cannot be contained in a text").expected("a text or a number").report(),
        }
    }
    items.iter().map(value).collect()
}

/// Maximum size of a compiled pattern, in bytes.
const PATTERN_MAX: usize = 1 << 20;

/// Checks a regular expression.
///
/// Returns `None` if it is invalid, which has then been reported.
pub(super) fn pattern(scope: Scope<'_>, text: &str) -> Option<()> {
    match regex::RegexBuilder::new(text).size_limit(PATTERN_MAX).build() {
        Ok(regex) if regex.is_match("") => {
            scope
                .error("value", "the pattern matches an empty text, so it matches everything")
                .help("anchor it with `^` and `$`, or ask for at least one character")
                .report();
            None
        }
        Ok(_) => Some(()),
        Err(error) => {
            let reason = error.to_string();
            let reason = reason.lines().last().unwrap_or_default().trim_start_matches("error: ");
            let draft = scope.error("value", format!("invalid regular expression: {reason}"));
            draft.expected("the syntax of Rust's `regex`: no look-around, no back-references").report();
            None
        }
    }
}

/// Returns the number, or `None` if a variable has not been replaced, which has been reported.
fn number(raw: &NumberOrVariable) -> Option<BigDecimal> {
    match &raw.0 {
        Json::Number(number) => BigDecimal::from_str(&number.to_string()).ok(),
        _ => None,
    }
}

fn margin(scope: Scope<'_>, raw: RawMatcher<'_>) -> Margin {
    let positive = |key: &str, raw: &NumberOrVariable| {
        let number = number(raw).unwrap_or_default();
        if number < BigDecimal::zero() {
            scope.key(key).error("value", format!("`{key}` is negative")).expected("0 or more").report();
        }
        number
    };
    match (raw.tolerance, raw.percent) {
        (_, Some(percent)) => Margin::Percent(positive("percent", percent)),
        (Some(tolerance), None) => Margin::Absolute(positive("tolerance", tolerance)),
        (None, None) => Margin::Absolute(BigDecimal::zero()),
    }
}

fn json(scope: Scope<'_>, raw: &Json) -> Option<String> {
    let is_empty = match raw {
        Json::Object(entries) => entries.is_empty(),
        Json::Array(_) => false,
        _ => {
            let draft = scope.error("value", "`json` does not accept a single value");
            draft.expected("a mapping or a list").help("use `equals` for single values").report();
            return None;
        }
    };
    if is_empty {
        scope.error("value", "every mapping has all keys of an empty one").expected("at least one key").report();
    }
    Some(raw.to_string())
}

fn bounds(scope: Scope<'_>, raw: &RawBounds) -> Option<Bounds> {
    let bounds =
        Bounds { at_least: raw.at_least.as_ref().and_then(number), at_most: raw.at_most.as_ref().and_then(number) };
    if bounds.at_least.is_none() && bounds.at_most.is_none() {
        if !["at_least", "at_most"].iter().any(|key| scope.has(key) || scope.is_misspelt(key)) {
            scope.error("missing-key", "no bound is given").expected("`at_least`, `at_most`, or both").report();
        }
        return None;
    }
    if let (Some(least), Some(most)) = (&bounds.at_least, &bounds.at_most)
        && least > most
    {
        scope.error("value", format!("no number is at least {least} and at most {most}")).report();
    }
    Some(bounds)
}

fn difference(context: &TaskContext<'_>, scope: Scope<'_>, raw: &RawDifference) -> Option<Matcher> {
    context.capture(scope.key("from"), &raw.from);
    let between = RawBounds { at_least: raw.at_least.clone(), at_most: raw.at_most.clone() };
    let bounds = match (&raw.by, raw.at_least.is_some() || raw.at_most.is_some()) {
        (Some(_), true) => {
            let draft = scope.error("conflict", "both `by` and bounds are given");
            draft.help("remove one of the two").report();
            return None;
        }
        (Some(by), false) => Bounds::exactly(number(by)?),
        (None, true) => bounds(scope, &between)?,
        (None, false) => {
            if !["by", "at_least", "at_most"].iter().any(|key| scope.has(key) || scope.is_misspelt(key)) {
                let draft = scope.error("missing-key", "nothing says by how much");
                draft.expected("`by`, or `at_least` and `at_most`").report();
            }
            return None;
        }
    };
    Some(Matcher::Difference(raw.from.clone(), bounds))
}
