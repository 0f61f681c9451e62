//! The engine's error responses, with Docker's wording where callers depend on it.

use std::io;

use arenad_engine::EngineError;

pub(super) fn unreachable(endpoint: &str, kind: io::ErrorKind) -> EngineError {
    EngineError::Unreachable { endpoint: endpoint.to_owned(), cause: io::Error::from(kind).into() }
}

pub(super) fn not_found(doing: &str, message: impl Into<String>) -> EngineError {
    EngineError::NotFound { doing: doing.to_owned(), message: message.into() }
}

pub(super) fn conflict(doing: &str, message: impl Into<String>) -> EngineError {
    EngineError::Conflict { doing: doing.to_owned(), message: message.into() }
}

pub(super) fn refused(doing: &str, status: u16, message: impl Into<String>) -> EngineError {
    EngineError::Refused { doing: doing.to_owned(), status, message: message.into() }
}

/// Shortens a handle or image ID for messages.
pub(super) fn short(id: &str) -> &str {
    let id = id.strip_prefix("sha256:").unwrap_or(id);
    id.get(..12).unwrap_or(id)
}
