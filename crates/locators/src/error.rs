//! Why nothing was found.

use std::time::Duration;

/// Why a locator found nothing. Whether the site or the locator is at fault is in the variant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LocateError {
    /// The locator asks for more than reading.
    #[error("refuse the locator: {0}")]
    Refused(String),
    /// The locator names what the site does not have.
    #[error("understand the locator: {0}")]
    Unknown(String),
    /// It ran, and the site's server, the page's script or the selection said no.
    #[error("run the locator: {0}")]
    Failed(String),
    /// The expression threw something.
    #[error("run the locator: the expression throws: {0}")]
    Threw(String),
    /// The site, or what looks at it, could not be reached. Says nothing about the site's state.
    #[error("reach the site: {0}")]
    Unavailable(String),
    /// It took too long.
    #[error("run the locator: no value within {limit:?}")]
    TimedOut {
        /// The limit.
        limit: Duration,
    },
    /// There is more to read than a locator may.
    #[error("run the locator: {what}, which is more than {limit}")]
    TooLarge {
        /// What was found.
        what: String,
        /// What there may be.
        limit: String,
    },
}

impl LocateError {
    /// Whether the environment is at fault, so that the same locator may find a value later.
    pub fn is_environment_fault(&self) -> bool {
        match self {
            Self::Unavailable(_) | Self::TimedOut { .. } => true,
            Self::Refused(_) | Self::Unknown(_) | Self::Failed(_) | Self::Threw(_) | Self::TooLarge { .. } => false,
        }
    }

    /// More bytes than [`super::SIZE_MAX`].
    pub(super) fn too_many_bytes(what: impl Into<String>) -> Self {
        Self::TooLarge { what: what.into(), limit: format!("{} MiB", super::SIZE_MAX >> 20) }
    }
}
