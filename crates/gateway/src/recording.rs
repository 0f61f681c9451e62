//! What is recorded of a route, as values: requests, answers, bodies.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use jiff::Timestamp;

use super::writes::is_safe;

/// What an exchange takes besides its texts, in bytes.
const OVERHEAD: usize = 512;

/// Which requests of a route are recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Record {
    /// None: nothing is copied.
    #[default]
    Nothing,
    /// Those of every method but GET, HEAD and OPTIONS.
    Writes,
    /// All.
    All,
}

impl Record {
    /// Whether requests of the method are recorded.
    #[must_use]
    pub fn includes(self, method: &Method) -> bool {
        match self {
            Self::Nothing => false,
            Self::Writes => !is_safe(method),
            Self::All => true,
        }
    }
}

/// A request's head, as the client sent it.
#[derive(Clone)]
pub struct RequestHead {
    /// When it arrived; UTC.
    pub at: Timestamp,
    /// Its method.
    pub method: Method,
    /// The URL that the client used.
    pub url: String,
    /// Its headers.
    pub headers: HeaderMap,
}

/// An answer's head, as the client was sent it.
#[derive(Clone)]
pub struct AnswerHead {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// From the request's arrival to this.
    pub waited: Duration,
}

/// A body, as far as it is known.
#[derive(Clone, Default)]
pub enum RecordedBody {
    /// There was none, or it has not come to its end.
    #[default]
    None,
    /// All of it, in the coding that it was sent in.
    Whole(Bytes),
    /// It was not kept.
    Lost {
        /// Why.
        why: Loss,
        /// The bytes that passed.
        size: u64,
    },
}

/// Why a body was not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// It is longer than [`super::BODY_MAX`].
    TooLong,
    /// It is a picture, a style, a script or the like, and nobody looks for a text in it.
    NoText,
    /// It ended early.
    CutOff,
    /// There was no room for it: others needed it.
    MadeRoom,
}

/// A request and what came of it.
#[derive(Clone)]
pub struct Exchange {
    /// The request.
    pub request: Arc<RequestHead>,
    /// Its body.
    pub sent: RecordedBody,
    /// The answer; `None`: none has come.
    pub answer: Option<Arc<AnswerHead>>,
    /// Its body.
    pub received: RecordedBody,
    /// From the request's arrival to the answer's end; `None`: it has not ended.
    pub took: Option<Duration>,
}

// Whatever passes may be a secret.
impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange").field("method", &self.request.method).finish_non_exhaustive()
    }
}

/// What was recorded of a generation so far.
#[derive(Debug, Clone)]
pub struct Recording {
    /// The generation.
    pub generation: u64,
    /// Which requests are recorded.
    pub records: Record,
    /// Since when; UTC.
    pub since: Timestamp,
    /// Whether clients may have reached the generation before that.
    pub is_late: bool,
    /// How many exchanges, the oldest ones, had to make room.
    pub dropped: u64,
    /// The others, in the order in which they were sent to the site.
    pub exchanges: Vec<Exchange>,
}

impl Exchange {
    /// What it takes, as the log counts it.
    pub(super) fn bytes(&self) -> usize {
        let answer = self.answer.as_ref().map_or(0, |answer| size_of(&answer.headers));
        let head = OVERHEAD + self.request.url.len() + size_of(&self.request.headers);
        head + answer + self.sent.kept() + self.received.kept()
    }
}

impl RecordedBody {
    pub(super) fn kept(&self) -> usize {
        if let Self::Whole(bytes) = self { bytes.len() } else { 0 }
    }
}

fn size_of(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 32).sum()
}
