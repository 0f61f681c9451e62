//! The confined process that asks a server of databases for a locator: one statement, its rows as typed values.

use std::io;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Query, mysql, postgres};
use crate::outcome::Outcome;
use crate::{LocateError, Scene};
use arenad_confined::{Inside, Worker, WorkerError};
use arenad_model::locator::{Rows, Value};
use arenad_model::site::Database;
use arenad_probes::sql_worker::{SOCKET, Server};

/// The hidden command that makes this program the worker.
pub const COMMAND: &str = "confined-query";

/// Everything that the worker has to know.
#[derive(Serialize, Deserialize)]
pub(super) struct Question {
    server: Server,
    pub(super) user: String,
    pub(super) password: String,
    pub(super) database: String,
    /// What begins the transaction; only numbers of our own are in it.
    pub(super) prepare: String,
    /// The statement, which has passed the guard.
    pub(super) statement: String,
    /// Its arguments.
    pub(super) bound: Vec<String>,
    pub(super) limit: Duration,
}

/// Asks a server.
pub(super) async fn ask(
    scene: &Scene<'_>,
    database: &Database,
    server: Server,
    query: &Query<'_>,
) -> Result<Rows, LocateError> {
    let socket = super::socket(scene, database)?;
    let confined = |error: WorkerError| LocateError::Unavailable(error.to_string());
    let (prepare, statement) = match server {
        Server::Mysql => (mysql::prepare(query), query.text(|_, _| "?".to_owned())),
        Server::Postgres => (postgres::prepare(query), query.text(|number, _| format!("${number}"))),
    };
    let question = Question {
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
    let outcome: Outcome = worker.ask(&question).await.map_err(confined)?;
    match outcome.into_value(query.limit)? {
        Value::Rows(rows) => Ok(rows),
        other => Err(LocateError::Failed(format!("the database answers with {}", other.type_name()))),
    }
}

/// Does the worker's work; the hidden command's whole life.
pub fn serve() -> io::Result<()> {
    arenad_confined::serve(work)
}

async fn work(mut inside: Inside) -> io::Result<()> {
    let Some(question) = inside.question::<Question>().await? else { return Ok(()) };
    let asked = inside.connect(SOCKET, async |folder| rows(&folder, &question).await).await?;
    let (mut parent, rows) = asked;
    parent.answer(&Outcome::from(rows.map(Value::Rows))).await
}

async fn rows(folder: &Path, question: &Question) -> Result<Rows, LocateError> {
    match question.server {
        Server::Mysql => mysql::query(folder, question).await,
        Server::Postgres => postgres::query(folder, question).await,
    }
}
