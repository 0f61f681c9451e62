//! What a confined process has to say of a locator, on its way to the daemon.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::{LocateError, json};
use crate::confined::WorkerError;
use crate::domain::locator::Value;

/// A value with its type, or why there is none.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    Value(Json),
    Refused(String),
    Unknown(String),
    Failed(String),
    Unavailable(String),
    TimedOut,
    TooLarge { what: String, limit: String },
}

impl From<Result<Value, LocateError>> for Outcome {
    fn from(found: Result<Value, LocateError>) -> Self {
        match found {
            Ok(value) => Self::Value(json::typed(&value)),
            Err(LocateError::Refused(reason)) => Self::Refused(reason),
            Err(LocateError::Unknown(reason)) => Self::Unknown(reason),
            Err(LocateError::Failed(reason)) => Self::Failed(reason),
            Err(LocateError::Unavailable(reason)) => Self::Unavailable(reason),
            Err(LocateError::TimedOut { .. }) => Self::TimedOut,
            Err(LocateError::TooLarge { what, limit }) => Self::TooLarge { what, limit },
            // Only expressions throw, and the browser evaluates those.
            Err(threw @ LocateError::Threw(_)) => Self::Failed(threw.to_string()),
        }
    }
}

impl Outcome {
    /// What the daemon makes of it, or of there being none within `limit`.
    pub(super) fn received(answer: Result<Self, WorkerError>, limit: Duration) -> Result<Value, LocateError> {
        match answer {
            Ok(Self::Value(value)) => {
                json::from_typed(&value).ok_or_else(|| LocateError::Failed("the value is not understood".to_owned()))
            }
            Ok(Self::Refused(reason)) => Err(LocateError::Refused(reason)),
            Ok(Self::Unknown(reason)) => Err(LocateError::Unknown(reason)),
            Ok(Self::Failed(reason)) => Err(LocateError::Failed(reason)),
            Ok(Self::Unavailable(reason)) => Err(LocateError::Unavailable(reason)),
            Ok(Self::TimedOut) | Err(WorkerError::TimedOut(_)) => Err(LocateError::TimedOut { limit }),
            Ok(Self::TooLarge { what, limit }) => Err(LocateError::TooLarge { what, limit }),
            Err(error) => Err(LocateError::Unavailable(error.to_string())),
        }
    }
}
