//! Why a value cannot be judged.

use crate::text::json::JsonError;
use crate::text::patterns::PatternError;
use crate::text::urls::UrlError;

/// What keeps a value from being read or compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// The benchmark's code raises an exception. Of a value that the agent gave that means: it is not of its type.
    #[error("{0}")]
    Raised(String),
    /// The benchmark's code would answer, and what it would answer is not known here.
    #[error("{0}")]
    Unsupported(String),
    /// What had to be seen was not recorded.
    #[error("{0}")]
    Unseen(String),
}

impl Trouble {
    pub(super) fn raised(text: impl Into<String>) -> Self {
        Self::Raised(text.into())
    }

    pub(super) fn unsupported(text: impl Into<String>) -> Self {
        Self::Unsupported(text.into())
    }
}

impl From<PatternError> for Trouble {
    /// A pattern that takes too long is the agent's, for those of the tasks do not. The benchmark's code would not end.
    fn from(error: PatternError) -> Self {
        Self::raised(error.to_string())
    }
}

impl From<JsonError> for Trouble {
    fn from(error: JsonError) -> Self {
        Self::raised(error.to_string())
    }
}

impl From<UrlError> for Trouble {
    fn from(error: UrlError) -> Self {
        Self::raised(error.to_string())
    }
}
