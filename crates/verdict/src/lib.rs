//! The input and output of judging: the questions of evaluators ([`question::Question`]), the evidence of an episode
//! ([`EpisodeEvidence`]) and the result ([`Report`]). Files and the API's JSON have these shapes, so every change of
//! them belongs in the changelog.
//!
//! This crate judges nothing. `arenad-evaluators` contains the evaluators, and `arenad-evaluation` applies them to
//! tasks and evidence.
//!
//! The crate depends on no other crate of arenad. Start reading at [`Report`], then [`question`].

mod benchmark;
mod evidence;
pub mod question;
mod traffic;

pub use benchmark::Benchmark;
pub use evidence::{EpisodeEvidence, EpisodeReports, LookedAt, Urls};
pub use traffic::Traffic;

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::question::Answer;

/// The set of rules by which an episode is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// The rules of the benchmark's published code, including its quirks.
    Compat,
    /// The same rules without the defects that accept wrong answers or reject right ones.
    Strict,
}

impl Profile {
    /// The name in options and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Compat => "compat",
            Self::Strict => "strict",
        }
    }
}

/// The result of an episode, or of one of its checks. The variants are in ascending order of precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The agent completed the task.
    Passed,
    /// The check needs a judge, and none was available.
    NeedsJudge,
    /// The check could not be made, because of the environment and not because of the agent.
    Inconclusive,
    /// The profile cannot make this check, for the given reason.
    Unsupported,
    /// The agent did not complete the task.
    Failed,
}

/// One check of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// The name that the task's author gave to the check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The benchmark's evaluator, such as `string_match`.
    pub evaluator: Cow<'static, str>,
    /// The rule that was applied, such as `must_include`.
    pub rule: String,
    /// The source of the value: a URL, a locator, or `answer`.
    pub place: String,
    /// The expected value, in the form of the rule.
    pub expected: Value,
    /// The value that was found; `None` if nothing was read.
    pub found: Option<Value>,
    /// The result of this check.
    pub verdict: Verdict,
    /// The reason for the verdict, if the expected and the found value do not suffice to explain it. For a passed check
    /// of the strict profile, the reason why it passed although the published rule rejects the answer.
    pub reason: Option<String>,
    /// The time that reading took, in milliseconds; `None` if nothing was read or measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<f64>,
    /// The parts of a check of the kind `all`, `any` or `not`, in the order of the task.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Check>,
}

impl Check {
    /// Returns a check that was made.
    #[must_use]
    pub fn of(evaluator: &'static str, rule: &str, place: &str, expected: Value, found: Value, fits: bool) -> Self {
        let verdict = if fits { Verdict::Passed } else { Verdict::Failed };
        Self {
            name: None,
            evaluator: Cow::Borrowed(evaluator),
            rule: rule.to_owned(),
            place: place.to_owned(),
            expected,
            found: Some(found),
            verdict,
            reason: None,
            duration_ms: None,
            parts: Vec::new(),
        }
    }

    /// Returns a check that could not be made, with the reason.
    #[must_use]
    pub fn open(
        evaluator: &'static str,
        rule: &str,
        place: &str,
        expected: Value,
        verdict: Verdict,
        reason: &str,
    ) -> Self {
        let unseen = Self::of(evaluator, rule, place, expected, Value::Null, false);
        Self { found: None, verdict, reason: Some(reason.to_owned()), ..unseen }
    }
}

/// Returns the verdict and the reason that follow from an answer without a value.
#[must_use]
pub fn unseen(answer: &Answer) -> Option<(Verdict, &str)> {
    match answer {
        Answer::Unavailable(reason) => Some((Verdict::Inconclusive, reason)),
        Answer::NoJudge(reason) => Some((Verdict::NeedsJudge, reason)),
        Answer::Unsupported(reason) => Some((Verdict::Unsupported, reason)),
        Answer::Value(_) | Answer::Pictures(_) | Answer::Threw(_) => None,
    }
}

/// The maximum length of a text in evidence, in characters.
const EXCERPT: usize = 2000;

/// Returns a text for use as evidence. A long text is cut.
#[must_use]
pub fn excerpt(text: &str) -> Value {
    match text.char_indices().nth(EXCERPT) {
        Some((end, _)) => Value::from(format!("{}…", &text[..end])),
        None => Value::from(text),
    }
}

/// The result of a task under one profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// The profile whose rules were applied.
    pub profile: Profile,
    /// The verdict on the whole task.
    pub verdict: Verdict,
    /// 1 if the task passed, 0 if it failed, and `None` otherwise. WebCanvas, TurkingBench and Mind2Web give shares: of
    /// key nodes, of fields, of steps.
    pub score: Option<f64>,
    /// The checks, in the order of the task.
    pub checks: Vec<Check>,
}

impl Report {
    /// Combines checks into a report. A task passes if all of its checks pass. One failed check makes it fail, even if
    /// others are undecided.
    #[must_use]
    pub fn of(profile: Profile, checks: Vec<Check>) -> Self {
        let verdict = checks.iter().map(|check| check.verdict).max().unwrap_or(Verdict::Passed);
        let score = match verdict {
            Verdict::Passed => Some(1.0),
            Verdict::Failed => Some(0.0),
            Verdict::NeedsJudge | Verdict::Inconclusive | Verdict::Unsupported => None,
        };
        Self { profile, verdict, score, checks }
    }
}

/// The results of a task under both profiles.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SideBySide {
    /// The result by the rules of the benchmark's published code.
    pub compat: Report,
    /// The result by the strict rules.
    pub strict: Report,
}

impl SideBySide {
    /// Judges the task under both profiles.
    ///
    /// # Errors
    ///
    /// Returns an error if one of the profiles cannot judge the task at all.
    pub fn of<E>(evaluate: impl Fn(Profile) -> Result<Report, E>) -> Result<Self, E> {
        Ok(Self { compat: evaluate(Profile::Compat)?, strict: evaluate(Profile::Strict)? })
    }

    /// Returns whether the profiles disagree.
    #[must_use]
    pub fn differ(&self) -> bool {
        self.compat.verdict != self.strict.verdict
    }
}
