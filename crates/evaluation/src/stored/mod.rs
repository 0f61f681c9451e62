//! WebCanvas, TurkingBench and Mind2Web: judged by what was stored, without any site.
//!
//! ```text
//!   StoredTasks ──task──►┐
//!                        ├─► EpisodeEvidence ──► reports ──┐
//!   results  ──answer──►─┘                                 ├─► measures of the benchmark, by profile
//!                                            recorded ─────┘
//! ```
//! The answer of such an episode is JSON: a trajectory, the fields of a page, or predictions.

mod case;
mod csv;
mod folders;
mod measures;
mod results;
mod submitted;
mod tasks;

pub(crate) use case::StoredCase;
pub use csv::TextPosition;
pub use folders::{FolderProblem, TaskFolder};
pub use measures::measures;
pub use results::{StoredResult, StoredResultError, results};
pub use submitted::{SUBMITTED, SubmittedError, submitted};
pub use tasks::{StoredTasks, StoredTasksError, TaskLine, TaskProblem};
