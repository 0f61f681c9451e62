//! The store's connection to SQLite: a pool, or one connection whose statements run in place.
//!
//! SQLite itself syncs nothing to disk before a checkpoint. A durable statement is therefore followed by a flush of the
//! WAL. The flush does not block other writers, and one flush serves every commit that was made before it began.
//!
//! In place, a statement completes when its future is first polled, so that the order of events in a daemon is
//! determined by the order of its tasks alone.

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use sqlx::sqlite::{SqliteConnection, SqlitePool, SqliteQueryResult, SqliteRow, SqliteStatement, SqliteTypeInfo};
use sqlx::{Either, Execute, Executor, SqlStr, Sqlite};
use tokio::sync::{Mutex, OwnedMutexGuard};

use arenad_seams::inline::{self, Inline};

/// A connection that executes statements.
#[derive(Clone)]
pub(super) enum Connection {
    /// Runs statements on SQLite's own threads. A commit survives a crash of the daemon, but possibly not one of the
    /// host.
    Pool(SqlitePool),
    /// Like `Pool`, but a statement returns only when its changes are on disk.
    Durable(SqlitePool, Arc<Flusher>),
    /// Runs statements in place, on the thread that polls them.
    Inline(InlineConnection),
}

/// A single connection whose statements run in place.
#[derive(Clone)]
pub(super) struct InlineConnection {
    pub(super) how: Inline,
    pub(super) connection: Arc<Mutex<SqliteConnection>>,
}

impl InlineConnection {
    /// Locks the connection. The lock is never contended: no statement yields, and no transaction is left open over an
    /// await that waits.
    async fn lock(&self) -> OwnedMutexGuard<SqliteConnection> {
        self.connection.clone().lock_owned().await
    }

    async fn run<T>(&self, doing: &str, work: impl FnOnce() -> Result<T, sqlx::Error>) -> Result<T, sqlx::Error> {
        self.how.run(doing, work).await.map_err(|_| full())?
    }
}

/// Returns the error for a transaction that has ended. It cannot occur in practice: the call that ends a transaction
/// consumes it.
fn ended() -> sqlx::Error {
    sqlx::Error::Protocol("the transaction has ended".to_owned())
}

/// Returns the error that SQLite reports for a full disk.
fn full() -> sqlx::Error {
    sqlx::Error::Io(std::io::Error::new(std::io::ErrorKind::StorageFull, "database or disk is full"))
}

impl Connection {
    /// Begins a transaction, which is rolled back if it is dropped without a commit.
    pub(super) async fn begin(&self) -> Result<Transaction, sqlx::Error> {
        match self {
            Self::Pool(pool) => Ok(Transaction::Pool { open: Some(pool.begin().await?), flusher: None }),
            Self::Durable(pool, flusher) => {
                Ok(Transaction::Pool { open: Some(pool.begin().await?), flusher: Some(flusher.clone()) })
            }
            Self::Inline(inline) => {
                let mut connection = inline.lock().await;
                inline::wait(sqlx::query("BEGIN").execute(&mut *connection))?;
                Ok(Transaction::Inline { how: inline.clone(), connection, is_open: true })
            }
        }
    }

    pub(super) async fn close(&self) {
        if let Self::Pool(pool) | Self::Durable(pool, _) = self {
            pool.close().await;
        }
    }
}

/// A transaction on either kind of connection.
pub(super) enum Transaction {
    /// A transaction on a connection of the pool.
    Pool {
        /// The open transaction; `None` once it has ended.
        open: Option<sqlx::Transaction<'static, Sqlite>>,
        /// Flushes the WAL after the commit; `None` if the commit need not be durable.
        flusher: Option<Arc<Flusher>>,
    },
    /// A transaction whose statements run in place.
    Inline {
        /// The connection through which statements and the commit are run.
        how: InlineConnection,
        /// The locked connection, held until the transaction ends.
        connection: OwnedMutexGuard<SqliteConnection>,
        /// Whether the transaction has been neither committed nor rolled back.
        is_open: bool,
    },
}

impl Transaction {
    pub(super) async fn commit(mut self) -> Result<(), sqlx::Error> {
        match &mut self {
            Self::Pool { open, flusher } => {
                open.take().ok_or_else(ended)?.commit().await?;
                match flusher {
                    Some(flusher) => flusher.flush().await,
                    None => Ok(()),
                }
            }
            Self::Inline { how, .. } => {
                let how = how.clone();
                how.run("commit", || self.end("COMMIT")).await
            }
        }
    }

    fn end(&mut self, statement: &'static str) -> Result<(), sqlx::Error> {
        if let Self::Inline { connection, is_open, .. } = self
            && std::mem::take(is_open)
        {
            inline::wait(sqlx::query(statement).execute(&mut **connection))?;
        }
        Ok(())
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        // The error is dropped: a connection that cannot roll back cannot do anything else either.
        let _ = self.end("ROLLBACK");
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connection")
    }
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Transaction")
    }
}

/// Flushes committed transactions to disk.
pub(super) struct Flusher {
    wal: PathBuf,
    /// Held while the file is flushed, so that one flush runs at a time.
    turn: Mutex<()>,
    /// The number of commits that have requested a flush.
    asked: AtomicU64,
    /// The number of those commits that are on disk.
    done: AtomicU64,
}

impl Flusher {
    pub(super) fn of(database: &Path) -> Arc<Self> {
        let mut wal = database.as_os_str().to_owned();
        wal.push("-wal");
        let (turn, asked, done) = (Mutex::new(()), AtomicU64::new(0), AtomicU64::new(0));
        Arc::new(Self { wal: wal.into(), turn, asked, done })
    }

    /// Returns the path of the WAL file.
    pub(super) fn wal(&self) -> &Path {
        &self.wal
    }

    /// Returns once everything that was committed before the call is on disk.
    async fn flush(&self) -> Result<(), sqlx::Error> {
        let mine = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        let _turn = self.turn.lock().await;
        if self.done.load(Ordering::SeqCst) >= mine {
            return Ok(());
        }
        let these = self.asked.load(Ordering::SeqCst);
        let wal = self.wal.clone();
        let flushed = tokio::task::spawn_blocking(move || File::open(wal)?.sync_data()).await;
        flushed.map_err(std::io::Error::other).flatten().map_err(sqlx::Error::Io)?;
        self.done.store(these, Ordering::SeqCst);
        Ok(())
    }
}

/// Runs a statement and returns all its results once its changes are on disk.
async fn flushed<'q>(
    pool: &SqlitePool,
    flusher: &Flusher,
    query: impl Execute<'q, Sqlite> + 'q,
) -> Result<Vec<QueryStep>, sqlx::Error> {
    // Read to the end: a statement that returns rows is committed after the last row.
    let all: Vec<Result<QueryStep, sqlx::Error>> = pool.fetch_many(query).collect().await;
    let steps = all.into_iter().collect::<Result<Vec<_>, _>>()?;
    flusher.flush().await?;
    Ok(steps)
}

type QueryStep = Either<SqliteQueryResult, SqliteRow>;

/// Runs a statement at once and returns all its results.
fn steps<'q>(
    connection: &mut SqliteConnection,
    query: impl Execute<'q, Sqlite> + 'q,
) -> Result<Vec<QueryStep>, sqlx::Error> {
    let all: Vec<Result<QueryStep, sqlx::Error>> = inline::wait(connection.fetch_many(query).collect());
    all.into_iter().collect()
}

fn as_stream<'e>(
    steps: impl Future<Output = Result<Vec<QueryStep>, sqlx::Error>> + Send + 'e,
) -> BoxStream<'e, Result<QueryStep, sqlx::Error>> {
    stream::once(steps)
        .flat_map(|steps| match steps {
            Ok(steps) => stream::iter(steps.into_iter().map(Ok).collect::<Vec<_>>()),
            Err(error) => stream::iter(vec![Err(error)]),
        })
        .boxed()
}

fn first_row(steps: Vec<QueryStep>) -> Option<SqliteRow> {
    steps.into_iter().find_map(Either::right)
}

impl<'c> Executor<'c> for &'c Connection {
    type Database = Sqlite;

    fn fetch_many<'e, 'q: 'e, E>(self, query: E) -> BoxStream<'e, Result<QueryStep, sqlx::Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Sqlite>,
    {
        match self {
            Connection::Pool(pool) => pool.fetch_many(query),
            Connection::Durable(pool, flusher) => as_stream(flushed(pool, flusher, query)),
            Connection::Inline(inline) => as_stream(async move {
                let mut connection = inline.lock().await;
                inline.run("statement", || steps(&mut connection, query)).await
            }),
        }
    }

    fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, Result<Option<SqliteRow>, sqlx::Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Sqlite>,
    {
        match self {
            Connection::Pool(pool) => pool.fetch_optional(query),
            Connection::Durable(pool, flusher) => {
                Box::pin(async move { flushed(pool, flusher, query).await.map(first_row) })
            }
            Connection::Inline(inline) => Box::pin(async move {
                let mut connection = inline.lock().await;
                inline.run("statement", || steps(&mut connection, query)).await.map(first_row)
            }),
        }
    }

    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &'e [SqliteTypeInfo],
    ) -> BoxFuture<'e, Result<SqliteStatement, sqlx::Error>>
    where
        'c: 'e,
    {
        match self {
            Connection::Pool(pool) | Connection::Durable(pool, _) => pool.prepare_with(sql, parameters),
            Connection::Inline(inline) => Box::pin(async move {
                let mut connection = inline.lock().await;
                inline::wait(connection.prepare_with(sql, parameters))
            }),
        }
    }
}

impl<'c> Executor<'c> for &'c mut Transaction {
    type Database = Sqlite;

    fn fetch_many<'e, 'q: 'e, E>(self, query: E) -> BoxStream<'e, Result<QueryStep, sqlx::Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Sqlite>,
    {
        match self {
            Transaction::Pool { open: Some(transaction), .. } => (&mut **transaction).fetch_many(query),
            Transaction::Pool { open: None, .. } => as_stream(async { Err(ended()) }),
            Transaction::Inline { how, connection, .. } => {
                as_stream(async move { how.run("statement", || steps(connection, query)).await })
            }
        }
    }

    fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, Result<Option<SqliteRow>, sqlx::Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Sqlite>,
    {
        match self {
            Transaction::Pool { open: Some(transaction), .. } => (&mut **transaction).fetch_optional(query),
            Transaction::Pool { open: None, .. } => Box::pin(async { Err(ended()) }),
            Transaction::Inline { how, connection, .. } => {
                Box::pin(async move { how.run("statement", || steps(connection, query)).await.map(first_row) })
            }
        }
    }

    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &'e [SqliteTypeInfo],
    ) -> BoxFuture<'e, Result<SqliteStatement, sqlx::Error>>
    where
        'c: 'e,
    {
        match self {
            Transaction::Pool { open: Some(transaction), .. } => (&mut **transaction).prepare_with(sql, parameters),
            Transaction::Pool { open: None, .. } => Box::pin(async { Err(ended()) }),
            Transaction::Inline { connection, .. } => {
                Box::pin(async move { inline::wait(connection.prepare_with(sql, parameters)) })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use sqlx::Executor as _;

    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn only_what_is_to_be_on_disk_is_flushed_and_is_before_it_is_done() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.db");
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&path).create_if_missing(true);
        let options = options.journal_mode(sqlx::sqlite::SqliteJournalMode::Wal);
        let pool = sqlx::sqlite::SqlitePoolOptions::new().max_connections(1).connect_with(options);
        let pool = pool.await.expect("a database");
        let flusher = Flusher::of(&path);
        let flushed = || flusher.done.load(Ordering::SeqCst);
        let (quick, durable) = (Connection::Pool(pool.clone()), Connection::Durable(pool, flusher.clone()));
        quick.execute("CREATE TABLE a (b INTEGER)").await.expect("a table");
        assert_eq!(flushed(), 0);
        durable.execute("INSERT INTO a VALUES (1)").await.expect("a row");
        assert_eq!(flushed(), 1);
        durable.fetch_one("INSERT INTO a VALUES (2) RETURNING b").await.expect("a row");
        assert_eq!(flushed(), 2);
        let mut transaction = durable.begin().await.expect("a transaction");
        transaction.execute("INSERT INTO a VALUES (3)").await.expect("a row");
        assert_eq!(flushed(), 2);
        transaction.commit().await.expect("committed");
        assert_eq!(flushed(), 3);
        std::fs::rename(&flusher.wal, folder.path().join("gone")).expect("renamed");
        durable.execute("INSERT INTO a VALUES (4)").await.expect_err("nothing could be flushed");
    }
}
