//! Mind2Web's measures over recorded steps: element accuracy, F1 of the operation, step and task success.

mod evaluate;
pub mod ranking;
pub mod steps;
mod task;
pub mod text;

pub use evaluate::evaluate;
pub use steps::{Candidate, MacroSteps, Prediction, RecordedStep, RunScores, StepScore, score_step, summarize};
pub use task::{Mind2WebFileError, Mind2WebTask, Predictions, predictions, read, read_one, slim};
