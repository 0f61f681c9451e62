//! Statements on the databases that a site declares, over TCP or through a client in the container. Over TCP, a
//! confined process speaks to the server and parses its messages (see [`super::sql_worker`]).
//!
//! The definition's author wrote these statements for their own site; they do not come from an agent. Reading state for
//! checks, with read-only accounts and transactions, belongs to the locators.

use std::net::SocketAddr;
use std::time::Duration;

use super::client;
use super::sql_worker::{COMMAND, SqlProtocol, SqlReply, SqlRequest};
use arenad_confined::{Worker, WorkerError};
use arenad_engine::{Engine, EngineError, EngineHandle};
use arenad_launch::Incarnation;
use arenad_model::cause::Cause;
use arenad_model::error::describe;
use arenad_model::site::{Database, DatabaseAccess, DatabaseEngine};

/// The time in which a server must answer on a kept connection. Otherwise a new connection is made.
const ANSWERS_WITHIN: Duration = Duration::from_millis(500);

/// The time limit for signing in at a server.
const OPENS_WITHIN: Duration = Duration::from_secs(20);

/// The time limit for closing a connection properly.
const GOODBYE: Duration = Duration::from_millis(200);

/// The reason why a statement failed.
#[derive(Debug, thiserror::Error)]
pub enum SqlFailure {
    /// The service has no address, because its container is not running.
    #[error("{0} has no address: its container is not running")]
    NoAddress(String),
    /// The server reported an error or could not be reached.
    #[error("{0}")]
    Server(String),
    /// The engine could not run a client in the container.
    #[error("{}", describe(.0))]
    Engine(EngineError),
    /// The confined process could not be started, or it ended because of its limits or of data from the server.
    #[error(transparent)]
    Confined(#[from] WorkerError),
}

impl SqlFailure {
    /// Returns the cause, if a person can take specific action against it.
    pub fn cause(&self) -> Option<Cause> {
        match self {
            Self::Server(words) => Cause::stated_by_engine(words),
            Self::Engine(error) => error.cause(),
            Self::NoAddress(_) | Self::Confined(_) => None,
        }
    }
}

/// The time limit of a client in the container for one statement. A probe has its own limit, which is shorter.
const CLIENT_LIMIT: Duration = Duration::from_secs(60);

/// The first column of the first row, as text. The outer `None` means that there is no row, the inner one that the
/// value is NULL.
pub type FirstValue = Option<Option<String>>;

/// Runs a statement and returns the first value of its answer.
///
/// Errors: the database cannot be reached, refuses the statement, or exceeds its time limit.
pub async fn run_statement(
    engine: &dyn Engine,
    database: &Database,
    incarnation: &Incarnation,
    statement: &str,
) -> Result<FirstValue, SqlFailure> {
    let mut session = SqlSession::once(engine, database, incarnation).await?;
    let value = session.first_value(statement).await?;
    session.close().await;
    Ok(value)
}

/// A session on a database, which can run several scripts in succession.
pub struct SqlSession<'a> {
    database: &'a Database,
    way: SqlAccess<'a>,
}

enum SqlAccess<'a> {
    /// A client in the container. Each script is a session of its own.
    Client {
        engine: &'a dyn Engine,
        container: &'a EngineHandle,
        program: &'a str,
        limit: Duration,
    },
    Tcp(SqlWorker),
}

/// A worker that is signed in at a server.
struct SqlWorker(Box<Worker>);

impl SqlWorker {
    async fn open(worker: Worker, database: &Database, server: SqlProtocol) -> Result<Self, SqlFailure> {
        let mut link = Self(Box::new(worker));
        let open = SqlRequest::Open {
            server,
            user: database.user.clone(),
            password: database.password.expose().to_owned(),
            database: database.database.clone(),
        };
        let opened = tokio::time::timeout(OPENS_WITHIN, link.ask(&open)).await;
        opened.unwrap_or_else(|_| {
            Err(SqlFailure::Server(format!("the log-in did not complete within {OPENS_WITHIN:?}")))
        })?;
        Ok(link)
    }

    async fn ask(&mut self, question: &SqlRequest) -> Result<SqlReply, SqlFailure> {
        match self.0.ask(question).await? {
            SqlReply::Failed(reason) => Err(SqlFailure::Server(reason)),
            answer => Ok(answer),
        }
    }

    /// Returns whether the server still answers on the connection.
    async fn is_alive(&mut self) -> bool {
        let pinged = tokio::time::timeout(ANSWERS_WITHIN, self.ask(&SqlRequest::Ping)).await;
        pinged.is_ok_and(|answer| answer.is_ok())
    }

    /// Closes the connection properly, so that the server does not log it as aborted. A slow server is not waited for.
    async fn close(mut self) {
        let _ = tokio::time::timeout(GOODBYE, self.ask(&SqlRequest::Close)).await;
    }
}

/// A connection that is kept between two sessions. It has neither an open statement nor an open transaction.
pub struct KeptConnection(SqlWorker);

impl KeptConnection {
    /// Closes the connection to the server.
    pub async fn close(self) {
        self.0.close().await;
    }
}

impl<'a> SqlSession<'a> {
    /// Opens a session in the way that the definition declares. `limit` applies to each script of a client in the
    /// container. Over TCP, the caller must limit the time itself.
    pub async fn open(
        engine: &'a dyn Engine,
        database: &'a Database,
        incarnation: &'a Incarnation,
        limit: Duration,
    ) -> Result<Self, SqlFailure> {
        Self::by(engine, database, incarnation, limit, |address| Worker::connected(COMMAND, address)).await
    }

    /// Opens a session for a single statement, with a worker that was started in advance.
    async fn once(
        engine: &'a dyn Engine,
        database: &'a Database,
        incarnation: &'a Incarnation,
    ) -> Result<Self, SqlFailure> {
        let connect = |address| Worker::connected_once(COMMAND, address);
        Self::by(engine, database, incarnation, CLIENT_LIMIT, connect).await
    }

    async fn by<F: Future<Output = Result<Worker, WorkerError>>>(
        engine: &'a dyn Engine,
        database: &'a Database,
        incarnation: &'a Incarnation,
        limit: Duration,
        connect: impl FnOnce(SocketAddr) -> F,
    ) -> Result<Self, SqlFailure> {
        let missing = || SqlFailure::NoAddress(database.service.to_string());
        if let DatabaseAccess::Client { program } = &database.access {
            let container = incarnation.containers.get(&database.service).ok_or_else(missing)?;
            return Ok(Self { database, way: SqlAccess::Client { engine, container, program, limit } });
        }
        let socket = incarnation.socket(&database.service, database.port).ok_or_else(missing)?;
        let server = match database.engine {
            DatabaseEngine::Mysql => SqlProtocol::Mysql,
            DatabaseEngine::Postgres => SqlProtocol::Postgres,
            // Definitions have neither probes nor steps on SQLite files.
            DatabaseEngine::Sqlite => {
                return Err(SqlFailure::Server("a SQLite file is asked by locators alone".to_owned()));
            }
        };
        let link = SqlWorker::open(connect(socket).await?, database, server).await?;
        Ok(Self { database, way: SqlAccess::Tcp(link) })
    }

    /// Resumes a kept connection. Returns `None` if the server no longer answers on it.
    pub async fn resume(database: &'a Database, KeptConnection(mut link): KeptConnection) -> Option<Self> {
        link.is_alive().await.then_some(Self { database, way: SqlAccess::Tcp(link) })
    }

    /// Ends the session and returns its connection, or `None` if the session has none. Must only be called if all
    /// statements of the session have succeeded.
    pub fn keep(self) -> Option<KeptConnection> {
        match self.way {
            SqlAccess::Client { .. } => None,
            SqlAccess::Tcp(link) => Some(KeptConnection(link)),
        }
    }

    async fn first_value(&mut self, statement: &str) -> Result<FirstValue, SqlFailure> {
        match &mut self.way {
            SqlAccess::Client { engine, container, program, limit } => {
                client::run_statement(*engine, container, self.database, program, statement, *limit).await
            }
            SqlAccess::Tcp(link) => {
                match link.ask(&SqlRequest::FirstValue { statement: statement.to_owned() }).await? {
                    SqlReply::First(value) => Ok(value),
                    other => Err(other.unexpected()),
                }
            }
        }
    }

    /// Runs a script and returns the first column of every row of all its statements. The values must be texts without
    /// line breaks, such as JSON, because a client in a container prints one value per line.
    ///
    /// Errors: also if a client's answer exceeds the limit. Scripts detect a cut answer by a known last row.
    pub async fn column(&mut self, script: &str) -> Result<Vec<String>, SqlFailure> {
        match &mut self.way {
            SqlAccess::Client { engine, container, program, limit } => {
                client::column(*engine, container, self.database, program, script, *limit).await
            }
            SqlAccess::Tcp(link) => match link.ask(&SqlRequest::Column { script: script.to_owned() }).await? {
                SqlReply::Column(values) => Ok(values),
                other => Err(other.unexpected()),
            },
        }
    }

    /// Closes the session and its connection.
    pub async fn close(self) {
        match self.way {
            SqlAccess::Client { .. } => {}
            SqlAccess::Tcp(link) => link.close().await,
        }
    }
}

pub(super) fn shown(value: Option<&Option<String>>) -> String {
    match value {
        None => "no row".to_owned(),
        Some(None) => "NULL".to_owned(),
        Some(Some(text)) => format!("{text:?}"),
    }
}
