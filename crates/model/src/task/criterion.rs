//! Criteria: the conditions that must hold when an episode is over.

use bigdecimal::BigDecimal;

use super::Reading;
use crate::ids::SiteName;
use crate::locator::Value;

/// A condition of a task, or a combination of conditions.
#[derive(Debug, Clone, PartialEq)]
pub struct Criterion {
    /// The name under which reports show the criterion.
    pub name: Option<String>,
    /// The condition or combination itself.
    pub kind: CriterionKind,
}

/// The kinds of criteria.
#[derive(Debug, Clone, PartialEq)]
pub enum CriterionKind {
    /// All of these criteria hold.
    All(Vec<Criterion>),
    /// At least one of these criteria holds.
    Any(Vec<Criterion>),
    /// This criterion does not hold.
    Not(Box<Criterion>),
    /// A value of a site satisfies the rule.
    Site(Box<Reading>, Rule),
    /// The agent's answer satisfies the rule.
    Answer(Rule),
    /// The agent states that the task cannot be done.
    Unachievable,
    /// The agent ended at this address.
    Url(AddressCriterion),
}

impl Criterion {
    /// Returns the criteria that this one combines, or none if it is a single condition.
    pub fn parts(&self) -> &[Criterion] {
        match &self.kind {
            CriterionKind::All(parts) | CriterionKind::Any(parts) => parts,
            CriterionKind::Not(part) => std::slice::from_ref(part),
            _ => &[],
        }
    }

    /// Returns the single conditions, in the order of the task.
    pub fn leaves(&self) -> Vec<&Criterion> {
        match self.parts() {
            [] => vec![self],
            parts => parts.iter().flat_map(Criterion::leaves).collect(),
        }
    }
}

/// A rule for a value.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// The comparison that the value must pass.
    pub matcher: Matcher,
    /// Whether case is ignored: by `equals`, `contains`, `matches` and `set` for a site's value, and by `matches` for
    /// the agent's answer. All other comparisons with an answer, except `json`, always ignore case.
    pub ignore_case: bool,
}

/// The comparisons of a found value.
#[derive(Debug, Clone, PartialEq)]
pub enum Matcher {
    /// The found value equals this value, whose type determines how the found value is interpreted.
    Equals(Value),
    /// The found value contains all of these values: as texts or, if it is a list, as members.
    Contains(Vec<Value>),
    /// The found value contains a match for this regular expression, which is known to compile.
    Matches(String),
    /// The found value is, or contains, exactly one number, and this number lies within a margin of the expected one.
    Number(BigDecimal, Margin),
    /// The found value is a list of exactly these members, in any order.
    Set(Vec<Value>),
    /// The found value is JSON that includes everything in this JSON text.
    Json(String),
    /// The number of members or rows of the found value lies within the bounds.
    Count(Bounds),
    /// The difference between the found number and the captured value of this name lies within the bounds.
    Difference(String, Bounds),
    /// The found value equals the captured value of this name.
    SameAs(String),
}

impl Matcher {
    /// Returns the key in task files.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Equals(_) => "equals",
            Self::Contains(_) => "contains",
            Self::Matches(_) => "matches",
            Self::Number(..) => "number",
            Self::Set(_) => "set",
            Self::Json(_) => "json",
            Self::Count(_) => "count",
            Self::Difference(..) => "difference",
            Self::SameAs(_) => "same_as",
        }
    }
}

/// The largest permitted distance between the found and the expected number. The bound itself is permitted.
#[derive(Debug, Clone, PartialEq)]
pub enum Margin {
    /// The distance as an absolute number.
    Absolute(BigDecimal),
    /// The distance as a percentage of the expected number.
    Percent(BigDecimal),
}

/// The range of a number. Both bounds are a part of the range.
#[derive(Debug, Clone, PartialEq)]
pub struct Bounds {
    /// The lower bound, if there is one.
    pub at_least: Option<BigDecimal>,
    /// The upper bound, if there is one.
    pub at_most: Option<BigDecimal>,
}

impl Bounds {
    /// Returns the range that contains only this number.
    pub fn exactly(number: BigDecimal) -> Self {
        Self { at_least: Some(number.clone()), at_most: Some(number) }
    }

    /// Whether a number lies within the bounds.
    pub fn hold(&self, number: &BigDecimal) -> bool {
        self.at_least.as_ref().is_none_or(|least| number >= least)
            && self.at_most.as_ref().is_none_or(|most| number <= most)
    }
}

/// The address at which the agent must end.
#[derive(Debug, Clone, PartialEq)]
pub struct AddressCriterion {
    /// The site to which the address belongs.
    pub site: SiteName,
    /// The site's origin: `http://HOST:PORT`.
    pub origin: String,
    /// The rule for the path.
    pub path: PathRule,
    /// The parameters that the query must contain. Unless its name ends with `[]`, a parameter must not also occur with
    /// another value. Other parameters are permitted.
    pub query: Vec<(String, String)>,
}

/// A rule for the path of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathRule {
    /// Every path is accepted.
    Any,
    /// The path must equal this one, except for a slash at the end.
    Is(String),
    /// The path must contain a match for this regular expression, which is known to compile.
    Matches(String),
}
