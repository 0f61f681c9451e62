//! The reasons why a locator finds no value.

use std::time::Duration;

/// The reason why a locator found no value. The variant shows whether the site or the locator is at fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LocateError {
    /// The locator asks for more than reading.
    #[error("refuse the locator: {0}")]
    Refused(String),
    /// The locator names an object that the site does not have, or it cannot be parsed.
    #[error("understand the locator: {0}")]
    Unknown(String),
    /// The locator ran, and the site's server, the page's script or the selection reported an error.
    #[error("run the locator: {0}")]
    Failed(String),
    /// The expression threw an exception.
    #[error("run the locator: the expression throws: {0}")]
    Threw(String),
    /// The site, or the tool that reads it, could not be reached. This says nothing about the site's state.
    #[error("reach the site: {0}")]
    Unavailable(String),
    /// The disk has too little room for a copy of the site's database. This says nothing about the site's state.
    #[error("copy the database: {0}")]
    NoRoom(String),
    /// A file of the site is larger than what is copied of one.
    #[error("copy the database: {what}, which is more than {limit}")]
    FileTooLarge {
        /// Description of the file.
        what: String,
        /// The limit that the file exceeds, with its unit.
        limit: String,
    },
    /// The locator did not finish in time.
    #[error("run the locator: no value within {limit:?}")]
    TimedOut {
        /// The time limit that the locator exceeded.
        limit: Duration,
    },
    /// The result is larger than a locator may read.
    #[error("run the locator: {what}, which is more than {limit}")]
    TooLarge {
        /// Description of the data that was found.
        what: String,
        /// The limit that the data exceeds, with its unit.
        limit: String,
    },
}

impl LocateError {
    /// Returns whether the environment is at fault, so that the same locator may find a value later.
    pub fn is_environment_fault(&self) -> bool {
        match self {
            Self::Unavailable(_) | Self::NoRoom(_) | Self::TimedOut { .. } => true,
            Self::Refused(_)
            | Self::Unknown(_)
            | Self::Failed(_)
            | Self::Threw(_)
            | Self::TooLarge { .. }
            | Self::FileTooLarge { .. } => false,
        }
    }

    /// Returns the error for more bytes than [`super::SIZE_MAX`].
    pub(super) fn too_many_bytes(what: impl Into<String>) -> Self {
        Self::TooLarge { what: what.into(), limit: format!("{} MiB", super::SIZE_MAX >> 20) }
    }
}
