//! The confined process that queries a database server for a locator: one statement, its rows as typed values.

use std::io;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Query, mysql, postgres};
use crate::outcome::LocatorOutcome;
use crate::{LocateError, Scene};
use arenad_confined::{Worker, WorkerConnection, WorkerError};
use arenad_model::locator::{Rows, Value};
use arenad_model::site::Database;
use arenad_probes::sql_worker::{SOCKET, SqlProtocol};

/// Name of the hidden command that runs this program as the worker.
pub const COMMAND: &str = "confined-query";

/// The complete input of the worker.
#[derive(Serialize, Deserialize)]
pub(super) struct SqlQuery {
    server: SqlProtocol,
    pub(super) user: String,
    pub(super) password: String,
    pub(super) database: String,
    /// The statements that begin the transaction; they contain only numbers that arenad itself supplies.
    pub(super) prepare: String,
    /// The statement, which has passed the guard.
    pub(super) statement: String,
    /// The arguments to bind, in order.
    pub(super) bound: Vec<String>,
    pub(super) limit: Duration,
}

/// Runs a query on a server through a confined worker.
pub(super) async fn ask(
    scene: &Scene<'_>,
    database: &Database,
    server: SqlProtocol,
    query: &Query<'_>,
) -> Result<Rows, LocateError> {
    let socket = super::socket(scene, database)?;
    let confined = |error: WorkerError| LocateError::Unavailable(error.to_string());
    let (prepare, statement) = match server {
        SqlProtocol::Mysql => (mysql::prepare(query), query.text(|_, _| "?".to_owned())),
        SqlProtocol::Postgres => (postgres::prepare(query), query.text(|number, _| format!("${number}"))),
    };
    let question = SqlQuery {
        server,
        user: database.user.clone(),
        password: database.password.expose().to_owned(),
        database: database.database.clone(),
        prepare,
        statement,
        bound: query.bound().map(str::to_owned).collect(),
        limit: query.limit,
    };
    let mut worker = Worker::connected_once(COMMAND, socket).await.map_err(confined)?;
    let outcome: LocatorOutcome = worker.ask(&question).await.map_err(confined)?;
    match outcome.into_value(query.limit)? {
        Value::Rows(rows) => Ok(rows),
        other => Err(LocateError::Failed(format!("the database answers with {}", other.type_name()))),
    }
}

/// Answers one question; this is the entire execution of the hidden command.
pub fn serve() -> io::Result<()> {
    arenad_confined::serve(work)
}

async fn work(mut inside: WorkerConnection) -> io::Result<()> {
    let Some(question) = inside.question::<SqlQuery>().await? else { return Ok(()) };
    let asked = inside.connect(SOCKET, async |folder| rows(&folder, &question).await).await?;
    let (mut parent, rows) = asked;
    parent.answer(&LocatorOutcome::from(rows.map(Value::Rows))).await
}

async fn rows(folder: &Path, question: &SqlQuery) -> Result<Rows, LocateError> {
    match question.server {
        SqlProtocol::Mysql => mysql::query(folder, question).await,
        SqlProtocol::Postgres => postgres::query(folder, question).await,
    }
}
