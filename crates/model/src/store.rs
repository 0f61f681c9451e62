//! Stores: the declared places where a site keeps state, the parts of them that may differ from the baseline, and the
//! processes that write to them.

use std::collections::BTreeMap;
use std::time::Duration;

use super::configure::ExecStep;
use super::ids::ServiceName;
use super::site::Site;

/// The default time limit for reading the content of a store.
pub const STORE_TIMEOUT: Duration = Duration::from_secs(120);

/// One declared place where a site keeps state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    /// The name within the site, such as `database` or `files`.
    pub name: String,
    /// The service whose container has the store.
    pub service: ServiceName,
    /// The path in the container, absolute and without a slash at its end: the file for [`StoreKind::Sqlite`], and the
    /// folder for all other kinds.
    pub path: String,
    /// The kind of data in the store.
    pub kind: StoreKind,
    /// The parts that are left out of the comparison with the baseline, in file order.
    pub volatile: Vec<Volatile>,
    /// The time limit for reading the content of the store.
    pub timeout: Duration,
    /// The size to which the store may grow, in bytes, if the file system can enforce a limit. `None` means the usual
    /// limit for a store of its size.
    pub limit_bytes: Option<u64>,
}

/// The limit on the size of the stores in one folder, if the file system can enforce a limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StateLimit {
    /// The sum of the declared limits, in bytes. `None` means that no store declares one.
    pub declared_bytes: Option<u64>,
    /// Whether some of the stores have the usual limit, which is added to the declared one.
    pub has_usual: bool,
}

/// The kind of data in a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreKind {
    /// The data folder of a PostgreSQL server.
    Postgres {
        /// The keys in [`Site::databases`] through which the store is read. There is at least one, and only these
        /// databases are compared.
        databases: Vec<String>,
    },
    /// The data folder of a MySQL or MariaDB server.
    Mysql {
        /// The keys in [`Site::databases`] through which the store is read. There is at least one, and only these
        /// databases are compared.
        databases: Vec<String>,
    },
    /// A SQLite database, including the files that SQLite keeps beside it.
    Sqlite,
    /// The data folder of a Redis or Valkey server.
    Redis {
        /// The way in which queries reach the server.
        access: RedisAccess,
    },
    /// A folder of files.
    Directory,
}

impl StoreKind {
    /// Returns the name in definitions.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Postgres { .. } => "postgres",
            Self::Mysql { .. } => "mysql",
            Self::Sqlite => "sqlite",
            Self::Redis { .. } => "redis",
            Self::Directory => "directory",
        }
    }
}

/// The way in which queries reach a Redis or Valkey server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RedisAccess {
    /// Through a TCP connection over the instance's network.
    Tcp {
        /// The port inside the container.
        port: u16,
    },
    /// Through a socket in the server's container.
    Socket {
        /// The absolute path of the socket in the container.
        path: String,
    },
    /// Through a client in the server's container, for servers that listen on a socket only.
    Client {
        /// The program and the arguments by which it finds the server, such as `valkey-cli -s /run/valkey.sock`.
        command: Vec<String>,
    },
}

/// A part of a store that may differ from the baseline although the site counts as unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volatile {
    /// The part of the store.
    pub part: VolatilePart,
    /// The reason why the part is left out, for readers of the definition or of a comparison.
    pub reason: String,
}

/// A part of a store that is left out of comparisons.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VolatilePart {
    /// The rows of a table and the counters that belong to it, but not its structure. The name of a PostgreSQL table
    /// outside the schema `public` includes the schema: `audit.log`. A `*` in the name matches any text, and such a
    /// pattern may match no table at all.
    Table(String),
    /// One column of a table.
    Column {
        /// The table, named as in [`VolatilePart::Table`].
        table: String,
        /// The name of the column.
        column: String,
    },
    /// A sequence of PostgreSQL, named like a table.
    Sequence(String),
    /// The files that match a pattern relative to the store's folder. `*` and `?` match within one folder's name, and
    /// `**` also matches across folders.
    File(String),
    /// The keys of Redis that match a pattern. `*` matches any text.
    Key(String),
}

/// The commands that stop and start the processes that write to the stores of a running instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writers {
    /// The commands that stop the writers, in order. After they succeed, no process has a file of any store open, or
    /// data in memory that it would write there.
    pub stop: Vec<ExecStep>,
    /// The commands that start the writers, in order. After they succeed, the site works with the current content of
    /// the stores.
    pub start: Vec<ExecStep>,
    /// The server that does the same without commands, for containers that run on this host.
    pub control: Option<Control>,
}

/// A stream socket in a container whose server stops and starts the writers.
///
/// The server reads one line, `stop` or `start`, does the same as the commands of that name, answers with one line, and
/// closes the connection. The answer is `0`, or the reason for a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Control {
    /// The service whose container has the socket.
    pub service: ServiceName,
    /// The absolute path of the socket in the container.
    pub socket: String,
}

impl Store {
    /// Returns the keys in [`Site::databases`] through which the store is read. Kinds that are read otherwise have
    /// none.
    pub fn databases(&self) -> &[String] {
        match &self.kind {
            StoreKind::Postgres { databases } | StoreKind::Mysql { databases } => databases,
            StoreKind::Sqlite | StoreKind::Redis { .. } | StoreKind::Directory => &[],
        }
    }

    /// Returns the declaration that leaves out the whole content of the store, if there is one. The remaining parts,
    /// such as the structure of tables, do not reveal what was written.
    pub(crate) fn left_out_whole(&self) -> Option<&Volatile> {
        self.volatile.iter().find(|volatile| match &volatile.part {
            VolatilePart::File(pattern) => pattern.split('/').all(|part| matches!(part, "*" | "**")),
            VolatilePart::Table(pattern) | VolatilePart::Key(pattern) => pattern.chars().all(|letter| letter == '*'),
            VolatilePart::Column { .. } | VolatilePart::Sequence(_) => false,
        })
    }

    /// Returns the folder that contains the whole store.
    pub fn folder(&self) -> &str {
        match self.kind {
            StoreKind::Sqlite => self.path.rsplit_once('/').map_or("", |(folder, _)| folder),
            _ => &self.path,
        }
    }
}

impl Site {
    /// Returns the store of that name.
    pub fn store(&self, name: &str) -> Option<&Store> {
        self.stores.iter().find(|store| store.name == name)
    }

    /// Returns the folders that are mounted from the state root, by service and path: the outermost folders that
    /// contain the stores of each service. No folder contains another.
    pub fn state_mounts(&self) -> Vec<(ServiceName, String)> {
        let mut folders: BTreeMap<&ServiceName, Vec<&str>> = BTreeMap::new();
        for store in &self.stores {
            folders.entry(&store.service).or_default().push(store.folder());
        }
        let outermost = |mut folders: Vec<&'_ str>| {
            folders.sort_by_key(|folder| folder.len());
            let mut kept: Vec<String> = Vec::new();
            for folder in folders {
                if !kept.iter().any(|outer| is_within(folder, outer)) {
                    kept.push(folder.to_owned());
                }
            }
            kept.sort();
            kept
        };
        let mounts = folders
            .into_iter()
            .flat_map(|(service, folders)| outermost(folders).into_iter().map(move |folder| (service.clone(), folder)));
        mounts.collect()
    }
}

impl Site {
    /// Returns the limit of a folder of [`Site::state_mounts`].
    pub fn state_limit(&self, service: &ServiceName, folder: &str) -> StateLimit {
        let within = self.stores.iter().filter(|store| store.service == *service && is_within(store.folder(), folder));
        within.fold(StateLimit::default(), |limit, store| match store.limit_bytes {
            None => StateLimit { has_usual: true, ..limit },
            Some(bytes) => {
                let bytes = limit.declared_bytes.unwrap_or_default().saturating_add(bytes);
                StateLimit { declared_bytes: Some(bytes), ..limit }
            }
        })
    }
}

/// Whether a path is the folder or is in it. Both are absolute and have no slash at their end.
pub fn is_within(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The suffixes of the files that SQLite keeps beside a database.
pub const SQLITE_COMPANIONS: [&str; 3] = ["-wal", "-shm", "-journal"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_lies_in_a_folder_and_not_in_one_whose_name_it_continues() {
        assert!(is_within("/data", "/data") && is_within("/data/a/b", "/data"));
        assert!(!is_within("/database", "/data") && !is_within("/", "/data"));
    }

    #[test]
    fn a_pattern_for_everything_leaves_nothing_to_compare() {
        let store = |kind: StoreKind, part: VolatilePart| Store {
            name: "s".into(),
            service: ServiceName::parse("web").expect("valid"),
            path: "/data".into(),
            kind,
            volatile: vec![Volatile { part, reason: "a test".into() }],
            timeout: Duration::from_secs(1),
            limit_bytes: None,
        };
        let file = |pattern: &str| store(StoreKind::Directory, VolatilePart::File(pattern.into()));
        assert!(["**", "*", "**/*"].iter().all(|pattern| file(pattern).left_out_whole().is_some()));
        assert!(["logs/**", "*.log", "**/x"].iter().all(|pattern| file(pattern).left_out_whole().is_none()));
        let databases = StoreKind::Postgres { databases: vec!["db".into()] };
        assert!(store(databases.clone(), VolatilePart::Table("*".into())).left_out_whole().is_some());
        assert!(store(databases, VolatilePart::Table("cache_*".into())).left_out_whole().is_none());
    }

    #[test]
    fn the_folder_of_a_file_is_what_is_around_it() {
        let store = |kind, path: &str| Store {
            name: "s".into(),
            service: ServiceName::parse("web").expect("valid"),
            path: path.into(),
            kind,
            volatile: Vec::new(),
            timeout: Duration::from_secs(1),
            limit_bytes: None,
        };
        assert_eq!(store(StoreKind::Sqlite, "/data/a.sqlite3").folder(), "/data");
        assert_eq!(store(StoreKind::Directory, "/data/media").folder(), "/data/media");
    }
}
