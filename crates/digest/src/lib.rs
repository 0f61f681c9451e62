//! Digests describe the content of an instance's declared stores in a form that can be stored, compared and proven
//! equal.
//!
//! ```text
//!   store of a running instance ──► mark     cheap: moves whenever something was written
//!                               └─► content  tables, counters, objects, files, keys, each with a hash
//!   contents of all stores ───────► Digest ──► compare(baseline, now) ──► differences by name
//! ```
//! A *mark* that has not moved proves that nothing was written since it was read. A mark that has moved proves nothing,
//! because servers also write on their own; the worst case is a needless hash. A mark is valid for one start of a
//! server: after a server is stopped and its files are exchanged, the caller takes a new digest.
//!
//! The resets and `verify` call this crate. It does not interpret differences, and writes neither to databases nor to
//! folders. Servers must be running and not paused; folders must be on this host. The content of stores is untrusted:
//! links are never followed, and the number and length of names are bounded.
//!
//! The crate depends on `launch` and `engine` for running containers, on `storage` for folders, and on `confined` for
//! the answers of servers. Start reading at [`take`], then `content.rs`.

mod archived;
mod budget;
mod catalog;
pub mod container_socket;
mod content;
mod database;
mod difference;
mod lines;
mod mysql;
mod postgres;
mod reader;
mod redis;
pub mod redis_worker;
mod rested;
mod rows;
mod rules;
mod sqlite;
pub mod sqlite_worker;
mod stat_mark;
mod tree;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::sync::SetOnce;

use arenad_engine::{Engine, EngineError};
use arenad_launch::Incarnation;
use arenad_model::cause::Cause;
use arenad_model::error::describe;
use arenad_model::ids::ServiceName;
use arenad_model::site::Site;
use arenad_model::store::{Store, StoreKind, is_within};
use arenad_probes::SqlFailure;
use arenad_seams::inline::{self, Stop};
use arenad_storage::StorageError;

pub use content::{Digest, FileEntry, FileKind, StoreContent, TableDigest};
pub use difference::{ContentDifferences, DIFFERENCES_MAX, ItemDifference, ItemKind, compare, describe_file};
pub use lines::StoreConnections;
pub use rested::{Folders, Rested};
pub use rows::{ROWS_MAX, RowHash, StoreRows, TABLE_ROWS_MAX, TableRow, TableRows, WantedRows};

use database::Rest;
use rows::RowBudget;
use tree::StoreFolder;

/// Why a digest could not be computed.
#[derive(Debug, thiserror::Error)]
pub enum DigestError {
    /// The store's folder is not on this host.
    #[error("find the store {store}: its folder {path} in {service} is not on this host")]
    NoFolder {
        /// Name of the store.
        store: String,
        /// Path of the store's folder in the container.
        path: String,
        /// Service that the store belongs to.
        service: ServiceName,
    },
    /// A file or folder could not be read.
    #[error("read {path} of the store {store}")]
    File {
        /// Name of the store.
        store: String,
        /// Path of the file or folder, relative to the store.
        path: String,
        /// The underlying I/O error.
        #[source]
        cause: std::io::Error,
    },
    /// The folder contains more entries than the limit.
    #[error("read the store {store}: it has more than {limit} files and folders")]
    TooMany {
        /// Name of the store.
        store: String,
        /// Limit that was exceeded.
        limit: usize,
    },
    /// The paths in the folder are longer in total than the limit.
    #[error("read the store {store}: the paths of its files and folders have more than {limit} bytes together")]
    TooLong {
        /// Name of the store.
        store: String,
        /// Limit on the total length of the paths, in bytes.
        limit: usize,
    },
    /// The server rejected a statement or cannot be reached.
    #[error("query the store {store} through the database {database}")]
    Sql {
        /// Name of the store.
        store: String,
        /// Key of the database in the site's `databases`.
        database: String,
        /// The underlying error from the server.
        #[source]
        cause: SqlFailure,
    },
    /// The file is not a readable SQLite database.
    #[error("read the rows of the store {store}")]
    Sqlite {
        /// Name of the store.
        store: String,
        /// The underlying error from SQLite.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A key-value server rejected a command or cannot be reached.
    #[error("ask the server of the store {store}: {reason}")]
    Redis {
        /// Name of the store.
        store: String,
        /// Description of the error.
        reason: String,
    },
    /// The engine could not run a client in the container.
    #[error("ask the server of the store {store} through a client")]
    Client {
        /// Name of the store.
        store: String,
        /// The underlying error from the engine.
        #[source]
        cause: EngineError,
    },
    /// The server's answer does not have the expected form.
    #[error("understand what the server of the store {store} answered: {answer}")]
    Answer {
        /// Name of the store.
        store: String,
        /// The answer, or its beginning.
        answer: String,
    },
    /// The definition declares a part as volatile that does not exist.
    #[error("leave out {part} of the store {store}: there is none; correct `volatile` in the definition")]
    UnknownVolatile {
        /// Name of the store.
        store: String,
        /// The part that is declared volatile.
        part: String,
    },
    /// The store's databases contain no tables, while the server has databases that no store names. The definition
    /// probably names the wrong ones, and comparisons would compare nothing.
    #[error(
        "compare the store {store}: no table is in {databases}, and the server also has {}; name the database that the site uses",
        others.join(", ")
    )]
    EmptyDatabase {
        /// Name of the store.
        store: String,
        /// Keys of the databases in the site's `databases`.
        databases: String,
        /// Names of the server's databases that no store names.
        others: Vec<String>,
    },
    /// The digest was not complete within the store's timeout.
    #[error(
        "compute the digest of the store {store}: no end within {limit:?}; the definition's `timeout` of the store grants more"
    )]
    TimedOut {
        /// Name of the store.
        store: String,
        /// Timeout of the store.
        limit: Duration,
    },
}

impl DigestError {
    /// Returns the cause, if a person can take specific action against it.
    pub fn cause(&self) -> Option<Cause> {
        match self {
            Self::File { cause, .. } => {
                // Files that are read through the engine come out of an archive.
                let archived = cause.get_ref().and_then(|inner| inner.downcast_ref::<StorageError>());
                archived.map_or_else(|| Cause::of_io(cause), StorageError::cause)
            }
            Self::Sql { cause, .. } => cause.cause(),
            Self::Client { cause, .. } => cause.cause(),
            Self::Sqlite { cause, .. } => Cause::stated_by_program(&describe(cause.as_ref())),
            Self::Redis { .. }
            | Self::NoFolder { .. }
            | Self::TooMany { .. }
            | Self::TooLong { .. }
            | Self::Answer { .. }
            | Self::UnknownVolatile { .. }
            | Self::EmptyDatabase { .. }
            | Self::TimedOut { .. } => None,
        }
    }
}

/// The instance whose digest is taken, and access to it.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// Runs clients in the containers.
    pub engine: &'a dyn Engine,
    /// Definition of the site.
    pub site: &'a Site,
    /// Running containers, by service.
    pub incarnation: &'a Incarnation,
    /// Folders of this host that are mounted into the containers, by service and path in the container. If it is empty,
    /// files are read through the engine.
    pub folders: &'a BTreeMap<(ServiceName, String), PathBuf>,
    /// Folder that SQLite databases are copied to before they are read.
    pub copies: &'a Path,
    /// Connections to the instance's servers.
    pub lines: &'a StoreConnections,
    /// Set once the servers accept queries; files are read before that. `None` if the servers already accept queries.
    pub started: Option<&'a SetOnce<()>>,
}

impl Subject<'_> {
    /// Waits until the servers accept queries.
    async fn servers(&self) {
        if let Some(started) = self.started {
            started.wait().await;
        }
    }
}

/// Earlier results that can be reused. By default there are none.
#[derive(Clone, Copy, Default)]
pub struct Known<'a> {
    /// Digest of the same instance, taken since its servers were started: a store whose mark has not moved is not read
    /// again.
    pub last: Option<&'a Taken>,
    /// Digest of the same folders, taken before a rewind that left untouched files in place: a store of files whose
    /// mark has not moved is not read again. Its marks of servers do not apply.
    pub rewound: Option<&'a Taken>,
    /// The stores that equalled the snapshot when their servers were started. It is used together with `rewound`, and
    /// must be set before the servers are queried.
    pub rested: Option<&'a OnceLock<Rested>>,
}

/// A digest together with the marks that later show whether it still holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// Contents of the stores.
    pub digest: Digest,
    /// Marks by store. A store that was written to during the reading has none.
    marks: BTreeMap<String, String>,
    /// Paths that were found in folders, by store.
    paths: BTreeMap<String, tree::Paths>,
    /// Cost of each store, in the definition's order.
    pub costs: Vec<Cost>,
}

/// The cost of one store's digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cost {
    /// Name of the store.
    pub store: String,
    /// Elapsed time; other stores are read concurrently.
    pub took: Duration,
    /// Whether the store was read and hashed; `false` means that its mark had not moved.
    pub is_hashed: bool,
}

/// Computes the digest of an instance's stores; all stores are read concurrently.
///
/// Cancellation: safe at any point; nothing is changed.
pub async fn take(subject: &Subject<'_>, known: Known<'_>) -> Result<Taken, DigestError> {
    let contents = join_all(subject.site.stores.iter().map(|store| take_store(subject, store, known))).await;
    let mut taken = Taken {
        digest: Digest::empty(subject.site),
        marks: BTreeMap::new(),
        paths: BTreeMap::new(),
        costs: Vec::new(),
    };
    for (store, outcome) in subject.site.stores.iter().zip(contents) {
        let (look, cost) = outcome?;
        taken.digest.stores.insert(store.name.clone(), look.content);
        taken.marks.extend(look.mark.map(|mark| (store.name.clone(), mark)));
        taken.paths.extend(look.paths.map(|paths| (store.name.clone(), paths)));
        taken.costs.push(cost);
    }
    Ok(taken)
}

/// Checks a digest that is to become a snapshot's: each database store must contain a table, unless its server has no
/// databases beside those that stores name.
///
/// Errors: [`DigestError::EmptyDatabase`], and those of [`take`].
pub async fn check_reference(subject: &Subject<'_>, taken: &Taken) -> Result<(), DigestError> {
    for store in &subject.site.stores {
        let is_empty = taken.digest.stores.get(&store.name).is_none_or(|content| content.tables.is_empty());
        if let StoreKind::Postgres { databases } | StoreKind::Mysql { databases } = &store.kind
            && is_empty
        {
            in_time(store, database::refuse_wrong(subject, store, databases)).await?;
        }
    }
    Ok(())
}

/// Returns the stores that may have been written to since `last` was taken, in the definition's order. If it is empty,
/// the digest still holds.
pub async fn moved(subject: &Subject<'_>, last: &Taken) -> Result<Vec<String>, DigestError> {
    let marks = subject.site.stores.iter().map(|store| async move {
        let begun = Instant::now();
        let mark = in_time(store, mark(subject, store, last)).await?;
        let is_same = mark.is_some() && mark.as_ref() == last.marks.get(&store.name);
        tracing::debug!(store = store.name, is_same, took = ?begun.elapsed(), "looked at a mark");
        Ok((!is_same).then(|| store.name.clone()))
    });
    let moved: Result<Vec<_>, DigestError> = join_all(marks).await.into_iter().collect();
    Ok(moved?.into_iter().flatten().collect())
}

/// The result of reading one store.
struct StoreReading {
    content: StoreContent,
    /// `None` if the store was written to during the reading, or if writes to it cannot be detected.
    mark: Option<String>,
    /// The paths that were found, if they make the next mark cheaper.
    paths: Option<tree::Paths>,
}

async fn take_store(
    subject: &Subject<'_>,
    store: &Store,
    known: Known<'_>,
) -> Result<(StoreReading, Cost), DigestError> {
    if matches!(store.kind, StoreKind::Postgres { .. } | StoreKind::Mysql { .. } | StoreKind::Redis { .. }) {
        subject.servers().await;
    }
    let begun = Instant::now();
    let is_files = matches!(store.kind, StoreKind::Sqlite | StoreKind::Directory);
    let last = known.last.or(known.rewound.filter(|_| is_files));
    let last = last.and_then(|last| Some((last, last.digest.stores.get(&store.name)?, last.marks.get(&store.name)?)));
    let mut found = None;
    if let Some((last, content, last_mark)) = last
        && in_time(store, mark(subject, store, last)).await?.as_ref() == Some(last_mark)
    {
        let paths = last.paths.get(&store.name).cloned();
        found = Some(StoreReading { content: content.clone(), mark: Some(last_mark.clone()), paths });
    }
    let is_hashed = found.is_none();
    let look = match found {
        Some(look) => look,
        None => {
            let position = known.rested.and_then(OnceLock::get).and_then(|rested| rested.position(store));
            let before = known.rewound.and_then(|before| before.digest.stores.get(&store.name));
            let rest = position.zip(before).map(|(position, content)| Rest { position, content });
            in_time(store, content(subject, store, rest)).await?
        }
    };
    Ok((look, Cost { store: store.name.clone(), took: begun.elapsed(), is_hashed }))
}

async fn in_time<T>(store: &Store, work: impl Future<Output = Result<T, DigestError>>) -> Result<T, DigestError> {
    let late = DigestError::TimedOut { store: store.name.clone(), limit: store.timeout };
    tokio::time::timeout(store.timeout, work).await.unwrap_or(Err(late))
}

async fn mark(subject: &Subject<'_>, store: &Store, last: &Taken) -> Result<Option<String>, DigestError> {
    match &store.kind {
        StoreKind::Postgres { databases } | StoreKind::Mysql { databases } => {
            database::mark(subject, store, databases).await
        }
        StoreKind::Redis { access } => redis::mark(subject, store, access).await,
        // A store outside this host has no mark, so it is read every time.
        StoreKind::Sqlite | StoreKind::Directory if subject.folders.is_empty() => Ok(None),
        StoreKind::Sqlite => sqlite::mark(store, folder(subject, store)?).await,
        StoreKind::Directory => {
            let known = last.paths.get(&store.name).cloned();
            tree::mark(subject.site, store, folder(subject, store)?, known).await
        }
    }
}

async fn content(subject: &Subject<'_>, store: &Store, rest: Option<Rest<'_>>) -> Result<StoreReading, DigestError> {
    match &store.kind {
        StoreKind::Postgres { databases } | StoreKind::Mysql { databases } => {
            database::look(subject, store, databases, rest).await
        }
        StoreKind::Redis { access } => redis::look(subject, store, access).await,
        StoreKind::Sqlite if subject.folders.is_empty() => archived::look_sqlite(subject, store).await,
        StoreKind::Directory if subject.folders.is_empty() => archived::look(subject, store).await,
        StoreKind::Sqlite => sqlite::look(store, folder(subject, store)?, subject.copies).await,
        StoreKind::Directory => tree::look(subject.site, store, folder(subject, store)?).await,
    }
}

/// Reads the rows of tables, each with its key. Nothing holds the site's writers up: each page of rows is a read-only
/// transaction of its own, so the caller checks the rows with [`TableRows::is_of`] against a digest of the same state.
///
/// Tables that no longer exist are left out. Cancellation: safe at any point; nothing is changed.
pub async fn take_rows(subject: &Subject<'_>, wanted: &WantedRows) -> Result<StoreRows, DigestError> {
    let reads = subject.site.stores.iter().filter_map(|store| {
        let tables = wanted.tables.get(&store.name)?;
        Some(async move {
            let mut budget = RowBudget::of(wanted);
            let read = in_time(store, table_rows(subject, store, tables, &mut budget)).await?;
            Ok((store.name.clone(), read))
        })
    });
    join_all(reads).await.into_iter().collect()
}

async fn table_rows(
    subject: &Subject<'_>,
    store: &Store,
    wanted: &BTreeMap<String, u64>,
    budget: &mut RowBudget,
) -> Result<BTreeMap<String, TableRows>, DigestError> {
    match &store.kind {
        StoreKind::Postgres { databases } | StoreKind::Mysql { databases } => {
            database::table_rows(subject, store, databases, wanted, budget).await
        }
        StoreKind::Sqlite if subject.folders.is_empty() => archived::table_rows(subject, store, wanted, budget).await,
        StoreKind::Sqlite => sqlite::table_rows(store, folder(subject, store)?, subject.copies, wanted, budget).await,
        StoreKind::Directory | StoreKind::Redis { .. } => Ok(BTreeMap::new()),
    }
}

/// Returns the content of those files of a store that are texts of at most `most` bytes, by path. The result is empty if
/// the subject has no folders on this host.
pub async fn texts(
    subject: &Subject<'_>,
    store: &str,
    paths: Vec<String>,
    most: u64,
) -> Result<BTreeMap<String, String>, DigestError> {
    let store = subject.site.stores.iter().find(|known| known.name == store);
    let Some(store) = store.filter(|_| !subject.folders.is_empty() && !paths.is_empty()) else {
        return Ok(BTreeMap::new());
    };
    in_time(store, tree::texts(store, folder(subject, store)?, paths, most)).await
}

/// Finds the folder of this host that contains the store.
fn folder(subject: &Subject<'_>, store: &Store) -> Result<StoreFolder, DigestError> {
    let inside = store.folder();
    let mounted =
        subject.folders.iter().find(|((service, path), _)| *service == store.service && is_within(inside, path));
    let missing =
        || DigestError::NoFolder { store: store.name.clone(), path: inside.to_owned(), service: store.service.clone() };
    let ((_, path), folder) = mounted.ok_or_else(missing)?;
    let below = inside.strip_prefix(path.as_str()).unwrap_or_default().trim_start_matches('/');
    Ok(StoreFolder { root: folder.clone(), below: below.into() })
}

/// Runs work on files on a blocking thread.
async fn blocking<T: Send + 'static>(
    store: &Store,
    work: impl FnOnce(&Stop) -> Result<T, DigestError> + Send + 'static,
) -> Result<T, DigestError> {
    let gone = |error: tokio::task::JoinError| DigestError::File {
        store: store.name.clone(),
        path: String::new(),
        cause: std::io::Error::other(error),
    };
    inline::stoppable(work).await.unwrap_or_else(|error| Err(gone(error)))
}
