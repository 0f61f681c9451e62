//! What must hold when an episode is over.

use bigdecimal::BigDecimal;

use super::Reading;
use crate::ids::SiteName;
use crate::locator::Value;

/// A part of what must hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Criterion {
    /// What reports call it.
    pub name: Option<String>,
    /// What must hold.
    pub kind: CriterionKind,
}

/// What must hold.
#[derive(Debug, Clone, PartialEq)]
pub enum CriterionKind {
    /// Every one of these.
    All(Vec<Criterion>),
    /// At least one of these.
    Any(Vec<Criterion>),
    /// Not this.
    Not(Box<Criterion>),
    /// A value of a site is as the rule says.
    Site(Box<Reading>, Rule),
    /// The agent's answer is as the rule says.
    Answer(Rule),
    /// The agent says that the task cannot be done.
    Unachievable,
    /// The agent ended there.
    Url(Address),
}

impl Criterion {
    /// The parts that it is made of; none if it is decided by one look.
    pub fn parts(&self) -> &[Criterion] {
        match &self.kind {
            CriterionKind::All(parts) | CriterionKind::Any(parts) => parts,
            CriterionKind::Not(part) => std::slice::from_ref(part),
            _ => &[],
        }
    }

    /// All parts without parts, in the order of the task.
    pub fn leaves(&self) -> Vec<&Criterion> {
        match self.parts() {
            [] => vec![self],
            parts => parts.iter().flat_map(Criterion::leaves).collect(),
        }
    }
}

/// How a value has to be.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// What is compared.
    pub matcher: Matcher,
    /// Whether capitals do not count. In answers they never do, but for patterns.
    pub ignore_case: bool,
}

/// What a value is compared with.
#[derive(Debug, Clone, PartialEq)]
pub enum Matcher {
    /// It is this. The expected value's type decides how the found one is read.
    Equals(Value),
    /// It says all of these; if it is a list, it has them.
    Contains(Vec<Value>),
    /// A regular expression, known to compile, matches somewhere in it.
    Matches(String),
    /// The one number that it is, or says, lies within a margin.
    Number(BigDecimal, Margin),
    /// A list with these members, each once, in any order.
    Set(Vec<Value>),
    /// JSON that has all that this JSON text has.
    Json(String),
    /// A list or table with so many members or rows.
    Count(Bounds),
    /// A number that differs from the captured value of that name by so much.
    Difference(String, Bounds),
    /// The captured value of that name.
    SameAs(String),
}

impl Matcher {
    /// The key in task files.
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

/// How far from the expected number the found one may be; the bound itself passes.
#[derive(Debug, Clone, PartialEq)]
pub enum Margin {
    /// So much.
    Absolute(BigDecimal),
    /// So many hundredths of the expected number.
    Percent(BigDecimal),
}

/// From where to where a number may be; both bounds pass.
#[derive(Debug, Clone, PartialEq)]
pub struct Bounds {
    /// The least.
    pub at_least: Option<BigDecimal>,
    /// The most.
    pub at_most: Option<BigDecimal>,
}

impl Bounds {
    /// That number and no other.
    pub fn exactly(number: BigDecimal) -> Self {
        Self { at_least: Some(number.clone()), at_most: Some(number) }
    }

    /// Whether a number lies between them.
    pub fn hold(&self, number: &BigDecimal) -> bool {
        self.at_least.as_ref().is_none_or(|least| number >= least)
            && self.at_most.as_ref().is_none_or(|most| number <= most)
    }
}

/// Where the agent has to be in the end.
#[derive(Debug, Clone, PartialEq)]
pub struct Address {
    /// The site.
    pub site: SiteName,
    /// The site's `http://HOST:PORT`.
    pub origin: String,
    /// What the path has to be.
    pub path: PathRule,
    /// The parameters that the query must have, each with no other value beside it.
    pub query: Vec<(String, String)>,
}

/// What a path has to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathRule {
    /// Anything.
    Any,
    /// This one; a slash at its end does not count.
    Is(String),
    /// A regular expression, known to compile, matches somewhere in it.
    Matches(String),
}
