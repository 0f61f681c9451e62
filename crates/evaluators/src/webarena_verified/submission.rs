//! The output of an agent: its answer and its browser's traffic.

use serde_json::Value;

use super::trace::{Trace, TraceError};
use crate::text::dates::{self, Day};

/// The answer of an agent.
#[derive(Debug, Clone)]
pub enum SubmittedAnswer {
    /// A text that contains JSON: the content of `agent_response.json`.
    Text(String),
    /// A value that has been parsed already.
    Document(Value),
}

/// The output of an agent.
#[derive(Debug)]
pub struct Submission {
    /// The answer, not yet parsed if it is a text.
    pub answer: SubmittedAnswer,
    /// The traffic, or the reason why it cannot be read.
    pub trace: Result<Trace, TraceError>,
    /// The day of the evaluation, from which the benchmark completes dates.
    pub today: Day,
}

impl Submission {
    /// Reads the files of an episode: `agent_response.json`, and `network.har` or Playwright's `trace.zip`.
    #[must_use]
    pub fn read(agent_response: &str, trace: &[u8]) -> Self {
        Self {
            answer: SubmittedAnswer::Text(agent_response.to_owned()),
            trace: Trace::read(trace),
            today: dates::today(),
        }
    }

    /// Creates a submission from an answer alone.
    #[must_use]
    pub fn without_traffic(agent_response: &str) -> Self {
        Self {
            answer: SubmittedAnswer::Text(agent_response.to_owned()),
            trace: Err(TraceError::Missing),
            today: dates::today(),
        }
    }
}
