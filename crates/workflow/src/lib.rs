//! Recorded workflows of WebCanvas' tasks: what a person did on a site, and whether it can still be done there.
//!
//! ```text
//!   Workflow ──► step by step: find the element on the page ──► act ──► Replay: what was seen at each step
//!                                                                         │ with the trajectory and the task
//!                                                                         ▼
//!   task file ◄── version: repaired key nodes ◄── Diagnosis: which key nodes are broken, why, and a repair
//! ```
//! A workflow on pristine sites also becomes a recorded task of Mind2Web (`dump`).
//!
//! Live sites change and cannot be reset, so a task is worth only as much as its key nodes can still be reached. Nothing
//! here does any I/O: the caller drives a browser, and the evaluators of `arenad_evaluators::webcanvas` judge the steps.
//!
//! Start reading at [`Workflow`].

mod diagnosis;
mod dump;
mod file;
mod find;
mod propose;
mod replay;
mod version;

pub use diagnosis::{Diagnosis, Health, NodeCause, NodeFinding, Repair, diagnose};
pub use dump::{DumpedAction, DumpedTask, dump, is_dumped};
pub use file::{ReachedNode, StepAction, Workflow, WorkflowError, WorkflowStep};
pub use find::{ElementSight, FoundBy, find};
pub use propose::propose;
pub use replay::{PageSight, Replay, ReplayedStep, page_sight};
pub use version::{VersionError, updated, version};
