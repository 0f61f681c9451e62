//! The confined process that reads the schema and the rows of a copied SQLite database.

use std::collections::BTreeMap;
use std::io;

use futures_util::TryStreamExt;
use serde::{Deserialize, Serialize};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, ConnectOptions, Row, TypeInfo, ValueRef};

use super::content::TableDigest;
use super::rows::{BEGIN_CHARS, BINARY_BYTES, PAGE_ROWS, ROW_BYTES, RowHash, RowPage, TableRow, VALUE_CHARS};
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
    /// Asks for a page of a table's rows, with the values of the key's columns.
    Page { table: String, columns: Vec<String>, key: Vec<String>, offset: u64, with_values: bool },
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
    /// Columns of primary keys, by table.
    pub(super) keys: BTreeMap<String, Vec<String>>,
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

    /// Returns a page of a table's rows.
    pub(super) async fn page(
        &mut self,
        table: &str,
        columns: &[String],
        key: &[String],
        page: RowPage,
    ) -> Result<Vec<TableRow>, WorkerError> {
        let (table, columns, key) = (table.to_owned(), columns.to_vec(), key.to_vec());
        let RowPage { offset, with_values, .. } = page;
        self.ask(&SqliteRequest::Page { table, columns, key, offset, with_values }).await
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
                SqliteRequest::Page { table, columns, key, offset, with_values } => {
                    let page = RowPage { offset, rows: PAGE_ROWS, with_values };
                    let rows = table_page(&mut connection, &table, &columns, &key, page).await;
                    parent.answer(&rows.map_err(said)).await?;
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
        let sql = format!("select name from pragma_table_info({}) where pk > 0 order by pk", quoted(&table, '\''));
        let key: Vec<String> = query(connection, &sql).await?.iter().map(|row| text(row, 0)).collect();
        if !key.is_empty() {
            schema.keys.insert(table.clone(), key);
        }
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
        sum = sum.wrapping_add(row_hash(&row, row.len())?);
        count += 1;
    }
    Ok(TableDigest { count, hash: format!("{sum:032x}") })
}

/// Hashes the first `columns` columns of a row.
fn row_hash(row: &SqliteRow, columns: usize) -> Result<u128, sqlx::Error> {
    let mut hash = blake3::Hasher::new();
    for column in 0..columns {
        add_value(&mut hash, row, column)?;
    }
    let mut half = [0; 16];
    half.copy_from_slice(&hash.finalize().as_bytes()[..16]);
    Ok(u128::from_le_bytes(half))
}

/// Returns a page of a table's rows. A copy does not change, so the order of rows is the same for each page.
async fn table_page(
    connection: &mut SqliteConnection,
    table: &str,
    columns: &[String],
    key: &[String],
    page: RowPage,
) -> Result<Vec<TableRow>, sqlx::Error> {
    let quote = |names: &[String]| names.iter().map(|name| quoted(name, '"')).collect::<Vec<_>>();
    let counted = if columns.is_empty() { vec!["1".to_owned()] } else { quote(columns) };
    let list = [counted.clone(), quote(key)].concat().join(", ");
    let (table, RowPage { offset, rows, .. }) = (quoted(table, '"'), page);
    let sql = format!("select {list} from {table} limit {rows} offset {offset}");
    let mut found = Vec::new();
    let mut rows = sqlx::query(AssertSqlSafe(sql)).fetch(connection);
    while let Some(row) = rows.try_next().await? {
        let hash = row_hash(&row, counted.len())?;
        let hash = RowHash(hash as u64, (hash >> 64) as u64);
        let shown =
            |range: std::ops::Range<usize>| range.map(|column| shown(&row, column)).collect::<Result<Vec<_>, _>>();
        let key = shown(counted.len()..row.len())?;
        let values = if page.with_values { Some(shown(0..columns.len())?) } else { None };
        let length = |values: &Vec<Option<String>>| values.iter().flatten().map(String::len).sum::<usize>();
        found.push(TableRow { hash, key, values: values.filter(|values| length(values) <= ROW_BYTES) });
    }
    Ok(found)
}

/// Returns a value as a text for users; `None` if it is NULL.
fn shown(row: &SqliteRow, column: usize) -> Result<Option<String>, sqlx::Error> {
    let value = row.try_get_raw(column)?;
    if value.is_null() {
        return Ok(None);
    }
    let kind = value.type_info().name().to_owned();
    Ok(Some(match kind.as_str() {
        "INTEGER" => row.try_get_unchecked::<i64, _>(column)?.to_string(),
        "REAL" => format!("{:?}", row.try_get_unchecked::<f64, _>(column)?),
        "BLOB" => shown_bytes(&row.try_get_unchecked::<Vec<u8>, _>(column)?),
        _ => match String::from_utf8(row.try_get_unchecked::<Vec<u8>, _>(column)?) {
            Ok(text) => shown_text(text),
            Err(error) => shown_bytes(error.as_bytes()),
        },
    }))
}

fn shown_bytes(bytes: &[u8]) -> String {
    let digits = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02X}")).collect::<String>();
    match bytes.get(..BINARY_BYTES) {
        Some(begin) if bytes.len() > BINARY_BYTES => {
            format!("0x{}... ({} bytes, BLAKE3 {})", digits(begin), bytes.len(), blake3::hash(bytes).to_hex())
        }
        _ => format!("0x{}", digits(bytes)),
    }
}

fn shown_text(text: String) -> String {
    let length = text.chars().count();
    if length <= VALUE_CHARS {
        return text;
    }
    let begin: String = text.chars().take(BEGIN_CHARS).collect();
    format!("{begin}... ({length} characters, BLAKE3 {})", blake3::hash(text.as_bytes()).to_hex())
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
