//! Reads databases on a server. Their marks, which are read before and after, show whether anything was written in
//! between.

use std::collections::{BTreeMap, BTreeSet};

use super::content::StoreContent;
use super::reader::DatabaseReader;
use super::rows::{RowBudget, TableRows};
use super::{DigestError, StoreReading, Subject};
use arenad_model::store::{Store, StoreKind};

/// Maximum number of times that a database is read if it changes during the reading. The first reading often causes a
/// change itself, because PostgreSQL prunes the pages that it reads.
pub(super) const ATTEMPTS: usize = 3;

/// Returns the combined mark of a store's databases.
pub(super) async fn mark(
    subject: &Subject<'_>,
    store: &Store,
    databases: &[String],
) -> Result<Option<String>, DigestError> {
    let mut marks = Vec::new();
    for key in databases {
        let mut reader = DatabaseReader::open(*subject, store, key).await?;
        marks.push(reader.mark().await?);
        reader.end().await;
    }
    Ok(joined(marks))
}

/// Knowledge about databases whose data folder equalled the snapshot's before their server was started.
#[derive(Clone, Copy)]
pub(super) struct Rest<'a> {
    /// Position at which the server's log ended when the server was started on the snapshot's files.
    pub(super) position: u64,
    /// Content of the snapshot's databases.
    pub(super) content: &'a StoreContent,
}

/// Returns the content of a store's databases. If nothing was written since the server was started on the snapshot's
/// files, the content is taken from `rest`.
pub(super) async fn look(
    subject: &Subject<'_>,
    store: &Store,
    databases: &[String],
    rest: Option<Rest<'_>>,
) -> Result<StoreReading, DigestError> {
    let mut readers = Vec::new();
    for key in databases {
        readers.push(DatabaseReader::open(*subject, store, key).await?);
    }
    if let Some(rest) = rest
        && let Some(mark) = unwritten(&mut readers, rest).await?
    {
        for reader in readers {
            reader.end().await;
        }
        return Ok(StoreReading { content: rest.content.clone(), mark: Some(mark), paths: None });
    }
    let mut attempt = 1;
    let look = loop {
        let (look, is_settled) = read(&mut readers).await?;
        if is_settled || attempt == ATTEMPTS {
            break look;
        }
        attempt += 1;
    };
    for reader in readers {
        reader.end().await;
    }
    Ok(look)
}

/// Reads the rows of a store's tables, which are named as in its digest.
pub(super) async fn table_rows(
    subject: &Subject<'_>,
    store: &Store,
    databases: &[String],
    wanted: &BTreeMap<String, u64>,
    budget: &mut RowBudget,
) -> Result<BTreeMap<String, TableRows>, DigestError> {
    let mut found = BTreeMap::new();
    for key in databases {
        let prefix = if databases.len() > 1 { format!("{key}:") } else { String::new() };
        let tables = wanted.iter().filter_map(|(name, count)| Some((name.strip_prefix(&prefix)?.to_owned(), *count)));
        let tables: BTreeMap<String, u64> = tables.collect();
        if tables.is_empty() {
            continue;
        }
        let mut reader = DatabaseReader::open(*subject, store, key).await?;
        let read = reader.table_rows(&tables, budget).await?;
        reader.end().await;
        found.extend(read.into_iter().map(|(name, rows)| (format!("{prefix}{name}"), rows)));
    }
    Ok(found)
}

/// Returns an error if none of a store's databases contains a table, and the server has databases that no store names.
pub(super) async fn refuse_wrong(
    subject: &Subject<'_>,
    store: &Store,
    databases: &[String],
) -> Result<(), DigestError> {
    let mut unnamed = BTreeSet::new();
    for key in databases {
        let mut reader = DatabaseReader::open(*subject, store, key).await?;
        let others = reader.others_if_empty().await?;
        reader.end().await;
        let Some(others) = others else { return Ok(()) };
        unnamed.extend(others);
    }
    let of_store = |store: &Store| match &store.kind {
        StoreKind::Postgres { databases } | StoreKind::Mysql { databases } => databases.clone(),
        StoreKind::Sqlite | StoreKind::Directory | StoreKind::Redis { .. } => Vec::new(),
    };
    for key in subject.site.stores.iter().flat_map(of_store) {
        unnamed.retain(|name| subject.site.databases.get(&key).is_none_or(|named| named.database != *name));
    }
    if unnamed.is_empty() {
        return Ok(());
    }
    let (store, databases) = (store.name.clone(), databases.join(", "));
    Err(DigestError::EmptyDatabase { store, databases, others: unnamed.into_iter().collect() })
}

/// Returns the mark if nothing was written to any of the databases since the server was started on the snapshot's
/// files.
async fn unwritten(readers: &mut [DatabaseReader<'_>], rest: Rest<'_>) -> Result<Option<String>, DigestError> {
    let several = readers.len() > 1;
    let mut marks = Vec::new();
    for reader in readers.iter_mut() {
        let prefix = if several { format!("{}:", reader.key) } else { String::new() };
        marks.push(reader.unwritten(rest.position, rest.content, &prefix).await?);
    }
    // The log belongs to the whole server, so a later mark of one database covers the others.
    Ok(joined(marks))
}

/// Reads all databases once, and returns whether nothing was written to any of them in the meantime. The marks refer to
/// the server's log, so a write to one database moves the marks of the others.
async fn read(readers: &mut [DatabaseReader<'_>]) -> Result<(StoreReading, bool), DigestError> {
    let mut content = StoreContent::default();
    let (mut before, mut after) = (Vec::new(), Vec::new());
    let (several, last) = (readers.len() > 1, readers.len() - 1);
    for (index, reader) in readers.iter_mut().enumerate() {
        let read = reader.read().await?;
        let prefix = if several { format!("{}:", reader.key) } else { String::new() };
        let named = |name: String| format!("{prefix}{name}");
        content.tables.extend(read.content.tables.into_iter().map(|(name, rows)| (named(name), rows)));
        content.counters.extend(read.content.counters.into_iter().map(|(name, value)| (named(name), value)));
        content.objects.extend(read.content.objects.into_iter().map(|(name, hash)| (named(name), hash)));
        before.push(read.before);
        if index == last {
            after.push(read.after);
        }
    }
    for (index, reader) in readers.iter_mut().enumerate().take(last) {
        after.insert(index, reader.mark().await?);
    }
    let is_settled = before == after;
    Ok((StoreReading { content, mark: joined(after).filter(|_| is_settled), paths: None }, is_settled))
}

fn joined(marks: Vec<Option<String>>) -> Option<String> {
    let marks: Option<Vec<String>> = marks.into_iter().collect();
    Some(marks?.join("\n"))
}
