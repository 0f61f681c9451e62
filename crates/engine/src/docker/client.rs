//! The connection to the engine, its calls with their time limits, and the conversion of bollard's errors.

use std::time::Duration;

use bollard::Docker;
use bollard::errors::Error;
use futures_util::{Stream, StreamExt};

use super::{CALL_TIMEOUT, DockerEngine, TRANSFER_TIMEOUT};
use crate::EngineError;

impl DockerEngine {
    pub(super) fn docker(&self) -> Result<&Docker, EngineError> {
        if let Some(docker) = self.client.get() {
            return Ok(docker);
        }
        let seconds = TRANSFER_TIMEOUT.as_secs();
        let connected = if self.endpoint.starts_with("unix://") {
            Docker::connect_with_unix(&self.endpoint, seconds, bollard::API_DEFAULT_VERSION)
        } else {
            Docker::connect_with_http(&self.endpoint, seconds, bollard::API_DEFAULT_VERSION)
        };
        let docker = connected.map_err(|cause| self.error("connect to the engine", cause))?;
        Ok(self.client.get_or_init(|| docker))
    }

    /// Converts an error of bollard; `doing` completes "failed to …".
    pub(super) fn error(&self, doing: impl Into<String>, cause: Error) -> EngineError {
        let doing = doing.into();
        match cause {
            Error::DockerResponseServerError { status_code: 404, message } => EngineError::NotFound { doing, message },
            Error::DockerResponseServerError { status_code: 409, message } => EngineError::Conflict { doing, message },
            Error::DockerResponseServerError { status_code, message } => {
                EngineError::Refused { doing, status: status_code, message: tidy(&message) }
            }
            Error::DockerStreamError { error } => EngineError::Build { doing, message: error },
            Error::RequestTimeoutError => EngineError::TimedOut { doing, limit: CALL_TIMEOUT },
            cause @ (Error::HyperResponseError { .. }
            | Error::IOError { .. }
            | Error::HyperLegacyError { .. }
            | Error::SocketNotFoundError(_)) => {
                EngineError::Unreachable { endpoint: self.endpoint.clone(), cause: innermost(&cause).into() }
            }
            cause => EngineError::Broken { doing, cause: cause.into() },
        }
    }

    /// Runs one call with a time limit; `doing` names the call in its error.
    pub(super) async fn call<T>(
        &self,
        doing: impl Into<String>,
        limit: Duration,
        call: impl Future<Output = Result<T, Error>> + Send,
    ) -> Result<T, EngineError> {
        let doing = doing.into();
        match tokio::time::timeout(limit, call).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(cause)) => Err(self.error(doing, cause)),
            Err(_) => Err(EngineError::TimedOut { doing, limit }),
        }
    }

    /// Returns the next item of a long call's stream. A stream that is silent for [`TRANSFER_TIMEOUT`] fails with
    /// `TimedOut`.
    pub(super) async fn heard<T>(
        &self,
        doing: &str,
        stream: &mut (impl Stream<Item = Result<T, Error>> + Unpin + Send),
    ) -> Result<Option<Result<T, Error>>, EngineError> {
        tokio::time::timeout(TRANSFER_TIMEOUT, stream.next())
            .await
            .map_err(|_| EngineError::TimedOut { doing: doing.to_owned(), limit: TRANSFER_TIMEOUT })
    }
}

/// Returns the innermost cause, which states what happened; the outer ones only name the layers of the client.
fn innermost(error: &Error) -> String {
    let causes = std::iter::successors(Some(error as &dyn std::error::Error), |&error| error.source());
    causes.last().map(ToString::to_string).unwrap_or_default()
}

/// Joins the lines of a message, because the engine's messages may contain line breaks and arenad's do not.
fn tidy(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Treats the removal of an object that is gone, or is already being removed, as success.
pub(super) fn gone_is_done(result: Result<(), EngineError>) -> Result<(), EngineError> {
    match result {
        Err(EngineError::NotFound { .. }) => Ok(()),
        Err(EngineError::Conflict { message, .. }) if message.contains("already in progress") => Ok(()),
        other => other,
    }
}
