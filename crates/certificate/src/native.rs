//! The evidence of a native task: its criterion and the readings of the sites, as the evaluator was given them.
//!
//! The types mirror those of `arenad_model::task`, which derive no serde traits. They keep what the evaluator looks at:
//! the way in which a value was read is known by its text alone.

use std::collections::BTreeMap;
use std::time::Duration;

use arenad_evaluators::native::{self, Episode, ReadingOutcome, Sight};
use arenad_model::ids::SiteName;
use arenad_model::locator::{Arguments, FileLocator, Locator, LocatorKind, Value};
use arenad_model::task::{
    AddressCriterion, Bounds, Criterion, CriterionKind, Margin, Matcher, PathRule, Reading, ReadingRecipe, Rule, Task,
};
use arenad_verdict::Report;
use serde::{Deserialize, Serialize};

use crate::evidence::EvidenceError;
use crate::values::{ExactValue, exact_number, number};

/// Everything that the verdict on an episode of a native task follows from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NativeEvidence {
    pub(crate) task: JudgedTask,
    answer: String,
    url: Option<String>,
    no_url: Option<String>,
    captured: BTreeMap<String, ExactValue>,
    readings: Vec<JudgedReading>,
}

impl NativeEvidence {
    /// Records what the evaluator was given.
    #[must_use]
    pub fn of(task: &Task, episode: &Episode<'_>, sights: &[Sight]) -> Self {
        let readings = native::readings(task);
        let judged = JudgedTask {
            name: task.name.clone(),
            kind: task.kind.name().to_owned(),
            intent: task.intent.clone(),
            start: task.start.clone(),
            sites: task.sites.iter().map(ToString::to_string).collect(),
            accounts: task.accounts.iter().map(|(site, account)| (site.to_string(), account.clone())).collect(),
            snapshots: task.snapshots.iter().map(|(site, name)| (site.to_string(), name.clone())).collect(),
            criterion: JudgedCriterion::of(&task.criterion, &readings),
        };
        let sight = |reading: &&Reading| sights.iter().find(|sight| sight.reading == **reading);
        Self {
            task: judged,
            answer: episode.answer.to_owned(),
            url: episode.url.map(str::to_owned),
            no_url: episode.no_url.map(str::to_owned),
            captured: episode.captured.iter().map(|(name, value)| (name.clone(), value.into())).collect(),
            readings: readings.iter().map(|reading| JudgedReading::of(reading, sight(reading))).collect(),
        }
    }

    /// Judges by the evidence alone.
    ///
    /// # Errors
    ///
    /// Returns an error if the evidence contradicts itself, or a value is not of its type.
    pub fn judge(&self) -> Result<Report, EvidenceError> {
        let readings = self.readings.iter().map(JudgedReading::reading).collect::<Result<Vec<_>, _>>()?;
        let criterion = self.task.criterion.criterion(&readings)?;
        let seen = self.readings.iter().zip(&readings).filter_map(|(judged, reading)| judged.sight(reading.clone()));
        let sights: Vec<Sight> = seen.collect::<Result<_, _>>()?;
        let captured = self.captured.iter().map(|(name, value)| Ok((name.clone(), value.value()?)));
        let captured: BTreeMap<String, Value> = captured.collect::<Result<_, EvidenceError>>()?;
        let (url, no_url) = (self.url.as_deref(), self.no_url.as_deref());
        Ok(native::judge(&criterion, &Episode { answer: &self.answer, url, no_url, captured: &captured }, &sights))
    }
}

/// A task. All but the criterion tells people what was judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct JudgedTask {
    pub(crate) name: String,
    kind: String,
    intent: String,
    start: String,
    sites: Vec<String>,
    accounts: Vec<(String, String)>,
    snapshots: Vec<(String, String)>,
    criterion: JudgedCriterion,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JudgedCriterion {
    name: Option<String>,
    kind: JudgedKind,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum JudgedKind {
    All(Vec<JudgedCriterion>),
    Any(Vec<JudgedCriterion>),
    Not(Box<JudgedCriterion>),
    Site {
        /// The index of the reading.
        reading: usize,
        rule: JudgedRule,
    },
    Answer(JudgedRule),
    Unachievable,
    Url {
        site: String,
        origin: String,
        path: JudgedPath,
        query: Vec<(String, String)>,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum JudgedPath {
    Any,
    Is(String),
    Matches(String),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JudgedRule {
    matcher: JudgedMatcher,
    ignore_case: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum JudgedMatcher {
    Equals(ExactValue),
    Contains(Vec<ExactValue>),
    Matches(String),
    Number { number: String, margin: JudgedMargin },
    Set(Vec<ExactValue>),
    Json(String),
    Count(JudgedBounds),
    Difference { captured: String, bounds: JudgedBounds },
    SameAs(String),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum JudgedMargin {
    Absolute(String),
    Percent(String),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JudgedBounds {
    at_least: Option<String>,
    at_most: Option<String>,
}

impl JudgedCriterion {
    fn of(criterion: &Criterion, readings: &[&Reading]) -> Self {
        let all = |parts: &[Criterion]| parts.iter().map(|part| Self::of(part, readings)).collect();
        let kind = match &criterion.kind {
            CriterionKind::All(parts) => JudgedKind::All(all(parts)),
            CriterionKind::Any(parts) => JudgedKind::Any(all(parts)),
            CriterionKind::Not(part) => JudgedKind::Not(Box::new(Self::of(part, readings))),
            CriterionKind::Site(reading, rule) => JudgedKind::Site {
                // The readings of a task are those of its criterion. An index without a reading cannot be judged.
                reading: readings.iter().position(|known| **known == **reading).unwrap_or(usize::MAX),
                rule: rule.into(),
            },
            CriterionKind::Answer(rule) => JudgedKind::Answer(rule.into()),
            CriterionKind::Unachievable => JudgedKind::Unachievable,
            CriterionKind::Url(AddressCriterion { site, origin, path, query }) => JudgedKind::Url {
                site: site.to_string(),
                origin: origin.clone(),
                path: match path {
                    PathRule::Any => JudgedPath::Any,
                    PathRule::Is(path) => JudgedPath::Is(path.clone()),
                    PathRule::Matches(pattern) => JudgedPath::Matches(pattern.clone()),
                },
                query: query.clone(),
            },
        };
        Self { name: criterion.name.clone(), kind }
    }

    fn criterion(&self, readings: &[Reading]) -> Result<Criterion, EvidenceError> {
        let all = |parts: &[Self]| parts.iter().map(|part| part.criterion(readings)).collect::<Result<Vec<_>, _>>();
        let kind = match &self.kind {
            JudgedKind::All(parts) => CriterionKind::All(all(parts)?),
            JudgedKind::Any(parts) => CriterionKind::Any(all(parts)?),
            JudgedKind::Not(part) => CriterionKind::Not(Box::new(part.criterion(readings)?)),
            JudgedKind::Site { reading, rule } => {
                let found = readings.get(*reading).ok_or(EvidenceError::NoReading(*reading))?;
                CriterionKind::Site(Box::new(found.clone()), rule.rule()?)
            }
            JudgedKind::Answer(rule) => CriterionKind::Answer(rule.rule()?),
            JudgedKind::Unachievable => CriterionKind::Unachievable,
            JudgedKind::Url { site, origin, path, query } => CriterionKind::Url(AddressCriterion {
                site: site_name(site)?,
                origin: origin.clone(),
                path: match path {
                    JudgedPath::Any => PathRule::Any,
                    JudgedPath::Is(path) => PathRule::Is(path.clone()),
                    JudgedPath::Matches(pattern) => PathRule::Matches(pattern.clone()),
                },
                query: query.clone(),
            }),
        };
        Ok(Criterion { name: self.name.clone(), kind })
    }
}

impl From<&Rule> for JudgedRule {
    fn from(rule: &Rule) -> Self {
        let values = |values: &[Value]| values.iter().map(ExactValue::from).collect();
        let matcher = match &rule.matcher {
            Matcher::Equals(value) => JudgedMatcher::Equals(value.into()),
            Matcher::Contains(expected) => JudgedMatcher::Contains(values(expected)),
            Matcher::Matches(pattern) => JudgedMatcher::Matches(pattern.clone()),
            Matcher::Number(expected, margin) => JudgedMatcher::Number {
                number: exact_number(expected),
                margin: match margin {
                    Margin::Absolute(margin) => JudgedMargin::Absolute(exact_number(margin)),
                    Margin::Percent(percent) => JudgedMargin::Percent(exact_number(percent)),
                },
            },
            Matcher::Set(expected) => JudgedMatcher::Set(values(expected)),
            Matcher::Json(text) => JudgedMatcher::Json(text.clone()),
            Matcher::Count(bounds) => JudgedMatcher::Count(bounds.into()),
            Matcher::Difference(captured, bounds) => {
                JudgedMatcher::Difference { captured: captured.clone(), bounds: bounds.into() }
            }
            Matcher::SameAs(captured) => JudgedMatcher::SameAs(captured.clone()),
        };
        Self { matcher, ignore_case: rule.ignore_case }
    }
}

impl JudgedRule {
    fn rule(&self) -> Result<Rule, EvidenceError> {
        let values = |values: &[ExactValue]| values.iter().map(ExactValue::value).collect::<Result<Vec<_>, _>>();
        let matcher = match &self.matcher {
            JudgedMatcher::Equals(value) => Matcher::Equals(value.value()?),
            JudgedMatcher::Contains(expected) => Matcher::Contains(values(expected)?),
            JudgedMatcher::Matches(pattern) => Matcher::Matches(pattern.clone()),
            JudgedMatcher::Number { number: expected, margin } => {
                let margin = match margin {
                    JudgedMargin::Absolute(margin) => Margin::Absolute(number(margin)?),
                    JudgedMargin::Percent(percent) => Margin::Percent(number(percent)?),
                };
                Matcher::Number(number(expected)?, margin)
            }
            JudgedMatcher::Set(expected) => Matcher::Set(values(expected)?),
            JudgedMatcher::Json(text) => Matcher::Json(text.clone()),
            JudgedMatcher::Count(bounds) => Matcher::Count(bounds.bounds()?),
            JudgedMatcher::Difference { captured, bounds } => Matcher::Difference(captured.clone(), bounds.bounds()?),
            JudgedMatcher::SameAs(captured) => Matcher::SameAs(captured.clone()),
        };
        Ok(Rule { matcher, ignore_case: self.ignore_case })
    }
}

impl From<&Bounds> for JudgedBounds {
    fn from(bounds: &Bounds) -> Self {
        Self {
            at_least: bounds.at_least.as_ref().map(exact_number),
            at_most: bounds.at_most.as_ref().map(exact_number),
        }
    }
}

impl JudgedBounds {
    fn bounds(&self) -> Result<Bounds, EvidenceError> {
        let read = |text: &Option<String>| text.as_deref().map(number).transpose();
        Ok(Bounds { at_least: read(&self.at_least)?, at_most: read(&self.at_most)? })
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JudgedReading {
    site: String,
    locate: String,
    arguments: Vec<(String, String)>,
    captured: Vec<String>,
    page: Option<String>,
    account: Option<String>,
    /// `None` if the value was not read.
    seen: Option<JudgedSight>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JudgedSight {
    outcome: JudgedOutcome,
    duration_ns: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum JudgedOutcome {
    Value(ExactValue),
    Nothing(String),
    Unavailable(String),
    Unsupported(String),
}

impl JudgedReading {
    fn of(reading: &Reading, sight: Option<&Sight>) -> Self {
        Self {
            site: reading.site.to_string(),
            locate: reading.text.clone(),
            arguments: reading.arguments.0.clone(),
            captured: reading.captured.clone(),
            page: reading.page.clone(),
            account: reading.account.clone(),
            seen: sight.map(|sight| JudgedSight {
                outcome: match &sight.seen {
                    ReadingOutcome::Value(value) => JudgedOutcome::Value(value.into()),
                    ReadingOutcome::Nothing(reason) => JudgedOutcome::Nothing(reason.clone()),
                    ReadingOutcome::Unavailable(reason) => JudgedOutcome::Unavailable(reason.clone()),
                    ReadingOutcome::Unsupported(reason) => JudgedOutcome::Unsupported(reason.clone()),
                },
                duration_ns: u64::try_from(sight.took.as_nanos()).unwrap_or(u64::MAX),
            }),
        }
    }

    /// Returns the reading with a recipe that is never run: the evaluator looks at its text alone.
    fn reading(&self) -> Result<Reading, EvidenceError> {
        let never_run = LocatorKind::File(FileLocator { service: None, path: String::new() });
        Ok(Reading {
            site: site_name(&self.site)?,
            text: self.locate.clone(),
            recipe: ReadingRecipe::Locator(Locator { kind: never_run, timeout: None }),
            arguments: Arguments(self.arguments.clone()),
            captured: self.captured.clone(),
            page: self.page.clone(),
            account: self.account.clone(),
        })
    }

    fn sight(&self, reading: Reading) -> Option<Result<Sight, EvidenceError>> {
        let JudgedSight { outcome, duration_ns } = self.seen.as_ref()?;
        let seen = match outcome {
            JudgedOutcome::Value(value) => match value.value() {
                Ok(value) => ReadingOutcome::Value(value),
                Err(error) => return Some(Err(error)),
            },
            JudgedOutcome::Nothing(reason) => ReadingOutcome::Nothing(reason.clone()),
            JudgedOutcome::Unavailable(reason) => ReadingOutcome::Unavailable(reason.clone()),
            JudgedOutcome::Unsupported(reason) => ReadingOutcome::Unsupported(reason.clone()),
        };
        Some(Ok(Sight { reading, seen, took: Duration::from_nanos(*duration_ns) }))
    }
}

fn site_name(text: &str) -> Result<SiteName, EvidenceError> {
    SiteName::parse(text).map_err(|_| EvidenceError::Value(text.to_owned()))
}
