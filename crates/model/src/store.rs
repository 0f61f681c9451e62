//! Stores: the declared places where a site keeps state, what of them may differ from the baseline, and who writes to them.

use std::collections::BTreeMap;
use std::time::Duration;

use super::ids::ServiceName;
use super::site::{ExecStep, Site};

/// The longest that finding out what is in a store may take, where its definition says nothing.
pub const STORE_TIMEOUT: Duration = Duration::from_secs(120);

/// One declared place where a site keeps state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    /// The name within the site, such as `database` or `files`.
    pub name: String,
    /// The service in whose container it lies.
    pub service: ServiceName,
    /// Where it lies in the container: absolute, without a slash at its end; of [`StoreKind::Sqlite`] the file, of all
    /// others the folder.
    pub path: String,
    /// What lies there.
    pub kind: StoreKind,
    /// What does not count when the store is compared with the baseline, in file order.
    pub volatile: Vec<Volatile>,
    /// The longest that finding out what is in it may take.
    pub timeout: Duration,
    /// How much it may grow to, in bytes, where that can be limited; `None`: as much as a store of its size usually may.
    pub limit_bytes: Option<u64>,
}

/// How much the stores of one folder may grow to, where that can be limited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StateLimit {
    /// What is declared, of all stores together, in bytes; `None`: nothing is.
    pub declared_bytes: Option<u64>,
    /// Whether some of them have the usual limit, which is added then.
    pub has_usual: bool,
}

/// What lies in a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreKind {
    /// The data folder of a PostgreSQL server.
    Postgres {
        /// The keys in [`Site::databases`] through which it is read; at least one. Only these databases are compared.
        databases: Vec<String>,
    },
    /// The data folder of a MySQL or MariaDB server.
    Mysql {
        /// The keys in [`Site::databases`] through which it is read; at least one. Only these databases are compared.
        databases: Vec<String>,
    },
    /// A SQLite database; the files that SQLite keeps beside it belong to it.
    Sqlite,
    /// The data folder of a Redis or Valkey server.
    Redis {
        /// How the server is asked.
        access: RedisAccess,
    },
    /// Files.
    Directory,
}

impl StoreKind {
    /// The word for it in definitions.
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

/// How a Redis or Valkey server is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RedisAccess {
    /// Over the instance's network.
    Tcp {
        /// The port inside the container.
        port: u16,
    },
    /// Over a socket in the server's container.
    Socket {
        /// Its path there, absolute.
        path: String,
    },
    /// Through a client in the server's container, for servers that listen on a socket alone.
    Client {
        /// The program and the arguments that lead it to the server, such as `valkey-cli -s /run/valkey.sock`.
        command: Vec<String>,
    },
}

/// A part of a store that may differ from the baseline without the site being another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volatile {
    /// The part.
    pub part: VolatilePart,
    /// Why it does not count, for whoever reads the definition or a comparison.
    pub reason: String,
}

/// What a [`Volatile`] leaves out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VolatilePart {
    /// The rows of a table and the counters that belong to it, not its shape. Tables of PostgreSQL outside of the schema
    /// `public` carry their schema: `audit.log`. A `*` in the name stands for anything, and then it may mean none.
    Table(String),
    /// One column of a table.
    Column {
        /// The table, named as in [`VolatilePart::Table`].
        table: String,
        /// The column.
        column: String,
    },
    /// A sequence of PostgreSQL, named like a table.
    Sequence(String),
    /// Files by a pattern relative to the store's folder: `*` and `?` stay within a folder's name, `**` does not.
    File(String),
    /// Keys of Redis by a pattern in which `*` stands for anything.
    Key(String),
}

/// The commands by which whatever writes to the stores of a running instance is brought to rest and back to work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writers {
    /// When these have succeeded, in order, no process has a file of any store open, or anything in memory that it would
    /// write there.
    pub stop: Vec<ExecStep>,
    /// When these have succeeded, in order, the site works again, on what then lies in the stores.
    pub start: Vec<ExecStep>,
    /// What does the same without a command, where it can be reached.
    pub control: Option<Control>,
}

/// A stream socket in a container whose server brings the writers to rest and back to work.
///
/// It reads one line, `stop` or `start`, does what the commands of that name do, answers with one line, `0` or why not, and
/// closes the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Control {
    /// The service in whose container it lies.
    pub service: ServiceName,
    /// Its path there, absolute.
    pub socket: String,
}

impl Store {
    /// The keys in [`Site::databases`] through which it is read; empty where it is read otherwise.
    pub fn databases(&self) -> &[String] {
        match &self.kind {
            StoreKind::Postgres { databases } | StoreKind::Mysql { databases } => databases,
            StoreKind::Sqlite | StoreKind::Redis { .. } | StoreKind::Directory => &[],
        }
    }

    /// The declaration that leaves nothing of the store's content to compare, if there is one. What remains, such as the shape
    /// of tables, says nothing of what was written.
    pub(crate) fn left_out_whole(&self) -> Option<&Volatile> {
        self.volatile.iter().find(|volatile| match &volatile.part {
            VolatilePart::File(pattern) => pattern.split('/').all(|part| matches!(part, "*" | "**")),
            VolatilePart::Table(pattern) | VolatilePart::Key(pattern) => pattern.chars().all(|letter| letter == '*'),
            VolatilePart::Column { .. } | VolatilePart::Sequence(_) => false,
        })
    }

    /// The folder that holds all of the store.
    pub fn folder(&self) -> &str {
        match self.kind {
            StoreKind::Sqlite => self.path.rsplit_once('/').map_or("", |(folder, _)| folder),
            _ => &self.path,
        }
    }
}

impl Site {
    /// The store of that name.
    pub fn store(&self, name: &str) -> Option<&Store> {
        self.stores.iter().find(|store| store.name == name)
    }

    /// The outermost folders that hold the stores of each service, by service and path: what is mounted from the state
    /// root. None lies in another.
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
    /// The limit of a folder of [`Site::state_mounts`].
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

/// Whether a path is a folder or lies in it. Both absolute, without a slash at their end.
pub fn is_within(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The files that SQLite keeps beside a database: what follows its name in theirs.
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
