//! A task and what was stored of it, ready to be judged.

use std::collections::BTreeMap;

use arenad_evaluators::mind2web::{self, Mind2WebTask, Prediction};
use arenad_evaluators::turkingbench::{self, FieldState, Instance};
use arenad_evaluators::webcanvas::{self, Trajectory, WebCanvasTask};
use arenad_verdict::question::{KnownAnswers, Question};
use arenad_verdict::{Benchmark, EpisodeEvidence, Profile, Report};
use serde::{Deserialize, Serialize};

use crate::CaseError;

/// The number of candidates that are offered to a model, unless the predictions say otherwise.
pub(super) const TOP_K: u64 = 50;

/// Predictions for one task, which are the answer of an episode.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredPredictions {
    /// The number of candidates that were offered to the model.
    pub(super) top_k: Option<u64>,
    /// The predictions, by `action_uid`.
    pub(super) predictions: BTreeMap<String, StoredPrediction>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredPrediction {
    pub(super) element: Option<String>,
    pub(super) action: String,
}

/// A task of one of these benchmarks, with what was stored of it.
pub(crate) enum StoredCase {
    WebCanvas { task: WebCanvasTask, trajectory: Trajectory },
    TurkingBench { intent: String, instance: Instance, fields: Vec<FieldState> },
    Mind2Web { task: Mind2WebTask, predictions: BTreeMap<String, Prediction>, top_k: u64 },
}

impl StoredCase {
    pub(crate) fn of(evidence: &EpisodeEvidence) -> Result<Self, CaseError> {
        Ok(match evidence.benchmark {
            Benchmark::WebCanvas => {
                let task = webcanvas::read_one(&evidence.task, 0)?;
                let trajectory = match evidence.answer.is_empty() {
                    true => Trajectory::default(),
                    false => Trajectory::read(&evidence.answer)?,
                };
                Self::WebCanvas { task, trajectory }
            }
            Benchmark::TurkingBench => {
                let instance = Instance::read(&evidence.task)?;
                let fields = instance.states(&evidence.answer)?;
                Self::TurkingBench { intent: format!("{} {}", instance.task, instance.number), instance, fields }
            }
            _ => {
                let task = mind2web::read_one(&evidence.task)?;
                let stored: StoredPredictions = match evidence.answer.is_empty() {
                    true => StoredPredictions::default(),
                    false => serde_json::from_str(&evidence.answer).map_err(|_| mind2web::Mind2WebFileError {
                        task: task.id.clone(),
                        place: "the answer".to_owned(),
                        expected: "JSON with `predictions`: by action_uid, `element` and `action`",
                    })?,
                };
                let own = stored.predictions.into_iter();
                let predictions =
                    own.map(|(action, own)| (action, Prediction { element: own.element, action: own.action }));
                Self::Mind2Web { predictions: predictions.collect(), top_k: stored.top_k.unwrap_or(TOP_K), task }
            }
        })
    }

    pub(crate) fn intent(&self) -> &str {
        match self {
            Self::WebCanvas { task, .. } => &task.intent,
            Self::TurkingBench { intent, .. } => intent,
            Self::Mind2Web { task, .. } => &task.intent,
        }
    }

    pub(crate) fn questions(&self, told: &KnownAnswers, profile: Profile) -> Vec<Question> {
        match self {
            Self::WebCanvas { task, trajectory } => webcanvas::questions(task, trajectory, told, profile),
            Self::TurkingBench { .. } | Self::Mind2Web { .. } => Vec::new(),
        }
    }

    pub(crate) fn report(&self, told: &KnownAnswers, profile: Profile) -> Report {
        match self {
            Self::WebCanvas { task, trajectory } => webcanvas::evaluate(task, trajectory, told, profile),
            Self::TurkingBench { instance, fields, .. } => turkingbench::evaluate(instance, fields, profile),
            Self::Mind2Web { task, predictions, top_k } => mind2web::evaluate(task, predictions, *top_k, profile),
        }
    }
}
