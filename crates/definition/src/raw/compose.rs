//! `compose/<name>.yaml`: the part of the Compose file format that arenad supports, with the meaning that Compose gives
//! it.

use schemars::JsonSchema;
use serde::Deserialize;

use super::compose_parts::{
    CommandLine, ComposeBuild, DependsOn, EnvFiles, HostList, PortEntry, RawDeploy, RawHealthCheck, RawNetwork,
    RawVolume, Ulimit, VolumeEntry,
};
use super::refused;
use super::values::{Cpus, Entries, FilePart, KeyValues, OneOrMany, Period, PortOrText, Size};

/// The Compose file of an arenad environment. Unlisted keys are refused, never ignored.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "a Compose file", extend("x-refused-keys" = {
    "secrets": "put what a service needs into `environment`; sites of a benchmark have no secrets worth hiding",
    "configs": "mount a file of the environment's folder read-only instead",
    "include": "an environment has one Compose file",
    "models": "arenad runs web sites only"
}))]
pub(crate) struct RawCompose {
    /// The project's name. Accepted because Compose accepts it; arenad uses the environment's name instead.
    #[serde(rename = "name")]
    pub(crate) _name: Option<String>,
    /// The obsolete version of the file format. Accepted, but without effect, as in Compose.
    #[serde(rename = "version")]
    pub(crate) _version: Option<String>,
    /// The containers by name. Each belongs to exactly one site of the environment file.
    #[schemars(extend("minProperties" = 1))]
    pub(crate) services: Entries<FilePart<RawService>>,
    /// The named volumes that services mount. Each instance of a site gets its own.
    pub(crate) volumes: Option<Entries<Option<RawVolume>>>,
    /// Only the network `default`, without options: arenad creates one network per instance.
    pub(crate) networks: Option<Entries<Option<RawNetwork>>>,
}

/// A service, which runs in one container.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = refused::mark_service)]
pub(crate) struct RawService {
    /// The image. Required unless `build` is given; with `build`, the name of the built image.
    pub(crate) image: Option<String>,
    /// The build of the image: the context folder, or a mapping.
    pub(crate) build: Option<ComposeBuild>,
    /// Replaces the image's command: a list, or a text that is split into words as a shell would.
    pub(crate) command: Option<CommandLine>,
    /// Replaces the image's entry point: a list, or a text that is split into words as a shell would.
    pub(crate) entrypoint: Option<CommandLine>,
    /// Environment variables. A name without value takes the caller's.
    pub(crate) environment: Option<KeyValues>,
    /// Files of environment variables, relative to the Compose file's folder.
    pub(crate) env_file: Option<EnvFiles>,
    /// Labels of the container.
    pub(crate) labels: Option<KeyValues>,
    /// The user inside the container: name or number, optionally with a group.
    pub(crate) user: Option<String>,
    /// The working directory of the command. Default: the image's.
    pub(crate) working_dir: Option<String>,
    /// The host name. Default: the service's name.
    pub(crate) hostname: Option<String>,
    /// Published ports. Only the site's entry may be published; arenad's gateway listens on the port instead of the
    /// container.
    pub(crate) ports: Option<Vec<FilePart<PortEntry>>>,
    /// Ports that other services may use. The key is only documentation: all ports are open on the instance's network.
    #[serde(rename = "expose")]
    pub(crate) _expose: Option<Vec<PortOrText>>,
    /// Named volumes, and files or folders below the environment's root (read-only).
    pub(crate) volumes: Option<Vec<FilePart<VolumeEntry>>>,
    /// Paths of file systems in memory (tmpfs).
    pub(crate) tmpfs: Option<OneOrMany>,
    /// The health check that the engine runs inside the container.
    pub(crate) healthcheck: Option<RawHealthCheck>,
    /// Services of the same site that must reach a condition before this service is started.
    pub(crate) depends_on: Option<DependsOn>,
    /// The maximum memory that the container may use. The default is half of the host's memory, or the value of
    /// `ARENAD_CONTAINER_MEMORY`.
    pub(crate) mem_limit: Option<Size>,
    /// The minimum memory that the service needs; `up` refuses to start it on a host with less available memory.
    pub(crate) mem_reservation: Option<Size>,
    /// The number of CPUs that the container may use.
    pub(crate) cpus: Option<Cpus>,
    /// The maximum number of processes and threads. The default is 4096.
    #[schemars(range(min = 1, max = 4_194_304), title = "a whole number from 1 to 4194304")]
    pub(crate) pids_limit: Option<u64>,
    /// The size of `/dev/shm`.
    pub(crate) shm_size: Option<Size>,
    /// Limits per process, such as `nofile`.
    pub(crate) ulimits: Option<Entries<FilePart<Ulimit>>>,
    /// The form of limits that Swarm uses; only `resources.limits` is supported.
    pub(crate) deploy: Option<RawDeploy>,
    /// Capabilities added to the container.
    pub(crate) cap_add: Option<Vec<String>>,
    /// Capabilities dropped from the container; `ALL` is accepted.
    pub(crate) cap_drop: Option<Vec<String>>,
    /// Security options. `no-new-privileges` is always set.
    pub(crate) security_opt: Option<Vec<String>>,
    /// Whether the root file system is read-only.
    pub(crate) read_only: Option<bool>,
    /// Whether an init process runs the command.
    pub(crate) init: Option<bool>,
    /// The time that the container may take to stop. Default: `10s`, as in Compose.
    pub(crate) stop_grace_period: Option<Period>,
    /// The signal that asks the container to stop. Default: the image's.
    pub(crate) stop_signal: Option<String>,
    /// Further lines of `/etc/hosts`.
    pub(crate) extra_hosts: Option<HostList>,
    /// Kernel parameters of the container's namespaces.
    pub(crate) sysctls: Option<KeyValues>,
    /// The profiles of the service; it is started only if the environment file's `profiles` names one of them.
    pub(crate) profiles: Option<Vec<String>>,
    /// Only `"no"` is accepted: arenad itself supervises the containers.
    pub(crate) restart: Option<String>,
}
