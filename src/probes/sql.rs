//! Statements on a site's declared databases, over TCP to the instance or through a client in the container.
//!
//! The definition's author wrote these statements for their own site; they are not an agent's. Reading state on behalf of
//! checks, with read-only accounts and transactions, is the locators' work.

use std::time::Duration;

use sqlx::mysql::{MySqlConnectOptions, MySqlSslMode};
use sqlx::postgres::{PgConnectOptions, PgSslMode};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Row};

use super::client;
use crate::domain::site::{Database, DatabaseAccess, DatabaseEngine};
use crate::engine::Engine;
use crate::launch::Incarnation;

/// Why a statement failed.
#[derive(Debug, thiserror::Error)]
pub enum SqlFailure {
    /// The service has no address.
    #[error("{0} has no address: its container is not running")]
    NoAddress(String),
    /// The server refused or could not be reached.
    #[error("{0}")]
    Server(String),
}

/// A row's first column as text: the outer level says whether there is a row, the inner whether it is not NULL.
pub type FirstValue = Option<Option<String>>;

/// Runs a statement and returns the first column of its first row.
pub async fn run_statement(
    engine: &dyn Engine,
    database: &Database,
    incarnation: &Incarnation,
    statement: &str,
) -> Result<FirstValue, SqlFailure> {
    if let DatabaseAccess::Client { program } = &database.access {
        let missing = || SqlFailure::NoAddress(database.service.to_string());
        let container = incarnation.containers.get(&database.service).ok_or_else(missing)?;
        return client::run_statement(engine, container, database, program, statement).await;
    }
    let socket = incarnation
        .socket(&database.service, database.port)
        .ok_or_else(|| SqlFailure::NoAddress(database.service.to_string()))?;
    let host = socket.ip().to_string();
    let server = |error: sqlx::Error| SqlFailure::Server(error.to_string());
    // The simple protocol returns every value as text, whatever its type. AssertSqlSafe: see the module's head.
    match database.engine {
        DatabaseEngine::Mysql => {
            let options = MySqlConnectOptions::new()
                .host(&host)
                .port(socket.port())
                .username(&database.user)
                .password(database.password.expose())
                .database(&database.database)
                .ssl_mode(MySqlSslMode::Disabled);
            let mut connection = options.connect().await.map_err(server)?;
            let row = sqlx::raw_sql(AssertSqlSafe(statement)).fetch_optional(&mut connection).await.map_err(server)?;
            let value = row.map(|row| row.try_get_unchecked::<Option<String>, _>(0).unwrap_or_default());
            close(connection).await;
            Ok(value)
        }
        DatabaseEngine::Postgres => {
            let options = PgConnectOptions::new_without_pgpass()
                .host(&host)
                .port(socket.port())
                .username(&database.user)
                .password(database.password.expose())
                .database(&database.database)
                .ssl_mode(PgSslMode::Disable);
            let mut connection = options.connect().await.map_err(server)?;
            let row = sqlx::raw_sql(AssertSqlSafe(statement)).fetch_optional(&mut connection).await.map_err(server)?;
            let value = row.map(|row| row.try_get_unchecked::<Option<String>, _>(0).unwrap_or_default());
            close(connection).await;
            Ok(value)
        }
        // No definition has probes or steps on one.
        DatabaseEngine::Sqlite => Err(SqlFailure::Server("a SQLite file is asked by locators alone".to_owned())),
    }
}

/// Says goodbye, so that the server's log is not full of aborted connections; a slow goodbye is not waited for.
async fn close<C: Connection>(connection: C) {
    let _ = tokio::time::timeout(Duration::from_millis(200), connection.close()).await;
}

pub(super) fn shown(value: Option<&Option<String>>) -> String {
    match value {
        None => "no row".to_owned(),
        Some(None) => "NULL".to_owned(),
        Some(Some(text)) => format!("{text:?}"),
    }
}
