//! Statements on a site's declared databases, over TCP to the instance or through a client in the container.
//!
//! The definition's author wrote these statements for their own site; they are not an agent's. Reading state on behalf of
//! checks, with read-only accounts and transactions, is the locators' work.

use std::time::Duration;

use sqlx::mysql::{MySqlConnectOptions, MySqlConnection, MySqlSslMode};
use sqlx::postgres::{PgConnectOptions, PgConnection, PgSslMode};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Row};

use super::client;
use crate::domain::site::{Database, DatabaseAccess, DatabaseEngine};
use crate::engine::{Engine, EngineHandle};
use crate::launch::Incarnation;

/// How long a server may take to answer on a connection that was kept, before another is made.
const ANSWERS_WITHIN: Duration = Duration::from_millis(500);

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

/// The longest that a program in the container may take for a statement. A probe has its own limit, which is shorter.
const CLIENT_LIMIT: Duration = Duration::from_secs(60);

/// A row's first column as text: the outer level says whether there is a row, the inner whether it is not NULL.
pub type FirstValue = Option<Option<String>>;

/// Runs a statement and returns the first column of its first row.
pub async fn run_statement(
    engine: &dyn Engine,
    database: &Database,
    incarnation: &Incarnation,
    statement: &str,
) -> Result<FirstValue, SqlFailure> {
    let mut session = Session::open(engine, database, incarnation, CLIENT_LIMIT).await?;
    let value = session.first_value(statement).await?;
    session.close().await;
    Ok(value)
}

/// A way to a database on which several scripts may follow one another.
pub struct Session<'a> {
    database: &'a Database,
    way: Way<'a>,
}

enum Way<'a> {
    /// A program in the container; each script is a session of its own.
    Client {
        engine: &'a dyn Engine,
        container: &'a EngineHandle,
        program: &'a str,
        limit: Duration,
    },
    Tcp(Link),
}

/// A connection to a server.
enum Link {
    Mysql(Box<MySqlConnection>),
    Postgres(Box<PgConnection>),
}

impl Link {
    /// Whether the server still answers on it.
    async fn is_alive(&mut self) -> bool {
        let pinged = async {
            match self {
                Self::Mysql(connection) => connection.ping().await.is_ok(),
                Self::Postgres(connection) => connection.ping().await.is_ok(),
            }
        };
        tokio::time::timeout(ANSWERS_WITHIN, pinged).await.unwrap_or(false)
    }

    async fn close(self) {
        match self {
            Self::Mysql(connection) => close(*connection).await,
            Self::Postgres(connection) => close(*connection).await,
        }
    }
}

/// A connection between two sessions. Nothing is left open on it, neither a statement nor a transaction.
pub struct KeptConnection(Link);

impl KeptConnection {
    /// Says goodbye to the server.
    pub async fn close(self) {
        self.0.close().await;
    }
}

impl<'a> Session<'a> {
    /// Connects, by the way that the definition says. A program in the container gets no longer than `limit` for each script;
    /// whoever asks a server by another way ends the wait themselves.
    pub async fn open(
        engine: &'a dyn Engine,
        database: &'a Database,
        incarnation: &'a Incarnation,
        limit: Duration,
    ) -> Result<Self, SqlFailure> {
        let missing = || SqlFailure::NoAddress(database.service.to_string());
        if let DatabaseAccess::Client { program } = &database.access {
            let container = incarnation.containers.get(&database.service).ok_or_else(missing)?;
            return Ok(Self { database, way: Way::Client { engine, container, program, limit } });
        }
        let socket = incarnation.socket(&database.service, database.port).ok_or_else(missing)?;
        let host = socket.ip().to_string();
        let link = match database.engine {
            DatabaseEngine::Mysql => {
                let options = MySqlConnectOptions::new()
                    .host(&host)
                    .port(socket.port())
                    .username(&database.user)
                    .password(database.password.expose())
                    .database(&database.database)
                    .ssl_mode(MySqlSslMode::Disabled)
                    // A digest is a long statement, and its text is nothing for a log.
                    .disable_statement_logging();
                Link::Mysql(Box::new(options.connect().await.map_err(server)?))
            }
            DatabaseEngine::Postgres => {
                let options = PgConnectOptions::new_without_pgpass()
                    .host(&host)
                    .port(socket.port())
                    .username(&database.user)
                    .password(database.password.expose())
                    .database(&database.database)
                    .ssl_mode(PgSslMode::Disable)
                    .disable_statement_logging();
                Link::Postgres(Box::new(options.connect().await.map_err(server)?))
            }
            // No definition has probes or steps on one.
            DatabaseEngine::Sqlite => {
                return Err(SqlFailure::Server("a SQLite file is asked by locators alone".to_owned()));
            }
        };
        Ok(Self { database, way: Way::Tcp(link) })
    }

    /// Goes on with a connection that was kept; `None`: the server does not answer on it any more.
    pub async fn resume(database: &'a Database, KeptConnection(mut link): KeptConnection) -> Option<Self> {
        link.is_alive().await.then_some(Self { database, way: Way::Tcp(link) })
    }

    /// Ends the session, but not its connection; `None`: it has none. Only after all of its statements have succeeded.
    pub fn keep(self) -> Option<KeptConnection> {
        match self.way {
            Way::Client { .. } => None,
            Way::Tcp(link) => Some(KeptConnection(link)),
        }
    }

    async fn first_value(&mut self, statement: &str) -> Result<FirstValue, SqlFailure> {
        // The simple protocol returns every value as text, whatever its type. AssertSqlSafe: see the module's head.
        let statement_only = sqlx::raw_sql(AssertSqlSafe(statement));
        match &mut self.way {
            Way::Client { engine, container, program, limit } => {
                client::run_statement(*engine, container, self.database, program, statement, *limit).await
            }
            Way::Tcp(Link::Mysql(connection)) => {
                let row = statement_only.fetch_optional(&mut **connection).await.map_err(server)?;
                Ok(row.map(|row| row.try_get_unchecked::<Option<String>, _>(0).unwrap_or_default()))
            }
            Way::Tcp(Link::Postgres(connection)) => {
                let row = statement_only.fetch_optional(&mut **connection).await.map_err(server)?;
                Ok(row.map(|row| row.try_get_unchecked::<Option<String>, _>(0).unwrap_or_default()))
            }
        }
    }

    /// Runs a script and returns the first column of every row of all its statements. The values must be texts without
    /// line breaks, such as JSON: a client in a container prints one to a line.
    ///
    /// Errors: also when a client's answer is longer than what is read of it; scripts end it with a row that they know.
    pub async fn column(&mut self, script: &str) -> Result<Vec<String>, SqlFailure> {
        let script_only = sqlx::raw_sql(AssertSqlSafe(script));
        match &mut self.way {
            Way::Client { engine, container, program, limit } => {
                client::column(*engine, container, self.database, program, script, *limit).await
            }
            Way::Tcp(Link::Mysql(connection)) => {
                let rows = script_only.fetch_all(&mut **connection).await.map_err(server)?;
                rows.iter().map(|row| row.try_get_unchecked(0)).collect::<Result<_, _>>().map_err(server)
            }
            Way::Tcp(Link::Postgres(connection)) => {
                let rows = script_only.fetch_all(&mut **connection).await.map_err(server)?;
                rows.iter().map(|row| row.try_get_unchecked(0)).collect::<Result<_, _>>().map_err(server)
            }
        }
    }

    /// Says goodbye to the server.
    pub async fn close(self) {
        match self.way {
            Way::Client { .. } => {}
            Way::Tcp(link) => link.close().await,
        }
    }
}

fn server(error: sqlx::Error) -> SqlFailure {
    SqlFailure::Server(error.to_string())
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
