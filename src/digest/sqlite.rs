//! SQLite databases: their files are copied and the rows read from the copy, so that neither a lock nor a file of ours is
//! ever in the site's way.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;

use futures_util::TryStreamExt;
use rustix::fs::AtFlags;
use rustix::io::Errno;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Row, TypeInfo, ValueRef};
use tempfile::TempDir;

use super::content::{Content, Rows};
use super::rules::Rules;
use super::stat_mark::{Seen, StatMark};
use super::tree::{PIECE, Place, open_file};
use super::{DigestError, Look, Stop, blocking};
use crate::domain::store::Store;

/// What follows the database's name in those of the files that hold rows. The third companion, `-shm`, is an index of the
/// first and made anew when it is missing.
pub(super) const PARTS: [&str; 3] = ["", "-wal", "-journal"];

/// How often the files are copied anew when they change meanwhile.
const ATTEMPTS: usize = 3;

/// The most that is copied of a file, in bytes, zeros not counted.
const COPY_MAX: u64 = 4 << 30;

/// The mark of a database's files.
pub(super) async fn mark(store: &Store, folder: Place) -> Result<Option<String>, DigestError> {
    let files = Files::of(store, folder);
    blocking(store, move |_| Ok(files.seen(&files.open()?)?.mark())).await
}

/// The rows of a database.
pub(super) async fn look(store: &Store, folder: Place, baseline: Option<&Content>) -> Result<Look, DigestError> {
    let files = Files::of(store, folder);
    let name = files.name.clone();
    let copied = blocking(store, move |stop| files.copy(stop)).await?;
    let same = baseline.filter(|baseline| baseline.bytes.as_ref() == Some(&copied.bytes));
    let content = match same {
        Some(baseline) => baseline.clone(),
        None => {
            let failed = |cause: sqlx::Error| DigestError::Sqlite { store: store.name.clone(), cause: cause.into() };
            let options = SqliteConnectOptions::new().filename(copied.folder.path().join(&name));
            let mut connection = options.connect().await.map_err(failed)?;
            let mut content = rows(store, &mut connection).await?;
            connection.close().await.map_err(failed)?;
            content.bytes = Some(copied.bytes);
            content
        }
    };
    Ok(Look { content, mark: copied.mark, paths: None })
}

/// Where the files are.
struct Files {
    store: String,
    folder: Place,
    name: String,
}

/// A copy of them, gone with the value.
struct Copied {
    folder: TempDir,
    /// BLAKE3 (hex) over all.
    bytes: String,
    mark: Option<String>,
}

impl Files {
    fn of(store: &Store, folder: Place) -> Self {
        let name = store.path.rsplit('/').next().unwrap_or_default().to_owned();
        Self { store: store.name.clone(), folder, name }
    }

    fn open(&self) -> Result<OwnedFd, DigestError> {
        self.folder.open().map_err(|cause| self.failed("", cause.into()))
    }

    fn seen(&self, folder: &OwnedFd) -> Result<Seen, DigestError> {
        let mut mark = StatMark::default();
        for part in PARTS {
            let name = format!("{}{part}", self.name);
            match rustix::fs::statat(folder, &name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => mark.add(name.as_bytes(), &stat),
                Err(Errno::NOENT) if !part.is_empty() => mark.add_missing(name.as_bytes()),
                Err(cause) => return Err(self.failed(part, cause.into())),
            }
        }
        Ok(mark.finish())
    }

    fn copy(&self, stop: &Stop) -> Result<Copied, DigestError> {
        let from = self.open()?;
        let mut attempt = 1;
        loop {
            let before = self.seen(&from)?;
            let folder = TempDir::new().map_err(|cause| self.failed("", cause))?;
            let mut hash = blake3::Hasher::new();
            for part in PARTS {
                let name = format!("{}{part}", self.name);
                match open_file(from.as_fd(), OsStr::new(&name)) {
                    Ok(file) => {
                        let length = copy_file(file, &folder.path().join(&name), &mut hash, stop);
                        hash.update(&length.map_err(|cause| self.failed(part, cause))?.to_le_bytes());
                    }
                    Err(Errno::NOENT) if !part.is_empty() => drop(hash.update(&u64::MAX.to_le_bytes())),
                    Err(cause) => return Err(self.failed(part, cause.into())),
                }
            }
            let after = self.seen(&from)?;
            if after.is_like(&before) || attempt == ATTEMPTS {
                let bytes = hash.finalize().to_hex().to_string();
                return Ok(Copied { folder, bytes, mark: after.mark_since(before) });
            }
            attempt += 1;
        }
    }

    fn failed(&self, part: &str, cause: io::Error) -> DigestError {
        DigestError::File { store: self.store.clone(), path: format!("{}{part}", self.name), cause }
    }
}

/// Copies as much as the file has now; one that grows without end is not followed. What is nothing but zeros takes no room in
/// the copy: a site can make a file that is larger than the host's disk.
fn copy_file(from: File, to: &Path, hash: &mut blake3::Hasher, stop: &Stop) -> io::Result<u64> {
    let length = from.metadata()?.len();
    let mut from = from.take(length);
    let to = File::create_new(to)?;
    let mut piece = [0; PIECE];
    let (mut copied, mut written) = (0, 0);
    loop {
        stop.check()?;
        let read = from.read(&mut piece)?;
        if read == 0 {
            to.set_len(copied)?;
            return Ok(copied);
        }
        hash.update(&piece[..read]);
        if piece[..read].iter().any(|byte| *byte != 0) {
            written += read as u64;
            if written > COPY_MAX {
                return Err(io::Error::other(format!("it holds more than {} GiB", COPY_MAX >> 30)));
            }
            to.write_all_at(&piece[..read], copied)?;
        }
        copied += read as u64;
    }
}

async fn rows(store: &Store, connection: &mut SqliteConnection) -> Result<Content, DigestError> {
    let failed = |cause: sqlx::Error| DigestError::Sqlite { store: store.name.clone(), cause: cause.into() };
    // The schema is the site's: what it says must not run functions that do more than compute.
    query(connection, "pragma trusted_schema = off").await.map_err(failed)?;
    let rules = Rules::of(store);
    let mut content = Content::default();
    let (mut tables, mut columns) = (Vec::new(), Vec::new());
    for row in query(connection, "select type, name, coalesce(sql, '') from sqlite_master").await.map_err(failed)? {
        let (kind, name, sql) = (text(&row, 0), text(&row, 1), text(&row, 2));
        // The rows of a virtual table are in the tables that it keeps beside it.
        let is_virtual = sql.get(..14).is_some_and(|begin| begin.eq_ignore_ascii_case("create virtual"));
        content.objects.insert(format!("{kind} {name}"), blake3::hash(sql.as_bytes()).to_hex().to_string());
        if kind == "table" && !is_virtual {
            tables.push(name);
        }
    }
    for pragma in ["user_version", "application_id", "encoding"] {
        let sql = format!("select cast({pragma} as text) from pragma_{pragma}");
        let value = query(connection, &sql).await.map_err(failed)?.first().map(|row| text(row, 0));
        content.objects.insert(format!("pragma {pragma}"), value.unwrap_or_default());
    }
    for table in &tables {
        let sql = format!("select name from pragma_table_info({})", quoted(table, '\''));
        let names: Vec<String> =
            query(connection, &sql).await.map_err(failed)?.iter().map(|row| text(row, 0)).collect();
        columns.extend(names.iter().map(|name| (table.clone(), name.clone())));
        if rules.leaves_out_table(table) {
            continue;
        }
        if table == "sqlite_sequence" {
            for row in query(connection, "select name, cast(seq as text) from sqlite_sequence").await.map_err(failed)? {
                if !rules.leaves_out_table(&text(&row, 0)) {
                    content.counters.insert(text(&row, 0), text(&row, 1));
                }
            }
            continue;
        }
        let counted = names.iter().filter(|name| !rules.leaves_out_column(name, table));
        let counted: Vec<String> = counted.map(|name| quoted(name, '"')).collect();
        let list = if counted.is_empty() { "1".to_owned() } else { counted.join(", ") };
        let sql = format!("select {list} from {}", quoted(table, '"'));
        content.tables.insert(table.clone(), table_rows(connection, sql).await.map_err(failed)?);
    }
    rules.check(&columns.into_iter().collect(), &tables.into_iter().collect(), &Default::default())?;
    Ok(content)
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

/// Counts and hashes rows. The hashes are added up, so that their order does not matter and equal rows count.
async fn table_rows(connection: &mut SqliteConnection, sql: String) -> Result<Rows, sqlx::Error> {
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
    Ok(Rows { count, hash: format!("{sum:032x}") })
}

/// A value with its type and length, so that no two rows look alike.
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
