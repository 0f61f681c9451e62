//! Engines: what runs containers. The trait is the whole of what the daemon knows about Docker.
//!
//! Everything created here bears the labels of [`labels`]; everything is found again by them, so a reply that was lost
//! costs a look-up and never a leak. Removals are idempotent: what is gone already counts as removed.
//!
//! The trait is used as `Arc<dyn Engine>`: every call is a round trip to another process, beside which a boxed future
//! costs nothing, and tests can put a failing engine in its place without the daemon knowing of it.

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

use arenad_model::site::ServiceSpec;
use arenad_model::subnet::Subnet;

/// The oldest Docker API that arenad speaks: that of Docker 20.10.
pub const OLDEST_API: (u32, u32) = (1, 41);

/// A stream of items that may fail on the way.
pub type EngineStream<T> = Pin<Box<dyn Stream<Item = Result<T, EngineError>> + Send>>;

/// Receives lines of progress while a build or pull goes on.
pub type Progress<'a> = &'a (dyn Fn(&str) + Send + Sync);

/// Why the engine could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// Nothing answers at the engine's address.
    #[error("reach the Docker engine at {endpoint}")]
    Unreachable {
        /// The socket or URL.
        endpoint: String,
        /// What the connection said.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The engine speaks an API older than [`OLDEST_API`].
    #[error("use the Docker engine at {endpoint}: it speaks API {found}, arenad needs at least 1.41 (Docker 20.10)")]
    TooOld {
        /// The socket or URL.
        endpoint: String,
        /// What it speaks.
        found: String,
    },
    /// The thing does not exist.
    #[error("{doing}: not found: {message}")]
    NotFound {
        /// What was being done.
        doing: String,
        /// The engine's words.
        message: String,
    },
    /// The name is taken, or the thing is in use.
    #[error("{doing}: conflict: {message}")]
    Conflict {
        /// What was being done.
        doing: String,
        /// The engine's words.
        message: String,
    },
    /// The engine refused.
    #[error("{doing}: the engine answered {status}: {message}")]
    Refused {
        /// What was being done.
        doing: String,
        /// The HTTP status.
        status: u16,
        /// The engine's words.
        message: String,
    },
    /// It took longer than allowed.
    #[error("{doing}: no answer within {limit:?}")]
    TimedOut {
        /// What was being done.
        doing: String,
        /// The limit.
        limit: Duration,
    },
    /// A build or pull failed; the message is the builder's.
    #[error("{doing}: {message}")]
    Build {
        /// What was being done.
        doing: String,
        /// The builder's words, with the last lines of its output.
        message: String,
    },
    /// The exchange with the engine broke off or could not be understood.
    #[error("{doing}")]
    Broken {
        /// What was being done.
        doing: String,
        /// What went wrong.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl EngineError {
    /// Whether the same call may succeed later without anyone changing anything.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::TimedOut { .. } | Self::Broken { .. } => true,
            Self::Refused { status, .. } => *status >= 500,
            Self::TooOld { .. } | Self::NotFound { .. } | Self::Conflict { .. } | Self::Build { .. } => false,
        }
    }

    /// Whether the thing asked for does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound { .. })
    }
}

/// What the engine is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineVersion {
    /// Such as `20.10.24`.
    pub version: String,
    /// Such as `1.41`.
    pub api: String,
    /// Such as `overlay2`.
    pub storage_driver: String,
    /// Where it keeps its data, on its host.
    pub root: PathBuf,
}

/// What the engine says of itself and of the host that it runs on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineDetails {
    /// What tells it from every other engine, such as the `ID` of Docker's `GET /info`; empty where it does not say.
    pub id: String,
    /// What it is.
    pub version: EngineVersion,
    /// The host's system, such as `Debian GNU/Linux 12 (bookworm)`.
    pub operating_system: String,
    /// Whether it runs without root's rights, in namespaces of its own.
    pub is_rootless: bool,
    /// The time on its host.
    pub time: Option<Timestamp>,
    /// Which limits of containers its kernel enforces.
    pub enforces: EnforcedLimits,
    /// The ranges that it takes networks from when nobody names one, each with the size (prefix) of a network. Empty:
    /// those that are built in.
    pub address_pools: Vec<(Subnet, u8)>,
    /// Whether its host passes packets on between networks.
    pub forwards: bool,
    /// What filters packets, where it says so: `iptables`, `nftables`, …
    pub firewall: Option<String>,
}

/// Which limits of containers a kernel enforces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EnforcedLimits {
    /// Of memory.
    pub memory: bool,
    /// Of CPU time.
    pub cpus: bool,
    /// Of processes and threads.
    pub pids: bool,
}

/// The engine's opaque name for a container.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EngineHandle(pub String);

/// An image as the engine has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// `sha256:…` of its configuration.
    pub id: String,
    /// Its names.
    pub tags: Vec<String>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Bytes, shared layers included.
    pub size_bytes: u64,
    /// The content ids of its layers, lowest first.
    pub layers: Vec<String>,
    /// The paths that it declares as volumes.
    pub volumes: Vec<String>,
    /// Whether the id is that of its manifest, as where the engine keeps images in containerd.
    pub is_named_by_manifest: bool,
}

/// What to create one container from.
#[derive(Debug, Clone)]
pub struct ContainerSpec<'a> {
    /// The name that `docker ps` shows.
    pub name: String,
    /// The image's id; ids are used, not tags, so that nothing is ever looked up or pulled.
    pub image: String,
    /// What the Compose file says.
    pub service: &'a ServiceSpec,
    /// The labels.
    pub labels: BTreeMap<String, String>,
    /// The network to join; the service's name is its alias there.
    pub network: String,
    /// The network with a way out that it joins as well; then names of the world are looked up too.
    pub outward: Option<String>,
    /// The engine's volumes by mount path, with whether the container may only read.
    pub volumes: BTreeMap<String, (String, bool)>,
    /// Folders of the host by mount path, which the container may write to.
    pub binds: BTreeMap<String, PathBuf>,
    /// Environment variables that come before those of the Compose file.
    pub environment: BTreeMap<String, String>,
    /// How much it gets of the processors.
    pub weight: CpuWeight,
    /// Whether declared stores lie in its writable layer, so that it has one even where the Compose file asks for a
    /// read-only root: while the baseline is made, and where there is no state root.
    pub keeps_stores_in_layer: bool,
}

/// How much a container gets of processors that others want too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CpuWeight {
    /// Like everything else on the host.
    Serving,
    /// What serving containers leave.
    Background,
}

/// What a container is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContainerState {
    /// Created, never started.
    Created,
    /// Running.
    Running,
    /// Frozen.
    Paused,
    /// Ended with this code.
    Exited(i64),
    /// Being removed, or broken beyond use.
    Dead,
}

/// The verdict of a container's own health check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContainerHealth {
    /// It has none.
    None,
    /// Not decided yet.
    Starting,
    /// Passing.
    Healthy,
    /// Failing.
    Unhealthy,
}

/// What the engine says about one container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerStatus {
    /// Its handle.
    pub handle: EngineHandle,
    /// What it is doing.
    pub state: ContainerState,
    /// Whether the kernel killed it for want of memory.
    pub oom_killed: bool,
    /// Its health check's verdict.
    pub health: ContainerHealth,
    /// Its address on its network.
    pub address: Option<IpAddr>,
    /// Its first process, as the engine's host counts; none unless it runs.
    pub pid: Option<u32>,
    /// The mounted volumes: path and engine name.
    pub volumes: BTreeMap<String, String>,
}

/// Something in a container's writable layer that is not as in its image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerChange {
    /// The path in the container.
    pub path: String,
    /// What happened to it.
    pub kind: LayerChangeKind,
}

/// What happened to a path of a container's writable layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerChangeKind {
    /// It is not in the image.
    Added,
    /// Its content or attributes are others.
    Modified,
    /// It is gone.
    Removed,
}

/// A container found by its labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundContainer {
    /// Its handle.
    pub handle: EngineHandle,
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// The image id it was made from.
    pub image: String,
    /// Whether it is running (paused included).
    pub running: bool,
    /// When it was created, in seconds since 1970 UTC.
    pub created: i64,
    /// The host ports that it publishes.
    pub ports: Vec<u16>,
}

/// A network or volume found by its labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The engine's name for it.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
}

/// What a command in a container did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecOutput {
    /// The exit code.
    pub code: i64,
    /// Standard output, at most [`docker::EXEC_OUTPUT_MAX`] bytes.
    pub stdout: String,
    /// Standard error, bounded alike.
    pub stderr: String,
}

/// One piece of a container's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogChunk {
    /// Whether it came from standard error.
    pub is_stderr: bool,
    /// The bytes; not cut at line ends.
    pub bytes: Bytes,
}

/// Which part of a log is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogRange {
    /// The last lines only; `None` is all.
    pub tail: Option<u32>,
    /// From this time on, in seconds since 1970 UTC.
    pub since: Option<i64>,
    /// Whether to wait for more.
    pub follow: bool,
    /// Whether each line begins with its time.
    pub timestamps: bool,
}

/// The actions of [`EngineEvent`]: those that change whether a container runs. Commands run in containers (`exec_create`, …)
/// are none of them: probes run some every few seconds.
pub const EVENT_ACTIONS: [&str; 8] = ["die", "oom", "pause", "unpause", "destroy", "kill", "stop", "start"];

/// Something that happened to a container of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineEvent {
    /// The container.
    pub handle: EngineHandle,
    /// One of [`EVENT_ACTIONS`].
    pub action: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
}

/// What to build an image from.
pub struct ImageBuild<'a> {
    /// The tag to give it.
    pub tag: &'a str,
    /// The context as a tar archive.
    pub context: Bytes,
    /// The Dockerfile within the context.
    pub dockerfile: &'a str,
    /// Build arguments.
    pub args: &'a BTreeMap<String, String>,
    /// The stage to stop at.
    pub target: Option<&'a str>,
    /// Labels of the image.
    pub labels: BTreeMap<String, String>,
}

/// What runs containers.
///
/// Names: *create* makes without starting; *stop* asks and waits for the grace period, *remove* takes away at once
/// whatever state the container is in, its anonymous volumes included.
#[async_trait::async_trait]
pub trait Engine: Send + Sync + 'static {
    /// Where the engine is, for messages.
    fn endpoint(&self) -> &str;
    /// Waits for creating calls whose callers have gone away. Those of an engine that knows of none are over.
    async fn settle(&self) {}
    /// Asks whether the engine answers.
    async fn ping(&self) -> Result<(), EngineError>;
    /// Asks what the engine is; an API that is too old is an error.
    async fn version(&self) -> Result<EngineVersion, EngineError> {
        Ok(self.details().await?.version)
    }
    /// Asks what the engine is and what its host offers; an API that is too old is an error.
    async fn details(&self) -> Result<EngineDetails, EngineError>;

    /// Looks an image up by id or reference.
    async fn image(&self, reference: &str) -> Result<Option<Image>, EngineError>;
    /// The images that bear the label, with this value if one is given.
    async fn images(&self, label: &str, value: Option<&str>) -> Result<Vec<Image>, EngineError>;
    /// Fetches an image.
    async fn pull(&self, reference: &str, progress: Progress<'_>) -> Result<(), EngineError>;
    /// Loads the images of an archive in the form of `docker save`, uncompressed. They get their names when all is there.
    async fn load(
        &self,
        archive: Pin<Box<dyn Stream<Item = std::io::Result<Bytes>> + Send>>,
        progress: Progress<'_>,
    ) -> Result<(), EngineError>;
    /// Saves images by their ids as one archive in the form of `docker save`, uncompressed; their names are not in it.
    fn save(&self, ids: &[String]) -> EngineStream<Bytes>;
    /// Gives an image a further name.
    async fn tag(&self, id: &str, repository: &str, tag: &str) -> Result<(), EngineError>;
    /// Takes a name away from an image; with its last one the image goes. `Conflict` while a container or another image
    /// needs it.
    async fn untag(&self, name: &str) -> Result<(), EngineError>;
    /// Builds an image; intermediate containers are removed whatever happens.
    async fn build(&self, build: ImageBuild<'_>, progress: Progress<'_>) -> Result<Image, EngineError>;
    /// Removes an image and its names. `Conflict` while a container or another image needs it.
    async fn remove_image(&self, id: &str) -> Result<(), EngineError>;
    /// Turns a stopped container's file system into an image with these labels, and names it.
    async fn commit(
        &self,
        handle: &EngineHandle,
        repository: &str,
        tag: &str,
        labels: &BTreeMap<String, String>,
    ) -> Result<String, EngineError>;

    /// Makes a network, without a way out unless there is to be `egress`.
    async fn create_network(
        &self,
        name: &str,
        subnet: Subnet,
        egress: bool,
        labels: &BTreeMap<String, String>,
    ) -> Result<(), EngineError>;
    /// The address ranges in use by any network of the engine.
    async fn subnets(&self) -> Result<Vec<Subnet>, EngineError>;
    /// The networks that bear the label with this value.
    async fn networks(&self, label: &str, value: &str) -> Result<Vec<Found>, EngineError>;
    /// Removes a network, or all of that name. `Refused` while a running container is in it.
    async fn remove_network(&self, name: &str) -> Result<(), EngineError>;

    /// Makes an empty volume. One of that name that is there already stays as it is, labels included.
    async fn create_volume(&self, name: &str, labels: &BTreeMap<String, String>) -> Result<(), EngineError>;
    /// The volumes that bear the label with this value.
    async fn volumes(&self, label: &str, value: &str) -> Result<Vec<Found>, EngineError>;
    /// Removes a volume. `Conflict` while a container mounts it, running or not.
    async fn remove_volume(&self, name: &str) -> Result<(), EngineError>;

    /// Creates a container. `Conflict` if the name is taken, also by one that is still being made and that no list has yet:
    /// a caller that went away leaves such a one behind.
    async fn create(&self, spec: &ContainerSpec<'_>) -> Result<EngineHandle, EngineError>;
    /// Starts a created or stopped container.
    async fn start(&self, handle: &EngineHandle) -> Result<(), EngineError>;
    /// Asks a container to stop and kills it after `grace`.
    async fn stop(&self, handle: &EngineHandle, grace: Duration) -> Result<(), EngineError>;
    /// Stops all processes of a running container where they are. They keep their memory and their connections.
    async fn freeze(&self, handle: &EngineHandle) -> Result<(), EngineError>;
    /// Lets the processes of a frozen container go on.
    async fn thaw(&self, handle: &EngineHandle) -> Result<(), EngineError>;
    /// Says how much a container gets of processors that others want too, from now on.
    async fn weigh(&self, handle: &EngineHandle, weight: CpuWeight) -> Result<(), EngineError>;
    /// Kills and removes a container.
    async fn remove(&self, handle: &EngineHandle) -> Result<(), EngineError>;
    /// What a container's writable layer has that its image has not, its mounts left out. Slow: the engine may walk every
    /// file of the image. An engine that cannot tell refuses.
    async fn changes(&self, handle: &EngineHandle) -> Result<Vec<LayerChange>, EngineError> {
        let message = "this engine does not say what has changed".to_owned();
        Err(EngineError::Refused { doing: format!("list the changes of {}", handle.0), status: 501, message })
    }
    /// The files that a running container has written outside of its mounts, by path, with what tells their content, where
    /// the engine knows them itself; `None` where its processes are the host's, and `/proc` tells.
    async fn written(&self, handle: &EngineHandle) -> Result<Option<BTreeMap<String, String>>, EngineError> {
        let _ = handle;
        Ok(None)
    }
    /// Says what a container is doing.
    async fn inspect(&self, handle: &EngineHandle) -> Result<ContainerStatus, EngineError>;
    /// The containers, running or not, that bear the label with this value.
    async fn containers(&self, label: &str, value: &str) -> Result<Vec<FoundContainer>, EngineError>;
    /// All running containers, ours or not, for naming the owner of a port.
    async fn running(&self) -> Result<Vec<FoundContainer>, EngineError>;
    /// Runs a command in a running container. When time is up the command's process is left to the container's end.
    async fn exec(
        &self,
        handle: &EngineHandle,
        command: &[String],
        user: Option<&str>,
        timeout: Duration,
    ) -> Result<ExecOutput, EngineError>;
    /// Reads a container's log.
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
    /// What happens to containers that bear the label with this value, from now on: only what [`EVENT_ACTIONS`] names.
    fn events(&self, label: &str, value: &str) -> EngineStream<EngineEvent>;
}
