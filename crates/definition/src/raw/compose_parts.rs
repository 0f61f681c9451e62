//! Parts of a Compose service, with the shorthand forms that Compose allows.

use schemars::JsonSchema;
use serde::Deserialize;

use super::values::{Cpus, Entries, FilePart, KeyValues, Period, Port, PortOrText, Size};

/// A named volume, which has no options.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "nothing: arenad makes a volume per instance", extend("x-refused-keys" = {
    "driver": "arenad makes the volumes itself, one per instance",
    "driver_opts": "arenad makes the volumes itself, one per instance",
    "external": "instances share no volumes; mount a folder of the environment read-only instead",
    "labels": "arenad labels the volumes itself",
    "name": "arenad names the volumes: there are several instances of a site at a time"
}))]
pub(crate) struct RawVolume {}

/// The network `default`, which has no options.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "nothing: arenad makes one network per instance", extend("x-refused-keys" = {
    "attachable": "arenad makes the networks itself, one per instance",
    "driver": "arenad makes the networks itself, one per instance",
    "driver_opts": "arenad makes the networks itself, one per instance",
    "enable_ipv6": "arenad makes the networks itself, one per instance",
    "external": "instances share no network",
    "internal": "every instance's network is internal",
    "ipam": "arenad makes the networks itself, one per instance",
    "labels": "arenad labels the networks itself",
    "name": "arenad names the networks: there are several instances of a site at a time"
}))]
pub(crate) struct RawNetwork {}

/// The build of an image, as a folder or a mapping.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline, title = "the context folder, or a mapping with `context`, `dockerfile`, `args` and `target`")]
pub(crate) enum ComposeBuild {
    /// The context folder, relative to the Compose file's.
    Context(String),
    /// A mapping with build options.
    Spec(RawBuild),
}

/// The options of an image build.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-refused-keys" = {
    "additional_contexts": "everything a build needs lies in its context",
    "cache_from": "the builder's own cache is used",
    "cache_to": "the builder's own cache is used",
    "dockerfile_inline": "put the Dockerfile into the context folder",
    "network": "builds use the builder's default network",
    "no_cache": "the builder's own cache is used",
    "privileged": "builds get no privileges",
    "secrets": "builds of sites need none",
    "ssh": "builds of sites need none"
}))]
pub(crate) struct RawBuild {
    /// The context folder, relative to the Compose file's. Default: that folder.
    pub(crate) context: Option<String>,
    /// The Dockerfile, relative to the context. Default: `Dockerfile`.
    pub(crate) dockerfile: Option<String>,
    /// Build arguments of the Dockerfile.
    pub(crate) args: Option<KeyValues>,
    /// The build stage to stop at.
    pub(crate) target: Option<String>,
}

/// A command line, as a text or a list of words.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline, title = "a list of words such as `[sleep, \"60\"]`, or one text")]
pub(crate) enum CommandLine {
    /// A text that is split into words as a shell would.
    Text(String),
    /// The words as a list.
    Words(Vec<String>),
}

/// One or several files of environment variables.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline, title = "a path, or a list of paths")]
pub(crate) enum EnvFiles {
    /// The path of one file.
    One(String),
    /// A list of files.
    Many(Vec<FilePart<EnvFile>>),
}

/// A file of environment variables, as a path or a mapping.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline, title = "a path, or a mapping with `path` and `required`")]
pub(crate) enum EnvFile {
    /// The file's path, relative to the Compose file's folder.
    Path(String),
    /// A mapping with `path` and `required`.
    Spec(RawEnvFile),
}

/// A file of environment variables, as a mapping.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawEnvFile {
    /// The file's path, relative to the Compose file's folder.
    pub(crate) path: String,
    /// Whether the file must exist. Default: `true`.
    pub(crate) required: Option<bool>,
}

/// A published port, in either notation.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(
    inline,
    title = "a text such as `8080:80` or `127.0.0.1:8080:80`, or a mapping with `target` and `published`"
)]
pub(crate) enum PortEntry {
    /// A container port without a published port of its own.
    Number(#[expect(dead_code, reason = "a container port without a published one only documents")] Port),
    /// `[address:]published:container[/tcp]`.
    Text(String),
    /// A mapping with `target` and `published`.
    Spec(RawPortSpec),
}

/// A published port, as a mapping.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawPortSpec {
    /// The port inside the container.
    pub(crate) target: Port,
    /// The port on the gateway.
    pub(crate) published: Option<PortOrText>,
    /// The address that the port listens on; it must be the environment's `listen`.
    pub(crate) host_ip: Option<String>,
    /// The protocol; only `tcp` is supported.
    #[serde(rename = "protocol")]
    pub(crate) _protocol: Option<RawProtocol>,
}

/// The transport protocol of a port.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum RawProtocol {
    /// TCP, the only supported protocol.
    Tcp,
}

/// A mount of a service, in either notation.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(
    inline,
    title = "a text such as `data:/var/lib/mysql` or `./conf:/etc/conf:ro`, or a mapping with `type`, `source` and `target`"
)]
pub(crate) enum VolumeEntry {
    /// `source:target[:ro]`.
    Text(String),
    /// A mapping with `type`, `source` and `target`.
    Spec(RawMount),
}

/// A mount, as a mapping.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawMount {
    /// The kind of the mount.
    #[serde(rename = "type")]
    pub(crate) kind: RawMountKind,
    /// The volume's name, or a path relative to the Compose file's folder.
    pub(crate) source: Option<String>,
    /// The path inside the container.
    pub(crate) target: String,
    /// Whether the mount is read-only. Required for `bind`.
    pub(crate) read_only: Option<bool>,
    /// Options of the mount, with `type: tmpfs`.
    pub(crate) tmpfs: Option<RawTmpfs>,
}

/// The kind of a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum RawMountKind {
    /// A named volume of the instance.
    Volume,
    /// A file or folder below the environment's root.
    Bind,
    /// A file system in memory.
    Tmpfs,
}

/// Options of a `tmpfs` mount.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawTmpfs {
    /// The size limit of the file system.
    pub(crate) size: Option<Size>,
}

/// A health check that the engine runs.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-refused-keys" = {
    "start_interval": "set `interval`; readiness is decided by the environment file's probes"
}))]
pub(crate) struct RawHealthCheck {
    /// The test: `[CMD, program, argument]`, `[CMD-SHELL, line]`, `[NONE]`, or a text for the container's shell.
    pub(crate) test: Option<CommandLine>,
    /// The pause between two runs of the check.
    pub(crate) interval: Option<Period>,
    /// The timeout of one run.
    pub(crate) timeout: Option<Period>,
    /// The number of consecutive failures after which the container counts as unhealthy.
    #[schemars(range(min = 0, max = 100_000))]
    pub(crate) retries: Option<u32>,
    /// The period after the start in which failures do not count.
    pub(crate) start_period: Option<Period>,
    /// Whether the image's own health check is switched off.
    pub(crate) disable: Option<bool>,
}

/// The services that must start earlier.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline, title = "a list of services, or a mapping of services to `condition: ...`")]
pub(crate) enum DependsOn {
    /// A list of services whose containers must have been started.
    List(Vec<String>),
    /// Services with the condition that each must meet.
    Map(Entries<FilePart<RawDependency>>),
}

/// A dependency on another service.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-refused-keys" = {
    "restart": "arenad itself supervises the containers of an instance, all at once",
    "required": "every service of a site is started"
}))]
pub(crate) struct RawDependency {
    /// The condition that the service must meet.
    pub(crate) condition: RawCondition,
}

/// A condition of a dependency.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
#[expect(clippy::enum_variant_names, reason = "these are the words of Compose")]
pub(crate) enum RawCondition {
    /// The service's container has been started.
    ServiceStarted,
    /// The service's health check has passed.
    ServiceHealthy,
    /// The service's container has exited with 0.
    ServiceCompletedSuccessfully,
}

/// A limit per process, in either notation.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline, title = "a number, or a mapping with `soft` and `hard`; -1 is unlimited")]
pub(crate) enum Ulimit {
    /// One number for the soft and the hard limit.
    Both(#[schemars(range(min = -1))] i64),
    /// A mapping with `soft` and `hard`.
    Spec(RawUlimit),
}

/// A soft and a hard limit per process.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawUlimit {
    /// The limit with which a process starts.
    #[schemars(range(min = -1))]
    pub(crate) soft: i64,
    /// The maximum to which a process may raise its limit.
    #[schemars(range(min = -1))]
    pub(crate) hard: i64,
}

/// Limits in the form of Swarm.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-refused-keys" = {
    "endpoint_mode": "arenad places the instances itself",
    "labels": "use the service's `labels`",
    "mode": "arenad decides how many instances run",
    "placement": "arenad places the instances itself",
    "replicas": "arenad decides how many instances run",
    "restart_policy": "arenad itself supervises the containers",
    "rollback_config": "arenad replaces instances itself",
    "update_config": "arenad replaces instances itself"
}))]
pub(crate) struct RawDeploy {
    /// Resource limits of the container.
    pub(crate) resources: Option<RawResources>,
}

/// Resource limits in the form of Swarm.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-refused-keys" = {
    "reservations": "set `mem_reservation` of the service"
}))]
pub(crate) struct RawResources {
    /// The upper limits of the container.
    pub(crate) limits: Option<RawLimits>,
}

/// The upper limits of a container.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawLimits {
    /// The number of CPUs.
    pub(crate) cpus: Option<Cpus>,
    /// The maximum memory that the container may use.
    pub(crate) memory: Option<Size>,
    /// The maximum number of processes and threads.
    #[schemars(range(min = 1, max = 4_194_304))]
    pub(crate) pids: Option<u64>,
}

/// Further lines of `/etc/hosts`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline, title = "a list of `name:address`, or a mapping of names to addresses")]
pub(crate) enum HostList {
    /// `- name:address`.
    List(Vec<String>),
    /// `name: address`.
    Map(Entries<String>),
}
