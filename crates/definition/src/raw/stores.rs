//! Where sites of an environment file keep state.

use schemars::JsonSchema;
use serde::Deserialize;

use super::steps::RawExec;
use super::values::{OneOrMany, Part, Period, Port, Size};

/// One place where the site keeps state.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawStore {
    /// What lies there.
    pub(crate) kind: RawStoreKind,
    /// The service in whose container it lies. Default: the database's, else the entry's.
    pub(crate) service: Option<String>,
    /// Where it lies in the container: the folder, of `sqlite` the file.
    pub(crate) path: String,
    /// The names under `databases` through which a `postgres` or `mysql` store is read, one or several. Default: the
    /// site's only one of that engine.
    pub(crate) database: Option<OneOrMany>,
    /// The port inside of the container on which `redis` listens. Default: 6379, unless `socket` or `client` is given.
    pub(crate) port: Option<Port>,
    /// The socket inside of the container on which `redis` listens, such as `/run/valkey.sock`: the quickest way to ask a
    /// server that does not listen on the network.
    pub(crate) socket: Option<String>,
    /// The program in the container through which `redis` is asked, with what leads it to the server, such as
    /// `[valkey-cli, -s, /run/valkey.sock]`.
    #[schemars(length(min = 1))]
    pub(crate) client: Option<Vec<String>>,
    /// The longest that finding out what is in the store may take. Default: `2m`.
    pub(crate) timeout: Option<Period>,
    /// How much the store may grow to, such as `40g`, where the file system of the state root has project quotas; what a site
    /// writes beyond it fails as on a full disk. Default: ten times what the store begins with, and 2 GiB at least.
    pub(crate) limit: Option<Size>,
    /// What does not count when the store is compared with the baseline.
    pub(crate) volatile: Option<Vec<Part<RawVolatile>>>,
}

/// What lies in a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum RawStoreKind {
    /// The data folder of a PostgreSQL server.
    Postgres,
    /// The data folder of a MySQL server.
    Mysql,
    /// The data folder of a MariaDB server.
    Mariadb,
    /// A SQLite database.
    Sqlite,
    /// The data folder of a Redis server.
    Redis,
    /// The data folder of a Valkey server.
    Valkey,
    /// Files. Other stores may lie in the folder; they are not counted twice.
    Directory,
}

/// A part of a store that may differ from the baseline. Exactly one of `table`, `column`, `sequence`, `file` and `key` is
/// given.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawVolatile {
    /// A table, whose rows and counters do not count; of PostgreSQL outside of the schema `public`: `schema.table`. With a
    /// `*`, which stands for anything: all tables of such names, of which there may be none.
    pub(crate) table: Option<String>,
    /// A column, as `table.column`.
    pub(crate) column: Option<String>,
    /// A sequence of PostgreSQL that belongs to no volatile table.
    pub(crate) sequence: Option<String>,
    /// Files by a pattern relative to the store's folder, such as `logs/**`.
    pub(crate) file: Option<String>,
    /// Keys of Redis by a pattern, such as `celery-task-meta-*`.
    pub(crate) key: Option<String>,
    /// Why it does not count.
    #[schemars(required)]
    pub(crate) reason: Option<String>,
}

/// What stops and starts whatever writes to the stores of a running instance.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawWriters {
    /// Commands that bring all writers to rest, in order.
    #[schemars(required, length(min = 1))]
    pub(crate) stop: Option<Vec<Part<RawExec>>>,
    /// Commands that bring them back to work, in order; they return when the site works again.
    #[schemars(required, length(min = 1))]
    pub(crate) start: Option<Vec<Part<RawExec>>>,
    /// A socket in a container that does the same for the words `stop` and `start`, in less time than commands need. Where it
    /// cannot be reached, the commands are run.
    pub(crate) control: Option<RawControl>,
}

/// A stream socket in a container whose server brings the writers to rest and back to work. It reads one line, `stop` or
/// `start`, and answers with one when that is done: `0`, or why not.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawControl {
    /// The service in whose container it lies. Default: the entry's.
    pub(crate) service: Option<String>,
    /// Its path there, absolute.
    pub(crate) socket: String,
}

/// Something outside of the stores that may differ after a rewind: a log, a cache, a supervisor's notes.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawScratch {
    /// The service in whose container it lies. Default: the entry's.
    pub(crate) service: Option<String>,
    /// The path in the container, absolute. `*` and `?` stand for anything within a folder's name, `**` for anything. What
    /// is below a folder that matches is meant too. A volume is meant by its mount point.
    pub(crate) path: String,
    /// What a rewind does with it. Default: `keep`.
    pub(crate) rewind: Option<RawOnRewind>,
    /// Why it may differ.
    #[schemars(required)]
    pub(crate) reason: Option<String>,
}

/// What a rewind does with scratch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum RawOnRewind {
    /// Nothing: what one client left there, the next one finds.
    Keep,
    /// It removes everything in the folder while the writers are at rest.
    Empty,
}
