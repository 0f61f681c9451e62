//! How a ready instance is watched: what is probed when, and what the outcomes make of it.

use std::fmt;
use std::time::Duration;

use super::probe::Probe;
use super::schedule::Schedule;

/// How a ready instance is watched.
#[derive(Debug, Clone, PartialEq)]
pub struct HealthSpec {
    /// Cheap probes, often.
    pub shallow: HealthProbes,
    /// Thorough probes, seldom; `None`: there are none.
    pub deep: Option<HealthProbes>,
}

impl HealthSpec {
    /// The probes of a depth.
    pub fn at(&self, depth: Depth) -> Option<&HealthProbes> {
        match depth {
            Depth::Shallow => Some(&self.shallow),
            Depth::Deep => self.deep.as_ref(),
        }
    }
}

/// Probes that are run in rounds, on a schedule.
#[derive(Debug, Clone, PartialEq)]
pub struct HealthProbes {
    /// When a round is due.
    pub schedule: Schedule,
    /// The longest one probe may take.
    pub timeout: Duration,
    /// How many rounds must fail in a row before the instance counts as unhealthy.
    pub failures: u32,
    /// The probes of a round; at least one.
    pub probes: Vec<Probe>,
}

/// How deep the probes look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Depth {
    /// Whether the site answers.
    Shallow,
    /// Whether the site does its work.
    Deep,
}

impl Depth {
    /// Both, the more frequent one first.
    pub const ALL: [Self; 2] = [Self::Shallow, Self::Deep];

    /// The word for it in definitions, JSON and the store.
    pub fn name(self) -> &'static str {
        match self {
            Self::Shallow => "shallow",
            Self::Deep => "deep",
        }
    }
}

impl fmt::Display for Depth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
