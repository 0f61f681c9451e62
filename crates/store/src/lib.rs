//! The daemon's memory: one SQLite file in the state directory, in WAL mode.
//!
//! What a later daemon must know is on disk before it counts. Events, rounds, standbys and digests come to disk with the next
//! of those: losing the newest of them with the host costs nothing.
//!
//! The only module that holds the pool. What is stored is intent and identity (what should be up, which generation is
//! the newest, which snapshots exist); what is true of containers is always asked of the engine.

mod connection;
mod digests;
mod engines;
mod environments;
mod events;
mod imports;
mod instances;
mod resets;
mod rounds;
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
use sqlx::ConnectOptions;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteLockingMode, SqlitePool, SqlitePoolOptions,
    SqliteSynchronous,
};

use self::connection::{Connection, Flusher, InlineConnection};
use arenad_seams::inline::{self, Inline};
use arenad_seams::wall_clock::WallClock;

pub use engines::{SnapshotPlace, StoredEngine};
pub use environments::StoredEnvironment;
pub use events::StoredEvent;
pub use imports::{ImportOutline, StoredImport};
pub use instances::{NewGeneration, NewServing, Serving, StoredInstance};
pub use resets::{NewReset, StageTime, StoredCompared, StoredReset};
pub use rounds::{NewRound, StoredRound};
pub use snapshots::StoredSnapshot;
pub use standbys::StoredStandby;
pub use writes::StoredWrites;

/// Why the store could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database could not be opened or brought to the current schema.
    #[error("open the store {path}")]
    Open {
        /// The file.
        path: String,
        /// What SQLite said.
        #[source]
        cause: sqlx::Error,
    },
    /// A migration failed; the file is as it was before it.
    #[error("bring the store {path} to the current schema")]
    Migrate {
        /// The file.
        path: String,
        /// What went wrong.
        #[source]
        cause: sqlx::migrate::MigrateError,
    },
    /// A statement failed.
    #[error("{doing} in the store")]
    Statement {
        /// What was being done.
        doing: &'static str,
        /// What SQLite said.
        #[source]
        cause: sqlx::Error,
    },
    /// Instances that are not down need the snapshot.
    #[error("remove snapshot {snapshot}: {} uses it", users.join(", "))]
    InUse {
        /// The snapshot's id.
        snapshot: String,
        /// The instances.
        users: Vec<String>,
    },
    /// A row says something that the program no longer understands.
    #[error("understand `{text}` of {what} in the store")]
    Row {
        /// Which column of what.
        what: &'static str,
        /// What it said.
        text: String,
    },
}

/// Names the statement in its error.
trait Doing<T> {
    fn doing(self, doing: &'static str) -> Result<T, StoreError>;
}

impl<T> Doing<T> for Result<T, sqlx::Error> {
    fn doing(self, doing: &'static str) -> Result<T, StoreError> {
        self.map_err(|cause| StoreError::Statement { doing, cause })
    }
}

/// How long the WAL may get before it is moved, in bytes.
const WORTH_A_CHECKPOINT: u64 = 4 << 20;

/// What moves the WAL into the database.
#[derive(Debug, Clone)]
struct Keeper {
    pool: SqlitePool,
    wal: PathBuf,
}

/// A database for stores whose statements are done in place, one after the other: each finds what the last has committed.
pub struct InlineDatabase {
    connection: Arc<tokio::sync::Mutex<SqliteConnection>>,
}

impl InlineDatabase {
    /// Opens a database file that exists and has the current schema. Nothing is brought to disk.
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
pub struct Store {
    /// For what is to be on disk when it is done.
    durable: Connection,
    /// For what need not be, and for what is read and then acted upon.
    quick: Connection,
    /// For what clients wait for and only read: it does not stand behind a write.
    readers: Connection,
    /// For what moves the WAL into the database.
    keeper: Option<Keeper>,
    /// What rows are dated by.
    clock: WallClock,
}

impl Store {
    /// Opens the database file, making it if there is none, and applies the migrations that it lacks.
    pub async fn open(path: &Path, clock: WallClock) -> Result<Self, StoreError> {
        let options = options(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            // `Connection::Durable` brings commits to disk, and `Store::checkpoint` moves them, both past the writers' way.
            .synchronous(SqliteSynchronous::Normal)
            .pragma("wal_autocheckpoint", "0");
        let shown = || path.display().to_string();
        // One connection: SQLite has one writer anyway, and every statement here takes microseconds.
        let pool = SqlitePoolOptions::new()
            .max_connections(1)
            // The WAL goes with the last connection, and with it what is to be flushed.
            .idle_timeout(None)
            .max_lifetime(None)
            .connect_with(options.clone())
            .await
            .map_err(|cause| StoreError::Open { path: shown(), cause })?;
        sqlx::migrate!("src/migrations")
            .run(&pool)
            .await
            .map_err(|cause| StoreError::Migrate { path: shown(), cause })?;
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

    /// A store whose statements are done in place, on a database that outlives it.
    pub fn inline(database: &InlineDatabase, clock: WallClock, how: Inline) -> Self {
        let connection = Connection::Inline(InlineConnection { how, connection: database.connection.clone() });
        let [durable, quick, readers] = std::array::from_fn(|_| connection.clone());
        Self { durable, quick, readers, keeper: None, clock }
    }

    /// The time now as it stands in columns: RFC 3339, UTC.
    fn now(&self) -> String {
        time_text(self.clock.now())
    }

    /// The installation's id; made at the first call of all.
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

    /// Moves what is in the WAL into the database, if it is worth it. Nobody waits for that: neither writers nor readers.
    pub async fn checkpoint(&self) -> Result<(), StoreError> {
        let Some(keeper) = &self.keeper else { return Ok(()) };
        if std::fs::metadata(&keeper.wal).is_ok_and(|wal| wal.len() < WORTH_A_CHECKPOINT) {
            return Ok(());
        }
        sqlx::query("PRAGMA wal_checkpoint(PASSIVE)").execute(&keeper.pool).await.doing("move the WAL")?;
        Ok(())
    }

    /// Waits for what is running and closes the file; the WAL is merged into it.
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

/// A time as it stands in columns: RFC 3339, UTC, with nine digits of the second, so that texts sort as times do.
fn time_text(time: Timestamp) -> String {
    format!("{time:.9}")
}

/// How much of a table of history is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// At most so many rows.
    pub most: u32,
    /// The newest rows stay however old they are: a clock that jumps ahead makes all of them old.
    pub least: u32,
    /// What is older goes.
    pub age: Duration,
}

impl Retention {
    /// The time before which rows are old, as it stands in columns.
    fn cutoff(&self, now: Timestamp) -> String {
        let age = jiff::SignedDuration::try_from(self.age).unwrap_or(jiff::SignedDuration::MAX);
        time_text(now.checked_sub(age).unwrap_or(Timestamp::MIN))
    }
}

fn timestamp(text: &str) -> Result<Timestamp, StoreError> {
    text.parse().map_err(|_| StoreError::Row { what: "a time", text: text.to_owned() })
}

fn json<T: serde::de::DeserializeOwned>(what: &'static str, text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|_| StoreError::Row { what, text: text.to_owned() })
}

fn to_json<T: serde::Serialize>(value: &T) -> String {
    // Maps with text keys and plain fields: nothing that JSON cannot say.
    serde_json::to_string(value).expect("values of the store are plain maps and lists")
}
