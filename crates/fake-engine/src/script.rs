//! What goes wrong, and when: a script is asked at each call.

use std::time::Duration;

use arenad_engine::EngineError;

macro_rules! operations {
    ($($operation:ident = $name:literal,)*) => {
        /// A call of [`arenad_engine::Engine`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[expect(missing_docs, reason = "named after the trait's methods")]
        pub enum Operation {
            $($operation,)*
        }

        impl Operation {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$operation,)*];

            /// The method's name.
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

impl Operation {
    /// Whether it changes anything.
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

    /// Whether it needs room on the engine's disk.
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

/// One call, as a script sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call<'a> {
    /// Which method.
    pub operation: Operation,
    /// What it is about: a container's name, an image's reference, a network's or volume's name, or the label that is
    /// looked for. Empty where there is none.
    pub subject: &'a str,
    /// The calls of this method so far, this one included.
    pub nth: u64,
    /// The calls of any method so far, this one included.
    pub number: u64,
    /// The engine's time.
    pub at: Duration,
}

/// Says what becomes of each call.
///
/// It is asked before the call has any effect, and no lock is held: a script may look at the engine or break it.
pub trait Script: Send {
    /// Decides on one call.
    fn fate(&mut self, call: &Call<'_>) -> Fate;
}

impl<F: FnMut(&Call<'_>) -> Fate + Send> Script for F {
    fn fate(&mut self, call: &Call<'_>) -> Fate {
        self(call)
    }
}

/// What becomes of a call. [`Fate::proceed`] is nothing special; the methods add to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fate {
    pub(super) before_effect: Duration,
    pub(super) failure: Option<Failure>,
    pub(super) before_reply: Duration,
    pub(super) reply: ReplyFate,
    pub(super) death: Option<Death>,
}

/// What becomes of a call's reply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum ReplyFate {
    #[default]
    Arrives,
    /// The connection breaks before the reply arrives.
    Lost,
    /// The caller waits until its own limit.
    Never,
}

/// How a container ends after a call about it has succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Death {
    pub(super) after: Duration,
    pub(super) code: i64,
    pub(super) is_oom: bool,
}

impl Fate {
    /// The call does at once what it should.
    pub fn proceed() -> Self {
        Self::default()
    }

    /// The call has no effect and fails.
    pub fn fail(failure: Failure) -> Self {
        Self { failure: Some(failure), ..Self::default() }
    }

    /// The call takes effect late and answers later still. A caller that goes away changes nothing about the effect.
    pub fn delay(before_effect: Duration, before_reply: Duration) -> Self {
        Self { before_effect, before_reply, ..Self::default() }
    }

    /// The call takes effect, and its connection breaks before the answer. Streams break off in the middle.
    pub fn lose_reply() -> Self {
        Self { reply: ReplyFate::Lost, ..Self::default() }
    }

    /// The call takes effect and never answers; the caller gives up at its own limit.
    pub fn never_reply() -> Self {
        Self { reply: ReplyFate::Never, ..Self::default() }
    }

    /// The call takes effect; its container ends by itself after a while.
    pub fn die_later(after: Duration, code: i64) -> Self {
        Self { death: Some(Death { after, code, is_oom: false }), ..Self::default() }
    }

    /// The call takes effect; the kernel kills its container for want of memory after a while.
    pub fn oom(after: Duration) -> Self {
        Self { death: Some(Death { after, code: 137, is_oom: true }), ..Self::default() }
    }

    /// The same, with an effect (or failure) that comes later.
    #[must_use]
    pub fn after(self, before_effect: Duration) -> Self {
        Self { before_effect, ..self }
    }

    /// The same, with a reply that comes later.
    #[must_use]
    pub fn replying_after(self, before_reply: Duration) -> Self {
        Self { before_reply, ..self }
    }
}

/// How a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The engine says that something went wrong inside of it (500). The same call may succeed later.
    Transient,
    /// The engine refuses (400). The same call is refused again.
    Refused,
    /// The engine's disk is full (500).
    NoSpace,
    /// Nothing answers at the engine's address.
    Unreachable,
    /// The thing does not exist.
    NotFound,
    /// The name is taken, or the thing is in use.
    Conflict,
    /// The exchange breaks off without an effect.
    Broken,
    /// The answer does not come within the caller's limit, and there is no effect. The error comes at once; a delay is
    /// the script's to add.
    TimedOut,
}

impl Failure {
    /// Whether the same call may succeed later.
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
