//! Native checks in words: the place, the rule, and the expected value.

use serde_json::{Value as Json, json};

use super::tree;
use arenad_model::task::{
    AddressCriterion, Bounds, Criterion, CriterionKind, Margin, Matcher, PathRule, Reading, Rule,
};

/// A criterion without parts, in words.
#[derive(Debug, Clone, PartialEq)]
pub struct Leaf {
    /// The place: `answer`, `url`, or a site and a locator.
    pub place: String,
    /// The name of the matcher, with its options.
    pub rule: String,
    /// The expected value, or a description of it.
    pub expected: Json,
}

/// Describes a criterion. A combination has an empty place and its number of parts as the expected value.
#[must_use]
pub fn leaf(criterion: &Criterion) -> Leaf {
    match &criterion.kind {
        CriterionKind::Site(place, rule) => of_rule(reading(place), rule),
        CriterionKind::Answer(rule) => of_rule("answer".to_owned(), rule),
        CriterionKind::Unachievable => {
            Leaf { place: "answer".to_owned(), rule: "unachievable".to_owned(), expected: json!("N/A") }
        }
        CriterionKind::Url(address) => of_address(address),
        CriterionKind::All(parts) => combined("all", parts.len()),
        CriterionKind::Any(parts) => combined("any", parts.len()),
        CriterionKind::Not(_) => combined("not", 1),
    }
}

fn combined(rule: &str, count: usize) -> Leaf {
    Leaf { place: String::new(), rule: rule.to_owned(), expected: json!(count) }
}

/// Describes a reading: the site, the locator, and its options.
#[must_use]
pub fn reading(reading: &Reading) -> String {
    let account = reading.account.as_ref().map(|account| format!(" as {account}")).unwrap_or_default();
    let page = reading.page.as_ref().map(|page| format!(" @ {page}")).unwrap_or_default();
    let arguments: Vec<String> =
        reading.arguments.0.iter().map(|(name, text)| format!("{name}={}", json!(text))).collect();
    let arguments = if arguments.is_empty() { String::new() } else { format!(" ({})", arguments.join(", ")) };
    format!("{}: {}{page}{account}{arguments}", reading.site, reading.text)
}

fn of_rule(place: String, rule: &Rule) -> Leaf {
    let expected = match &rule.matcher {
        Matcher::Equals(value) => tree::of(value),
        Matcher::Contains(values) | Matcher::Set(values) => values.iter().map(tree::of).collect(),
        Matcher::Matches(pattern) => json!(pattern),
        Matcher::Number(number, Margin::Absolute(margin)) => match margin.to_plain_string().as_str() {
            "0" => tree::number(number),
            margin => json!(format!("{} ± {margin}", number.to_plain_string())),
        },
        Matcher::Number(number, Margin::Percent(percent)) => {
            json!(format!("{} ± {} %", number.to_plain_string(), percent.to_plain_string()))
        }
        Matcher::Json(text) => serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
        Matcher::Count(bounds) => json!(self::bounds(bounds)),
        Matcher::Difference(name, bounds) => json!(format!("{name} + ({})", self::bounds(bounds))),
        Matcher::SameAs(name) => json!(name),
    };
    let case = if rule.ignore_case { ", whatever the capitals" } else { "" };
    Leaf { place, rule: format!("{}{case}", rule.matcher.name()), expected }
}

/// Describes bounds in words.
pub(super) fn bounds(bounds: &Bounds) -> String {
    let plain = |number: &bigdecimal::BigDecimal| number.to_plain_string();
    match (&bounds.at_least, &bounds.at_most) {
        (Some(least), Some(most)) if least == most => plain(least),
        (Some(least), Some(most)) => format!("{} to {}", plain(least), plain(most)),
        (Some(least), None) => format!("at least {}", plain(least)),
        (None, Some(most)) => format!("at most {}", plain(most)),
        (None, None) => "any".to_owned(),
    }
}

fn of_address(address: &AddressCriterion) -> Leaf {
    let query: Vec<String> = address.query.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let query = if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) };
    let (rule, path) = match &address.path {
        PathRule::Any => ("is on", "/…"),
        PathRule::Is(path) => ("is", path.as_str()),
        PathRule::Matches(pattern) => ("matches", pattern.as_str()),
    };
    Leaf { place: "url".to_owned(), rule: rule.to_owned(), expected: json!(format!("{}{path}{query}", address.origin)) }
}
