//! Evaluation of an episode: from a benchmark's task, the agent's result and observations of its sites to a report.
//!
//! ```text
//!   TaskFiles ──task──►┐
//!   an answer, a URL ──┼─► EpisodeEvidence ──► EvaluationCase ──► questions ──► sites, judge, files ──► KnownAnswers
//!   results/ ──────────┘                          └──► reports: from the known answers, under one profile or both
//! ```
//! [`EpisodeEvidence`](arenad_verdict::EpisodeEvidence) holds all that is known of an episode, including the known
//! answers, and the judgement depends on nothing else: the same file gives the same reports without the sites, today
//! and in a year. This crate does not decide who answers questions: the daemon reads the sites, and the caller supplies
//! a judge and files.
//!
//! The crate depends on `evaluators` and `verdict`. Start reading at [`evaluate`], then `results/mod.rs`.

mod case;
pub mod pictures;
mod placeholders;
pub mod render;
pub mod results;
mod start;
pub mod stored;
mod summary;
mod tasks;

pub use arenad_evaluators::webarena_verified::{Day, today};
pub use case::{CaseError, EvaluationCase, evaluate, evaluate_on};
pub use placeholders::{of_environment, placeholder, speaks_of};
pub use start::{TaskStart, start_of};
pub use summary::{Summary, VerdictTally};
pub use tasks::{TaskFiles, TaskFilesError};
