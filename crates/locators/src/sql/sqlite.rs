//! SQLite: the file is copied out of the container, or from the folder that is mounted there, and queried in a process
//! of its own.
//!
//! The site continues to write while its file is read, so the file and its companions are read repeatedly, until a read
//! equals the previous copy. The copy belongs to arenad alone, so the effects of statements on it are harmless. It is
//! in the state directory, and is never in the daemon's memory as a whole.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, Column, ConnectOptions, Row, TypeInfo, ValueRef};

use super::copy::{self, FILE_MAX};
use super::{Query, UnreadableValue, collect};
use crate::outcome::{LocatorOutcome, no_answer};
use crate::{LocateError, Scene, mounted};
use arenad_confined::{Folder, Worker};
use arenad_engine::Engine;
use arenad_model::cause::Cause;
use arenad_model::locator::{Rows, Value};
use arenad_model::site::Database;
use arenad_seams::inline;

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
struct SqliteQuery {
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
    let failed = |error: io::Error| copy::not_copied(&database.database, Cause::of_io(&error), &error.to_string());
    let folder = Arc::new(Folder::new_in(copies).map_err(failed)?);
    copy_at_rest(engine, scene, database, &folder).await?;
    let question = SqliteQuery {
        statement: query.text(|_, _| "?".to_owned()),
        arguments: query.bound().map(str::to_owned).collect(),
    };
    let answer: Result<LocatorOutcome, _> = Worker::job_within(COMMAND, &folder, &question, query.limit).await;
    let rows = answer.map_err(|error| no_answer(error, "the database cannot be read"))?.into_value(query.limit);
    match rows? {
        Value::Rows(rows) => Ok(rows),
        other => Err(LocateError::Failed(format!("the database answers with {}", other.type_name()))),
    }
}

/// Copies the file and its companions as they were at one moment.
async fn copy_at_rest(
    engine: &dyn Engine,
    scene: &Scene<'_>,
    database: &Database,
    folder: &Arc<Folder>,
) -> Result<(), LocateError> {
    for look in 0..LOOKS {
        let was_same = refresh(engine, scene, database, folder).await?;
        if !matches!(tokio::fs::try_exists(folder.path().join(COPY)).await, Ok(true)) {
            let (path, service) = (&database.database, &database.service);
            return Err(LocateError::Unavailable(format!("{service} has no file {path}")));
        }
        if was_same && look > 0 {
            return Ok(());
        }
    }
    Err(LocateError::Unavailable(format!("{} is written to all the time", database.database)))
}

/// Brings the copies up to date, and returns whether they were already.
async fn refresh(
    engine: &dyn Engine,
    scene: &Scene<'_>,
    database: &Database,
    folder: &Arc<Folder>,
) -> Result<bool, LocateError> {
    if let Some((mounted, below)) = scene.on_host(&database.service, &database.database) {
        let (mounted, below, folder) = (mounted.to_owned(), below.to_owned(), Arc::clone(folder));
        let copied = inline::stoppable(move |stop| {
            let mounted = mounted::open(&mounted)?;
            let mut was_same = true;
            for suffix in COMPANIONS {
                let to = folder.path().join(format!("{COPY}{suffix}"));
                was_same &= match mounted::open_file(&mounted, &format!("{below}{suffix}"), FILE_MAX)? {
                    Some((file, size)) => copy::refresh(file, size, &to, stop)?,
                    None => copy::forget(&to)?,
                };
            }
            Ok::<_, io::Error>(was_same)
        });
        match copied.await {
            Ok(Ok(was_same)) => return Ok(was_same),
            Ok(Err(error)) if Cause::of_io(&error) == Some(Cause::NoSpace) => {
                return Err(copy::not_copied(&database.database, Some(Cause::NoSpace), &error.to_string()));
            }
            // If the file cannot be read from here, or is not a regular file, the engine reads or refuses it.
            _ => {}
        }
    }
    let place = scene.container(Some(database.service.as_str()))?;
    let [log, journal, file] = COMPANIONS.map(|suffix| {
        let (path, name) = (format!("{}{suffix}", database.database), format!("{COPY}{suffix}"));
        async move { copy::refresh_from_container(engine, place, &path, folder, &name).await }
    });
    let (log, journal, file) = tokio::try_join!(log, journal, file)?;
    Ok(log && journal && file)
}

/// Runs one query on a copy; this is the entire execution of the hidden command.
pub fn serve() -> io::Result<()> {
    arenad_confined::serve_within(async |mut inside| {
        let Some(question) = inside.question::<SqliteQuery>().await? else { return Ok(()) };
        let options = SqliteConnectOptions::new()
            .filename(COPY)
            .create_if_missing(false)
            .pragma("trusted_schema", "off")
            .pragma("query_only", "on")
            .pragma("temp_store", "memory");
        let (mut parent, connection) = inside.open(options.connect()).await?;
        let refused = |error: sqlx::Error| LocateError::Failed(format!("SQLite says: {error}"));
        let rows = async { rows(connection.map_err(refused)?, question).await }.await;
        parent.answer(&LocatorOutcome::from(rows.map(Value::Rows))).await
    })
}

async fn rows(mut connection: SqliteConnection, question: SqliteQuery) -> Result<Rows, LocateError> {
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
fn cells(row: &SqliteRow) -> Result<Vec<Value>, UnreadableValue> {
    let cell = |index: usize| -> Result<Value, UnreadableValue> {
        let raw = row.try_get_raw(index)?;
        if raw.is_null() {
            return Ok(Value::Null);
        }
        let kind = raw.type_info().name().to_owned();
        Ok(match kind.as_str() {
            "INTEGER" | "BOOLEAN" => Value::Integer(row.try_get_unchecked::<i64, _>(index)?.into()),
            "REAL" => Value::Float(row.try_get_unchecked(index)?),
            "BLOB" => Value::Bytes(row.try_get_unchecked(index)?),
            _ => Value::Text(row.try_get_unchecked(index)?),
        })
    };
    (0..row.len()).map(cell).collect()
}
