//! SQL statements that only read.
//!
//! Three layers of protection apply, from the outside in: the rights of the account that the definition names, which
//! the server enforces; the [`guard`], which refuses statements other than queries and functions that do more than
//! read; and a transaction that the server keeps read-only, with the server's own time limit, so that no statement
//! outlives its caller. Every locator has its own connection: a pooled connection could belong to a container of an
//! earlier generation, and no session state survives. A confined process parses the server's replies (see [`worker`]).

mod client;
mod client_types;
mod copy;
pub mod guard;
mod mysql;
mod postgres;
pub mod sqlite;
pub mod worker;

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use futures_util::{Stream, StreamExt};

use self::guard::{StatementPiece, guard};
use super::{FoundValue, LocateError, SIZE_MAX, Scene};
use arenad_engine::Engine;
use arenad_model::locator::{Arguments, Rows, SqlLocator, Value};
use arenad_model::site::{Database, DatabaseAccess, DatabaseEngine};
use arenad_probes::sql_worker::SqlProtocol;

/// Maximum number of rows that a locator reads.
const ROWS_MAX: usize = 10_000;

pub(super) async fn run(
    engine: &dyn Engine,
    copies: &Path,
    scene: &Scene<'_>,
    locator: &SqlLocator,
    limit: Duration,
) -> Result<FoundValue, LocateError> {
    let database = scene.database(locator.database.as_deref())?;
    let pieces = guard(database.engine, &locator.statement, &locator.arguments)
        .map_err(|(column, reason)| LocateError::Refused(format!("{reason} (column {column} of the statement)")))?;
    let query = Query { pieces, arguments: &locator.arguments, limit };
    let asked = async {
        match (&database.access, database.engine) {
            (DatabaseAccess::Client { program }, _) => client::query(engine, scene, database, program, &query).await,
            (DatabaseAccess::Tcp, DatabaseEngine::Mysql) => {
                worker::ask(scene, database, SqlProtocol::Mysql, &query).await
            }
            (DatabaseAccess::Tcp, DatabaseEngine::Postgres) => {
                worker::ask(scene, database, SqlProtocol::Postgres, &query).await
            }
            (DatabaseAccess::Tcp, DatabaseEngine::Sqlite) => {
                sqlite::query(engine, copies, scene, database, &query).await
            }
        }
    };
    // The servers enforce the time limit; this timeout covers servers that do not answer at all.
    let patience = limit + Duration::from_millis(500);
    let rows = tokio::time::timeout(patience, asked).await.unwrap_or(Err(LocateError::TimedOut { limit }))?;
    let notes = vec![("rows", rows.rows.len().to_string())];
    let value = if locator.as_rows { Value::Rows(rows) } else { rows.value() };
    Ok(FoundValue { value, ran: locator.statement.clone(), notes })
}

/// A statement that has passed the guard.
struct Query<'a> {
    pieces: Vec<StatementPiece<'a>>,
    arguments: &'a Arguments,
    limit: Duration,
}

impl Query<'_> {
    /// Returns the statement with each argument replaced by the output of `placeholder`, which receives the argument's
    /// number, counted from 1, and its text.
    fn text(&self, mut placeholder: impl FnMut(usize, &str) -> String) -> String {
        let mut count = 0;
        let mut part = |piece: &StatementPiece<'_>| match piece {
            StatementPiece::Text(text) => (*text).to_owned(),
            StatementPiece::Argument(index) => {
                count += 1;
                placeholder(count, &self.arguments.0[*index].1)
            }
        };
        self.pieces.iter().map(&mut part).collect()
    }

    /// Returns the texts to bind, in the order of their placeholders.
    fn bound(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            StatementPiece::Text(_) => None,
            StatementPiece::Argument(index) => Some(self.arguments.0[*index].1.as_str()),
        })
    }

    fn limit_ms(&self) -> u128 {
        self.limit.as_millis().max(1)
    }
}

arenad_model::text_error! {
    /// The reason why a value of a row cannot be read.
    struct UnreadableValue;
}

impl From<sqlx::Error> for UnreadableValue {
    fn from(error: sqlx::Error) -> Self {
        error.to_string().into()
    }
}

/// Reads all rows of a stream.
///
/// Errors: `TooLarge` for more rows or bytes than the limits.
async fn collect<R>(
    mut stream: impl Stream<Item = Result<R, sqlx::Error>> + Unpin,
    limit: Duration,
    mut columns: impl FnMut(&R) -> Vec<String>,
    mut cells: impl FnMut(&R) -> Result<Vec<Value>, UnreadableValue>,
) -> Result<Rows, LocateError> {
    let mut rows = Rows::default();
    let mut size = 0;
    while let Some(row) = stream.next().await {
        let row = row.map_err(|error| refused(&error, limit))?;
        if rows.columns.is_empty() {
            rows.columns = columns(&row);
        }
        let cells = cells(&row).map_err(|unreadable| LocateError::Failed(unreadable.to_string()))?;
        size += cells.iter().map(size_of).sum::<usize>();
        if size > SIZE_MAX {
            return Err(LocateError::too_many_bytes("the statement yields a large table"));
        }
        if rows.rows.len() >= ROWS_MAX {
            let limit = format!("{ROWS_MAX} rows");
            return Err(LocateError::TooLarge { what: "the statement yields a long table".to_owned(), limit });
        }
        rows.rows.push(cells);
    }
    Ok(rows)
}

fn size_of(value: &Value) -> usize {
    match value {
        Value::Text(text) | Value::Json(text) | Value::Decimal(text) => text.len() + 16,
        Value::Bytes(bytes) => bytes.len() + 16,
        _ => 16,
    }
}

/// Maps an error of a server to a locator error.
fn refused(error: &sqlx::Error, limit: Duration) -> LocateError {
    let sqlx::Error::Database(said) = error else {
        return LocateError::Unavailable(match error {
            sqlx::Error::Io(cause) => cause.to_string(),
            other => other.to_string(),
        });
    };
    let code = said.code().unwrap_or_default().into_owned();
    let number = said.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>().map(|error| error.number());
    let message = said.message().to_owned();
    match (code.as_str(), number) {
        // The time limits of PostgreSQL, MySQL and MariaDB cancelled the statement.
        ("57014", _) | (_, Some(3024 | 1969 | 1317)) => LocateError::TimedOut { limit },
        // The account lacks a right, or the statement would write in a read-only transaction.
        ("42501" | "25006", _) | (_, Some(1044 | 1142 | 1143 | 1227 | 1290 | 1370 | 1792)) => {
            LocateError::Refused(format!("the server says: {message}"))
        }
        // The server is starting, shutting down or at its connection limit, or lacks the defined account or database.
        ("57P01" | "57P02" | "57P03" | "53300" | "28P01" | "28000" | "3D000", _)
        | (_, Some(1040 | 1045 | 1049 | 1053)) => LocateError::Unavailable(format!("the server says: {message}")),
        _ => LocateError::Failed(format!("the server says: {message}")),
    }
}

/// Closes the connection in order, so that the server's log does not fill with aborted connections; a slow close is not
/// waited for.
async fn close<C: sqlx::Connection>(connection: C) {
    let _ = tokio::time::timeout(Duration::from_millis(200), connection.close()).await;
}

/// Returns the address on which the database listens.
fn socket(scene: &Scene<'_>, database: &Database) -> Result<SocketAddr, LocateError> {
    let missing =
        || LocateError::Unavailable(format!("{} has no address: its container is not running", database.service));
    scene.incarnation.socket(&database.service, database.port).ok_or_else(missing)
}
