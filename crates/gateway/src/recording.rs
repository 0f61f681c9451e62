//! The recorded traffic of a route as values: requests, responses, bodies.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use jiff::Timestamp;

use super::writes::is_safe;

/// Estimated size of an exchange apart from its URL, headers and bodies, in bytes.
const OVERHEAD: usize = 512;

/// Selects the requests of a route that are recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RecordingFilter {
    /// No request is recorded, and nothing is copied.
    #[default]
    Nothing,
    /// Requests of every method except GET, HEAD and OPTIONS are recorded.
    Writes,
    /// Every request is recorded, whatever its method.
    All,
}

impl RecordingFilter {
    /// Returns whether requests of the method are recorded.
    #[must_use]
    pub(crate) fn includes(self, method: &Method) -> bool {
        match self {
            Self::Nothing => false,
            Self::Writes => !is_safe(method),
            Self::All => true,
        }
    }
}

/// The head of a request, as the client sent it.
#[derive(Clone)]
pub struct RequestHead {
    /// Time at which the request arrived; UTC.
    pub at: Timestamp,
    /// Method of the request, such as GET.
    pub method: Method,
    /// The URL that the client used.
    pub url: String,
    /// Header fields as received, before the gateway changes them for the target.
    pub headers: HeaderMap,
}

/// The head of a response, as it was sent to the client.
#[derive(Clone)]
pub struct AnswerHead {
    /// HTTP status code of the response.
    pub status: StatusCode,
    /// Header fields without those that concern only one hop.
    pub headers: HeaderMap,
    /// Time from the arrival of the request to the arrival of this head.
    pub waited: Duration,
}

/// The recorded form of a body.
#[derive(Clone, Default)]
pub enum RecordedBody {
    /// The body was empty, or it has not ended yet.
    #[default]
    None,
    /// The complete body, in the coding in which it was sent.
    Whole(Bytes),
    /// The body was not kept.
    Lost {
        /// Reason why the body was not kept.
        why: Loss,
        /// Number of bytes that passed through the gateway.
        size: u64,
    },
}

/// The reason why a body was not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// The body is longer than [`super::BODY_MAX`].
    TooLong,
    /// The body is an image, a style sheet, a script or similar content, in which no task looks for text.
    NoText,
    /// The body ended before it was complete.
    CutOff,
    /// The body was not kept because other bodies needed the room.
    MadeRoom,
}

/// A request and its response.
#[derive(Clone)]
pub struct Exchange {
    /// Head of the request, as the client sent it.
    pub request: Arc<RequestHead>,
    /// Body of the request.
    pub sent: RecordedBody,
    /// Head of the response; `None` if no response has arrived.
    pub answer: Option<Arc<AnswerHead>>,
    /// Body of the response.
    pub received: RecordedBody,
    /// Time from the arrival of the request to the end of the response; `None` while the response has not ended.
    pub took: Option<Duration>,
}

// Any part of the traffic may be a secret.
impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange").field("method", &self.request.method).finish_non_exhaustive()
    }
}

/// The traffic of one generation that has been recorded so far.
#[derive(Debug, Clone)]
pub struct Recording {
    /// Number of the generation that the recording covers.
    pub generation: u64,
    /// Selection of the requests that are recorded.
    pub records: RecordingFilter,
    /// Time at which the recording started; UTC.
    pub since: Timestamp,
    /// Whether clients may have reached the generation before the recording started.
    pub is_late: bool,
    /// Number of exchanges that were dropped to make room; they are the oldest.
    pub dropped: u64,
    /// The remaining exchanges, in the order in which they were sent to the site.
    pub exchanges: Vec<Exchange>,
}

impl Exchange {
    /// Returns the exchange of a request that is about to be sent.
    pub(super) fn begun(request: &Arc<RequestHead>) -> Self {
        let (sent, received) = (RecordedBody::None, RecordedBody::None);
        Self { request: Arc::clone(request), sent, answer: None, received, took: None }
    }

    /// Returns the number of bytes that the exchange counts towards the log's limit.
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
