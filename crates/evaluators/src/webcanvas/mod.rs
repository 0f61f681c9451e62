//! WebCanvas' evaluators (Mind2Web-Live): key nodes that an agent has to reach on live sites.
//!
//! A key node looks at the page's address, at the element of an action, at its value, or at a text of the agent.
//! [`Progress`] compares the nodes with one step after another; [`evaluate`] judges a stored [`Trajectory`].

mod evaluate;
mod lint;
pub mod locate;
pub mod matching;
mod progress;
pub mod scores;
mod strict;
mod task;
mod trajectory;
pub mod workflow;

pub use evaluate::{Measures, evaluate, measures, questions};
pub use lint::{NodeFinding, lint};
pub use progress::{Observation, Open, Progress};
pub use task::{KeyNode, NodeRule, Target, WebCanvasFileError, WebCanvasTask, is_known, read, read_one};
pub use trajectory::{Trajectory, TrajectoryError};

pub use crate::text::raised::Raised;
