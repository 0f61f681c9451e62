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
//! The resets and `verify` call it. The crate does not decide what a difference means and writes neither to databases
//! nor to folders. Servers must be running and not paused; folders must lie on this host. The content of stores is
//! hostile: links are never followed, names and sizes are bounded.

mod archived;
mod catalog;
pub mod container_socket;
mod content;
mod database;
mod difference;
mod extent;
mod lines;
mod mysql;
mod postgres;
mod reader;
mod redis;
pub mod redis_worker;
mod rested;
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

pub use content::{Content, Digest, FileEntry, FileKind, Rows};
pub use difference::{Comparison, DIFFERENCES_MAX, Difference, ItemKind, compare};
pub use lines::Lines;
pub use rested::{Folders, Rested};

use database::Rest;
use tree::Place;

/// Why a digest could not be computed.
#[derive(Debug, thiserror::Error)]
pub enum DigestError {
    /// The store's folder is not among those that are on this host.
    #[error("find the store {store}: its folder {path} in {service} is not on this host")]
    NoFolder {
        /// The name of the store.
        store: String,
        /// Its place in the container.
        path: String,
        /// The service with the store.
        service: ServiceName,
    },
    /// A file or folder could not be read.
    #[error("read {path} of the store {store}")]
    File {
        /// The name of the store.
        store: String,
        /// What was read, relative to the store.
        path: String,
        /// The error that the system reported.
        #[source]
        cause: std::io::Error,
    },
    /// The folder has more in it than is ever read.
    #[error("read the store {store}: it has more than {limit} files and folders")]
    TooMany {
        /// The name of the store.
        store: String,
        /// The limit that was exceeded.
        limit: usize,
    },
    /// The paths in the folder are longer than what is ever read.
    #[error("read the store {store}: the paths of its files and folders have more than {limit} bytes together")]
    TooLong {
        /// The name of the store.
        store: String,
        /// The limit, in bytes.
        limit: usize,
    },
    /// The server refused or is gone.
    #[error("query the store {store} through the database {database}")]
    Sql {
        /// The name of the store.
        store: String,
        /// The key of the site's `databases`.
        database: String,
        /// The error that the server reported.
        #[source]
        cause: SqlFailure,
    },
    /// A SQLite file could not be read as one.
    #[error("read the rows of the store {store}")]
    Sqlite {
        /// The name of the store.
        store: String,
        /// The error that SQLite reported.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A key-value server refused or is gone.
    #[error("ask the server of the store {store}: {reason}")]
    Redis {
        /// The name of the store.
        store: String,
        /// A description of the error.
        reason: String,
    },
    /// The engine could not run a client in the container.
    #[error("ask the server of the store {store} through a client")]
    Client {
        /// The name of the store.
        store: String,
        /// The error that the engine reported.
        #[source]
        cause: EngineError,
    },
    /// The answer is not what was asked for.
    #[error("understand what the server of the store {store} answered: {answer}")]
    Answer {
        /// The name of the store.
        store: String,
        /// The answer, or the beginning of it.
        answer: String,
    },
    /// The definition calls something volatile that is not there.
    #[error("leave out {part} of the store {store}: there is none; correct `volatile` in the definition")]
    UnknownVolatile {
        /// The name of the store.
        store: String,
        /// The part that is declared volatile.
        part: String,
    },
    /// It took too long.
    #[error(
        "compute the digest of the store {store}: no end within {limit:?}; the definition's `timeout` of the store grants more"
    )]
    TimedOut {
        /// The name of the store.
        store: String,
        /// The limit that was exceeded.
        limit: Duration,
    },
}

impl DigestError {
    /// Returns the cause, if a person can do something specific about it.
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
            | Self::TimedOut { .. } => None,
        }
    }
}

/// What a digest is taken of.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// The engine, for clients in containers.
    pub engine: &'a dyn Engine,
    /// The definition of the site.
    pub site: &'a Site,
    /// The running containers.
    pub incarnation: &'a Incarnation,
    /// The folders of this host that are mounted into them, by service and path in the container. If there are none,
    /// files are read through the engine.
    pub folders: &'a BTreeMap<(ServiceName, String), PathBuf>,
    /// Where databases are copied to while they are read.
    pub copies: &'a Path,
    /// The lines to its servers.
    pub lines: &'a Lines,
    /// Set when its servers take questions; files are read before. None: they do.
    pub started: Option<&'a SetOnce<()>>,
}

impl Subject<'_> {
    /// Waits until the servers take questions.
    async fn servers(&self) {
        if let Some(started) = self.started {
            started.wait().await;
        }
    }
}

/// What need not be computed again. By default everything is.
#[derive(Clone, Copy, Default)]
pub struct Known<'a> {
    /// What was last taken of the same instance since its servers were started: stores whose marks have not moved are
    /// not looked at any closer.
    pub last: Option<&'a Taken>,
    /// What was last taken of the same folders before a rewind that left in place what was not touched: stores of files
    /// whose marks have not moved are not looked at any closer. Of servers it says nothing.
    pub rewound: Option<&'a Taken>,
    /// Which stores were the snapshot's when their servers were started; goes with `rewound`, and is set by then.
    pub rested: Option<&'a OnceLock<Rested>>,
}

/// A digest with what tells later whether it still holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// The contents of the stores.
    pub digest: Digest,
    /// The marks by store; one that was being written to has none.
    marks: BTreeMap<String, String>,
    /// What was found in folders, by store.
    paths: BTreeMap<String, tree::Paths>,
    /// What each store cost, in the definition's order.
    pub costs: Vec<Cost>,
}

/// The cost of one store's digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cost {
    /// The name of the store.
    pub store: String,
    /// The time, others being at work beside it.
    pub took: Duration,
    /// Whether it was hashed. `false`: its mark had not moved.
    pub is_hashed: bool,
}

/// Computes the digest of an instance's stores, all at once.
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

/// The stores that may have been written to since `last` was taken, in the definition's order. Empty: none was, so the
/// digest still holds.
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
struct Look {
    content: Content,
    /// `None`: it was written to meanwhile, or nothing tells whether it was.
    mark: Option<String>,
    /// What was found, where that makes the next look cheaper.
    paths: Option<tree::Paths>,
}

async fn take_store(subject: &Subject<'_>, store: &Store, known: Known<'_>) -> Result<(Look, Cost), DigestError> {
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
        found = Some(Look { content: content.clone(), mark: Some(last_mark.clone()), paths });
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
        // What is not here has no mark: it is read anew each time.
        StoreKind::Sqlite | StoreKind::Directory if subject.folders.is_empty() => Ok(None),
        StoreKind::Sqlite => sqlite::mark(store, folder(subject, store)?).await,
        StoreKind::Directory => {
            let known = last.paths.get(&store.name).cloned();
            tree::mark(subject.site, store, folder(subject, store)?, known).await
        }
    }
}

async fn content(subject: &Subject<'_>, store: &Store, rest: Option<Rest<'_>>) -> Result<Look, DigestError> {
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

/// The folder of this host that holds the store.
fn folder(subject: &Subject<'_>, store: &Store) -> Result<Place, DigestError> {
    let inside = store.folder();
    let mounted =
        subject.folders.iter().find(|((service, path), _)| *service == store.service && is_within(inside, path));
    let missing =
        || DigestError::NoFolder { store: store.name.clone(), path: inside.to_owned(), service: store.service.clone() };
    let ((_, path), folder) = mounted.ok_or_else(missing)?;
    let below = inside.strip_prefix(path.as_str()).unwrap_or_default().trim_start_matches('/');
    Ok(Place { root: folder.clone(), below: below.into() })
}

/// Work on files, away from the threads that serve.
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
