//! Scripts decide the fate of each call: which calls fail, and when they take effect.

use std::time::Duration;

use arenad_engine::EngineError;

macro_rules! operations {
    ($($operation:ident = $name:literal,)*) => {
        /// A method of [`arenad_engine::Engine`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[expect(missing_docs, reason = "named after the trait's methods")]
        pub enum EngineMethod {
            $($operation,)*
        }

        impl EngineMethod {
            /// All operations, in the order of their declaration.
            pub const ALL: &[Self] = &[$(Self::$operation,)*];

            /// Returns the name of the method.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$operation => $name,)*
                }
            }
        }
    };
}

operations! {
    Ping = "ping",
    Details = "details",
    Image = "image",
    Images = "images",
    Pull = "pull",
    Load = "load",
    Save = "save",
    Tag = "tag",
    Untag = "untag",
    Build = "build",
    RemoveImage = "remove_image",
    Commit = "commit",
    CreateNetwork = "create_network",
    Subnets = "subnets",
    Networks = "networks",
    RemoveNetwork = "remove_network",
    CreateVolume = "create_volume",
    Volumes = "volumes",
    RemoveVolume = "remove_volume",
    Create = "create",
    Start = "start",
    Stop = "stop",
    Freeze = "freeze",
    Thaw = "thaw",
    Weigh = "weigh",
    Remove = "remove",
    Inspect = "inspect",
    Changes = "changes",
    Containers = "containers",
    Running = "running",
    Exec = "exec",
    Logs = "logs",
    ReadArchive = "read_archive",
    WriteArchive = "write_archive",
    Events = "events",
}

impl EngineMethod {
    /// Returns whether the call changes the state of the engine.
    pub fn is_mutating(self) -> bool {
        !matches!(
            self,
            Self::Ping
                | Self::Details
                | Self::Image
                | Self::Images
                | Self::Save
                | Self::Subnets
                | Self::Networks
                | Self::Volumes
                | Self::Inspect
                | Self::Changes
                | Self::Containers
                | Self::Running
                | Self::Logs
                | Self::ReadArchive
                | Self::Events
        )
    }

    /// Returns whether the call needs space on the engine's disk.
    pub(super) fn takes_space(self) -> bool {
        matches!(
            self,
            Self::Pull
                | Self::Load
                | Self::Build
                | Self::Commit
                | Self::CreateVolume
                | Self::Create
                | Self::WriteArchive
        )
    }
}

/// A call, as a script sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineCall<'a> {
    /// Method that is called.
    pub operation: EngineMethod,
    /// Object of the call: a container's name, an image's reference, a network's or volume's name, or the label that is
    /// searched for. May be empty.
    pub subject: &'a str,
    /// Number of calls of this method so far, including this one.
    pub nth: u64,
    /// Number of calls of all methods so far, including this one.
    pub number: u64,
    /// Time of the engine's clock.
    pub at: Duration,
}

/// Decides the fate of each call.
///
/// The script is asked before the call has any effect, and no lock is held: it may inspect or change the engine.
pub trait CallScript: Send {
    /// Decides the fate of one call.
    fn fate(&mut self, call: &EngineCall<'_>) -> CallFate;
}

impl<F: FnMut(&EngineCall<'_>) -> CallFate + Send> CallScript for F {
    fn fate(&mut self, call: &EngineCall<'_>) -> CallFate {
        self(call)
    }
}

/// The fate of a call. [`CallFate::proceed`] is the normal one; the other methods add to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallFate {
    pub(super) before_effect: Duration,
    pub(super) failure: Option<CallFailure>,
    pub(super) before_reply: Duration,
    pub(super) reply: ReplyFate,
    pub(super) death: Option<Death>,
}

/// The fate of a call's reply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum ReplyFate {
    #[default]
    Arrives,
    /// The connection breaks before the reply arrives.
    Lost,
    /// The reply does not arrive before the caller's time limit.
    Never,
}

/// The end of a container after a call about it has succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Death {
    pub(super) after: Duration,
    pub(super) code: i64,
    pub(super) is_oom: bool,
}

impl CallFate {
    /// The call takes effect and is answered at once.
    pub fn proceed() -> Self {
        Self::default()
    }

    /// The call fails without an effect.
    pub fn fail(failure: CallFailure) -> Self {
        Self { failure: Some(failure), ..Self::default() }
    }

    /// The call takes effect after a delay, and is answered after another delay. It takes effect even if its caller
    /// disconnects.
    pub fn delay(before_effect: Duration, before_reply: Duration) -> Self {
        Self { before_effect, before_reply, ..Self::default() }
    }

    /// The call takes effect, but its connection breaks before the reply. Streams break in the middle.
    pub fn lose_reply() -> Self {
        Self { reply: ReplyFate::Lost, ..Self::default() }
    }

    /// The call takes effect but is never answered, so the caller's time limit expires.
    pub fn never_reply() -> Self {
        Self { reply: ReplyFate::Never, ..Self::default() }
    }

    /// The call takes effect, and its container ends by itself after a while.
    pub fn die_later(after: Duration, code: i64) -> Self {
        Self { death: Some(Death { after, code, is_oom: false }), ..Self::default() }
    }

    /// The call takes effect, and the kernel kills its container after a while because it is out of memory.
    pub fn oom(after: Duration) -> Self {
        Self { death: Some(Death { after, code: 137, is_oom: true }), ..Self::default() }
    }

    /// Adds a delay before the effect or the failure.
    #[must_use]
    pub fn after(self, before_effect: Duration) -> Self {
        Self { before_effect, ..self }
    }

    /// Adds a delay before the reply.
    #[must_use]
    pub fn replying_after(self, before_reply: Duration) -> Self {
        Self { before_reply, ..self }
    }
}

/// The ways in which a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallFailure {
    /// The engine reports an internal error (500). The same call may succeed later.
    Transient,
    /// The engine rejects the call (400). The same call fails again.
    Refused,
    /// The engine's disk is full (500).
    NoSpace,
    /// The engine's address does not accept connections.
    Unreachable,
    /// The object does not exist.
    NotFound,
    /// The name is taken, or the object is in use.
    Conflict,
    /// The connection breaks without an effect.
    Broken,
    /// The caller's time limit expires without an effect. The error is returned at once; a script can add a delay.
    TimedOut,
}

impl CallFailure {
    /// Returns whether the same call may succeed later.
    pub fn is_transient(self) -> bool {
        matches!(self, Self::Transient | Self::NoSpace | Self::Unreachable | Self::Broken | Self::TimedOut)
    }

    pub(super) fn error(self, doing: String, endpoint: &str, limit: Duration) -> EngineError {
        let refused =
            |doing, status, message: &str| EngineError::Refused { doing, status, message: message.to_owned() };
        match self {
            Self::Transient => refused(doing, 500, "scripted: internal error"),
            Self::Refused => refused(doing, 400, "scripted: refused"),
            Self::NoSpace => refused(doing, 500, "write /var/lib/docker: no space left on device"),
            Self::Unreachable => super::errors::unreachable(endpoint, std::io::ErrorKind::ConnectionRefused),
            Self::NotFound => EngineError::NotFound { doing, message: "scripted: not found".to_owned() },
            Self::Conflict => EngineError::Conflict { doing, message: "scripted: conflict".to_owned() },
            Self::Broken => {
                let cause = std::io::Error::new(std::io::ErrorKind::UnexpectedEof, "scripted: the exchange broke off");
                EngineError::Broken { doing, cause: cause.into() }
            }
            Self::TimedOut => EngineError::TimedOut { doing, limit },
        }
    }
}
