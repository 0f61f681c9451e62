//! Engines, which run containers. The trait contains everything that the daemon uses of Docker.
//!
//! Every object that is created here bears the labels of [`labels`] and is found again by them, so a lost reply costs a
//! look-up and never leaks an object. Removals are idempotent: an object that is gone already counts as removed.
//!
//! The trait is used as `Arc<dyn Engine>`: every call is a round trip to another process, so the cost of a boxed future
//! is negligible, and tests can substitute a failing engine without changes to the daemon.
//!
//! The crate depends on `model` and `seams`. Start reading at [`Engine`], then `docker/mod.rs`.

pub mod docker;
pub mod labels;
pub mod settled;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use jiff::Timestamp;

use arenad_model::cause::Cause;
use arenad_model::error::describe;
use arenad_model::service::ServiceSpec;
use arenad_model::subnet::Subnet;

/// The oldest Docker API that arenad supports: that of Docker 20.10.
pub(crate) const OLDEST_API: (u32, u32) = (1, 41);

/// A stream of items that may fail at any item.
pub type EngineStream<T> = Pin<Box<dyn Stream<Item = Result<T, EngineError>> + Send>>;

/// Receives progress lines during a build or pull.
pub type ProgressSink<'a> = &'a (dyn Fn(&str) + Send + Sync);

/// The reason why a call to the engine failed.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// There is no answer at the engine's address.
    #[error("reach the Docker engine at {endpoint}")]
    Unreachable {
        /// The socket or URL of the engine.
        endpoint: String,
        /// The error of the connection.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The engine speaks an API older than [`OLDEST_API`].
    #[error("use the Docker engine at {endpoint}: it speaks API {found}, arenad needs at least 1.41 (Docker 20.10)")]
    TooOld {
        /// The socket or URL of the engine.
        endpoint: String,
        /// The API version that the engine supports.
        found: String,
    },
    /// The requested object does not exist.
    #[error("{doing}: not found: {message}")]
    NotFound {
        /// The call; completes "failed to …".
        doing: String,
        /// The message of the engine.
        message: String,
    },
    /// The name is taken, or the object is in use.
    #[error("{doing}: conflict: {message}")]
    Conflict {
        /// The call; completes "failed to …".
        doing: String,
        /// The message of the engine.
        message: String,
    },
    /// The engine refused the request.
    #[error("{doing}: the engine answered {status}: {message}")]
    Refused {
        /// The call; completes "failed to …".
        doing: String,
        /// The status code of the answer.
        status: u16,
        /// The message of the engine.
        message: String,
    },
    /// The call exceeded its time limit.
    #[error("{doing}: no answer within {limit:?}")]
    TimedOut {
        /// The call; completes "failed to …".
        doing: String,
        /// The time limit of the call.
        limit: Duration,
    },
    /// A build or pull failed; the message is the builder's.
    #[error("{doing}: {message}")]
    Build {
        /// The call; completes "failed to …".
        doing: String,
        /// The builder's message, with the last lines of its output.
        message: String,
    },
    /// The connection to the engine broke, or its answer could not be parsed.
    #[error("{doing}")]
    Broken {
        /// The call; completes "failed to …".
        doing: String,
        /// The error of the connection or the parser.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl EngineError {
    /// Returns whether the same call may succeed later without any other change.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::TimedOut { .. } | Self::Broken { .. } => true,
            Self::Refused { status, .. } => *status >= 500,
            Self::TooOld { .. } | Self::NotFound { .. } | Self::Conflict { .. } | Self::Build { .. } => false,
        }
    }

    /// Returns the cause, if a person can take specific action against it.
    pub fn cause(&self) -> Option<Cause> {
        match self {
            Self::Unreachable { .. } => Some(Cause::EngineUnreachable),
            Self::NotFound { message, .. }
            | Self::Conflict { message, .. }
            | Self::Refused { message, .. }
            | Self::Build { message, .. } => Cause::stated_by_engine(message),
            // The engine may end an answer early, with the message of its kernel.
            Self::Broken { cause, .. } => Cause::stated_by_program(&describe(cause.as_ref())),
            Self::TooOld { .. } | Self::TimedOut { .. } => None,
        }
    }

    /// Returns whether the requested object does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound { .. })
    }

    /// Returns whether a network was not removed because a container is attached to it.
    pub fn has_active_endpoints(&self) -> bool {
        matches!(self, Self::Refused { status: 403, message, .. } if message.contains("active endpoints"))
    }
}

/// The version and the storage of an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineVersion {
    /// The engine's version, such as `20.10.24`.
    pub version: String,
    /// The API's version, such as `1.41`.
    pub api: String,
    /// The storage driver, such as `overlay2`.
    pub storage_driver: String,
    /// The directory of the engine's data, on its host.
    pub root: PathBuf,
}

/// The engine's description of itself and of its host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineDetails {
    /// The id that distinguishes the engine from all others, such as the `ID` of Docker's `GET /info`; empty if it
    /// reports none.
    pub id: String,
    /// The engine's version and storage.
    pub version: EngineVersion,
    /// The host's operating system, such as `Debian GNU/Linux 12 (bookworm)`.
    pub operating_system: String,
    /// Whether the engine runs without root privileges, in namespaces of its own.
    pub is_rootless: bool,
    /// The current time on the engine's host.
    pub time: Option<Timestamp>,
    /// The container limits that the kernel enforces.
    pub enforces: EnforcedLimits,
    /// The address ranges from which the engine allocates networks if the request names none, each with the prefix
    /// length of a network. Empty means the built-in ranges.
    pub address_pools: Vec<(Subnet, u8)>,
    /// Whether the host forwards packets between networks.
    pub forwards: bool,
    /// The packet filter, if the engine reports it: `iptables`, `nftables`, …
    pub firewall: Option<String>,
}

/// The container limits that a kernel enforces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EnforcedLimits {
    /// Whether memory limits are enforced.
    pub memory: bool,
    /// Whether limits of CPU time are enforced.
    pub cpus: bool,
    /// Whether limits of processes and threads are enforced.
    pub pids: bool,
}

/// The engine's opaque name for a container.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EngineHandle(pub String);

/// An image that the engine has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// The image's id: `sha256:…` of its configuration, or of its manifest.
    pub id: String,
    /// The names of the image, with tags.
    pub tags: Vec<String>,
    /// The labels of the image.
    pub labels: BTreeMap<String, String>,
    /// The image's size in bytes, including shared layers.
    pub size_bytes: u64,
    /// The content ids of its layers, lowest first.
    pub layers: Vec<String>,
    /// The paths that the image declares as volumes.
    pub volumes: Vec<String>,
    /// Whether the id is the digest of the manifest, as in engines that keep images in containerd.
    pub is_named_by_manifest: bool,
}

/// The parameters of one container to create.
#[derive(Debug, Clone)]
pub struct ContainerSpec<'a> {
    /// The name that `docker ps` shows.
    pub name: String,
    /// The image's id. Ids are used instead of tags, so that the engine never resolves or pulls anything.
    pub image: String,
    /// The service as the Compose file defines it.
    pub service: &'a ServiceSpec,
    /// The labels of the container.
    pub labels: BTreeMap<String, String>,
    /// The network to join; the service's name is its alias there.
    pub network: String,
    /// A second network, with egress; outside host names then resolve as well.
    pub outward: Option<String>,
    /// The engine's volumes by mount path, each with whether the mount is read-only.
    pub volumes: BTreeMap<String, (String, bool)>,
    /// The writable folders of the host, by mount path.
    pub binds: BTreeMap<String, PathBuf>,
    /// The environment variables that the Compose file's may override.
    pub environment: BTreeMap<String, String>,
    /// The container's share of the processors.
    pub weight: CpuWeight,
    /// Whether declared stores are in the writable layer, so that the container has one even if the Compose file
    /// requests a read-only root: while the baseline is built, and if there is no state root.
    pub keeps_stores_in_layer: bool,
}

/// A container's priority in the competition for processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CpuWeight {
    /// The same priority as other processes of the host.
    Serving,
    /// Only the processor time that serving containers leave unused.
    Background,
}

/// The state of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContainerState {
    /// The container was created and never started.
    Created,
    /// The container is running.
    Running,
    /// The container is paused.
    Paused,
    /// The container has exited with this code.
    Exited(i64),
    /// The container is being removed, or is broken permanently.
    Dead,
}

/// The result of a container's own health check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContainerHealth {
    /// The container has no health check.
    None,
    /// The check has not decided yet.
    Starting,
    /// The check is passing.
    Healthy,
    /// The check is failing.
    Unhealthy,
}

/// The engine's view of one container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerStatus {
    /// The handle of the container.
    pub handle: EngineHandle,
    /// The state of the container.
    pub state: ContainerState,
    /// Whether the kernel killed it because it ran out of memory.
    pub oom_killed: bool,
    /// The result of its health check.
    pub health: ContainerHealth,
    /// The address on its own network.
    pub address: Option<IpAddr>,
    /// The id of its first process on the engine's host; `None` unless it is running.
    pub pid: Option<u32>,
    /// The engine's names of the mounted volumes, by path.
    pub volumes: BTreeMap<String, String>,
}

/// A difference between a container's writable layer and its image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerChange {
    /// The path in the container.
    pub path: String,
    /// The kind of the difference.
    pub kind: LayerChangeKind,
}

/// The kind of change to a path of a container's writable layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerChangeKind {
    /// The path is not in the image.
    Added,
    /// The content or the attributes differ from the image's.
    Modified,
    /// The path of the image no longer exists.
    Removed,
}

/// A container found by its labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundContainer {
    /// The handle of the container.
    pub handle: EngineHandle,
    /// The name of the container.
    pub name: String,
    /// The labels of the container.
    pub labels: BTreeMap<String, String>,
    /// The id of the image that it was created from.
    pub image: String,
    /// Whether it is running; a paused container counts as running.
    pub running: bool,
    /// The time of its creation, in seconds since 1970 UTC.
    pub created: i64,
    /// The host ports that it publishes.
    pub ports: Vec<u16>,
}

/// A network or volume that was found by its labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelledResource {
    /// The engine's name for it.
    pub name: String,
    /// The labels of the object.
    pub labels: BTreeMap<String, String>,
}

/// The result of a command in a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecOutput {
    /// The exit code of the command.
    pub code: i64,
    /// Standard output, at most [`docker::EXEC_OUTPUT_MAX`] bytes.
    pub stdout: String,
    /// Standard error, with the same limit.
    pub stderr: String,
}

/// One piece of a container's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogChunk {
    /// Whether the piece came from standard error.
    pub is_stderr: bool,
    /// The bytes, not aligned with line ends.
    pub bytes: Bytes,
}

/// The requested part of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogRange {
    /// The number of last lines to return; `None` means all.
    pub tail: Option<u32>,
    /// The time to start from, in seconds since 1970 UTC.
    pub since: Option<i64>,
    /// Whether to wait for further output.
    pub follow: bool,
    /// Whether each line begins with its timestamp.
    pub timestamps: bool,
}

/// The actions of [`EngineEvent`]: those that change whether a container runs. Commands in containers (`exec_create`,
/// …) are excluded, because probes run some every few seconds.
pub const EVENT_ACTIONS: [&str; 8] = ["die", "oom", "pause", "unpause", "destroy", "kill", "stop", "start"];

/// An event of one of arenad's containers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineEvent {
    /// The handle of the container.
    pub handle: EngineHandle,
    /// The action, which is one of [`EVENT_ACTIONS`].
    pub action: String,
    /// The labels of the container.
    pub labels: BTreeMap<String, String>,
}

/// The inputs of an image build.
pub struct ImageBuild<'a> {
    /// The tag for the built image.
    pub tag: &'a str,
    /// The build context, as a tar archive.
    pub context: Bytes,
    /// The path of the Dockerfile within the context.
    pub dockerfile: &'a str,
    /// The build arguments, by name.
    pub args: &'a BTreeMap<String, String>,
    /// The stage to stop at; `None` means the last.
    pub target: Option<&'a str>,
    /// The labels for the built image.
    pub labels: BTreeMap<String, String>,
}

/// An engine that runs containers.
///
/// Names: *create* makes an object without starting it; *stop* sends the stop signal and waits for the grace period;
/// *remove* deletes a container immediately in whatever state it is, with its anonymous volumes.
#[async_trait::async_trait]
pub trait Engine: Send + Sync + 'static {
    /// Returns the engine's address, for messages.
    fn endpoint(&self) -> &str;
    /// Waits for pending create calls whose callers have stopped waiting. The default returns at once, for engines that
    /// track no such calls.
    async fn settle(&self) {}
    /// Checks that the engine answers.
    async fn ping(&self) -> Result<(), EngineError>;
    /// Returns the engine's version. Errors: `TooOld` if the API is too old.
    async fn version(&self) -> Result<EngineVersion, EngineError> {
        Ok(self.details().await?.version)
    }
    /// Returns the engine's version and its host's capabilities. Errors: `TooOld` if the API is too old.
    async fn details(&self) -> Result<EngineDetails, EngineError>;

    /// Looks up an image by id or reference.
    async fn image(&self, reference: &str) -> Result<Option<Image>, EngineError>;
    /// Returns the images that bear the label, with this value if one is given.
    async fn images(&self, label: &str, value: Option<&str>) -> Result<Vec<Image>, EngineError>;
    /// Pulls an image from its registry.
    async fn pull(&self, reference: &str, progress: ProgressSink<'_>) -> Result<(), EngineError>;
    /// Loads the images of an uncompressed archive in the format of `docker save`. They receive their names once the
    /// archive is complete.
    async fn load(
        &self,
        archive: Pin<Box<dyn Stream<Item = std::io::Result<Bytes>> + Send>>,
        progress: ProgressSink<'_>,
    ) -> Result<(), EngineError>;
    /// Saves images by their ids as one uncompressed archive in the format of `docker save`, without their names.
    fn save(&self, ids: &[String]) -> EngineStream<Bytes>;
    /// Adds a name to an image.
    async fn tag(&self, id: &str, repository: &str, tag: &str) -> Result<(), EngineError>;
    /// Removes a name from an image; removing its last name removes the image. Errors: `Conflict` while a container or
    /// another image needs it.
    async fn untag(&self, name: &str) -> Result<(), EngineError>;
    /// Builds an image; intermediate containers are removed in every case.
    async fn build(&self, build: ImageBuild<'_>, progress: ProgressSink<'_>) -> Result<Image, EngineError>;
    /// Removes an image and its names. Errors: `Conflict` while a container or another image needs it.
    async fn remove_image(&self, id: &str) -> Result<(), EngineError>;
    /// Commits a stopped container's file system to an image with these labels, and names it.
    async fn commit(
        &self,
        handle: &EngineHandle,
        repository: &str,
        tag: &str,
        labels: &BTreeMap<String, String>,
    ) -> Result<String, EngineError>;

    /// Creates a network, which is internal unless `egress` is set.
    async fn create_network(
        &self,
        name: &str,
        subnet: Subnet,
        egress: bool,
        labels: &BTreeMap<String, String>,
    ) -> Result<(), EngineError>;
    /// Returns the address ranges that any network of the engine uses.
    async fn subnets(&self) -> Result<Vec<Subnet>, EngineError>;
    /// Returns the networks that bear the label with this value.
    async fn networks(&self, label: &str, value: &str) -> Result<Vec<LabelledResource>, EngineError>;
    /// Removes a network, or all networks of that name. Errors: `Refused` while a running container is connected to it.
    async fn remove_network(&self, name: &str) -> Result<(), EngineError>;

    /// Creates an empty volume. An existing volume of that name stays unchanged, including its labels.
    async fn create_volume(&self, name: &str, labels: &BTreeMap<String, String>) -> Result<(), EngineError>;
    /// Returns the volumes that bear the label with this value.
    async fn volumes(&self, label: &str, value: &str) -> Result<Vec<LabelledResource>, EngineError>;
    /// Removes a volume. Errors: `Conflict` while a container mounts it, running or not.
    async fn remove_volume(&self, name: &str) -> Result<(), EngineError>;

    /// Creates a container. Errors: `Conflict` if the name is taken, even by a container that is still being created
    /// and that no list contains yet; a caller that stops waiting leaves such a container behind.
    async fn create(&self, spec: &ContainerSpec<'_>) -> Result<EngineHandle, EngineError>;
    /// Starts a created or stopped container.
    async fn start(&self, handle: &EngineHandle) -> Result<(), EngineError>;
    /// Sends a container its stop signal, and kills it after `grace`.
    async fn stop(&self, handle: &EngineHandle, grace: Duration) -> Result<(), EngineError>;
    /// Pauses all processes of a running container. They keep their memory and their connections.
    async fn freeze(&self, handle: &EngineHandle) -> Result<(), EngineError>;
    /// Resumes the processes of a paused container. [`Self::inspect`] may report the container as paused for a moment
    /// longer: a busy Docker learns of the pause from containerd after it has resumed the container.
    async fn thaw(&self, handle: &EngineHandle) -> Result<(), EngineError>;
    /// Sets a container's priority in the competition for processors, from now on.
    async fn weigh(&self, handle: &EngineHandle, weight: CpuWeight) -> Result<(), EngineError>;
    /// Kills and removes a container.
    async fn remove(&self, handle: &EngineHandle) -> Result<(), EngineError>;
    /// Returns the differences between a container's writable layer and its image, excluding mounts. Slow: the engine
    /// may walk every file of the image. Errors: `Refused` from an engine without this capability.
    async fn changes(&self, handle: &EngineHandle) -> Result<Vec<LayerChange>, EngineError> {
        let message = "this engine does not say what has changed".to_owned();
        Err(EngineError::Refused { doing: format!("list the changes of {}", handle.0), status: 501, message })
    }
    /// Returns the files that a running container has written outside of its mounts: a fingerprint of the content, by
    /// path. Returns `None` if the container's processes run on this host, where `/proc` has this information.
    async fn written(&self, handle: &EngineHandle) -> Result<Option<BTreeMap<String, String>>, EngineError> {
        let _ = handle;
        Ok(None)
    }
    /// Returns the state of a container.
    async fn inspect(&self, handle: &EngineHandle) -> Result<ContainerStatus, EngineError>;
    /// Returns the containers, running or not, that bear the label with this value.
    async fn containers(&self, label: &str, value: &str) -> Result<Vec<FoundContainer>, EngineError>;
    /// Returns all running containers, arenad's or not, to identify the owner of a port.
    async fn running(&self) -> Result<Vec<FoundContainer>, EngineError>;
    /// Runs a command in a running container. After a time-out the command's process is left running until the
    /// container ends.
    async fn exec(
        &self,
        handle: &EngineHandle,
        command: &[String],
        user: Option<&str>,
        timeout: Duration,
    ) -> Result<ExecOutput, EngineError> {
        self.exec_with_input(handle, command, user, None, timeout).await
    }
    /// Does the same as [`exec`](Self::exec); with an input, the command's standard input has these bytes and then its end.
    async fn exec_with_input(
        &self,
        handle: &EngineHandle,
        command: &[String],
        user: Option<&str>,
        input: Option<Bytes>,
        timeout: Duration,
    ) -> Result<ExecOutput, EngineError>;
    /// Reads the log of a container.
    fn logs(&self, handle: &EngineHandle, range: LogRange) -> EngineStream<LogChunk>;
    /// Reads a file or folder of a container as a tar archive.
    fn read_archive(&self, handle: &EngineHandle, path: &str) -> EngineStream<Bytes>;
    /// Unpacks a tar archive into a folder of a container, started or not.
    async fn write_archive(
        &self,
        handle: &EngineHandle,
        path: &str,
        archive: Pin<Box<dyn Stream<Item = std::io::Result<Bytes>> + Send>>,
    ) -> Result<(), EngineError>;
    /// Returns the events of containers that bear the label with this value, from now on, limited to [`EVENT_ACTIONS`].
    fn events(&self, label: &str, value: &str) -> EngineStream<EngineEvent>;
}
