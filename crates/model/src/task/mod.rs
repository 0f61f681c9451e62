//! Native tasks: the work that an agent does on sites of an environment, and the criterion by which it is judged.
//!
//! ```text
//!   Task ── start, accounts, snapshots     conditions that a runner establishes
//!        ── before: name = Reading         values captured when the episode begins
//!        └─ criterion ─ all/any/not ─┬ Reading + Rule   a value of a site
//!                                    ├ answer + Rule    the agent's answer
//!                                    └ Address          the agent's last page
//! ```
//! Only `definition::tasks` builds these types. `arenad_locators` reads the values, and `arenad_evaluators::native`
//! judges them.

mod criterion;
mod reading;

pub use criterion::{AddressCriterion, Bounds, Criterion, CriterionKind, Margin, Matcher, PathRule, Rule};
pub use reading::{Bound, Reading, ReadingRecipe};

use super::ids::SiteName;

/// One task: a template with its variables filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// The name, unique within the environment: the template's name, followed by a number if the template has several
    /// tasks.
    pub name: String,
    /// The kind of result that the task requires.
    pub kind: TaskKind,
    /// The instruction for the agent.
    pub intent: String,
    /// The sites that an episode needs.
    pub sites: Vec<SiteName>,
    /// The accounts with which the agent is signed in, by site.
    pub accounts: Vec<(SiteName, String)>,
    /// The URL at which the agent begins.
    pub start: String,
    /// The named snapshots from which sites start. All other sites start from their baseline.
    pub snapshots: Vec<(SiteName, String)>,
    /// The values that are captured when an episode begins, by name.
    pub before: Vec<(String, Reading)>,
    /// The criterion that must hold when the episode is over.
    pub criterion: Criterion,
}

/// The kind of result that a task requires, in WebArena's terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskKind {
    /// An answer whose content is found on sites.
    Information,
    /// A page on which the agent must end.
    Navigation,
    /// A change to the content of sites.
    Content,
    /// A statement that the task cannot be done.
    Unachievable,
}

impl TaskKind {
    /// Returns the name in task files and JSON.
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
    /// Returns the named snapshot from which a site starts, or `None` for the baseline.
    pub fn snapshot(&self, site: &SiteName) -> Option<&str> {
        self.snapshots.iter().find(|(known, _)| known == site).map(|(_, name)| name.as_str())
    }

    /// Whether values have to be captured when the episode begins.
    pub fn needs_beginning(&self) -> bool {
        !self.before.is_empty()
    }
}
