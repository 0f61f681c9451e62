//! Definitions that have passed validation: the parts of a site, and the way to its baseline.
//!
//! Only `definition::load` builds these types. It turns the content of the files into them, or into diagnostics. A
//! field is optional only if its absence has a meaning.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::archive::{DataSource, ImageSource};
use super::clock::{Clock, ClockMode};
use super::configure::BaselineSpec;
use super::coverage::Scratch;
use super::health::HealthSpec;
use super::helper::Helper;
use super::ids::{EnvironmentName, ServiceName, SiteName};
use super::login::Login;
use super::probe::Probe;
use super::proxy_address::{EgressRule, SiteAlias};
use super::service::{MountSpec, ServiceSpec};
use super::standby_schedule::StandbyTime;
use super::store::{Store, Writers};
use super::verify::VerifyPolicy;

/// A named set of sites that an episode needs together.
#[derive(Debug, Clone, PartialEq)]
pub struct Environment {
    /// The name, which is also the name of both files.
    pub name: EnvironmentName,
    /// A description in one sentence.
    pub description: String,
    /// The folder that contains `environments/` and `compose/`. The paths of a definition are below it, except for data
    /// of the host.
    pub root: PathBuf,
    /// The host name that public URLs carry.
    pub host: String,
    /// The IP address on which the gateway's public ports listen.
    pub listen: IpAddr,
    /// The benchmark whose variable names are printed for the addresses of the sites.
    pub benchmark: BenchmarkFamily,
    /// The port that harnesses are given for reset requests.
    pub reset_port: u16,
    /// The hosts outside of the arena that the clients of episodes may reach. None means that there is no way out.
    pub egress: Vec<EgressRule>,
    /// The sites, in file order.
    pub sites: Vec<Site>,
    /// The images that the environment file describes, in file order.
    pub images: Vec<ImageSource>,
    /// The data that services mount, in file order.
    pub data: Vec<DataSource>,
}

/// A benchmark with its own variable names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BenchmarkFamily {
    /// WebArena and WebArena-Verified, which uses the same names.
    WebArena,
    /// VisualWebArena, whose names have the prefix `VWA_` in some harnesses.
    VisualWebArena,
}

/// One web application: its services, its public address, its readiness and its baseline.
#[derive(Debug, Clone, PartialEq)]
pub struct Site {
    /// The name, unique within the environment.
    pub name: SiteName,
    /// The title that tables show.
    pub title: String,
    /// The services in start order: each follows the services that it depends on.
    pub services: Vec<ServiceSpec>,
    /// The container port to which the gateway sends requests.
    pub entry: EntryPort,
    /// The address at which browsers find the site.
    pub public: PublicAddress,
    /// Further variables that harnesses read for this site, by name.
    pub exports: Vec<(String, String)>,
    /// The services whose containers can reach other networks, in file order. There are none unless the operator has
    /// chosen them.
    pub egress: Vec<ServiceName>,
    /// The accounts that exist in the baseline.
    pub accounts: Vec<Account>,
    /// The databases for SQL steps, probes and locators, by key.
    pub databases: BTreeMap<String, Database>,
    /// The places where the site keeps state, in file order. An empty list means that the definition declares none.
    pub stores: Vec<Store>,
    /// The commands that stop and start the processes that write to the stores. `None` means that the stores cannot be
    /// restored in a running instance.
    pub writers: Option<Writers>,
    /// The paths outside the stores that may differ after a rewind, in file order.
    pub scratch: Vec<Scratch>,
    /// The meanings, on this site, of the helper names that tasks call.
    pub helpers: Vec<Helper>,
    /// The condition under which the site counts as ready.
    pub readiness: Readiness,
    /// The steps that make the baseline from the images.
    pub baseline: BaselineSpec,
    /// The settings of resets.
    pub reset: ResetSpec,
    /// The number of slots for episodes.
    pub slots: SlotSpec,
    /// The own ports of the slots. `None` means that the slots have none.
    pub ports: Option<SlotPorts>,
    /// The clock of the site's containers. `None` means the host's clock.
    pub clock: Option<Clock>,
    /// The probes by which a ready instance is watched.
    pub health: HealthSpec,
    /// The SHA-256 (hex) of everything in the definition that the content of the baseline depends on: services without
    /// their labels and public ports, entry, databases, readiness, baseline, access to other networks, a clock with
    /// a given start time, and the mounts of the stores. The ids of the images are added later, when they are known.
    pub baseline_inputs: String,
}

/// The assumed memory of a service whose definition does not state any, in bytes.
const USUAL_MEMORY: u64 = 256 << 20;

impl Site {
    /// Returns the URL that harnesses are given. It always has an explicit port and never a slash at its end.
    pub fn url(&self, host: &str) -> String {
        format!("http://{host}:{}{}", self.public.port, self.public.path)
    }

    /// Returns the folders of the host that the site's services mount, each with the service and whether it may write.
    pub fn host_data(&self) -> impl Iterator<Item = (&ServiceName, &Path, bool)> {
        self.services.iter().flat_map(|service| {
            service.mounts.iter().filter_map(|mount| match mount {
                MountSpec::Data { source, read_only, .. } => Some((&service.name, source.as_path(), !read_only)),
                _ => None,
            })
        })
    }

    /// Whether the site is only read, so that all episodes share it and none of them takes a slot.
    pub fn is_shared(&self) -> bool {
        self.public.refuses_writes || self.reset.strategy == ResetStrategyName::Keep
    }

    /// Returns the memory that one more generation of the site is expected to use, in bytes.
    pub fn expected_memory(&self) -> u64 {
        self.services.iter().map(|service| service.limits.reserved_memory_bytes.unwrap_or(USUAL_MEMORY)).sum()
    }

    /// Returns the memory that one more slot of the site is expected to use, in bytes.
    pub fn slot_memory(&self) -> u64 {
        self.slots.memory.unwrap_or_else(|| self.expected_memory())
    }

    /// Whether a service writes to a folder of the host, so that two generations must never run at the same time.
    pub fn writes_host_data(&self) -> bool {
        self.host_data().any(|(_, _, is_written)| is_written)
    }

    /// Returns the database that is used if none is named: the only one, or the only one through which no store is
    /// read.
    pub fn only_database(&self) -> Option<&Database> {
        let of_stores: Vec<&String> = self.stores.iter().flat_map(Store::databases).collect();
        let all: Vec<(&String, &Database)> = self.databases.iter().collect();
        let free: Vec<&(&String, &Database)> = all.iter().filter(|(name, _)| !of_stores.contains(name)).collect();
        match (all.as_slice(), free.as_slice()) {
            ([(_, only)], _) | (_, [(_, only)]) => Some(only),
            _ => None,
        }
    }

    /// Returns the commands that stop and start the writers, if containers can be restored in place. They cannot with a
    /// running clock, because it is set when containers are created.
    pub fn rewinds(&self) -> Option<&Writers> {
        let is_running = self.clock.as_ref().is_some_and(|clock| clock.mode == ClockMode::Running);
        self.writers.as_ref().filter(|_| !is_running)
    }

    /// Returns the service of that name.
    pub fn service(&self, name: &ServiceName) -> Option<&ServiceSpec> {
        self.services.iter().find(|service| service.name == *name)
    }
}

/// The container port that serves the site's pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryPort {
    /// The service that listens.
    pub service: ServiceName,
    /// The port inside the container.
    pub port: u16,
}

/// The public address of the site on the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicAddress {
    /// The host name, the same for all sites of an environment.
    pub host: String,
    /// The TCP port on the gateway.
    pub port: u16,
    /// The part of the site's URL after host and port: empty, or a path that begins with `/` and does not end with it.
    pub path: String,
    /// The name of the environment variable that holds the site's URL for benchmarks, such as `SHOPPING_ADMIN`. `None`
    /// means that the site has no variable.
    pub variable: Option<String>,
    /// Whether the gateway refuses requests that may write.
    pub refuses_writes: bool,
    /// Paths whose requests only read, whatever their method. `*` matches anything but `/`, and `**` matches anything.
    pub reads: Vec<String>,
    /// The requests that the gateway records.
    pub recorded: RecordedRequests,
    /// The further addresses of the site through the episode proxy.
    pub aliases: Vec<SiteAlias>,
}

/// The requests of a site that the gateway records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RecordedRequests {
    /// No requests are recorded.
    #[default]
    Nothing,
    /// All requests except GET, HEAD and OPTIONS.
    Writes,
    /// All requests are recorded.
    All,
}

impl RecordedRequests {
    /// Returns the name in definitions.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "none",
            Self::Writes => "writes",
            Self::All => "all",
        }
    }

    /// Returns the value with a name in definitions.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Nothing, Self::Writes, Self::All].into_iter().find(|known| known.name() == name)
    }
}

/// A text that never appears in logs or debug output.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text as a secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text itself, for the one place that must send it, or print it on request.
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
    /// The name of the account within the site, such as `customer`.
    pub name: String,
    /// The user name or e-mail address for the login.
    pub username: String,
    /// The password for the login. Benchmarks publish it, but logs must not contain it.
    pub password: Secret,
    /// The login method. `None` means that the definition does not describe one.
    pub login: Option<Login>,
}

/// A database of the site that arenad may query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Database {
    /// The protocol of the server, or SQLite.
    pub engine: DatabaseEngine,
    /// The service that listens, or whose container has the file.
    pub service: ServiceName,
    /// The port inside the container.
    pub port: u16,
    /// The account on the server. Empty for SQLite, which has no accounts.
    pub user: String,
    /// The password of the account. Empty if the server requires none.
    pub password: Secret,
    /// The name of the database on the server, or the path of the SQLite file in the container.
    pub database: String,
    /// The way in which statements reach the database.
    pub access: DatabaseAccess,
}

/// The way in which statements reach a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DatabaseAccess {
    /// A TCP connection over the instance's network.
    Tcp,
    /// A client in the server's container, for servers that listen on their own loopback address only.
    Client {
        /// The program: `mysql`, `psql`, or a program that takes the same arguments.
        program: String,
    },
}

/// A database protocol, or SQLite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatabaseEngine {
    /// The protocol of MySQL and MariaDB.
    Mysql,
    /// The protocol of PostgreSQL.
    Postgres,
    /// A SQLite file in the service's container. Locators read a copy of it.
    Sqlite,
}

/// The readiness of a site: it is ready when all probes pass in one round.
#[derive(Debug, Clone, PartialEq)]
pub struct Readiness {
    /// The time that an instance may take to become ready. After it, the start has failed.
    pub timeout: Duration,
    /// The longest pause between rounds. The first rounds follow one another faster.
    pub interval: Duration,
    /// The probes of a round. There is at least one.
    pub probes: Vec<Probe>,
}

/// The settings of an instance's resets.
#[derive(Debug, Clone, PartialEq)]
pub struct ResetSpec {
    /// The strategy of the site's resets.
    pub strategy: ResetStrategyName,
    /// The number of standbys that are kept once the site has been written to or reset.
    pub standby: usize,
    /// Whether standbys are paused while no reset is expected.
    pub may_pause: bool,
    /// Different numbers of standbys at different times. They apply whether or not the site is used.
    pub schedule: Vec<StandbyTime>,
    /// The comparisons with the snapshot.
    pub verify: VerifyPolicy,
    /// The number of requests that the gateway holds while the site resets. Further requests are answered with 503.
    pub hold_requests: usize,
    /// The time for which the gateway holds a request before it answers with 503.
    pub hold_timeout: Duration,
}

/// The number of slots of a site, each of which has an instance of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotSpec {
    /// The number of slots that exist even if no request waits for one, at least 1.
    pub min: u32,
    /// The largest number of slots, at least `min`.
    pub max: u32,
    /// The memory that a further slot is expected to use, in bytes. `None` means the memory that the services state.
    pub memory: Option<u64>,
}

impl SlotSpec {
    /// The slots of a site whose definition says nothing about them.
    pub const ONE: Self = Self { min: 1, max: 1, memory: None };
}

/// The own ports of a site's slots, at which clients without a proxy reach the slots that their episodes have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotPorts {
    /// The port of slot 1.
    pub base: u16,
    /// The distance between the ports of two consecutive slots, at least 1.
    pub stride: u16,
    /// The absolute addresses in the bodies of the site's responses.
    pub bodies: BodyAddresses,
}

impl SlotPorts {
    /// Returns the port of a slot. `None` means that it would be above 65535, or that there is no slot 0.
    pub fn of(self, slot: u32) -> Option<u16> {
        let offset = u32::from(self.stride).checked_mul(slot.checked_sub(1)?)?;
        u16::try_from(u32::from(self.base).checked_add(offset)?).ok()
    }
}

/// The absolute addresses of sites in the bodies of a site's responses, for clients of the slots' own ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyAddresses {
    /// The addresses are replaced by those of the episode's slots.
    Mapped,
    /// The bodies have no such addresses, and are passed on as they are.
    Unchanged,
    /// The addresses have forms that cannot be replaced, so the site is not offered at own ports.
    Unmappable,
}

impl BodyAddresses {
    /// Returns the name in definitions.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mapped => "mapped",
            Self::Unchanged => "unchanged",
            Self::Unmappable => "unmappable",
        }
    }
}

/// A strategy for the resets of a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResetStrategyName {
    /// The instance is brought back to the snapshot: by a standby or in place if that is possible, and otherwise by new
    /// containers.
    Recreate,
    /// The site is only read, so a reset changes nothing as long as the site passes its probes and equals its snapshot.
    Keep,
}
