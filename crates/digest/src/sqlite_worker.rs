//! The confined process that reads the schema and the rows of a copied SQLite database.

use std::collections::BTreeMap;
use std::io;

use futures_util::TryStreamExt;
use serde::{Deserialize, Serialize};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, ConnectOptions, Row, TypeInfo, ValueRef};

use super::content::TableDigest;
use arenad_confined::{Folder, Worker, WorkerError};

/// Hidden command that runs this program as the worker.
pub const COMMAND: &str = "confined-rows";

/// Table in which SQLite keeps the last number of each `AUTOINCREMENT` table.
pub(super) const SEQUENCES: &str = "sqlite_sequence";

/// A request to the worker.
#[derive(Debug, Serialize, Deserialize)]
enum SqliteRequest {
    /// Asks for the schema of the database with this file name.
    Schema(String),
    /// Asks for the count and the hash of a table's rows, restricted to these columns.
    Rows { table: String, columns: Vec<String> },
    /// Asks for the rows of [`SEQUENCES`].
    Sequences,
}

/// The schema of a database.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Schema {
    /// Hashes of the objects' definitions and of the settings outside the tables, by kind and name.
    pub(super) objects: BTreeMap<String, String>,
    /// Tables with their columns.
    pub(super) tables: Vec<(String, Vec<String>)>,
}

arenad_model::text_error! {
    /// SQLite's message about a database that it cannot read.
    #[derive(Serialize, Deserialize)]
    struct SqliteWords;
}

type SqliteReply<T> = Result<T, SqliteWords>;

/// The daemon's side of the connection to a worker.
pub(super) struct SqliteReader(Worker);

impl SqliteReader {
    /// Starts a worker in the folder that contains the database.
    pub(super) async fn start(folder: &Folder, name: &str) -> Result<(Self, Schema), WorkerError> {
        let mut reader = Self(Worker::within(COMMAND, folder)?);
        let schema = reader.ask(&SqliteRequest::Schema(name.to_owned())).await?;
        Ok((reader, schema))
    }

    /// Returns the count and the hash of a table's rows.
    pub(super) async fn rows(&mut self, table: &str, columns: Vec<String>) -> Result<TableDigest, WorkerError> {
        self.ask(&SqliteRequest::Rows { table: table.to_owned(), columns }).await
    }

    /// Returns the last number of each `AUTOINCREMENT` table.
    pub(super) async fn sequences(&mut self) -> Result<Vec<(String, String)>, WorkerError> {
        self.ask(&SqliteRequest::Sequences).await
    }

    async fn ask<T: serde::de::DeserializeOwned>(&mut self, question: &SqliteRequest) -> Result<T, WorkerError> {
        let answer: SqliteReply<T> = self.0.ask(question).await?;
        answer.map_err(|words| WorkerError::Answer(words.to_string()))
    }
}

/// Reads one database, as the whole of the hidden command.
pub fn serve() -> io::Result<()> {
    arenad_confined::serve_within(async |mut inside| {
        let Some(SqliteRequest::Schema(name)) = inside.question().await? else { return Ok(()) };
        let options = SqliteConnectOptions::new().filename(name).pragma("temp_store", "memory");
        let (mut parent, opened) = inside.open(options.connect()).await?;
        let mut connection = match opened {
            Ok(connection) => connection,
            Err(error) => return parent.answer(&SqliteReply::<Schema>::Err(said(error))).await,
        };
        parent.answer(&schema(&mut connection).await.map_err(said)).await?;
        while let Some(question) = parent.question().await? {
            match question {
                // A worker reads only one database.
                SqliteRequest::Schema(_) => return Ok(()),
                SqliteRequest::Rows { table, columns } => {
                    parent.answer(&table_rows(&mut connection, &table, &columns).await.map_err(said)).await?;
                }
                SqliteRequest::Sequences => parent.answer(&sequences(&mut connection).await.map_err(said)).await?,
            }
        }
        Ok(())
    })
}

fn said(error: sqlx::Error) -> SqliteWords {
    format!("SQLite says: {error}").into()
}

async fn schema(connection: &mut SqliteConnection) -> Result<Schema, sqlx::Error> {
    // The site controls the schema, so the schema must not call functions that have side effects.
    query(connection, "pragma trusted_schema = off").await?;
    let mut schema = Schema::default();
    let mut tables = Vec::new();
    for row in query(connection, "select type, name, coalesce(sql, '') from sqlite_master").await? {
        let (kind, name, sql) = (text(&row, 0), text(&row, 1), text(&row, 2));
        // The rows of a virtual table are in the tables that belong to it.
        let is_virtual = sql.get(..14).is_some_and(|begin| begin.eq_ignore_ascii_case("create virtual"));
        schema.objects.insert(format!("{kind} {name}"), blake3::hash(sql.as_bytes()).to_hex().to_string());
        if kind == "table" && !is_virtual {
            tables.push(name);
        }
    }
    for pragma in ["user_version", "application_id", "encoding"] {
        let sql = format!("select cast({pragma} as text) from pragma_{pragma}");
        let value = query(connection, &sql).await?.first().map(|row| text(row, 0));
        schema.objects.insert(format!("pragma {pragma}"), value.unwrap_or_default());
    }
    for table in tables {
        let sql = format!("select name from pragma_table_info({})", quoted(&table, '\''));
        let columns = query(connection, &sql).await?.iter().map(|row| text(row, 0)).collect();
        schema.tables.push((table, columns));
    }
    Ok(schema)
}

async fn sequences(connection: &mut SqliteConnection) -> Result<Vec<(String, String)>, sqlx::Error> {
    let rows = query(connection, "select name, cast(seq as text) from sqlite_sequence").await?;
    Ok(rows.iter().map(|row| (text(row, 0), text(row, 1))).collect())
}

async fn query(connection: &mut SqliteConnection, sql: &str) -> Result<Vec<SqliteRow>, sqlx::Error> {
    sqlx::query(AssertSqlSafe(sql.to_owned())).fetch_all(connection).await
}

fn text(row: &SqliteRow, column: usize) -> String {
    row.try_get_unchecked::<Option<String>, _>(column).ok().flatten().unwrap_or_default()
}

fn quoted(name: &str, quote: char) -> String {
    let doubled: String = [quote, quote].iter().collect();
    format!("{quote}{}{quote}", name.replace(quote, &doubled))
}

/// Counts and hashes rows. The hashes are added up, so that the order of rows does not matter and duplicate rows count.
async fn table_rows(
    connection: &mut SqliteConnection,
    table: &str,
    columns: &[String],
) -> Result<TableDigest, sqlx::Error> {
    let columns: Vec<String> = columns.iter().map(|name| quoted(name, '"')).collect();
    let list = if columns.is_empty() { "1".to_owned() } else { columns.join(", ") };
    let sql = format!("select {list} from {}", quoted(table, '"'));
    let mut rows = sqlx::query(AssertSqlSafe(sql)).fetch(connection);
    let (mut count, mut sum) = (0, 0_u128);
    while let Some(row) = rows.try_next().await? {
        let mut hash = blake3::Hasher::new();
        for column in 0..row.len() {
            add_value(&mut hash, &row, column)?;
        }
        let mut half = [0; 16];
        half.copy_from_slice(&hash.finalize().as_bytes()[..16]);
        sum = sum.wrapping_add(u128::from_le_bytes(half));
        count += 1;
    }
    Ok(TableDigest { count, hash: format!("{sum:032x}") })
}

/// Adds a value with its type and length, so that different rows never have the same encoding.
fn add_value(hash: &mut blake3::Hasher, row: &SqliteRow, column: usize) -> Result<(), sqlx::Error> {
    let value = row.try_get_raw(column)?;
    if value.is_null() {
        hash.update(b"n");
        return Ok(());
    }
    let kind = value.type_info().name().to_owned();
    let bytes = match kind.as_str() {
        "INTEGER" => row.try_get_unchecked::<i64, _>(column)?.to_le_bytes().to_vec(),
        "REAL" => row.try_get_unchecked::<f64, _>(column)?.to_bits().to_le_bytes().to_vec(),
        _ => row.try_get_unchecked::<Vec<u8>, _>(column)?,
    };
    hash.update(&kind.as_bytes()[..1]);
    hash.update(&(bytes.len() as u64).to_le_bytes());
    hash.update(&bytes);
    Ok(())
}
