//! The benchmarks whose tasks can be judged.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Benchmark {
    /// WebArena: 812 tasks.
    #[serde(rename = "webarena")]
    WebArena,
    /// VisualWebArena: 910 tasks in three files, each counted from 0.
    #[serde(rename = "visualwebarena")]
    VisualWebArena,
    /// WebArena-Verified: WebArena's tasks, judged by answer and traffic.
    #[serde(rename = "webarena-verified")]
    WebArenaVerified,
}

impl Benchmark {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::WebArena, Self::VisualWebArena, Self::WebArenaVerified];

    /// Its name on the command line, in the API and in folders of results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::WebArena => "webarena",
            Self::VisualWebArena => "visualwebarena",
            Self::WebArenaVerified => "webarena-verified",
        }
    }

    /// The benchmark of that name; BrowserGym writes the last with an underscore.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|benchmark| benchmark.name() == name.replace('_', "-"))
    }
}

impl fmt::Display for Benchmark {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}
