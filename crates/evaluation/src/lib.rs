//! From a task of a benchmark, what the agent left and what was seen on its sites to a report.
//!
//! ```text
//!   TaskFiles ──task──►┐
//!   an answer, a URL ──┼─► Evidence ──► Case ──► questions ──► sites, judge, files ──► Told ──► Evidence
//!   results/ ──────────┘                   └──► reports: what was told, under one profile or both
//! ```
//! [`Evidence`](arenad_verdict::Evidence) is all that is known of an episode, and nothing else is looked at when it is judged: the same file gives the
//! same reports without the sites, today and in a year. Who answers questions is not decided here: the daemon looks at the
//! sites, whoever asks has a judge and files.

mod case;
pub mod pictures;
mod placeholders;
pub mod render;
pub mod results;
mod summary;
mod tasks;

pub use case::{Case, CaseError, evaluate};
pub use placeholders::{of_environment, placeholder, speaks_of};
pub use summary::{Summary, Tally};
pub use tasks::{TaskFiles, TaskFilesError};
