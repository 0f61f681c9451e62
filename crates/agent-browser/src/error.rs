//! Failures: of an action, which the agent is told, and of the browser, which make its episode worthless.

use arenad_chromium::CdpError;

/// The reason why an action had no or only a part of its effect. The agent goes on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ActionError {
    /// The text is not an action.
    #[error(transparent)]
    Unparsed(#[from] crate::action::ActionParseError),
    /// The observation has no element with this id. The words are those of Python's `KeyError`.
    #[error("'{0}'")]
    NoElement(String),
    /// The element has no bounds. The words are those of Python's `TypeError`.
    #[error("cannot unpack non-iterable NoneType object")]
    NoBounds,
    /// There is no tab with this number. The words are those of Python's `IndexError`.
    #[error("list index out of range")]
    NoTab,
    /// A key is unknown.
    #[error(transparent)]
    Key(#[from] crate::keys::UnknownKey),
    /// The browser was opened without a file of this name. The words are those of Playwright.
    #[error("ENOENT: no such file or directory, stat '{0}'")]
    NoFile(String),
    /// The browser, or the page, refused.
    #[error("{0}")]
    Failed(String),
}

impl ActionError {
    /// Returns advice for people, which agents do not get.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Unparsed(_) => Some("write one action, such as `click [12]`; the documentation lists all of them"),
            Self::NoElement(_) => Some("use an id that the last observation shows"),
            Self::NoBounds => Some("choose an element that has a place on the page"),
            Self::NoTab => Some("use the number of a tab that the last observation lists"),
            Self::Key(_) => Some("name keys as Playwright does, such as `Control+a` or `PageDown`"),
            Self::NoFile(_) => Some("name one of the files that the browser was opened with, without a folder"),
            Self::Failed(_) => None,
        }
    }
}

/// The reason why a browser cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BrowserFault {
    /// No process could be started.
    #[error("{0}")]
    NotStarted(String),
    /// The process has ended.
    #[error("its process has ended")]
    Gone,
    /// A page crashed, for example because it exhausted its memory.
    #[error("a page crashed")]
    Crashed,
    /// The browser did not answer.
    #[error("no answer to {method} within {seconds} s")]
    Stuck {
        /// The name of the command.
        method: &'static str,
        /// The time limit that passed.
        seconds: u64,
    },
    /// A page is larger than what is observed.
    #[error("a page with {nodes} nodes and {characters} characters is too large to be observed")]
    TooLarge {
        /// The number of its nodes, as far as they were counted.
        nodes: u64,
        /// The number of characters in them.
        characters: u64,
    },
    /// The browser refused a command that a working browser accepts.
    #[error("{0}")]
    Refused(String),
}

impl From<CdpError> for BrowserFault {
    fn from(error: CdpError) -> Self {
        match error {
            CdpError::Gone => Self::Gone,
            CdpError::Refused { .. } => Self::Refused(error.to_string()),
        }
    }
}

/// The reason why a part of an action failed: the action's own, or the browser's.
#[derive(Debug)]
pub(crate) enum StepError {
    Action(ActionError),
    Fault(BrowserFault),
}

impl<T: Into<ActionError>> From<T> for StepError {
    fn from(error: T) -> Self {
        Self::Action(error.into())
    }
}

impl From<BrowserFault> for StepError {
    fn from(fault: BrowserFault) -> Self {
        match fault {
            // A page that refuses a command has, for example, navigated meanwhile.
            BrowserFault::Refused(message) => Self::Action(ActionError::Failed(message)),
            fault => Self::Fault(fault),
        }
    }
}
