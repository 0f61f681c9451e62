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
    /// WebCanvas (Mind2Web-Live): key nodes that an agent reaches on live sites.
    #[serde(rename = "webcanvas")]
    WebCanvas,
    /// TurkingBench: web forms with the answers of crowd workers.
    #[serde(rename = "turkingbench")]
    TurkingBench,
    /// Mind2Web: recorded steps, each judged alone.
    #[serde(rename = "mind2web")]
    Mind2Web,
}

impl Benchmark {
    /// All benchmarks, each once.
    pub const ALL: [Self; 6] = [
        Self::WebArena,
        Self::VisualWebArena,
        Self::WebArenaVerified,
        Self::WebCanvas,
        Self::TurkingBench,
        Self::Mind2Web,
    ];

    /// The benchmarks whose tasks are done on sites of an environment.
    pub const OF_SITES: [Self; 3] = [Self::WebArena, Self::VisualWebArena, Self::WebArenaVerified];

    /// Returns whether tasks are judged by what was stored of them, without any site.
    #[must_use]
    pub fn is_stored(self) -> bool {
        !Self::OF_SITES.contains(&self)
    }

    /// Returns the benchmark's name on the command line, in the API and in folders of results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::WebArena => "webarena",
            Self::VisualWebArena => "visualwebarena",
            Self::WebArenaVerified => "webarena-verified",
            Self::WebCanvas => "webcanvas",
            Self::TurkingBench => "turkingbench",
            Self::Mind2Web => "mind2web",
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
