//! The daemon's memory: one SQLite file in the state directory, in WAL mode, with every commit on disk before it counts.
//!
//! The only module that holds the pool. What is stored is intent and identity (what should be up, which generation is
//! the newest, which snapshots exist); what is true of containers is always asked of the engine.

mod digests;
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

use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use sqlx::SqlitePool;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};

pub use environments::StoredEnvironment;
pub use events::StoredEvent;
pub use imports::StoredImport;
pub use instances::{Serving, StoredInstance};
pub use resets::{NewSwap, ResetEnd, StageTime, StoredReset};
pub use rounds::StoredRound;
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

/// The store of one installation.
#[derive(Clone)]
pub struct Store {
    pool: SqlitePool,
    /// For what clients wait for and only read: it does not stand behind a write that goes to disk.
    readers: SqlitePool,
}

impl Store {
    /// Opens the database file, making it if there is none, and applies the migrations that it lacks.
    pub async fn open(path: &Path) -> Result<Self, StoreError> {
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(Duration::from_secs(10));
        let shown = || path.display().to_string();
        // One connection: SQLite has one writer anyway, and every statement here takes microseconds.
        let pool = SqlitePoolOptions::new()
            .max_connections(1)
            .connect_with(options.clone())
            .await
            .map_err(|cause| StoreError::Open { path: shown(), cause })?;
        sqlx::migrate!("src/daemon/store/migrations")
            .run(&pool)
            .await
            .map_err(|cause| StoreError::Migrate { path: shown(), cause })?;
        let readers = SqlitePoolOptions::new().max_connections(1).connect_lazy_with(options.read_only(true));
        Ok(Self { pool, readers })
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
        .bind(now())
        .execute(&self.pool)
        .await
        .doing("make the installation's id")?;
        sqlx::query_scalar("SELECT id FROM installation")
            .fetch_one(&self.pool)
            .await
            .doing("read the installation's id")
    }

    /// Waits for what is running and closes the file; the WAL is merged into it.
    pub async fn close(&self) {
        self.readers.close().await;
        self.pool.close().await;
    }
}

/// The time now as it stands in columns: RFC 3339, UTC.
fn now() -> String {
    Timestamp::now().to_string()
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
