//! The evidence of a verdict, and judging by it again.

use arenad_evaluation::{CaseError, Day};
use arenad_verdict::{EpisodeEvidence, EpisodeReports, Profile, Report, Verdict};
use serde::{Deserialize, Serialize};

use crate::native::NativeEvidence;

/// The reason why evidence cannot be judged.
#[derive(Debug, thiserror::Error)]
pub enum EvidenceError {
    /// The evidence is not JSON of the known shape.
    #[error("the evidence is malformed: {0}")]
    Shape(#[from] serde_json::Error),
    /// A value is not of its type.
    #[error("the evidence has an invalid value: {0}")]
    Value(String),
    /// The criterion names a reading that the evidence does not have.
    #[error("the evidence has no reading of the index {0}")]
    NoReading(usize),
    /// The benchmark's evaluator refuses the task.
    #[error(transparent)]
    Case(#[from] CaseError),
    /// There is no report, because no profile was asked for.
    #[error("the evidence names no profile to judge by")]
    NoReport,
    /// The evidence, read from its text, leads to another judgement.
    #[error("the evidence leads to another judgement after it was written and read")]
    NotRepeatable,
}

/// Everything that a verdict follows from.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JudgedEvidence {
    /// Of a native task.
    Native(Box<NativeEvidence>),
    /// Of a benchmark's task.
    Benchmark {
        /// The day of the judgement, from which WebArena-Verified completes dates.
        day: Day,
        /// The profiles to judge by, in the order of the reports.
        profiles: Vec<Profile>,
        /// The task, the agent's results and the answers that the sites and the judge gave.
        evidence: Box<EpisodeEvidence>,
    },
}

impl JudgedEvidence {
    /// Judges by the evidence alone.
    ///
    /// # Errors
    ///
    /// `Value`, `NoReading`, `Case` and `NoReport`.
    pub fn judge(&self) -> Result<Judgement, EvidenceError> {
        match self {
            Self::Native(evidence) => Ok(Judgement::Native(evidence.judge()?)),
            Self::Benchmark { day, profiles, evidence } => {
                let reports = arenad_evaluation::evaluate_on(*day, evidence, profiles)?;
                if reports.reports.is_empty() {
                    return Err(EvidenceError::NoReport);
                }
                Ok(Judgement::Benchmark(reports))
            }
        }
    }

    /// Returns the name of the evaluator: `native` or that of the benchmark.
    pub(crate) fn evaluator(&self) -> &'static str {
        match self {
            Self::Native(_) => "native",
            Self::Benchmark { evidence, .. } => evidence.benchmark.name(),
        }
    }

    /// Returns the name of the task, and its JSON.
    pub(crate) fn task(&self) -> Result<(String, String), EvidenceError> {
        Ok(match self {
            Self::Native(evidence) => (evidence.task.name.clone(), serde_json::to_string(&evidence.task)?),
            Self::Benchmark { evidence, .. } => (evidence.id.clone(), serde_json::to_string(&evidence.task)?),
        })
    }

    /// Returns the recorded traffic that the evaluator was given.
    pub(crate) fn traffic(&self) -> Option<&[u8]> {
        match self {
            Self::Native(_) => None,
            Self::Benchmark { evidence, .. } => evidence.traffic.as_ref().map(arenad_verdict::Traffic::bytes),
        }
    }
}

/// The result of an evaluator.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    /// On a native task.
    Native(Report),
    /// On a benchmark's task, by each profile.
    Benchmark(EpisodeReports),
}

impl Judgement {
    /// Returns the verdict; for a benchmark, by the first profile.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        match self {
            Self::Native(report) => report.verdict,
            Self::Benchmark(reports) => reports.reports.first().map_or(Verdict::Inconclusive, |report| report.verdict),
        }
    }
}
