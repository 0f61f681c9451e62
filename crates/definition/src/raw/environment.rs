//! `environments/<name>.yaml`: what Compose cannot say about the sites of an environment.

use schemars::JsonSchema;
use serde::Deserialize;

use super::helpers::RawHelper;
use super::images::{RawData, RawImage};
use super::login::RawLogin;
use super::steps::{RawExec, RawProbe, RawStep, RawWarm};
use super::stores::{RawScratch, RawStore, RawWriters};
use super::values::{Entries, OneOrMany, Part, Period, Port, Scalar};

/// An arenad environment: which service of the Compose file is which site, where browsers find it, when it is ready,
/// what is configured once, and how it is reset.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "an environment")]
pub(crate) struct RawEnvironment {
    /// The environment's name: the same as the file's, without `.yaml`.
    #[schemars(required)]
    pub(crate) name: Option<String>,
    /// One sentence for people.
    pub(crate) description: Option<String>,
    /// The Compose file, relative to `compose/`. Default: `<name>.yaml`.
    #[serde(rename = "compose")]
    pub(crate) _compose: Option<String>,
    /// The host name that public URLs carry. Default: `localhost`.
    pub(crate) host: Option<String>,
    /// The IP address on which the gateway's public ports listen. Default: `127.0.0.1`, this machine only.
    pub(crate) listen: Option<String>,
    /// Variables by which a user picks a set of others, by the variable's name; both files may use what it stands for.
    #[serde(rename = "choices")]
    pub(crate) _choices: Option<Entries<Part<RawChoice>>>,
    /// The profiles that are active: of the Compose file's services that have `profiles`, only those with an active one
    /// are started. Default: none.
    pub(crate) profiles: Option<Vec<String>>,
    /// The sites that are meant where not all are: names separated by commas, or a list. Default: `all`.
    pub(crate) only: Option<OneOrMany>,
    /// The folder of the host that holds what is too large for snapshots, relative to the Compose file's folder. It may
    /// lie elsewhere if a variable from outside says so. What services mount from it need not exist before `up`.
    pub(crate) data_folder: Option<String>,
    /// The benchmark whose names `arenad env` prints. Default: `webarena`, also for WebArena-Verified.
    pub(crate) benchmark: Option<RawBenchmark>,
    /// The port on which harnesses are told to ask for resets. Default: 7565.
    pub(crate) reset_port: Option<Port>,
    /// The sites by name. Every service of the Compose file belongs to exactly one of them.
    #[schemars(extend("minProperties" = 1))]
    pub(crate) sites: Entries<Part<RawSite>>,
    /// The images that no registry has, or whose size is worth knowing, by the reference that the Compose file gives.
    pub(crate) images: Option<Entries<Part<RawImage>>>,
    /// The files that services mount and that are fetched like images, by a name such as `encyclopaedia`.
    pub(crate) data: Option<Entries<Part<RawData>>>,
}

/// A variable by which a user picks a set of others.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawChoice {
    /// What is chosen, for people.
    #[serde(rename = "description")]
    pub(crate) _description: Option<String>,
    /// The option that is meant where the variable is not set.
    #[serde(rename = "default")]
    pub(crate) _default: String,
    /// The options by name, each with the variables that it stands for. A variable that is set itself comes first.
    #[serde(rename = "values")]
    #[schemars(extend("minProperties" = 1))]
    pub(crate) _values: Entries<Entries<Scalar>>,
}

/// A benchmark that has names of its own.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum RawBenchmark {
    /// `SHOPPING`, `WA_SHOPPING`, ...
    Webarena,
    /// `CLASSIFIEDS`, `VWA_CLASSIFIEDS`, ...
    Visualwebarena,
}

/// One web application.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawSite {
    /// What people read in tables. Default: the site's name.
    pub(crate) title: Option<String>,
    /// The services of the Compose file that make up the site. Default: the service with the site's name.
    #[schemars(length(min = 1))]
    pub(crate) services: Option<Vec<String>>,
    /// The container port that serves the site's pages.
    #[schemars(required)]
    pub(crate) entry: Option<RawEntry>,
    /// Where browsers find the site.
    pub(crate) public: Option<RawPublic>,
    /// Further variables that benchmarks read for this site, by name, such as `CLASSIFIEDS_RESET_TOKEN`.
    pub(crate) exports: Option<Entries<String>>,
    /// The services whose containers reach the world: names separated by commas, or a list. Only such as an agent cannot
    /// steer, like a door whose configuration says where it leads. Default: `none`.
    pub(crate) egress: Option<OneOrMany>,
    /// The accounts that exist in the baseline, by a name such as `customer`.
    pub(crate) accounts: Option<Entries<Part<RawAccount>>>,
    /// The databases that steps and probes may query, by a name such as `shop`.
    pub(crate) databases: Option<Entries<Part<RawDatabase>>>,
    /// The places where the site keeps state, by a name such as `database`. What lies elsewhere is still brought back by
    /// new containers, but neither compared nor restored in place.
    pub(crate) stores: Option<Entries<Part<RawStore>>>,
    /// What stops and starts whatever writes to the stores of a running instance, so that they can be restored in place.
    pub(crate) writers: Option<RawWriters>,
    /// What may differ after a rewind outside of the stores. A site is rewound only if everything else that its containers
    /// can write to, such as their writable layers and memory file systems, is as it was before the first client; otherwise
    /// its containers are made anew.
    pub(crate) scratch: Option<Vec<Part<RawScratch>>>,
    /// What the names that a benchmark's tasks call mean on this site, by the name.
    pub(crate) helpers: Option<Entries<Part<RawHelper>>>,
    /// When the site counts as ready.
    #[schemars(required)]
    pub(crate) ready: Option<RawReady>,
    /// What is done once, before the snapshot is taken that every episode starts from.
    pub(crate) baseline: Option<RawBaseline>,
    /// How an instance is brought back to its baseline.
    pub(crate) reset: Option<RawReset>,
    /// How a ready instance is watched.
    pub(crate) health: Option<RawHealth>,
    /// The clock of the site's containers, by libfaketime, which the images must have. Default: the host's.
    pub(crate) clock: Option<RawClock>,
}

/// The clock of a site's containers.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawClock {
    /// What it shows when containers are made: `snapshot`, the time at which their snapshot was taken, or a time such as
    /// `2024-03-01T12:00:00Z`. Default: `snapshot`.
    pub(crate) start: Option<String>,
    /// Whether it moves. Default: `running`.
    pub(crate) mode: Option<RawClockMode>,
    /// The services that see it. Default: all of the site.
    #[schemars(length(min = 1))]
    pub(crate) services: Option<Vec<String>>,
}

/// Whether a clock moves.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum RawClockMode {
    /// As the host's does, from when the containers were made.
    Running,
    /// It stands still.
    Frozen,
}

/// The container port that serves the site's pages.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawEntry {
    /// The service that listens. Default: the site's only service.
    pub(crate) service: Option<String>,
    /// The port inside of the container.
    #[schemars(required)]
    pub(crate) port: Option<Port>,
}

/// Where browsers find the site.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawPublic {
    /// The port on the gateway. Default: what the Compose file publishes for the entry's container port.
    pub(crate) port: Option<Port>,
    /// What follows host and port in the site's URL: empty, or a path that begins with `/` and does not end with it.
    pub(crate) path: Option<String>,
    /// The environment variable by which benchmarks know the site's URL, such as `SHOPPING`.
    pub(crate) variable: Option<String>,
    /// What the gateway does with requests that may write: all but GET, HEAD and OPTIONS, and upgrades. Default: `pass`.
    pub(crate) writes: Option<RawWrites>,
    /// Paths whose requests only read, whatever their method, such as `/search/*`. They are passed on and do not count as
    /// writes. `*` stands for anything but `/`, `**` for anything.
    #[schemars(length(min = 1))]
    pub(crate) reads: Option<Vec<String>>,
    /// Which requests the gateway records, for `trace:` locators and `arenad har`: in memory, at most 16 MiB and 10,000 requests of
    /// the generation that serves. Default: `none`.
    pub(crate) record: Option<RawRecord>,
}

/// Which requests the gateway records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum RawRecord {
    /// None.
    None,
    /// Those of every method but GET, HEAD and OPTIONS.
    Writes,
    /// All.
    All,
}

/// What the gateway does with requests that may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum RawWrites {
    /// They are passed on and counted.
    Pass,
    /// They are answered 405.
    Refuse,
}

/// A user of the site that exists in the baseline.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawAccount {
    /// What is typed as user name or e-mail address.
    pub(crate) username: String,
    /// What is typed as password.
    pub(crate) password: String,
    /// How the account signs in.
    pub(crate) login: Option<RawLogin>,
}

/// A database of the site that arenad may query.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawDatabase {
    /// The protocol that the server speaks; `sqlite` for a file, which locators read and steps and probes do not.
    pub(crate) engine: RawEngine,
    /// The service that listens, or whose container has the file. Default: the site's only service.
    pub(crate) service: Option<String>,
    /// The port inside of the container. Default: 3306 for MySQL and MariaDB, 5432 for PostgreSQL.
    pub(crate) port: Option<Port>,
    /// The account on the server. Servers want one.
    pub(crate) user: Option<String>,
    /// The account's password. Default: none.
    pub(crate) password: Option<String>,
    /// The database's name on the server. Servers want one.
    pub(crate) database: Option<String>,
    /// The file's path in the container, with `engine: sqlite`.
    pub(crate) path: Option<String>,
    /// How statements get there. Default: `tcp`.
    pub(crate) through: Option<RawThrough>,
    /// The client in the container, with `through: container`. Default: `mysql` or `psql`.
    pub(crate) client: Option<String>,
}

/// How statements reach a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum RawThrough {
    /// Over the instance's network.
    Tcp,
    /// Through the client in the server's container, for servers that listen on their own loopback alone.
    Container,
}

/// A database protocol.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum RawEngine {
    /// MariaDB.
    Mariadb,
    /// MySQL.
    Mysql,
    /// PostgreSQL.
    Postgres,
    /// PostgreSQL.
    Postgresql,
    /// SQLite.
    Sqlite,
}

/// When the site counts as ready: when all probes pass in one round.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawReady {
    /// How long an instance may take before it is given up. Default: `120s`.
    pub(crate) timeout: Option<Period>,
    /// The longest pause between rounds; at the beginning they follow one another faster. Default: `100ms`.
    pub(crate) interval: Option<Period>,
    /// The probes. At least one, because "ready" is never said by a timer.
    #[schemars(required, length(min = 1))]
    pub(crate) probes: Option<Vec<Part<RawProbe>>>,
}

/// What is done once, before the snapshot is taken.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawBaseline {
    /// Steps that change the site, in order.
    pub(crate) configure: Option<Vec<Part<RawStep>>>,
    /// Requests that fill the caches, in order, sent when the site is ready.
    pub(crate) warm: Option<Vec<Part<RawWarm>>>,
    /// Commands that bring the writers to rest before the containers are stopped.
    pub(crate) quiesce: Option<Vec<Part<RawExec>>>,
}

/// How an instance is brought back to its baseline.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawReset {
    /// The way. Default: `recreate`.
    pub(crate) strategy: Option<RawStrategy>,
    /// How many standbys are kept: started from the snapshot, ready, and frozen until a reset swaps one in. They are made
    /// once the site has been written to or reset, as far as memory allows. Default: 0.
    #[schemars(range(min = 0, max = 100))]
    pub(crate) standby: Option<u32>,
    /// Other numbers of standbys at other times. From the time on that an entry names, until that of another comes, so many
    /// are kept, whether or not the site is used.
    #[schemars(length(min = 1))]
    pub(crate) schedule: Option<Vec<Part<RawStandbyTime>>>,
    /// What is compared with the snapshot before a standby takes over, which was compared in full when it was made. Whatever
    /// else is to serve is always compared in full. Default: `moved`.
    pub(crate) verify: Option<RawVerify>,
    /// Of so many resets in a row, one is compared; of the others, a standby's marks are looked at, and what was made in any
    /// other way serves without proof. Default: 1, every one.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(crate) verify_every: Option<u32>,
    /// Whether the declared stores are kept outside of the containers, compared, and restored in running ones. `false`: as
    /// if none were declared, for hosts on which copies of them cost too much. Default: `true`.
    pub(crate) in_place: Option<bool>,
    /// How many requests the gateway holds while the site resets; more are answered 503. Default: 1024.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub(crate) hold_requests: Option<u32>,
    /// How long the gateway holds a request before it answers 503. Default: `30s`.
    pub(crate) hold_timeout: Option<Period>,
}

/// From when on how many standbys are kept.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawStandbyTime {
    /// When: minute, hour, day of month, month and day of week, such as `0 8 * * 1-5`.
    pub(crate) cron: String,
    /// The time zone that `cron` is meant in, such as `Europe/Berlin`. Default: `UTC`.
    pub(crate) time_zone: Option<String>,
    /// How many.
    #[schemars(range(min = 0, max = 100))]
    pub(crate) standby: u32,
}

/// How much of a standby is compared before it takes over.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum RawVerify {
    /// The stores in which anything was written since.
    Moved,
    /// All stores.
    Full,
}

/// A way of resetting.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum RawStrategy {
    /// New containers from the snapshot.
    Recreate,
    /// None: the site is only read, so a reset merely looks whether it is ready and nobody has written to it.
    Keep,
}

/// How a ready instance is watched. Nothing is probed while an instance starts, resets or is down.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawHealth {
    /// Cheap probes that say often whether the site answers.
    pub(crate) shallow: Option<RawShallow>,
    /// Thorough probes that say now and then whether the site does its work.
    pub(crate) deep: Option<RawDeep>,
}

/// Cheap probes that say often whether the site answers.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawShallow {
    /// The pause between two rounds. Default: `3s`.
    pub(crate) every: Option<Period>,
    /// The longest one probe may take. Default: `2s`.
    pub(crate) timeout: Option<Period>,
    /// How many rounds must fail in a row before the instance counts as unhealthy. Default: 2.
    #[schemars(range(min = 1, max = 1000))]
    pub(crate) failures: Option<u32>,
    /// The probes of a round. Default: the readiness probes.
    #[schemars(length(min = 1))]
    pub(crate) probes: Option<Vec<Part<RawProbe>>>,
}

/// Thorough probes that say now and then whether the site does its work. Exactly one of `every` and `cron` is given.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawDeep {
    /// The pause between two rounds.
    pub(crate) every: Option<Period>,
    /// When a round begins: minute, hour, day of month, month and day of week, such as `*/5 * * * *`.
    pub(crate) cron: Option<String>,
    /// The time zone that `cron` is meant in, such as `Europe/Berlin`. Default: `UTC`.
    pub(crate) time_zone: Option<String>,
    /// The longest one probe may take. Default: `10s`.
    pub(crate) timeout: Option<Period>,
    /// How many rounds must fail in a row before the instance counts as unhealthy. Default: 1.
    #[schemars(range(min = 1, max = 1000))]
    pub(crate) failures: Option<u32>,
    /// The probes of a round.
    #[schemars(required, length(min = 1))]
    pub(crate) probes: Option<Vec<Part<RawProbe>>>,
}
