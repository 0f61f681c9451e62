//! The result of a locator in a confined process, in the form in which it is sent to the daemon.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::LocateError;
use arenad_confined::WorkerError;
use arenad_model::locator::Value;
use arenad_model::locator::json;

/// A value with its type, or the reason why there is none.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum LocatorOutcome {
    Value(Json),
    Refused(String),
    Unknown(String),
    Failed(String),
    Unavailable(String),
    TimedOut,
    TooLarge { what: String, limit: String },
}

impl From<Result<Value, LocateError>> for LocatorOutcome {
    fn from(found: Result<Value, LocateError>) -> Self {
        match found {
            Ok(value) => Self::Value(json::typed(&value)),
            Err(LocateError::Refused(reason)) => Self::Refused(reason),
            Err(LocateError::Unknown(reason)) => Self::Unknown(reason),
            Err(LocateError::Failed(reason)) => Self::Failed(reason),
            Err(LocateError::Unavailable(reason)) => Self::Unavailable(reason),
            Err(LocateError::TimedOut { .. }) => Self::TimedOut,
            Err(LocateError::TooLarge { what, limit }) => Self::TooLarge { what, limit },
            // Confined processes neither evaluate JavaScript expressions nor copy databases.
            Err(other @ (LocateError::Threw(_) | LocateError::NoRoom(_) | LocateError::FileTooLarge { .. })) => {
                Self::Failed(other.to_string())
            }
        }
    }
}

impl LocatorOutcome {
    /// Converts the outcome to the daemon's result. `limit` is the time limit that a timeout reports.
    pub(super) fn into_value(self, limit: Duration) -> Result<Value, LocateError> {
        match self {
            Self::Value(value) => {
                json::from_typed(&value).ok_or_else(|| LocateError::Failed("the value is not understood".to_owned()))
            }
            Self::Refused(reason) => Err(LocateError::Refused(reason)),
            Self::Unknown(reason) => Err(LocateError::Unknown(reason)),
            Self::Failed(reason) => Err(LocateError::Failed(reason)),
            Self::Unavailable(reason) => Err(LocateError::Unavailable(reason)),
            Self::TimedOut => Err(LocateError::TimedOut { limit }),
            Self::TooLarge { what, limit } => Err(LocateError::TooLarge { what, limit }),
        }
    }
}

/// Maps the failure of a confined process that received all of its input in advance. If such a process ends, its input
/// is the cause. `what` describes the work that it could not do.
pub(super) fn no_answer(error: WorkerError, what: &str) -> LocateError {
    match error {
        WorkerError::TimedOut(limit) => LocateError::TimedOut { limit },
        ended @ WorkerError::Ended(_) => LocateError::TooLarge {
            what: format!("{what}: {ended}"),
            limit: "the memory of a confined process".to_owned(),
        },
        error => LocateError::Unavailable(error.to_string()),
    }
}
