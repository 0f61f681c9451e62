//! `environments/<name>.yaml`: the properties of an environment's sites that Compose has no keys for.

use schemars::JsonSchema;
use serde::Deserialize;

use super::helpers::RawHelper;
use super::images::{RawData, RawImage};
use super::login::RawLogin;
use super::steps::{RawExec, RawProbe, RawStep, RawWarm};
use super::stores::{RawScratch, RawStore, RawWriters};
use super::values::{Entries, FilePart, OneOrMany, Period, Port, Scalar, Size};

/// An arenad environment: the services of each site, its address, its readiness, its one-time configuration, and its
/// resets.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "an environment")]
pub(crate) struct RawEnvironment {
    /// The environment's name, equal to the file's name without `.yaml`.
    #[schemars(required)]
    pub(crate) name: Option<String>,
    /// A description in one sentence.
    pub(crate) description: Option<String>,
    /// The Compose file, relative to `compose/`. Default: `<name>.yaml`.
    #[serde(rename = "compose")]
    pub(crate) _compose: Option<String>,
    /// The host name that public URLs carry. Default: `localhost`.
    pub(crate) host: Option<String>,
    /// The IP address on which the gateway's public ports listen. Default: `127.0.0.1`, this machine only.
    pub(crate) listen: Option<String>,
    /// Variables that each select the values of several others, by the variable's name. Both files may use the selected
    /// values.
    #[serde(rename = "choices")]
    pub(crate) _choices: Option<Entries<FilePart<RawChoice>>>,
    /// The profiles that are active: of the Compose file's services that have `profiles`, only those with an active one
    /// are started. Default: none.
    pub(crate) profiles: Option<Vec<String>>,
    /// The sites that commands use by default: names separated by commas, or a list. Default: `all`.
    pub(crate) only: Option<OneOrMany>,
    /// The folder of the host for data that is too large for snapshots, relative to the Compose file's folder. It may
    /// lie outside the root folder if a variable from outside gives it. Data that services mount from it may be missing
    /// until `up`.
    pub(crate) data_folder: Option<String>,
    /// The benchmark whose variable names `arenad env` prints. Default: `webarena`, also for WebArena-Verified.
    pub(crate) benchmark: Option<RawBenchmark>,
    /// The port that harnesses are given for reset requests. Default: 7565.
    pub(crate) reset_port: Option<Port>,
    /// The hosts outside of the environment that clients of episodes may reach through the episode proxy, such as
    /// `fonts.example.org`, `*.example.org` for all hosts of a domain, or `example.org:8443`. Without a port, the ports
    /// 80 and 443 are meant. Default: none.
    #[schemars(length(min = 1))]
    pub(crate) egress: Option<Vec<String>>,
    /// The sites by name. Every service of the Compose file belongs to exactly one of them.
    #[schemars(extend("minProperties" = 1))]
    pub(crate) sites: Entries<FilePart<RawSite>>,
    /// The images that no registry offers, or whose size should be known, by the reference in the Compose file.
    pub(crate) images: Option<Entries<FilePart<RawImage>>>,
    /// The files that services mount and that are fetched like images, by a name such as `encyclopaedia`.
    pub(crate) data: Option<Entries<FilePart<RawData>>>,
}

/// A variable that selects the values of several others.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawChoice {
    /// A description of the choice.
    #[serde(rename = "description")]
    pub(crate) _description: Option<String>,
    /// The option that applies if the variable is not set.
    #[serde(rename = "default")]
    pub(crate) _default: String,
    /// The options by name, each with the variables that it sets. A variable that is set explicitly takes precedence.
    #[serde(rename = "values")]
    #[schemars(extend("minProperties" = 1))]
    pub(crate) _values: Entries<Entries<Scalar>>,
}

/// A benchmark with its own variable names.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum RawBenchmark {
    /// `SHOPPING`, `WA_SHOPPING`, ...
    Webarena,
    /// `CLASSIFIEDS`, `VWA_CLASSIFIEDS`, ...
    Visualwebarena,
}

/// One web application of the environment.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawSite {
    /// The title that tables show. Default: the site's name.
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
    /// The services whose containers can reach other networks: names separated by commas, or a list. List only services
    /// that an agent cannot control, such as a proxy with a fixed target. Default: `none`.
    pub(crate) egress: Option<OneOrMany>,
    /// The accounts that exist in the baseline, by a name such as `customer`.
    pub(crate) accounts: Option<Entries<FilePart<RawAccount>>>,
    /// The databases that steps and probes may query, by a name such as `shop`.
    pub(crate) databases: Option<Entries<FilePart<RawDatabase>>>,
    /// The places where the site keeps state, by a name such as `database`. State elsewhere is reset by new containers
    /// only; it is neither compared nor restored in place.
    pub(crate) stores: Option<Entries<FilePart<RawStore>>>,
    /// The commands that stop and start the processes that write to the stores of a running instance, so that the
    /// stores can be restored in place.
    pub(crate) writers: Option<RawWriters>,
    /// The paths outside the stores that may differ after a rewind. A site is rewound only if everything else that its
    /// containers can write to, such as their writable layers and memory file systems, is unchanged since before the
    /// first client; otherwise its containers are recreated.
    pub(crate) scratch: Option<Vec<FilePart<RawScratch>>>,
    /// The meanings, on this site, of the helper names that a benchmark's tasks call, by the name.
    pub(crate) helpers: Option<Entries<FilePart<RawHelper>>>,
    /// The probes that define when the site counts as ready.
    #[schemars(required)]
    pub(crate) ready: Option<RawReady>,
    /// The steps that run once, before the snapshot that every episode starts from is taken.
    pub(crate) baseline: Option<RawBaseline>,
    /// The method of bringing an instance back to its baseline.
    pub(crate) reset: Option<RawReset>,
    /// The number of slots, each of which has an instance of its own and belongs to one episode at a time.
    pub(crate) slots: Option<RawSlots>,
    /// The own ports of the slots, for clients of episodes that take no proxy. Without it, they reach slot 1 only, at
    /// the public port.
    pub(crate) ports: Option<RawSlotPorts>,
    /// The health checks of a ready instance.
    pub(crate) health: Option<RawHealth>,
    /// The clock of the site's containers, by libfaketime, which the images must have. Default: the host's.
    pub(crate) clock: Option<RawClock>,
}

/// The clock of a site's containers, set by libfaketime.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawClock {
    /// The time that the clock shows when containers are created: `snapshot`, the time at which their snapshot was
    /// taken, or a time such as `2024-03-01T12:00:00Z`. Default: `snapshot`.
    pub(crate) start: Option<String>,
    /// Whether the clock advances. Default: `running`.
    pub(crate) mode: Option<RawClockMode>,
    /// The services that see this clock. Default: all services of the site.
    #[schemars(length(min = 1))]
    pub(crate) services: Option<Vec<String>>,
}

/// Whether a clock advances.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum RawClockMode {
    /// The clock advances with the host's, from the creation of the containers.
    Running,
    /// The clock stands still.
    Frozen,
}

/// The container port that serves the site's pages.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawEntry {
    /// The service that listens. Default: the site's only service.
    pub(crate) service: Option<String>,
    /// The port inside the container.
    #[schemars(required)]
    pub(crate) port: Option<Port>,
}

/// The public address of the site.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawPublic {
    /// The port on the gateway. Default: the port that the Compose file publishes for the entry's container port.
    pub(crate) port: Option<Port>,
    /// The part of the site's URL after host and port: empty, or a path that begins with `/` and does not end with it.
    pub(crate) path: Option<String>,
    /// The environment variable that holds the site's URL for benchmarks, such as `SHOPPING`.
    pub(crate) variable: Option<String>,
    /// The gateway's treatment of requests that may write: upgrades, and all methods except GET, HEAD and OPTIONS.
    /// Default: `pass`.
    pub(crate) writes: Option<RawWrites>,
    /// Paths whose requests only read, whatever their method, such as `/search/*`. They are passed on and do not count
    /// as writes. `*` matches anything but `/`, `**` matches anything.
    #[schemars(length(min = 1))]
    pub(crate) reads: Option<Vec<String>>,
    /// The requests that the gateway records, for `trace:` locators and `arenad har`: in memory, at most 16 MiB and
    /// 10,000 requests of the active generation. Default: `none`.
    pub(crate) record: Option<RawRecord>,
    /// Further addresses of the site for clients of episodes, through the episode proxy, such as `onestopmarket.com`,
    /// or `shop.example.org:7770`. The port is 80 unless it is stated.
    #[schemars(length(min = 1))]
    pub(crate) aliases: Option<Vec<String>>,
}

/// The requests that the gateway records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum RawRecord {
    /// No requests are recorded.
    None,
    /// All requests except GET, HEAD and OPTIONS.
    Writes,
    /// All requests are recorded.
    All,
}

/// The gateway's treatment of requests that may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum RawWrites {
    /// The requests are passed on and counted.
    Pass,
    /// The requests are answered with 405.
    Refuse,
}

/// A user of the site that exists in the baseline.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawAccount {
    /// The user name or e-mail address for the login.
    pub(crate) username: String,
    /// The password for the login.
    pub(crate) password: String,
    /// The login method of the account.
    pub(crate) login: Option<RawLogin>,
}

/// A database of the site that arenad may query.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawDatabase {
    /// The protocol of the server, or `sqlite` for a file. Locators can read files; steps and probes cannot.
    pub(crate) engine: RawEngine,
    /// The service that listens, or whose container holds the file. Default: the site's only service.
    pub(crate) service: Option<String>,
    /// The port inside the container. Default: 3306 for MySQL and MariaDB, 5432 for PostgreSQL.
    pub(crate) port: Option<Port>,
    /// The account on the server. Required for servers.
    pub(crate) user: Option<String>,
    /// The account's password. Default: none.
    pub(crate) password: Option<String>,
    /// The database's name on the server. Required for servers.
    pub(crate) database: Option<String>,
    /// The file's path in the container, with `engine: sqlite`.
    pub(crate) path: Option<String>,
    /// The path by which statements reach the database. Default: `tcp`.
    pub(crate) through: Option<RawThrough>,
    /// The client in the container, with `through: container`. Default: `mysql` or `psql`.
    pub(crate) client: Option<String>,
}

/// The path by which statements reach a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum RawThrough {
    /// A TCP connection over the instance's network.
    Tcp,
    /// The client in the server's container, for servers that listen on their own loopback address only.
    Container,
}

/// The engine of a database.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum RawEngine {
    /// A MariaDB server; its default port is 3306.
    Mariadb,
    /// A MySQL server; its default port is 3306.
    Mysql,
    /// A PostgreSQL server; its default port is 5432.
    Postgres,
    /// A PostgreSQL server (another spelling).
    Postgresql,
    /// A SQLite database file in a container.
    Sqlite,
}

/// The readiness of a site: it is ready when all probes pass in one round.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawReady {
    /// The time that an instance may take to become ready. After it, the start has failed. Default: `120s`.
    pub(crate) timeout: Option<Period>,
    /// The longest pause between rounds; the first rounds follow one another faster. Default: `100ms`.
    pub(crate) interval: Option<Period>,
    /// The probes. At least one is required, because a fixed delay does not prove readiness.
    #[schemars(required, length(min = 1))]
    pub(crate) probes: Option<Vec<FilePart<RawProbe>>>,
}

/// The steps that run once, before the snapshot is taken.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawBaseline {
    /// Steps that change the site, in order.
    pub(crate) configure: Option<Vec<FilePart<RawStep>>>,
    /// Requests that fill the caches, in order. They are sent when the site is ready.
    pub(crate) warm: Option<Vec<FilePart<RawWarm>>>,
    /// Commands that stop the writers before the containers are stopped.
    pub(crate) quiesce: Option<Vec<FilePart<RawExec>>>,
}

/// The settings of resets.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawReset {
    /// The reset strategy. Default: `recreate`.
    pub(crate) strategy: Option<RawStrategy>,
    /// The number of standbys: instances started from the snapshot, ready, and paused until a reset swaps one in. They
    /// are created once the site has been written to or reset, as far as memory allows. All slots of the site share
    /// them; from five slots on, there is at least one for every four slots, unless the number is 0. Default: 0.
    #[schemars(range(min = 0, max = 100))]
    pub(crate) standby: Option<u32>,
    /// Whether standbys are paused while no reset is expected, so that they take no processor time. `false` is for
    /// programs that a pause of minutes harms: some servers, such as Puma and Gunicorn, kill a worker that has not
    /// reported for a minute, and a resumed worker has not. Default: `true`.
    pub(crate) pause: Option<bool>,
    /// Different numbers of standbys at different times. Each entry applies from its time until the time of another
    /// entry, whether or not the site is used.
    #[schemars(length(min = 1))]
    pub(crate) schedule: Option<Vec<FilePart<RawStandbyTime>>>,
    /// The stores that are compared with the snapshot before a standby takes over; the standby was compared in full
    /// when it was created. Instances from any other source are always compared in full. Default: `moved`.
    pub(crate) verify: Option<RawVerify>,
    /// The number of consecutive resets of which one is compared. In the others, only a standby's markers are checked,
    /// and other instances serve without a comparison. Default: 1, every reset.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(crate) verify_every: Option<u32>,
    /// Whether the declared stores are kept outside the containers, compared, and restored in running ones. `false`
    /// treats the site as if it declared none, for hosts on which copies of the stores cost too much. Default: `true`.
    pub(crate) in_place: Option<bool>,
    /// The number of requests that the gateway holds while the site resets; further requests are answered with 503.
    /// Default: 1024.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub(crate) hold_requests: Option<u32>,
    /// The time for which the gateway holds a request before it answers with 503. Default: `30s`.
    pub(crate) hold_timeout: Option<Period>,
}

/// The slots of a site.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawSlots {
    /// The number of slots that exist even if no episode waits for one. Default: 1.
    #[schemars(range(min = 1, max = 100))]
    pub(crate) min: Option<u32>,
    /// The largest number of slots. Slots above `min` are made when episodes wait for them, as far as memory allows, and
    /// removed when they have been free for ten minutes. If `max` is above 1, slot 1 is given only to episodes that ask
    /// for it by its number. Default: `min`.
    #[schemars(range(min = 1, max = 100))]
    pub(crate) max: Option<u32>,
    /// The memory that another slot is expected to use, such as `2g`. Default: the sum of what the services reserve.
    pub(crate) memory: Option<Size>,
}

/// The own ports of a site's slots.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawSlotPorts {
    /// The port of slot 1, on the environment's `listen` address. It differs from the public port, which people use.
    #[schemars(required)]
    pub(crate) base: Option<Port>,
    /// The distance between the ports of two consecutive slots: slot `n` has the port `base + (n - 1) * stride`. With a
    /// stride of 10, ten sites can have consecutive bases. Default: 1.
    #[schemars(range(min = 1, max = 65_535))]
    pub(crate) stride: Option<u32>,
    /// The absolute addresses of sites, such as `http://localhost:7770/`, in the bodies of the site's responses, and
    /// those of slots in the bodies of requests. Default: `mapped`.
    pub(crate) bodies: Option<RawBodyAddresses>,
}

/// The absolute addresses of sites in the bodies of responses.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum RawBodyAddresses {
    /// The gateway replaces them by the addresses of the episode's slots, and those by the site's own in requests.
    Mapped,
    /// There are none, so bodies are passed on as they are.
    Unchanged,
    /// They have forms that the gateway does not recognize. The ports answer with the address of the episode proxy.
    Unmappable,
}

/// A number of standbys and the time from which it applies.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawStandbyTime {
    /// The start time: minute, hour, day of month, month and day of week, such as `0 8 * * 1-5`.
    pub(crate) cron: String,
    /// The time zone of `cron`, such as `Europe/Berlin`. Default: `UTC`.
    pub(crate) time_zone: Option<String>,
    /// The number of standbys from then on.
    #[schemars(range(min = 0, max = 100))]
    pub(crate) standby: u32,
}

/// The stores that were written to since the standby's full comparison.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum RawVerify {
    /// The stores that were written to since the last comparison.
    Moved,
    /// All stores of the standby.
    Full,
}

/// The strategy of a site's resets.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum RawStrategy {
    /// The containers are recreated from the snapshot.
    Recreate,
    /// The site is read-only. A reset only checks that it is ready and that it received no writes.
    Keep,
}

/// The health checks of a ready instance. An instance is not probed while it starts, resets or is down.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawHealth {
    /// Frequent, cheap probes of whether the site answers.
    pub(crate) shallow: Option<RawShallow>,
    /// Infrequent, thorough probes of whether the site works.
    pub(crate) deep: Option<RawDeep>,
}

/// Frequent, cheap probes of whether the site answers.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawShallow {
    /// The pause between two rounds. Default: `3s`.
    pub(crate) every: Option<Period>,
    /// The timeout of one probe. Default: `2s`.
    pub(crate) timeout: Option<Period>,
    /// The number of consecutive failed rounds after which the instance counts as unhealthy. Default: 2.
    #[schemars(range(min = 1, max = 1000))]
    pub(crate) failures: Option<u32>,
    /// The probes of a round. Default: the readiness probes.
    #[schemars(length(min = 1))]
    pub(crate) probes: Option<Vec<FilePart<RawProbe>>>,
}

/// Infrequent, thorough probes of whether the site works. Exactly one of `every` and `cron` is given.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawDeep {
    /// The pause between two rounds.
    pub(crate) every: Option<Period>,
    /// The start times of rounds: minute, hour, day of month, month and day of week, such as `*/5 * * * *`.
    pub(crate) cron: Option<String>,
    /// The time zone of `cron`, such as `Europe/Berlin`. Default: `UTC`.
    pub(crate) time_zone: Option<String>,
    /// The timeout of one probe. Default: `10s`.
    pub(crate) timeout: Option<Period>,
    /// The number of consecutive failed rounds after which the instance counts as unhealthy. Default: 1.
    #[schemars(range(min = 1, max = 1000))]
    pub(crate) failures: Option<u32>,
    /// The probes of one round.
    #[schemars(required, length(min = 1))]
    pub(crate) probes: Option<Vec<FilePart<RawProbe>>>,
}
