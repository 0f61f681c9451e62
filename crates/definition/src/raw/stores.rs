//! The stores of the sites in an environment file.

use schemars::JsonSchema;
use serde::Deserialize;

use super::steps::RawExec;
use super::values::{FilePart, OneOrMany, Period, Port, Size};

/// One place where the site keeps state.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawStore {
    /// The kind of data in the store.
    pub(crate) kind: RawStoreKind,
    /// The service whose container holds the store. Default: the database's service, or else the entry's.
    pub(crate) service: Option<String>,
    /// The path in the container: a folder, or for `sqlite` a file.
    pub(crate) path: String,
    /// The names under `databases` through which a `postgres` or `mysql` store is read, one or several. Default: the
    /// site's only one of that engine.
    pub(crate) database: Option<OneOrMany>,
    /// The port inside the container on which `redis` listens. Default: 6379, unless `socket` or `client` is given.
    pub(crate) port: Option<Port>,
    /// The socket inside the container on which `redis` listens, such as `/run/valkey.sock`. It is the fastest way to
    /// query a server that does not listen on the network.
    pub(crate) socket: Option<String>,
    /// The client program in the container for `redis`, with its connection arguments, such as `[valkey-cli, -s,
    /// /run/valkey.sock]`.
    #[schemars(length(min = 1))]
    pub(crate) client: Option<Vec<String>>,
    /// The timeout of reading the store's content. Default: `2m`.
    pub(crate) timeout: Option<Period>,
    /// The maximum size of the store, such as `40g`, where the file system of the state root has project quotas. Writes
    /// beyond it fail as on a full disk. Default: ten times the initial size, and at least 2 GiB.
    pub(crate) limit: Option<Size>,
    /// The parts that are ignored when the store is compared with the baseline.
    pub(crate) volatile: Option<Vec<FilePart<RawVolatile>>>,
}

/// The kind of data in a store.
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
    /// The file of a SQLite database.
    Sqlite,
    /// The data folder of a Redis server.
    Redis,
    /// The data folder of a Valkey server.
    Valkey,
    /// A folder of files. Other stores may lie within the folder; they are not counted twice.
    Directory,
}

/// A part of a store that may differ from the baseline. Exactly one of `table`, `column`, `sequence`, `file` and `key` is
/// given.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawVolatile {
    /// A table whose rows and counters are ignored. A PostgreSQL table outside the schema `public` is written
    /// `schema.table`. `*` matches any text; a pattern selects all matching tables and may match none.
    pub(crate) table: Option<String>,
    /// A column, written `table.column`.
    pub(crate) column: Option<String>,
    /// A sequence of PostgreSQL that belongs to no volatile table.
    pub(crate) sequence: Option<String>,
    /// Files by a pattern relative to the store's folder, such as `logs/**`.
    pub(crate) file: Option<String>,
    /// Keys of Redis by a pattern, such as `celery-task-meta-*`.
    pub(crate) key: Option<String>,
    /// The reason why the part is ignored.
    #[schemars(required)]
    pub(crate) reason: Option<String>,
}

/// The commands that stop and start the processes that write to the stores of a running instance.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawWriters {
    /// Commands that stop all writers, in order.
    #[schemars(required, length(min = 1))]
    pub(crate) stop: Option<Vec<FilePart<RawExec>>>,
    /// Commands that start the writers again, in order. They return when the site works again.
    #[schemars(required, length(min = 1))]
    pub(crate) start: Option<Vec<FilePart<RawExec>>>,
    /// A socket in a container that stops and starts the writers faster than the commands. If it cannot be reached, the
    /// commands are run.
    pub(crate) control: Option<RawControl>,
}

/// A stream socket in a container whose server stops and starts the writers. The server reads one line, `stop` or
/// `start`, and when it is done answers with one line: `0`, or the reason of the failure.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawControl {
    /// The service whose container holds the socket. Default: the entry's.
    pub(crate) service: Option<String>,
    /// The absolute path of the socket in the container.
    pub(crate) socket: String,
}

/// A path outside the stores that may differ after a rewind: a log, a cache, a supervisor's state file.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawScratch {
    /// The service whose container holds the path. Default: the entry's.
    pub(crate) service: Option<String>,
    /// The absolute path in the container. `*` and `?` match within one path segment, `**` matches across segments.
    /// Everything below a matching folder is included. A volume is included by its mount point.
    pub(crate) path: String,
    /// The treatment of the path by a rewind. Default: `keep`.
    pub(crate) rewind: Option<RawOnRewind>,
    /// The reason why the path may differ.
    #[schemars(required)]
    pub(crate) reason: Option<String>,
}

/// The treatment of a scratch path by a rewind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum RawOnRewind {
    /// The content is kept: later clients find the data of earlier ones.
    Keep,
    /// The content of the folder is removed while the writers are stopped.
    Empty,
}
