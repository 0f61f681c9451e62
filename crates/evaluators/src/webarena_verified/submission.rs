//! What an agent left behind.

use serde_json::Value;

use super::trace::{Trace, TraceError};
use crate::text::dates::{self, Day};

/// What an agent answered.
#[derive(Debug, Clone)]
pub enum Answer {
    /// A text with JSON in it: the content of `agent_response.json`.
    Text(String),
    /// JSON.
    Document(Value),
}

/// What an agent left behind: its answer, and the traffic of its browser.
#[derive(Debug)]
pub struct Submission {
    /// The answer.
    pub answer: Answer,
    /// The traffic, or why it cannot be read.
    pub trace: Result<Trace, TraceError>,
    /// The day on which it is judged: the benchmark completes dates with it.
    pub today: Day,
}

impl Submission {
    /// From the files of a run: `agent_response.json`, and `network.har` or Playwright's `trace.zip`.
    #[must_use]
    pub fn read(agent_response: &str, trace: &[u8]) -> Self {
        Self { answer: Answer::Text(agent_response.to_owned()), trace: Trace::read(trace), today: dates::today() }
    }

    /// An answer alone.
    #[must_use]
    pub fn without_traffic(agent_response: &str) -> Self {
        Self { answer: Answer::Text(agent_response.to_owned()), trace: Err(TraceError::Missing), today: dates::today() }
    }
}
