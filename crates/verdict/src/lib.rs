//! The values that judging takes and gives: what an evaluator asks ([`question::Question`]), all that is known of an episode
//! ([`Evidence`]), and what it came to ([`Report`]). Files and the API's JSON have these shapes, so they change only with the changelog.
//!
//! Nothing is judged here: `arenad-evaluators` does that, and `arenad-evaluation` brings tasks, evidence and evaluators together.

mod benchmark;
mod evidence;
pub mod question;
mod traffic;

pub use benchmark::Benchmark;
pub use evidence::{Evaluated, Evidence, LookedAt, Urls};
pub use traffic::Traffic;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::question::Answer;

/// Whose rules are applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// Those of the benchmark's published code, quirks included.
    Compat,
    /// The same without the holes that let wrong answers pass or fail right ones.
    Strict,
}

/// How an episode, or one check of it, is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The agent did it.
    Passed,
    /// Someone has to judge who is not there.
    NeedsJudge,
    /// It could not be found out: the environment was at fault, not the agent.
    Inconclusive,
    /// The profile cannot do this check; the reason says why.
    Unsupported,
    /// The agent did not do it.
    Failed,
}

/// One thing that was checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// What its author calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The benchmark's evaluator, such as `string_match`.
    pub evaluator: Cow<'static, str>,
    /// The rule that was applied, such as `must_include`.
    pub rule: String,
    /// Where the value was found: a URL, a locator, or `answer`.
    pub place: String,
    /// What was expected.
    pub expected: Value,
    /// What was found; nothing if nobody could look.
    pub found: Option<Value>,
    /// Whether it fits.
    pub verdict: Verdict,
    /// Why it is not passed, where that is more than what was expected and found; of a passed check of the strict profile,
    /// why it passed although the published rule refuses the answer.
    pub reason: Option<String>,
    /// How long it took to look, in milliseconds; nothing where nobody looked or measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<f64>,
    /// The checks that it is made of, in the order of the task: `all`, `any`, `not`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Check>,
}

impl Check {
    /// A check that could be made.
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

    /// A check that could not be made, and why.
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

/// What follows from an answer that is no value: the verdict and the reason.
#[must_use]
pub fn unseen(answer: &Answer) -> Option<(Verdict, &str)> {
    match answer {
        Answer::Unavailable(reason) => Some((Verdict::Inconclusive, reason)),
        Answer::NoJudge(reason) => Some((Verdict::NeedsJudge, reason)),
        Answer::Unsupported(reason) => Some((Verdict::Unsupported, reason)),
        Answer::Value(_) | Answer::Pictures(_) | Answer::Threw(_) => None,
    }
}

/// How much of a page is kept as evidence, in characters.
const EXCERPT: usize = 2000;

/// A text as evidence: its beginning, if it is long.
#[must_use]
pub fn excerpt(text: &str) -> Value {
    match text.char_indices().nth(EXCERPT) {
        Some((end, _)) => Value::from(format!("{}…", &text[..end])),
        None => Value::from(text),
    }
}

/// A task's result under one profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Whose rules.
    pub profile: Profile,
    /// The whole.
    pub verdict: Verdict,
    /// 1 if passed, 0 if failed; nothing if that is open.
    pub score: Option<f64>,
    /// The parts, in the order of the task.
    pub checks: Vec<Check>,
}

impl Report {
    /// A task passes when all of its checks do. One failed check settles it, whatever is open beside it.
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

/// A task's results under both profiles.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SideBySide {
    /// As the benchmark's published code has it.
    pub compat: Report,
    /// Without its holes.
    pub strict: Report,
}

impl SideBySide {
    /// Judges twice.
    ///
    /// # Errors
    ///
    /// When one of the profiles cannot judge the task at all.
    pub fn of<E>(evaluate: impl Fn(Profile) -> Result<Report, E>) -> Result<Self, E> {
        Ok(Self { compat: evaluate(Profile::Compat)?, strict: evaluate(Profile::Strict)? })
    }

    /// Whether the profiles disagree.
    #[must_use]
    pub fn differ(&self) -> bool {
        self.compat.verdict != self.strict.verdict
    }
}
