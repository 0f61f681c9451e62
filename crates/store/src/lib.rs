//! The daemon's store: one SQLite file in the state directory, in WAL mode.
//!
//! Data that a later daemon depends on is written to disk before it takes effect. Events, rounds, standbys and digests
//! reach the disk with the next such write; losing the newest of them in a crash of the host costs nothing.
//!
//! No other module holds the database pool. The store holds intent and identity: which instances should be up, which
//! generation is the newest, which snapshots exist. The actual state of containers is always read from the engine.
//!
//! The crate depends on `model`, and on `digest`, `accounts` and `export` for the values that it stores. Start reading
//! at [`Store`], then `migrations/`.

mod asked_resets;
mod connection;
mod digests;
mod engines;
mod environments;
mod episodes;
mod event_log;
mod events;
mod imports;
mod instances;
mod resets;
mod rounds;
mod schema;
mod sessions;
mod snapshots;
mod standbys;
mod writes;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteLockingMode, SqlitePool, SqlitePoolOptions,
    SqliteSynchronous,
};
use sqlx::{AssertSqlSafe, ConnectOptions};

use self::connection::{Connection, Flusher, InlineConnection};
use arenad_model::cause::Cause;
use arenad_model::episode::ids::EpisodeId;
use arenad_model::instance::InstanceId;
use arenad_model::snapshot::SnapshotId;
use arenad_seams::inline::{self, Inline};
use arenad_seams::wall_clock::WallClock;

pub use engines::{SnapshotPlace, StoredEngine};
pub use environments::StoredEnvironment;
pub use episodes::{
    EpisodeChanges, EpisodePart, NewEpisodeEvent, NewEvaluation, StoredEpisode, StoredEpisodeEvent, StoredEpisodeLife,
    StoredEvaluation, StoredSlot,
};
pub use event_log::{EventCursor, EventLog, FollowError, next_rows};
pub use events::StoredEvent;
pub use imports::{ImportOutline, StoredImport};
pub use instances::{NewGeneration, NewServing, ServingGeneration, StoredInstance, StoredResetRequest};
pub use resets::{NewReset, StageTime, StoredCompared, StoredReset};
pub use rounds::{NewRound, StoredRound};
pub use standbys::StoredStandby;
pub use writes::StoredWrites;

/// The reason why an operation of the store failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database could not be opened or brought to the current schema.
    #[error("open the store {path}")]
    Open {
        /// The path of the database file.
        path: String,
        /// The error that SQLite reported.
        #[source]
        cause: sqlx::Error,
    },
    /// A migration failed; the file is left as it was before that migration.
    #[error("bring the store {path} to the current schema")]
    Migrate {
        /// The path of the database file.
        path: String,
        /// The error that the migration reported.
        #[source]
        cause: sqlx::migrate::MigrateError,
    },
    /// SQLite refused or could not execute a statement.
    #[error("{doing} in the store")]
    Statement {
        /// The action that the statement was part of.
        doing: &'static str,
        /// The error that SQLite reported.
        #[source]
        cause: sqlx::Error,
    },
    /// The snapshot is in use by instances that are not down.
    #[error("remove snapshot {snapshot}: {} uses it", InstanceId::listed(users))]
    InUse {
        /// The id of the snapshot that was to be removed.
        snapshot: SnapshotId,
        /// The ids of the instances that use the snapshot.
        users: Vec<InstanceId>,
    },
    /// A row holds a value that this version cannot parse.
    #[error("understand `{text}` of {what} in the store")]
    Row {
        /// The kind of value that the column holds.
        what: &'static str,
        /// The value that could not be parsed.
        text: String,
    },
}

impl StoreError {
    /// Returns the cause, if a person can take specific action against it.
    pub fn cause(&self) -> Option<Cause> {
        match self {
            Self::Open { cause, .. } | Self::Statement { cause, .. } => cause_of(cause),
            Self::Migrate { cause: sqlx::migrate::MigrateError::Execute(cause), .. } => cause_of(cause),
            Self::Migrate { .. } | Self::InUse { .. } | Self::Row { .. } => None,
        }
    }
}

/// The result code of SQLite for a full disk or database file. Source: `SQLITE_FULL` in
/// <https://sqlite.org/rescode.html>.
const SQLITE_FULL: &str = "13";

fn cause_of(error: &sqlx::Error) -> Option<Cause> {
    match error {
        sqlx::Error::Io(error) => Cause::of_io(error),
        sqlx::Error::Database(error) => (error.code().as_deref() == Some(SQLITE_FULL)).then_some(Cause::NoSpace),
        _ => None,
    }
}

/// Adds the action to the error of a statement.
trait Doing<T> {
    fn doing(self, doing: &'static str) -> Result<T, StoreError>;
}

impl<T> Doing<T> for Result<T, sqlx::Error> {
    fn doing(self, doing: &'static str) -> Result<T, StoreError> {
        self.map_err(|cause| StoreError::Statement { doing, cause })
    }
}

/// The size of the WAL from which a checkpoint is worthwhile, in bytes.
const WORTH_A_CHECKPOINT: u64 = 4 << 20;

/// The connection that moves the WAL into the database.
#[derive(Debug, Clone)]
struct Keeper {
    pool: SqlitePool,
    wal: PathBuf,
}

/// A database for stores whose statements run in place, one after the other; each statement sees everything committed
/// before it.
pub struct InlineDatabase {
    connection: Arc<tokio::sync::Mutex<SqliteConnection>>,
}

impl InlineDatabase {
    /// Opens a database file that exists and has the current schema. Changes are never flushed to disk.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let options = options(path)
            .journal_mode(SqliteJournalMode::Memory)
            .locking_mode(SqliteLockingMode::Exclusive)
            .synchronous(SqliteSynchronous::Off);
        let shown = || path.display().to_string();
        let opened = inline::wait(options.connect()).map_err(|cause| StoreError::Open { path: shown(), cause })?;
        Ok(Self { connection: Arc::new(tokio::sync::Mutex::new(opened)) })
    }
}

/// The store of one installation.
#[derive(Clone)]
pub struct DaemonStore {
    /// Runs statements whose changes must be on disk when they return.
    durable: Connection,
    /// Runs statements that need not be durable, and reads whose result decides a later write.
    quick: Connection,
    /// Runs pure reads that clients wait for, so that they do not queue behind writes.
    readers: Connection,
    /// Moves the WAL into the database; `None` for a store in place.
    keeper: Option<Keeper>,
    /// The clock that dates rows.
    clock: WallClock,
}

impl DaemonStore {
    /// Opens the database file, creating it if it does not exist, and applies the missing migrations.
    pub async fn open(path: &Path, clock: WallClock) -> Result<Self, StoreError> {
        let options = options(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            // `Connection::Durable` flushes commits and `DaemonStore::checkpoint` moves the WAL; neither blocks the
            // writers.
            .synchronous(SqliteSynchronous::Normal)
            .pragma("wal_autocheckpoint", "0");
        let shown = || path.display().to_string();
        // One connection suffices: SQLite has one writer anyway, and every statement here takes microseconds.
        let pool = SqlitePoolOptions::new()
            .max_connections(1)
            // The last connection to close deletes the WAL, which the flusher still needs, so the connection never
            // expires.
            .idle_timeout(None)
            .max_lifetime(None)
            .connect_with(options.clone())
            .await
            .map_err(|cause| StoreError::Open { path: shown(), cause })?;
        schema::migrator().run(&pool).await.map_err(|cause| StoreError::Migrate { path: shown(), cause })?;
        let one = || SqlitePoolOptions::new().max_connections(1);
        let flusher = Flusher::of(path);
        let keeper = Keeper { pool: one().connect_lazy_with(options.clone()), wal: flusher.wal().to_owned() };
        let readers = one().connect_lazy_with(options.read_only(true));
        Ok(Self {
            durable: Connection::Durable(pool.clone(), flusher),
            quick: Connection::Pool(pool),
            readers: Connection::Pool(readers),
            keeper: Some(keeper),
            clock,
        })
    }

    /// Returns a store whose statements run in place, on a database that outlives the store.
    pub fn inline(database: &InlineDatabase, clock: WallClock, how: Inline) -> Self {
        let connection = Connection::Inline(InlineConnection { how, connection: database.connection.clone() });
        let [durable, quick, readers] = std::array::from_fn(|_| connection.clone());
        Self { durable, quick, readers, keeper: None, clock }
    }

    /// Returns the current time in the format of columns: RFC 3339, UTC.
    fn now(&self) -> String {
        time_text(self.clock.now())
    }

    /// Returns the installation's id, which the very first call creates.
    ///
    /// Shape: 12 characters of `0-9a-f`.
    pub async fn installation(&self) -> Result<String, StoreError> {
        let fresh = format!("{:012x}", rand::random::<u64>() & 0xffff_ffff_ffff);
        sqlx::query(
            "INSERT INTO installation (id, created_at) SELECT ?, ? WHERE NOT EXISTS (SELECT 1 FROM installation)",
        )
        .bind(fresh)
        .bind(self.now())
        .execute(&self.durable)
        .await
        .doing("make the installation's id")?;
        sqlx::query_scalar("SELECT id FROM installation")
            .fetch_one(&self.quick)
            .await
            .doing("read the installation's id")
    }

    /// Moves the content of the WAL into the database if the WAL is large enough. Neither writers nor readers wait for
    /// it.
    pub async fn checkpoint(&self) -> Result<(), StoreError> {
        let Some(keeper) = &self.keeper else { return Ok(()) };
        if std::fs::metadata(&keeper.wal).is_ok_and(|wal| wal.len() < WORTH_A_CHECKPOINT) {
            return Ok(());
        }
        sqlx::query("PRAGMA wal_checkpoint(PASSIVE)").execute(&keeper.pool).await.doing("move the WAL")?;
        Ok(())
    }

    /// Waits for running statements and closes the file; SQLite merges the WAL into it.
    pub async fn close(&self) {
        self.readers.close().await;
        if let Some(keeper) = &self.keeper {
            keeper.pool.close().await;
        }
        self.durable.close().await;
    }
}

fn options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new().filename(path).foreign_keys(true).busy_timeout(Duration::from_secs(10))
}

/// Formats a time for a column: RFC 3339, UTC, with nine fractional digits, so that texts sort in the order of the
/// times.
fn time_text(time: Timestamp) -> String {
    format!("{time:.9}")
}

/// The limits that decide which rows of a history table are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// The largest number of rows that are kept.
    pub most: u32,
    /// The number of newest rows that are kept regardless of their age; a clock that jumps ahead makes every row look
    /// old.
    pub least: u32,
    /// The age from which a row is deleted.
    pub age: Duration,
}

impl Retention {
    /// Returns the time before which rows are old, in the format of columns.
    fn cutoff(&self, now: Timestamp) -> String {
        let age = jiff::SignedDuration::try_from(self.age).unwrap_or(jiff::SignedDuration::MAX);
        time_text(now.checked_sub(age).unwrap_or(Timestamp::MIN))
    }
}

/// The rows of a table that are deleted when they are old.
struct OldRows {
    table: &'static str,
    /// The column that numbers the rows; the order of insertion, not the clock, determines which are the newest.
    seq: &'static str,
    /// The column with the row's time.
    at: &'static str,
    /// The condition for rows that may be deleted at all.
    only: &'static str,
}

impl DaemonStore {
    /// Deletes old rows, and returns their number.
    async fn forget_rows(&self, rows: OldRows, keep: Retention, doing: &'static str) -> Result<u64, StoreError> {
        let OldRows { table, seq, at, only } = rows;
        let newest = format!("(SELECT max({seq}) FROM {table})");
        let statement = format!(
            "DELETE FROM {table} WHERE {only} AND ({seq} <= {newest} - ?1 OR ({at} < ?3 AND {seq} <= {newest} - ?2))"
        );
        // AssertSqlSafe: all parts of the statement are constants of this crate.
        let done = sqlx::query(AssertSqlSafe(statement))
            .bind(keep.most)
            .bind(keep.least)
            .bind(keep.cutoff(self.clock.now()))
            .execute(&self.quick)
            .await
            .doing(doing)?;
        Ok(done.rows_affected())
    }
}

fn timestamp(text: &str) -> Result<Timestamp, StoreError> {
    text.parse().map_err(|_| StoreError::Row { what: "a time", text: text.to_owned() })
}

/// Parses a word of a column with the function `named`.
fn word<T>(what: &'static str, text: &str, named: impl FnOnce(&str) -> Option<T>) -> Result<T, StoreError> {
    named(text).ok_or_else(|| StoreError::Row { what, text: text.to_owned() })
}

/// Parses a name in a column.
fn parsed<T, E>(what: &'static str, text: &str, parse: impl FnOnce(&str) -> Result<T, E>) -> Result<T, StoreError> {
    parse(text).map_err(|_| StoreError::Row { what, text: text.to_owned() })
}

/// Parses the id of an instance in a column.
fn instance_id(text: &str) -> Result<InstanceId, StoreError> {
    parsed("the id of an instance", text, str::parse)
}

/// Parses the id of an episode in a column.
fn episode_id(text: &str) -> Result<EpisodeId, StoreError> {
    parsed("the id of an episode", text, str::parse)
}

fn json<T: serde::de::DeserializeOwned>(what: &'static str, text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|_| StoreError::Row { what, text: text.to_owned() })
}

fn to_json<T: serde::Serialize>(value: &T) -> String {
    // The values are maps with text keys and plain fields, which JSON can always represent.
    serde_json::to_string(value).expect("values of the store are plain maps and lists")
}
