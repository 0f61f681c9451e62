//! The benchmarks whose tasks can be judged.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A benchmark of tasks for web agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Benchmark {
    /// WebArena, with 812 tasks.
    #[serde(rename = "webarena")]
    WebArena,
    /// VisualWebArena, with 910 tasks in three files. Each file numbers its tasks from 0.
    #[serde(rename = "visualwebarena")]
    VisualWebArena,
    /// WebArena-Verified, which judges WebArena's tasks by answer and traffic.
    #[serde(rename = "webarena-verified")]
    WebArenaVerified,
}

impl Benchmark {
    /// All benchmarks, each once.
    pub const ALL: [Self; 3] = [Self::WebArena, Self::VisualWebArena, Self::WebArenaVerified];

    /// Returns the benchmark's name on the command line, in the API and in folders of results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::WebArena => "webarena",
            Self::VisualWebArena => "visualwebarena",
            Self::WebArenaVerified => "webarena-verified",
        }
    }

    /// Returns the benchmark of a name. Underscores count as hyphens, because BrowserGym writes `webarena_verified`.
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
