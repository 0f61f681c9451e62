//! SQLite: the file is copied out of the container, or from the folder that is mounted there, and queried in a process
//! of its own.
//!
//! The site continues to write while its file is read, so the file and its companions are read until two consecutive
//! reads are identical. The copy belongs to arenad alone, so no effect of a statement on it can do harm.

use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, Column, ConnectOptions, Row, TypeInfo, ValueRef};

use super::{Query, Unreadable, collect};
use crate::outcome::{Outcome, no_answer};
use crate::{LocateError, Scene, file, mounted};
use arenad_confined::{Folder, Worker};
use arenad_engine::Engine;
use arenad_model::locator::{Rows, Value};
use arenad_model::site::Database;

/// Maximum size of a database that is copied, in bytes. Two reads of it are in the daemon's memory at the same time.
const DATABASE_MAX: usize = 96 << 20;

/// Number of reads after which the database counts as constantly written.
const LOOKS: usize = 6;

/// Suffixes of the files that belong together: the write-ahead log, the journal of a write in progress, and the
/// database.
const COMPANIONS: [&str; 3] = ["-wal", "-journal", ""];

/// Name of the hidden command that runs this program as the process that queries a copy.
pub const COMMAND: &str = "confined-copy";

/// File name of the copy.
const COPY: &str = "database";

/// A statement on a copy, with `?` for its arguments.
#[derive(Debug, Serialize, Deserialize)]
struct Question {
    statement: String,
    arguments: Vec<String>,
}

pub(super) async fn query(
    engine: &dyn Engine,
    copies: &Path,
    scene: &Scene<'_>,
    database: &Database,
    query: &Query<'_>,
) -> Result<Rows, LocateError> {
    let failed = |error: io::Error| LocateError::Unavailable(format!("copy the database: {error}"));
    let folder = Folder::new_in(copies).map_err(failed)?;
    let copy = at_rest(engine, scene, database).await?;
    for (suffix, bytes) in COMPANIONS.iter().zip(copy) {
        let Some(bytes) = bytes else { continue };
        tokio::fs::write(folder.path().join(format!("{COPY}{suffix}")), bytes).await.map_err(failed)?;
    }
    let question = Question {
        statement: query.text(|_, _| "?".to_owned()),
        arguments: query.bound().map(str::to_owned).collect(),
    };
    let answer: Result<Outcome, _> = Worker::job_within(COMMAND, &folder, &question, query.limit).await;
    let rows = answer.map_err(|error| no_answer(error, "the database cannot be read"))?.into_value(query.limit);
    match rows? {
        Value::Rows(rows) => Ok(rows),
        other => Err(LocateError::Failed(format!("the database answers with {}", other.type_name()))),
    }
}

type Copy = [Option<Vec<u8>>; 3];

/// Returns the file and its companions as they were at one moment.
async fn at_rest(engine: &dyn Engine, scene: &Scene<'_>, database: &Database) -> Result<Copy, LocateError> {
    let mut before: Option<Copy> = None;
    for _ in 0..LOOKS {
        let now = look(engine, scene, database).await?;
        if now[2].is_none() {
            let (path, service) = (&database.database, &database.service);
            return Err(LocateError::Unavailable(format!("{service} has no file {path}")));
        }
        if before.as_ref() == Some(&now) {
            return Ok(now);
        }
        before = Some(now);
    }
    Err(LocateError::Unavailable(format!("{} is written to all the time", database.database)))
}

async fn look(engine: &dyn Engine, scene: &Scene<'_>, database: &Database) -> Result<Copy, LocateError> {
    let paths = COMPANIONS.map(|suffix| format!("{}{suffix}", database.database));
    if let Some((folder, below)) = scene.on_host(&database.service, &database.database) {
        let (folder, below) = (folder.to_owned(), below.to_owned());
        let read = tokio::task::spawn_blocking(move || {
            let folder = mounted::open(&folder)?;
            let read = |suffix| mounted::read(&folder, &format!("{below}{suffix}"), DATABASE_MAX);
            Ok::<_, Errno>([read(COMPANIONS[0])?, read(COMPANIONS[1])?, read(COMPANIONS[2])?])
        });
        // If the file cannot be read from here, or is not a regular file, the engine reads or refuses it.
        if let Ok(Ok(copy)) = read.await {
            return Ok(copy);
        }
    }
    let (service, container) = scene.container(Some(database.service.as_str()))?;
    let read = |path| file::read(engine, service, container, path, DATABASE_MAX);
    let (log, journal, file) = tokio::try_join!(read(&paths[0]), read(&paths[1]), read(&paths[2]))?;
    Ok([log, journal, file])
}

/// Runs one query on a copy; this is the entire execution of the hidden command.
pub fn serve() -> io::Result<()> {
    arenad_confined::serve_within(async |mut inside| {
        let Some(question) = inside.question::<Question>().await? else { return Ok(()) };
        let options = SqliteConnectOptions::new()
            .filename(COPY)
            .create_if_missing(false)
            .pragma("trusted_schema", "off")
            .pragma("query_only", "on")
            .pragma("temp_store", "memory");
        let (mut parent, connection) = inside.open(options.connect()).await?;
        let refused = |error: sqlx::Error| LocateError::Failed(format!("SQLite says: {error}"));
        let rows = async { rows(connection.map_err(refused)?, question).await }.await;
        parent.answer(&Outcome::from(rows.map(Value::Rows))).await
    })
}

async fn rows(mut connection: SqliteConnection, question: Question) -> Result<Rows, LocateError> {
    // AssertSqlSafe: the statement has passed the guard, and its arguments are bound.
    let mut query = sqlx::query(AssertSqlSafe(question.statement)).persistent(false);
    for text in question.arguments {
        query = query.bind(text);
    }
    // The parent process enforces the time limit.
    collect(query.fetch(&mut connection), Duration::ZERO, columns, cells).await
}

fn columns(row: &SqliteRow) -> Vec<String> {
    row.columns().iter().map(|column| column.name().to_owned()).collect()
}

/// Converts the cells of a row. In SQLite each value has its own type, whatever the column's declaration.
fn cells(row: &SqliteRow) -> Result<Vec<Value>, Unreadable> {
    let cell = |index: usize| {
        let raw = row.try_get_raw(index)?;
        if raw.is_null() {
            return Ok(Value::Null);
        }
        let kind = raw.type_info().name().to_owned();
        Ok::<_, sqlx::Error>(match kind.as_str() {
            "INTEGER" | "BOOLEAN" => Value::Integer(row.try_get_unchecked::<i64, _>(index)?.into()),
            "REAL" => Value::Float(row.try_get_unchecked(index)?),
            "BLOB" => Value::Bytes(row.try_get_unchecked(index)?),
            _ => Value::Text(row.try_get_unchecked(index)?),
        })
    };
    (0..row.len()).map(|index| cell(index).map_err(|error| error.to_string().into())).collect()
}
