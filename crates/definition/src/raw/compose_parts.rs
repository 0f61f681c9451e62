//! Parts of a Compose service, with the shorthand forms that Compose allows.

use schemars::JsonSchema;
use serde::Deserialize;

use super::values::{Cpus, Entries, KeyValues, Part, Period, Port, PortOrText, Size};

/// A named volume: its body is empty.
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

/// The network `default`: its body is empty.
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

/// How an image is built.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline, title = "the context folder, or a mapping with `context`, `dockerfile`, `args` and `target`")]
pub(crate) enum Build {
    /// The context folder, relative to the Compose file's.
    Context(String),
    /// A mapping.
    Spec(RawBuild),
}

/// How an image is built.
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
    /// Build arguments.
    pub(crate) args: Option<KeyValues>,
    /// The stage to stop at.
    pub(crate) target: Option<String>,
}

/// A command line.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline, title = "a list of words such as `[sleep, \"60\"]`, or one text")]
pub(crate) enum CommandLine {
    /// A text that is split into words.
    Text(String),
    /// The words.
    Words(Vec<String>),
}

/// Files of environment variables.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline, title = "a path, or a list of paths")]
pub(crate) enum EnvFiles {
    /// One.
    One(String),
    /// Several.
    Many(Vec<Part<EnvFile>>),
}

/// A file of environment variables.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline, title = "a path, or a mapping with `path` and `required`")]
pub(crate) enum EnvFile {
    /// Its path.
    Path(String),
    /// A mapping.
    Spec(RawEnvFile),
}

/// A file of environment variables.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawEnvFile {
    /// Its path, relative to the Compose file's folder.
    pub(crate) path: String,
    /// Whether it must exist. Default: `true`.
    pub(crate) required: Option<bool>,
}

/// A published port.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(
    inline,
    title = "a text such as `8080:80` or `127.0.0.1:8080:80`, or a mapping with `target` and `published`"
)]
pub(crate) enum PortEntry {
    /// A container port that is not published under a number of its own.
    Number(#[expect(dead_code, reason = "a container port without a published one only documents")] Port),
    /// `[address:]published:container[/tcp]`.
    Text(String),
    /// A mapping.
    Spec(RawPortSpec),
}

/// A published port.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawPortSpec {
    /// The port inside of the container.
    pub(crate) target: Port,
    /// The port on the gateway.
    pub(crate) published: Option<PortOrText>,
    /// The address that it listens on; must be the environment's `listen`.
    pub(crate) host_ip: Option<String>,
    /// Only `tcp`.
    #[serde(rename = "protocol")]
    pub(crate) _protocol: Option<RawProtocol>,
}

/// A transport protocol.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum RawProtocol {
    /// TCP.
    Tcp,
}

/// Something that is mounted.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(
    inline,
    title = "a text such as `data:/var/lib/mysql` or `./conf:/etc/conf:ro`, or a mapping with `type`, `source` and `target`"
)]
pub(crate) enum VolumeEntry {
    /// `source:target[:ro]`.
    Text(String),
    /// A mapping.
    Spec(RawMount),
}

/// Something that is mounted.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawMount {
    /// What it is.
    #[serde(rename = "type")]
    pub(crate) kind: RawMountKind,
    /// The volume's name, or a path relative to the Compose file's folder.
    pub(crate) source: Option<String>,
    /// The path inside of the container.
    pub(crate) target: String,
    /// Whether the container may not write. Required for `bind`.
    pub(crate) read_only: Option<bool>,
    /// Options of `tmpfs`.
    pub(crate) tmpfs: Option<RawTmpfs>,
}

/// What is mounted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum RawMountKind {
    /// A named volume.
    Volume,
    /// A file or folder below the environment's root.
    Bind,
    /// Memory.
    Tmpfs,
}

/// Options of a `tmpfs` mount.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawTmpfs {
    /// The size limit.
    pub(crate) size: Option<Size>,
}

/// A health check.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-refused-keys" = {
    "start_interval": "set `interval`; readiness is decided by the environment file's probes"
}))]
pub(crate) struct RawHealthCheck {
    /// The test: `[CMD, program, argument]`, `[CMD-SHELL, line]`, `[NONE]`, or a text for the container's shell.
    pub(crate) test: Option<CommandLine>,
    /// The pause between two runs.
    pub(crate) interval: Option<Period>,
    /// The longest one run may take.
    pub(crate) timeout: Option<Period>,
    /// How many failures in a row make it unhealthy.
    #[schemars(range(min = 0, max = 100_000))]
    pub(crate) retries: Option<u32>,
    /// How long failures at the start do not count.
    pub(crate) start_period: Option<Period>,
    /// Whether the image's own health check is switched off.
    pub(crate) disable: Option<bool>,
}

/// What comes first.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline, title = "a list of services, or a mapping of services to `condition: ...`")]
pub(crate) enum DependsOn {
    /// The services, which must have been started.
    List(Vec<String>),
    /// The services and how far they must have come.
    Map(Entries<Part<RawDependency>>),
}

/// How far a service must have come.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-refused-keys" = {
    "restart": "arenad itself supervises the containers of an instance, all at once",
    "required": "every service of a site is started"
}))]
pub(crate) struct RawDependency {
    /// How far it must have come.
    pub(crate) condition: RawCondition,
}

/// How far a service must have come.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
#[expect(clippy::enum_variant_names, reason = "these are the words of Compose")]
pub(crate) enum RawCondition {
    /// Its container has been started.
    ServiceStarted,
    /// Its health check has passed.
    ServiceHealthy,
    /// It has exited with 0.
    ServiceCompletedSuccessfully,
}

/// A limit per process.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline, title = "a number, or a mapping with `soft` and `hard`; -1 is unlimited")]
pub(crate) enum Ulimit {
    /// Soft and hard limit alike.
    Both(#[schemars(range(min = -1))] i64),
    /// A mapping.
    Spec(RawUlimit),
}

/// A limit per process.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawUlimit {
    /// What a process starts with.
    #[schemars(range(min = -1))]
    pub(crate) soft: i64,
    /// What it may raise it to.
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
    /// Resource limits.
    pub(crate) resources: Option<RawResources>,
}

/// Resource limits in the form of Swarm.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-refused-keys" = {
    "reservations": "set `mem_reservation` of the service"
}))]
pub(crate) struct RawResources {
    /// What the container may use at most.
    pub(crate) limits: Option<RawLimits>,
}

/// What a container may use at most.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawLimits {
    /// CPUs.
    pub(crate) cpus: Option<Cpus>,
    /// Memory.
    pub(crate) memory: Option<Size>,
    /// Processes and threads.
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
