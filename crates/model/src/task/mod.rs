//! Native tasks: what an agent is asked to do on sites of an environment, and how it is seen that it was done.
//!
//! ```text
//!   Task ── start, accounts, snapshots     what a runner brings about
//!        ── before: name = Reading         values captured when the episode begins
//!        └─ criterion ─ all/any/not ─┬ Reading + Rule   a value of a site
//!                                    ├ answer + Rule    what the agent says
//!                                    └ Address          where the agent ended
//! ```
//! Built only by `definition::tasks`. Reading values is `arenad_locators`' work, judging them `arenad_evaluators::native`'s.

mod criterion;
mod reading;

pub use criterion::{Address, Bounds, Criterion, CriterionKind, Margin, Matcher, PathRule, Rule};
pub use reading::{Bound, Reading, Recipe};

use super::ids::SiteName;

/// One task: a template with its variables filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// The name, unique within the environment: the template's, and its number where the template has several tasks.
    pub name: String,
    /// What is asked for.
    pub kind: TaskKind,
    /// What the agent is told.
    pub intent: String,
    /// The sites that an episode needs.
    pub sites: Vec<SiteName>,
    /// As whom the agent is signed in, by site.
    pub accounts: Vec<(SiteName, String)>,
    /// The URL that the agent begins at.
    pub start: String,
    /// The named snapshots that sites start from; others start from their baseline.
    pub snapshots: Vec<(SiteName, String)>,
    /// The values that are captured when an episode begins, by name.
    pub before: Vec<(String, Reading)>,
    /// What must hold in the end.
    pub criterion: Criterion,
}

/// What a task asks for, in WebArena's terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskKind {
    /// An answer that is found on sites.
    Information,
    /// A page.
    Navigation,
    /// A change of what sites hold.
    Content,
    /// Nothing that could be done; the agent has to say so.
    Unachievable,
}

impl TaskKind {
    /// The word for it in task files and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Information => "information",
            Self::Navigation => "navigation",
            Self::Content => "content",
            Self::Unachievable => "unachievable",
        }
    }
}

impl Task {
    /// The named snapshot that a site starts from; nothing if it is the baseline.
    pub fn snapshot(&self, site: &SiteName) -> Option<&str> {
        self.snapshots.iter().find(|(known, _)| known == site).map(|(_, name)| name.as_str())
    }

    /// Whether the criterion compares with, or is given, values of the episode's beginning.
    pub fn needs_beginning(&self) -> bool {
        !self.before.is_empty()
    }
}
