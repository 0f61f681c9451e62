//! The reasons why a value cannot be judged.

use crate::text::json::JsonError;
use crate::text::patterns::PatternError;
use crate::text::urls::UrlError;

/// The reason why a value cannot be read or compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadingFailure {
    /// The benchmark's code raises an exception. For an agent's value this means that it does not fit its type.
    #[error("{0}")]
    Raised(String),
    /// The benchmark's code returns a result that this crate cannot reproduce.
    #[error("{0}")]
    Unsupported(String),
    /// The recording lacks the traffic to be judged.
    #[error("{0}")]
    Unseen(String),
}

impl ReadingFailure {
    pub(super) fn raised(text: impl Into<String>) -> Self {
        Self::Raised(text.into())
    }

    pub(super) fn unsupported(text: impl Into<String>) -> Self {
        Self::Unsupported(text.into())
    }
}

impl From<PatternError> for ReadingFailure {
    /// Treats a pattern that takes too long as an error. The benchmark's code would not end. Only an agent's pattern
    /// can take too long, because the tasks' patterns do not.
    fn from(error: PatternError) -> Self {
        Self::raised(error.to_string())
    }
}

impl From<JsonError> for ReadingFailure {
    fn from(error: JsonError) -> Self {
        Self::raised(error.to_string())
    }
}

impl From<UrlError> for ReadingFailure {
    fn from(error: UrlError) -> Self {
        Self::raised(error.to_string())
    }
}
