//! The confined process that speaks to a database server: it signs in once, runs scripts and returns texts.
//!
//! It parses the server's messages within the limits of a worker, and returns texts of limited length.

use std::io;
use std::path::Path;

use futures_util::TryStreamExt;
use serde::{Deserialize, Serialize};
use sqlx::mysql::{MySqlConnectOptions, MySqlConnection, MySqlSslMode};
use sqlx::postgres::{PgConnectOptions, PgConnection, PgSslMode};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Row};

use super::sql::{FirstValue, SqlFailure};
use arenad_confined::{Locked, WorkerConnection};

/// The hidden command that runs this program as the worker.
pub const COMMAND: &str = "confined-sql";

/// The name of the socket. Source: libpq appends the port to `.s.PGSQL.`; MySQL's clients accept any path.
pub const SOCKET: &str = ".s.PGSQL.5432";

/// The maximum size of a script's result, in bytes of text.
const TEXT_MAX: usize = 8 << 20;

/// The maximum number of rows that a script may yield.
const ROWS_MAX: usize = 100_000;

/// The protocol that the server speaks.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub enum SqlProtocol {
    /// The protocol of MySQL and MariaDB.
    Mysql,
    /// The protocol of PostgreSQL only.
    Postgres,
}

/// A question of the parent.
#[derive(Serialize, Deserialize)]
pub(super) enum SqlRequest {
    /// Sign in. This is the first question, and is asked once.
    Open { server: SqlProtocol, user: String, password: String, database: String },
    /// Check whether the server still answers.
    Ping,
    /// Return the first column of the first row.
    FirstValue { statement: String },
    /// Return the first column of every row of all statements.
    Column { script: String },
    /// Close the connection properly.
    Close,
}

/// The worker's answer to a question.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum SqlReply {
    Done,
    First(FirstValue),
    Column(Vec<String>),
    /// The error message of the server.
    Failed(String),
}

impl SqlReply {
    /// Returns the error for an answer that does not fit the question.
    pub(super) fn unexpected(self) -> SqlFailure {
        SqlFailure::Server(format!("the confined process answered another question: {self:.100?}"))
    }
}

/// Runs the confined process of the hidden command, until its parent closes it.
pub fn serve() -> io::Result<()> {
    arenad_confined::serve(work)
}

async fn work(mut inside: WorkerConnection) -> io::Result<()> {
    let Some(SqlRequest::Open { server, user, password, database }) = inside.question().await? else { return Ok(()) };
    let (mut parent, opened) = inside
        .connect(SOCKET, async |folder| SqlConnection::open(server, &folder, &user, &password, &database).await)
        .await?;
    let mut link = match opened {
        Ok(link) => link,
        Err(error) => return parent.answer(&SqlReply::Failed(error.to_string())).await,
    };
    parent.answer(&SqlReply::Done).await?;
    while let Some(question) = parent.question().await? {
        let answer = match question {
            SqlRequest::Open { .. } => Err("it is open".into()),
            SqlRequest::Ping => link.ping().await.map(|()| SqlReply::Done),
            SqlRequest::FirstValue { statement } => link.first_value(&statement).await.map(SqlReply::First),
            SqlRequest::Column { script } => link.column(&script).await.map(SqlReply::Column),
            SqlRequest::Close => return close(link, parent).await,
        };
        parent.answer(&answer.unwrap_or_else(|words: SqlServerError| SqlReply::Failed(words.to_string()))).await?;
    }
    Ok(())
}

async fn close(link: SqlConnection, mut parent: Locked) -> io::Result<()> {
    // The connection is dropped even if the server does not accept a proper close.
    let _ = match link {
        SqlConnection::Mysql(connection) => connection.close().await,
        SqlConnection::Postgres(connection) => connection.close().await,
    };
    parent.answer(&SqlReply::Done).await
}

arenad_model::text_error! {
    /// The error message of a server, or of its client library, about a statement that failed.
    struct SqlServerError;
}

/// A connection to a server.
enum SqlConnection {
    Mysql(Box<MySqlConnection>),
    Postgres(Box<PgConnection>),
}

/// Collects the first column of the rows, up to the limits.
macro_rules! column {
    ($connection:expr, $script:expr) => {{
        // The simple protocol returns every value as text, whatever its type. AssertSqlSafe: the statements come from
        // the definition's author or from the digest.
        let mut rows = sqlx::raw_sql(AssertSqlSafe($script)).fetch(&mut **$connection);
        let (mut values, mut size) = (Vec::<String>::new(), 0);
        while let Some(row) = rows.try_next().await.map_err(words)? {
            let value: String = row.try_get_unchecked(0).map_err(words)?;
            size += value.len();
            if size > TEXT_MAX || values.len() >= ROWS_MAX {
                return Err(format!("the answer is longer than {ROWS_MAX} rows or {} MiB", TEXT_MAX >> 20).into());
            }
            values.push(value);
        }
        Ok(values)
    }};
}

impl SqlConnection {
    async fn open(
        server: SqlProtocol,
        folder: &Path,
        user: &str,
        password: &str,
        database: &str,
    ) -> Result<Self, sqlx::Error> {
        match server {
            SqlProtocol::Mysql => {
                let options = MySqlConnectOptions::new()
                    .socket(folder.join(SOCKET))
                    .username(user)
                    .password(password)
                    .database(database)
                    .ssl_mode(MySqlSslMode::Disabled)
                    // The statement of a digest is long and does not belong in a log.
                    .disable_statement_logging();
                Ok(Self::Mysql(Box::new(options.connect().await?)))
            }
            SqlProtocol::Postgres => {
                let options = PgConnectOptions::new_without_pgpass()
                    .socket(folder)
                    .port(5432)
                    .username(user)
                    .password(password)
                    .database(database)
                    .ssl_mode(PgSslMode::Disable)
                    .disable_statement_logging();
                Ok(Self::Postgres(Box::new(options.connect().await?)))
            }
        }
    }

    async fn ping(&mut self) -> Result<(), SqlServerError> {
        match self {
            Self::Mysql(connection) => connection.ping().await.map_err(words),
            Self::Postgres(connection) => connection.ping().await.map_err(words),
        }
    }

    async fn first_value(&mut self, statement: &str) -> Result<FirstValue, SqlServerError> {
        let statement = sqlx::raw_sql(AssertSqlSafe(statement));
        match self {
            Self::Mysql(connection) => {
                let row = statement.fetch_optional(&mut **connection).await.map_err(words)?;
                Ok(row.map(|row| row.try_get_unchecked::<Option<String>, _>(0).unwrap_or_default()))
            }
            Self::Postgres(connection) => {
                let row = statement.fetch_optional(&mut **connection).await.map_err(words)?;
                Ok(row.map(|row| row.try_get_unchecked::<Option<String>, _>(0).unwrap_or_default()))
            }
        }
    }

    async fn column(&mut self, script: &str) -> Result<Vec<String>, SqlServerError> {
        match self {
            Self::Mysql(connection) => column!(connection, script),
            Self::Postgres(connection) => column!(connection, script),
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn words(error: sqlx::Error) -> SqlServerError {
    error.to_string().into()
}
