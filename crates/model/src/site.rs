//! Definitions that have passed validation: what a site is made of and how it is brought to its baseline.
//!
//! Built only by `definition::load`, which turns what the files say into these types or into diagnostics.
//! No field is optional unless its absence means something.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::archive::{DataSource, ImageSource};
use super::clock::{Clock, ClockMode};
use super::coverage::Scratch;
use super::health::HealthSpec;
use super::helper::Helper;
use super::ids::{EnvironmentName, ServiceName, SiteName};
use super::login::Login;
use super::probe::Probe;
use super::standby_schedule::StandbyTime;
use super::store::{Store, Writers};
use super::verify::VerifyPolicy;

/// A named set of sites that an episode needs together.
#[derive(Debug, Clone, PartialEq)]
pub struct Environment {
    /// The name, also that of both files.
    pub name: EnvironmentName,
    /// One sentence for people.
    pub description: String,
    /// The folder that holds `environments/` and `compose/`; no path of a definition leaves it.
    pub root: PathBuf,
    /// The host name that public URLs carry.
    pub host: String,
    /// The address that the gateway's public ports listen on.
    pub listen: IpAddr,
    /// Whose names the sites' addresses are printed under.
    pub benchmark: Benchmark,
    /// The port on which harnesses are told to ask for a reset of everything.
    pub reset_port: u16,
    /// The sites, in file order.
    pub sites: Vec<Site>,
    /// What is said about images, in file order.
    pub images: Vec<ImageSource>,
    /// The data that services mount, in file order.
    pub data: Vec<DataSource>,
}

/// The benchmarks that have names of their own for the sites' addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Benchmark {
    /// WebArena, and WebArena-Verified, which took its names over.
    WebArena,
    /// VisualWebArena.
    VisualWebArena,
}

/// One web application: its services, its public address, its readiness and its baseline.
#[derive(Debug, Clone, PartialEq)]
pub struct Site {
    /// The name, unique within the environment.
    pub name: SiteName,
    /// What people read in tables.
    pub title: String,
    /// The services in start order: each after those that it depends on.
    pub services: Vec<ServiceSpec>,
    /// Where the gateway sends requests.
    pub entry: Entry,
    /// Where browsers find the site.
    pub public: PublicAddress,
    /// Further variables that harnesses read for this site, by name.
    pub exports: Vec<(String, String)>,
    /// The services whose containers reach the world, in file order: only where the operator has chosen so.
    pub egress: Vec<ServiceName>,
    /// The accounts that exist in the baseline.
    pub accounts: Vec<Account>,
    /// The databases by their key, for SQL steps and probes.
    pub databases: BTreeMap<String, Database>,
    /// Where it keeps state, in file order; empty: nobody has said.
    pub stores: Vec<Store>,
    /// What stops and starts whatever writes to the stores; `None`: they cannot be restored in a running instance.
    pub writers: Option<Writers>,
    /// What may differ after a rewind outside of the stores, in file order.
    pub scratch: Vec<Scratch>,
    /// What the names that tasks call mean here.
    pub helpers: Vec<Helper>,
    /// When the site counts as ready.
    pub readiness: Readiness,
    /// How the baseline is made from the images.
    pub baseline: BaselineSpec,
    /// How the instance is brought back.
    pub reset: ResetSpec,
    /// What its containers take the time for; `None`: what the host does.
    pub clock: Option<Clock>,
    /// How a ready instance is watched.
    pub health: HealthSpec,
    /// SHA-256 (hex) over everything in the definition that the baseline's content depends on: services without their
    /// public ports, entry, databases, readiness, baseline and what is mounted for the stores. Image ids are not in it; they are added when they are known.
    pub baseline_inputs: String,
}

impl Site {
    /// The URL that harnesses are given: no trailing slash, always with an explicit port.
    pub fn url(&self, host: &str) -> String {
        format!("http://{host}:{}{}", self.public.port, self.public.path)
    }

    /// The folders of the host that the site's services mount, with the service and whether it may write.
    pub fn host_data(&self) -> impl Iterator<Item = (&ServiceName, &Path, bool)> {
        self.services.iter().flat_map(|service| {
            service.mounts.iter().filter_map(|mount| match mount {
                MountSpec::Data { source, read_only, .. } => Some((&service.name, source.as_path(), !read_only)),
                _ => None,
            })
        })
    }

    /// Whether a service writes to a folder of the host, so that two generations must never run at the same time.
    pub fn writes_host_data(&self) -> bool {
        self.host_data().any(|(_, _, is_written)| is_written)
    }

    /// The database that is meant where none is named: the only one, or the only one that no store is read through.
    pub fn only_database(&self) -> Option<&Database> {
        let of_stores: Vec<&String> = self.stores.iter().flat_map(Store::databases).collect();
        let all: Vec<(&String, &Database)> = self.databases.iter().collect();
        let free: Vec<&(&String, &Database)> = all.iter().filter(|(name, _)| !of_stores.contains(name)).collect();
        match (all.as_slice(), free.as_slice()) {
            ([(_, only)], _) | (_, [(_, only)]) => Some(only),
            _ => None,
        }
    }

    /// What stops and starts its writers, where containers can be brought back in place. A clock that runs cannot: it is set
    /// when containers are made.
    pub fn rewinds(&self) -> Option<&Writers> {
        let is_running = self.clock.as_ref().is_some_and(|clock| clock.mode == ClockMode::Running);
        self.writers.as_ref().filter(|_| !is_running)
    }

    /// The service of that name.
    pub fn service(&self, name: &ServiceName) -> Option<&ServiceSpec> {
        self.services.iter().find(|service| service.name == *name)
    }
}

/// The container port that serves the site's pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The service that listens.
    pub service: ServiceName,
    /// The port inside the container.
    pub port: u16,
}

/// What the gateway offers to browsers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicAddress {
    /// The host name, the same for all sites of an environment.
    pub host: String,
    /// The TCP port on the gateway.
    pub port: u16,
    /// What follows host and port in the site's URL: empty, or a path that begins with `/` and does not end with it.
    pub path: String,
    /// The name that WebArena's variables use, such as `SHOPPING_ADMIN`. `None`: the site has none.
    pub variable: Option<String>,
    /// Whether the gateway refuses requests that may write.
    pub refuses_writes: bool,
    /// Paths whose requests only read, whatever their method; `*` stands for anything but `/`, `**` for anything.
    pub reads: Vec<String>,
    /// Which requests the gateway records.
    pub recorded: Recorded,
}

/// Which of a site's requests the gateway records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Recorded {
    /// None.
    #[default]
    Nothing,
    /// Those of every method but GET, HEAD and OPTIONS.
    Writes,
    /// All.
    All,
}

impl Recorded {
    /// The word that the definition has for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "none",
            Self::Writes => "writes",
            Self::All => "all",
        }
    }
}

/// A text that never shows itself in logs or debug output.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps the text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself; for the one place that must send or print it on request.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[hidden]")
    }
}

/// A user of the site that exists in the baseline.
#[derive(Debug, Clone, PartialEq)]
pub struct Account {
    /// The account's name within the site, such as `customer`.
    pub name: String,
    /// What is typed as user name or e-mail.
    pub username: String,
    /// What is typed as password. Benchmarks publish it, logs still do not carry it.
    pub password: Secret,
    /// How it signs in; `None`: nobody has said.
    pub login: Option<Login>,
}

/// A database of the site that arenad may query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Database {
    /// The protocol.
    pub engine: DatabaseEngine,
    /// The service that listens.
    pub service: ServiceName,
    /// The port inside the container.
    pub port: u16,
    /// The account; empty for SQLite, which has none.
    pub user: String,
    /// The account's password; empty when the server asks for none.
    pub password: Secret,
    /// The database's name on the server; of SQLite, the file's path in the container.
    pub database: String,
    /// How statements get there.
    pub access: DatabaseAccess,
}

/// How statements reach a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DatabaseAccess {
    /// Over the instance's network.
    Tcp,
    /// Through a client in the server's container, for servers that listen on their own loopback alone.
    Client {
        /// The program: `mysql`, `psql` or one that takes the same arguments.
        program: String,
    },
}

/// The database protocols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatabaseEngine {
    /// MySQL or MariaDB.
    Mysql,
    /// PostgreSQL.
    Postgres,
    /// SQLite: a file of the service's container, which locators read a copy of.
    Sqlite,
}

/// When a site counts as ready: when all of its probes have passed in one round.
#[derive(Debug, Clone, PartialEq)]
pub struct Readiness {
    /// How long an instance may take before it is given up.
    pub timeout: Duration,
    /// The longest pause between rounds; at the beginning they follow one another faster.
    pub interval: Duration,
    /// The probes; at least one.
    pub probes: Vec<Probe>,
}

/// What is done once, before the snapshot is taken.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BaselineSpec {
    /// Steps that change the site, in order.
    pub configure: Vec<ConfigureStep>,
    /// Requests that fill the caches, in order, sent when the site is ready.
    pub warm: Vec<HttpStep>,
    /// Commands that bring the writers to rest before the containers are stopped.
    pub quiesce: Vec<ExecStep>,
}

/// One step of the configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfigureStep {
    /// The name shown to people.
    pub name: String,
    /// What is done.
    pub action: ConfigureAction,
    /// How long a failing step is tried again, because services come up in their own time.
    pub retry_for: Duration,
    /// What makes the step unnecessary.
    pub unless: Option<Unless>,
}

/// What makes a step unnecessary: a probe that passes in time. For cures of what only some machines suffer from.
#[derive(Debug, Clone, PartialEq)]
pub struct Unless {
    /// The probe.
    pub probe: Probe,
    /// How long it gets to pass before the step is done.
    pub within: Duration,
}

/// The kinds of configuration steps.
#[derive(Debug, Clone, PartialEq)]
pub enum ConfigureAction {
    /// A command in a container.
    Exec(ExecStep),
    /// A request to a service.
    Http(HttpStep),
    /// A statement on a declared database.
    Sql {
        /// The key in [`Site::databases`].
        database: String,
        /// The statement.
        statement: String,
    },
}

/// A command in a container; it must exit with 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecStep {
    /// The service whose container runs it.
    pub service: ServiceName,
    /// The argument vector.
    pub command: Vec<String>,
    /// The user inside the container; `None` is the image's.
    pub user: Option<String>,
    /// The longest it may take.
    pub timeout: Duration,
}

/// A request to a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpStep {
    /// The service that answers.
    pub service: ServiceName,
    /// The port inside the container.
    pub port: u16,
    /// The method, in capitals.
    pub method: String,
    /// Path and query, beginning with `/`.
    pub path: String,
    /// Request headers, in file order.
    pub headers: Vec<(String, String)>,
    /// The body, sent as it is.
    pub body: Option<String>,
    /// The status codes that count as success.
    pub status: Vec<u16>,
    /// The longest it may take.
    pub timeout: Duration,
}

/// How an instance is brought back to its baseline.
#[derive(Debug, Clone, PartialEq)]
pub struct ResetSpec {
    /// The way.
    pub strategy: ResetStrategyName,
    /// How many standbys are kept once the site has been written to or reset.
    pub standby: usize,
    /// How many are kept from when on, whether or not there is a use for them.
    pub schedule: Vec<StandbyTime>,
    /// What is compared with the snapshot.
    pub verify: VerifyPolicy,
    /// How many requests the gateway holds while the site resets; more are answered 503.
    pub hold_requests: usize,
    /// How long the gateway holds a request before it answers 503.
    pub hold_timeout: Duration,
}

/// The ways of resetting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResetStrategyName {
    /// New containers from the snapshot.
    Recreate,
    /// None while the site passes its probes and is as its snapshot: it is only read, so there is nothing to bring back.
    Keep,
}

/// One container of a site, as the Compose file describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct ServiceSpec {
    /// The service's name in the Compose file, also its host name on the instance's network.
    pub name: ServiceName,
    /// The image's reference.
    pub image: String,
    /// How to build the image, where it is not pulled.
    pub build: Option<BuildSpec>,
    /// The archive that the image is loaded from, where no registry has it.
    pub archive: Option<String>,
    /// Replaces the image's command.
    pub command: Option<Vec<String>>,
    /// Replaces the image's entry point.
    pub entrypoint: Option<Vec<String>>,
    /// Environment variables.
    pub environment: BTreeMap<String, String>,
    /// Labels that the file sets.
    pub labels: BTreeMap<String, String>,
    /// The user inside the container.
    pub user: Option<String>,
    /// The working directory.
    pub working_dir: Option<String>,
    /// The host name; `None`: the service's name.
    pub hostname: Option<String>,
    /// What is mounted.
    pub mounts: Vec<MountSpec>,
    /// The health check that the engine runs.
    pub health_check: Option<HealthCheck>,
    /// The services that must have come so far before this one is started.
    pub depends_on: Vec<Dependency>,
    /// Resource limits.
    pub limits: Limits,
    /// Capabilities taken away; `ALL` is one.
    pub cap_drop: Vec<String>,
    /// Capabilities given.
    pub cap_add: Vec<String>,
    /// Further `security_opt` entries; `no-new-privileges` is always set.
    pub security_opt: Vec<String>,
    /// Whether the root file system is read-only.
    pub read_only: bool,
    /// Whether the engine puts an init process in front.
    pub init: bool,
    /// How long the container may take to stop cleanly.
    pub stop_grace_period: Duration,
    /// The signal that asks it to stop; `None`: the image's.
    pub stop_signal: Option<String>,
    /// Extra lines of `/etc/hosts`: host name and address.
    pub extra_hosts: Vec<(String, IpAddr)>,
    /// Kernel parameters of the container's namespaces.
    pub sysctls: BTreeMap<String, String>,
}

/// How an image is built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildSpec {
    /// The context folder, absolute, below the environment's root.
    pub context: PathBuf,
    /// The Dockerfile, relative to the context.
    pub dockerfile: PathBuf,
    /// Build arguments.
    pub args: BTreeMap<String, String>,
    /// The stage to stop at.
    pub target: Option<String>,
}

/// What is mounted into a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MountSpec {
    /// A volume of the instance's own, captured with the snapshot and new at every reset.
    Volume {
        /// The name within the Compose file.
        name: String,
        /// The path inside the container.
        target: String,
        /// Whether the container may not write.
        read_only: bool,
    },
    /// A file or folder of the host, always read-only: instances share it, so none may write to it.
    Bind {
        /// The path on the host, absolute, below the environment's root.
        source: PathBuf,
        /// The path inside the container.
        target: String,
    },
    /// A folder of the operator's data on the host, too large for snapshots. Writable only where the site is kept.
    Data {
        /// The path on the host, absolute; it need not exist before the site is brought up.
        source: PathBuf,
        /// The path inside the container.
        target: String,
        /// Whether the container may not write.
        read_only: bool,
    },
    /// Memory.
    Tmpfs {
        /// The path inside the container.
        target: String,
        /// The size limit in bytes.
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
    /// The longest one run may take.
    pub timeout: Option<Duration>,
    /// How many failures make it unhealthy.
    pub retries: Option<u32>,
    /// How long failures at the start do not count.
    pub start_period: Option<Duration>,
}

/// One entry of `depends_on`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependency {
    /// The service that comes first.
    pub service: ServiceName,
    /// How far it must have come.
    pub condition: DependencyCondition,
}

/// How far a service must have come before those that depend on it are started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DependencyCondition {
    /// Its container has been started.
    Started,
    /// Its health check has passed.
    Healthy,
    /// It has exited with 0.
    CompletedSuccessfully,
}

/// Resource limits of a container.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Limits {
    /// Memory, in bytes.
    pub memory_bytes: Option<u64>,
    /// Memory without which the service does not run, in bytes; not above `memory_bytes`.
    pub reserved_memory_bytes: Option<u64>,
    /// CPUs; 1.5 is one and a half.
    pub cpus: Option<f64>,
    /// Processes and threads.
    pub pids: Option<u64>,
    /// `/dev/shm`, in bytes.
    pub shm_bytes: Option<u64>,
    /// `ulimits`: name, soft, hard.
    pub ulimits: Vec<(String, i64, i64)>,
}
