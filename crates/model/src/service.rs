//! The services of a site, as its Compose file describes them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::ids::ServiceName;

/// One container of a site, as described in the Compose file.
#[derive(Debug, Clone, PartialEq)]
pub struct ServiceSpec {
    /// The name of the service in the Compose file, and its host name on the instance's network.
    pub name: ServiceName,
    /// The reference of the image.
    pub image: String,
    /// The instructions for building the image, unless it is pulled or loaded.
    pub build: Option<BuildSpec>,
    /// The file name of the archive from which the image is loaded, if no registry has it.
    pub archive: Option<String>,
    /// The command that replaces the image's command.
    pub command: Option<Vec<String>>,
    /// The entry point that replaces the image's entry point.
    pub entrypoint: Option<Vec<String>>,
    /// The environment variables, by name.
    pub environment: BTreeMap<String, String>,
    /// The labels that the Compose file sets.
    pub labels: BTreeMap<String, String>,
    /// The user inside the container. `None` means the user of the image.
    pub user: Option<String>,
    /// The working directory. `None` means the directory of the image.
    pub working_dir: Option<String>,
    /// The host name. `None` means the name of the service.
    pub hostname: Option<String>,
    /// The volumes, files, folders and memory that are mounted.
    pub mounts: Vec<MountSpec>,
    /// The health check that the engine runs.
    pub health_check: Option<HealthCheck>,
    /// The services that must have reached a condition before this service is started.
    pub depends_on: Vec<Dependency>,
    /// The resource limits of the container.
    pub limits: Limits,
    /// The capabilities that are removed. `ALL` is accepted.
    pub cap_drop: Vec<String>,
    /// The capabilities that are added.
    pub cap_add: Vec<String>,
    /// Further `security_opt` entries. `no-new-privileges` is always set.
    pub security_opt: Vec<String>,
    /// Whether the root file system is read-only.
    pub read_only: bool,
    /// Whether the engine runs an init process as the first process.
    pub init: bool,
    /// The time that the container may take to stop cleanly.
    pub stop_grace_period: Duration,
    /// The signal that requests the stop. `None` means the signal of the image.
    pub stop_signal: Option<String>,
    /// Additional lines of `/etc/hosts`: host name and address.
    pub extra_hosts: Vec<(String, IpAddr)>,
    /// The kernel parameters of the container's namespaces.
    pub sysctls: BTreeMap<String, String>,
}

impl ServiceSpec {
    /// The time between the stop signal and the kill if a service states none; the default of Docker and of Compose.
    pub const STOP_GRACE_PERIOD: Duration = Duration::from_secs(10);

    /// A service that states nothing but its image.
    pub fn new(name: ServiceName, image: impl Into<String>) -> Self {
        Self {
            name,
            image: image.into(),
            build: None,
            archive: None,
            command: None,
            entrypoint: None,
            environment: BTreeMap::new(),
            labels: BTreeMap::new(),
            user: None,
            working_dir: None,
            hostname: None,
            mounts: Vec::new(),
            health_check: None,
            depends_on: Vec::new(),
            limits: Limits::default(),
            cap_drop: Vec::new(),
            cap_add: Vec::new(),
            security_opt: Vec::new(),
            read_only: false,
            init: false,
            stop_grace_period: Self::STOP_GRACE_PERIOD,
            stop_signal: None,
            extra_hosts: Vec::new(),
            sysctls: BTreeMap::new(),
        }
    }
}

/// The instructions for building an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildSpec {
    /// The context folder. The path is absolute and below the environment's root.
    pub context: PathBuf,
    /// The Dockerfile, relative to the context.
    pub dockerfile: PathBuf,
    /// The build arguments, by name.
    pub args: BTreeMap<String, String>,
    /// The stage at which the build stops. `None` means the last stage.
    pub target: Option<String>,
}

/// A volume, file, folder or memory that is mounted into a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MountSpec {
    /// A volume of the instance, captured with the snapshot and created anew with the containers.
    Volume {
        /// The name within the Compose file.
        name: String,
        /// The path inside the container.
        target: String,
        /// Whether the volume is read-only in the container.
        read_only: bool,
    },
    /// A file or folder of the host. It is always read-only, because instances share it.
    Bind {
        /// The path on the host. It is absolute and below the environment's root.
        source: PathBuf,
        /// The path inside the container.
        target: String,
    },
    /// A folder of the operator's data on the host that is too large for snapshots. It may be writable only with the
    /// reset strategy [`ResetStrategyName::Keep`].
    Data {
        /// The absolute path on the host. The folder need not exist before the site is brought up.
        source: PathBuf,
        /// The path inside the container.
        target: String,
        /// Whether the folder is read-only in the container.
        read_only: bool,
    },
    /// A file system in memory.
    Tmpfs {
        /// The path inside the container.
        target: String,
        /// The size limit, in bytes.
        size_bytes: Option<u64>,
    },
}

/// A health check that the engine runs inside the container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthCheck {
    /// `["CMD", …]`, `["CMD-SHELL", …]` or `["NONE"]`.
    pub test: Vec<String>,
    /// The pause between two runs.
    pub interval: Option<Duration>,
    /// The time limit of one run.
    pub timeout: Option<Duration>,
    /// The number of consecutive failures after which the container is unhealthy.
    pub retries: Option<u32>,
    /// The time after the start of the container in which failures do not count.
    pub start_period: Option<Duration>,
}

/// One entry of `depends_on`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependency {
    /// The service that is started first.
    pub service: ServiceName,
    /// The condition that the service must have reached.
    pub condition: DependencyCondition,
}

/// The condition that a service must reach before the services that depend on it are started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DependencyCondition {
    /// The container has been started.
    Started,
    /// The health check has passed.
    Healthy,
    /// The container has exited with 0.
    CompletedSuccessfully,
}

/// The resource limits of a container. `None` means the engine's default.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Limits {
    /// The memory, in bytes.
    pub memory_bytes: Option<u64>,
    /// The memory that the service needs at least, in bytes. It is not above `memory_bytes`.
    pub reserved_memory_bytes: Option<u64>,
    /// The number of CPUs. A value of 1.5 means one and a half.
    pub cpus: Option<f64>,
    /// The number of processes and threads.
    pub pids: Option<u64>,
    /// The size of `/dev/shm`, in bytes.
    pub shm_bytes: Option<u64>,
    /// The entries of `ulimits`: name, soft limit, hard limit.
    pub ulimits: Vec<(String, i64, i64)>,
}
