//! Reads one database: a first script finds the tables and objects, further scripts hash the rows on the server.
//!
//! Each script is a read-only transaction on one consistent state. The mark is read before the first script and after
//! the last; if it has not moved, all scripts saw the same state, on either connection. Rows are hashed on two
//! connections at once if the server is reached without a client: one script occupies only one processor, and a rewind
//! waits for the result.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde_json::Value as Json;

use super::catalog::{Catalog, Column};
use super::content::{StoreContent, TableDigest};
use super::database::ATTEMPTS;
use super::lines::StoreConnection;
use super::rows::{CLIENT_PAGE_ROWS, PAGE_ROWS, RowBudget, RowHash, RowPage, TableRow, TableRows, offsets};
use super::rules::VolatileParts;
use super::{DigestError, Subject, mysql, postgres, rested};
use arenad_model::site::{Database, DatabaseAccess};
use arenad_model::store::{Store, StoreKind};
use arenad_probes::{SqlFailure, SqlSession};

/// Maximum length of a script, in bytes: a client in a container receives it as an argument, which the kernel limits to
/// 128 KiB.
const SCRIPT_MAX: usize = 100_000;

/// Number of statements in a script if two connections share the work; it is small so that neither connection waits
/// long for the other.
const SHARE: usize = 8;

/// The servers whose data folders can be stores.
#[derive(Clone, Copy)]
enum DatabaseServer {
    Mysql,
    Postgres,
}

impl DatabaseServer {
    fn of(store: &Store) -> Self {
        // Validation ensures that a store is read only through databases of its own kind.
        match store.kind {
            StoreKind::Mysql { .. } => Self::Mysql,
            _ => Self::Postgres,
        }
    }

    fn mark(self) -> &'static str {
        match self {
            Self::Postgres => postgres::MARK,
            Self::Mysql => mysql::MARK,
        }
    }

    fn catalog(self) -> &'static str {
        match self {
            Self::Postgres => postgres::CATALOG,
            Self::Mysql => mysql::CATALOG,
        }
    }

    fn others(self) -> &'static str {
        match self {
            Self::Postgres => postgres::OTHERS,
            Self::Mysql => mysql::OTHERS,
        }
    }

    fn keys(self) -> &'static str {
        match self {
            Self::Postgres => postgres::KEYS,
            Self::Mysql => mysql::KEYS,
        }
    }

    /// Returns the hash of a row, from the form in which the server yields it.
    fn row_hash(self, text: &str) -> Option<RowHash> {
        match self {
            Self::Postgres => {
                let (first, second) = text.split_once(' ')?;
                let number = |text: &str| text.parse().ok().map(i64::cast_unsigned);
                Some(RowHash(number(first)?, number(second)?))
            }
            Self::Mysql => {
                let half = |digits: Option<&str>| u64::from_str_radix(digits?, 16).ok();
                Some(RowHash(half(text.get(..16))?, half(text.get(16..))?))
            }
        }
    }

    /// Statement that yields the definitions, if the catalog does not contain them.
    fn objects(self) -> Option<&'static str> {
        match self {
            Self::Postgres => None,
            Self::Mysql => Some(mysql::OBJECTS),
        }
    }

    /// Returns a transaction that consists of the statements, each of which ends with a semicolon. A client's output
    /// may be truncated, so the transaction ends with a row that shows that the output is complete.
    fn script(self, statements: &[String]) -> String {
        let (begin, end) = match self {
            Self::Postgres => (postgres::BEGIN, "select json_build_array('end');\ncommit;\n"),
            Self::Mysql => (mysql::BEGIN, "select json_array('end');\ncommit;\n"),
        };
        [begin, &statements.concat(), end].concat()
    }
}

/// The content of one database.
pub(super) struct MarkedContent {
    pub(super) content: StoreContent,
    /// The mark before anything was read.
    pub(super) before: Option<String>,
    /// The mark after everything was read.
    pub(super) after: Option<String>,
}

/// A reader of one database with its connections.
pub(super) struct DatabaseReader<'a> {
    pub(super) key: &'a str,
    subject: Subject<'a>,
    store: &'a Store,
    database: &'a Database,
    server: DatabaseServer,
    session: SqlSession<'a>,
    /// Second connection, for hashing rows.
    beside: Option<SqlSession<'a>>,
}

impl<'a> DatabaseReader<'a> {
    pub(super) async fn open(subject: Subject<'a>, store: &'a Store, key: &'a str) -> Result<Self, DigestError> {
        let missing = || failed(store, key, SqlFailure::Server("the database is not declared".to_owned()));
        let database = subject.site.databases.get(key).ok_or_else(missing)?;
        let resumed = match subject.lines.take(store, key) {
            Some(StoreConnection::Database(connection)) => SqlSession::resume(database, connection).await,
            _ => None,
        };
        let session = match resumed {
            Some(session) => session,
            None => {
                let opened = SqlSession::open(subject.engine, database, subject.incarnation, store.timeout).await;
                opened.map_err(|cause| failed(store, key, cause))?
            }
        };
        Ok(Self { key, subject, store, database, server: DatabaseServer::of(store), session, beside: None })
    }

    /// Keeps the connection for the next check. Every answer must have been read.
    pub(super) async fn end(self) {
        if let Some(beside) = self.beside {
            beside.close().await;
        }
        if let Some(connection) = self.session.keep() {
            self.subject.lines.put(self.store, self.key, StoreConnection::Database(connection)).await;
        }
    }

    /// Returns the mark, or `None` if the server has no marks.
    pub(super) async fn mark(&mut self) -> Result<Option<String>, DigestError> {
        let rows = self.run(&[self.server.mark().to_owned()]).await?;
        Ok(rows.last().and_then(mark_of))
    }

    /// Returns the mark if nothing was written since the server was started on a data folder whose log ended at
    /// `position`, and the definitions in the server's own tables equal those in `content`.
    pub(super) async fn unwritten(
        &mut self,
        position: u64,
        content: &StoreContent,
        prefix: &str,
    ) -> Result<Option<String>, DigestError> {
        let statements = [self.server.mark(), mysql::OWN_OBJECTS, self.server.mark()].map(str::to_owned);
        let (mut catalog, mut none) = (Catalog::default(), StoreContent::default());
        for row in self.run(&statements).await? {
            match row.as_array().map(Vec::as_slice) {
                Some([Json::String(tag), Json::String(_)]) if tag == "mark" => catalog.marks.push(mark_of(&row)),
                _ => self.add(&mut catalog, &mut none, &row)?,
            }
        }
        let [Some(before), Some(after)] = catalog.marks.as_slice() else { return Ok(None) };
        let (before, after) = (before.clone(), after.clone());
        let own = catalog.content(&VolatileParts::of(self.store)).objects;
        let is_same = rested::of_own_tables(&own, "") == rested::of_own_tables(&content.objects, prefix);
        Ok((before == after && is_same && rested::is_unwritten(&after, position)).then_some(after))
    }

    /// Reads everything except the volatile parts.
    pub(super) async fn read(&mut self) -> Result<MarkedContent, DigestError> {
        let rules = VolatileParts::of(self.store);
        let opening = second(self.subject, self.store, self.database, self.beside.take());
        let (catalog, beside) = tokio::join!(self.catalog(), opening);
        self.beside = beside;
        let mut catalog = catalog?;
        // The first reading may itself cause writes. Reading rows takes longer than reading the catalog, so the catalog
        // is read until its marks are stable.
        for _ in 1..ATTEMPTS {
            if catalog.marks.first() == catalog.marks.last() {
                break;
            }
            catalog = self.catalog().await?;
        }
        catalog.check(&rules)?;
        let before = catalog.marks.first().cloned().flatten();
        let statements = self.statements(&rules, &catalog);
        let (answer, after) = self.run_marked(statements).await?;
        let mut rows = StoreContent::default();
        for row in answer {
            self.add(&mut catalog, &mut rows, &row)?;
        }
        let mut content = catalog.content(&rules);
        content.tables.extend(rows.tables);
        content.counters.extend(rows.counters);
        Ok(MarkedContent { content, before, after })
    }

    /// Reads the rows of tables whose approximate number of rows is given. Tables that do not exist, or exceed
    /// the budget, are left out. Each page is a transaction of its own, so the caller checks the rows against a digest.
    pub(super) async fn table_rows(
        &mut self,
        wanted: &BTreeMap<String, u64>,
        budget: &mut RowBudget,
    ) -> Result<BTreeMap<String, TableRows>, DigestError> {
        let rules = VolatileParts::of(self.store);
        let (mut catalog, mut none) = (Catalog::default(), StoreContent::default());
        for row in self.run(&[self.server.catalog(), self.server.keys()].map(str::to_owned)).await? {
            self.add(&mut catalog, &mut none, &row)?;
        }
        let is_wanted = |name: &String| wanted.contains_key(name) && !rules.leaves_out_table(name);
        let page_rows = match self.database.access {
            DatabaseAccess::Tcp => PAGE_ROWS,
            DatabaseAccess::Client { .. } => CLIENT_PAGE_ROWS,
        };
        let mut found = BTreeMap::new();
        let mut waiting = Vec::new();
        for table in catalog.tables.iter().filter(|table| is_wanted(&table.name)) {
            let (columns, key) = table.counted(&rules, catalog.keys.get(&table.name));
            let names = |columns: &[&Column]| columns.iter().map(|column| column.name.clone()).collect();
            let rows = TableRows { key: names(&key), columns: names(&columns), rows: Vec::new() };
            found.insert(table.name.clone(), rows);
            let count = wanted[&table.name];
            let pages = offsets(count, page_rows).map(|offset| (offset, (count - offset.min(count)).min(page_rows)));
            waiting.extend(pages.map(|(offset, expected)| (table, columns.clone(), key.clone(), offset, expected)));
        }
        let mut waiting = waiting.into_iter().peekable();
        while waiting.peek().is_some() {
            let with_values = budget.has_values();
            // Small tables share a script, because each script starts a client if the server is read through one.
            let (mut script, mut tables, mut length, mut rows) = (Vec::new(), Vec::new(), 0, 0);
            while let Some((table, columns, key, offset, expected)) = waiting
                .next_if(|(.., expected)| script.is_empty() || rows + expected <= page_rows && length < SCRIPT_MAX / 2)
            {
                let page = RowPage { offset, rows: page_rows, with_values };
                let statement = match self.server {
                    DatabaseServer::Postgres => postgres::page(table, &columns, &key, page),
                    DatabaseServer::Mysql => mysql::page(table, &columns, &key, page),
                };
                length += statement.len();
                rows += expected;
                tables.push(&table.name);
                script.push(statement);
            }
            for answer in self.run(&script).await? {
                let parsed = self.row(&answer).and_then(|(table, row)| Some((found.get_mut(table)?, row)));
                let (table, row) = parsed.ok_or_else(|| not_understood(self.store, &answer.to_string()))?;
                budget.spend(&row);
                table.rows.push(row);
                if budget.is_spent() {
                    break;
                }
            }
            if budget.is_spent() {
                let unread = waiting.map(|(table, ..)| &table.name);
                tables.into_iter().chain(unread).for_each(|name| drop(found.remove(name)));
                break;
            }
        }
        Ok(found)
    }

    /// Returns a row of an answer and the name of its table.
    fn row<'r>(&self, answer: &'r Json) -> Option<(&'r str, TableRow)> {
        let [Json::String(tag), Json::String(table), Json::String(key), Json::String(hash), values] =
            answer.as_array()?.as_slice()
        else {
            return None;
        };
        let values = values.as_str().map(serde_json::from_str).transpose().ok()?;
        let row = TableRow { hash: self.server.row_hash(hash)?, key: serde_json::from_str(key).ok()?, values };
        (tag == "row").then_some((table.as_str(), row))
    }

    async fn catalog(&mut self) -> Result<Catalog, DigestError> {
        let statements = [self.server.mark(), self.server.catalog(), self.server.mark()].map(str::to_owned);
        let (mut catalog, mut none) = (Catalog::default(), StoreContent::default());
        for row in self.run(&statements).await? {
            match row.as_array().map(Vec::as_slice) {
                Some([Json::String(tag), Json::String(_)]) if tag == "mark" => catalog.marks.push(mark_of(&row)),
                _ => self.add(&mut catalog, &mut none, &row)?,
            }
        }
        Ok(catalog)
    }

    /// Returns the server's other databases, or `None` if this one contains a table.
    pub(super) async fn others_if_empty(&mut self) -> Result<Option<Vec<String>>, DigestError> {
        if !self.catalog().await?.tables.is_empty() {
            return Ok(None);
        }
        let rows = self.run(&[self.server.others().to_owned()]).await?;
        Ok(Some(rows.iter().filter_map(|row| Some(row.get(1)?.as_str()?.to_owned())).collect()))
    }

    /// Returns the statements for the definitions, for the rows of all tables that count, and for the numbers of all
    /// sequences that count.
    fn statements(&self, rules: &VolatileParts<'_>, catalog: &Catalog) -> Vec<String> {
        let rows = catalog.tables.iter().filter(|table| !rules.leaves_out_table(&table.name)).map(|table| {
            let counts = |name: &str| !rules.leaves_out_column(name, &table.name);
            let columns = table.columns.iter().filter(|column| counts(&column.name));
            let columns: Vec<&str> = columns.map(|column| column.expression.as_str()).collect();
            match self.server {
                DatabaseServer::Postgres => postgres::rows(table, &columns),
                DatabaseServer::Mysql => mysql::rows(table, &columns),
            }
        });
        let sequences = catalog.sequences.iter().filter(|sequence| sequence.counts(rules)).map(postgres::sequence);
        self.server.objects().map(str::to_owned).into_iter().chain(rows).chain(sequences).collect()
    }

    /// Adds a row of an answer to the catalog or the content.
    fn add(&self, catalog: &mut Catalog, content: &mut StoreContent, row: &Json) -> Result<(), DigestError> {
        let is_understood = match row.as_array().map(Vec::as_slice) {
            Some([Json::String(tag), Json::String(kind), Json::String(name), Json::String(hash)])
                if tag == "object" =>
            {
                catalog.objects.entry(format!("{kind} {name}")).or_default().insert(hash.clone());
                true
            }
            Some([Json::String(tag), Json::String(name), count, Json::String(hash)]) if tag == "rows" => {
                let rows = count.as_u64().map(|count| TableDigest { count, hash: hash.clone() });
                rows.map(|rows| content.tables.insert(name.clone(), rows)).is_some()
            }
            Some([Json::String(tag), Json::String(table), Json::String(column)]) if tag == "key" => {
                catalog.keys.entry(table.clone()).or_default().push(column.clone());
                true
            }
            Some([Json::String(tag), Json::String(name), Json::String(number)]) if tag == "counter" => {
                content.counters.insert(name.clone(), number.clone());
                true
            }
            Some(cells) => match self.server {
                DatabaseServer::Postgres => postgres::add(catalog, cells),
                DatabaseServer::Mysql => mysql::add(catalog, cells),
            },
            None => false,
        };
        if is_understood { Ok(()) } else { Err(not_understood(self.store, &row.to_string())) }
    }

    /// Runs statements in one transaction.
    async fn run(&mut self, statements: &[String]) -> Result<Vec<Json>, DigestError> {
        run(&mut self.session, self.store, self.key, &self.server.script(statements)).await
    }

    /// Runs statements in as few transactions as possible, and returns their rows and the mark after the last
    /// transaction.
    async fn run_marked(&mut self, mut statements: Vec<String>) -> Result<(Vec<Json>, Option<String>), DigestError> {
        let Some(mut beside) = self.beside.take() else {
            // The mark is part of the same script because each script starts a client in the container.
            statements.push(self.server.mark().to_owned());
            let mut rows = Vec::new();
            for share in shares(&statements, usize::MAX) {
                rows.extend(self.run(share).await?);
            }
            let mark = rows.pop().as_ref().and_then(mark_of);
            return Ok((rows, mark));
        };
        let scripts = shares(&statements, SHARE).into_iter().map(|share| self.server.script(share));
        let next = Mutex::new(scripts);
        let (store, key) = (self.store, self.key);
        // Each session takes the next script when it is idle.
        let work = async |session: &mut SqlSession<'a>| {
            let mut rows = Vec::new();
            loop {
                let script = next.lock().unwrap_or_else(PoisonError::into_inner).next();
                let Some(script) = script else { return Ok::<_, DigestError>(rows) };
                rows.extend(run(session, store, key, &script).await?);
            }
        };
        let (mut rows, others) = tokio::try_join!(work(&mut self.session), work(&mut beside))?;
        rows.extend(others);
        self.beside = Some(beside);
        Ok((rows, self.mark().await?))
    }
}

/// Opens a second connection unless the database is read through a client in a container, which is started for each
/// script. If the server rejects the connection, one connection does all the work.
async fn second<'a>(
    subject: Subject<'a>,
    store: &Store,
    database: &'a Database,
    open: Option<SqlSession<'a>>,
) -> Option<SqlSession<'a>> {
    if open.is_some() || database.access != DatabaseAccess::Tcp {
        return open;
    }
    SqlSession::open(subject.engine, database, subject.incarnation, store.timeout).await.ok()
}

/// Splits statements into consecutive shares of at most `most` statements and at most the length of a script.
fn shares(statements: &[String], most: usize) -> Vec<&[String]> {
    let mut shares = Vec::new();
    let (mut from, mut length) = (0, 0);
    for (index, statement) in statements.iter().enumerate() {
        let is_full = index - from == most || length + statement.len() > SCRIPT_MAX;
        if is_full && index > from {
            shares.push(&statements[from..index]);
            (from, length) = (index, 0);
        }
        length += statement.len();
    }
    shares.push(&statements[from..]);
    shares
}

async fn run(session: &mut SqlSession<'_>, store: &Store, key: &str, script: &str) -> Result<Vec<Json>, DigestError> {
    let lines = session.column(script).await.map_err(|cause| failed(store, key, cause))?;
    let rows = lines.iter().map(|line| serde_json::from_str(line).map_err(|_| not_understood(store, line)));
    let mut rows: Vec<Json> = rows.collect::<Result<_, _>>()?;
    match rows.pop() {
        Some(row) if row == serde_json::json!(["end"]) => Ok(rows),
        other => Err(not_understood(store, &other.unwrap_or_default().to_string())),
    }
}

fn not_understood(store: &Store, answer: &str) -> DigestError {
    let answer = answer.chars().take(200).collect();
    DigestError::Answer { store: store.name.clone(), answer }
}

fn failed(store: &Store, key: &str, cause: SqlFailure) -> DigestError {
    DigestError::Sql { store: store.name.clone(), database: key.to_owned(), cause }
}

fn mark_of(row: &Json) -> Option<String> {
    row.get(1)?.as_str().filter(|mark| !mark.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_shared_in_order_and_none_is_lost() {
        let statements: Vec<String> = (0..20).map(|index| format!("select {index};")).collect();
        let sizes = |most| shares(&statements, most).iter().map(|share| share.len()).collect::<Vec<_>>();
        assert_eq!(sizes(8), [8, 8, 4]);
        assert_eq!(sizes(usize::MAX), [20]);
        assert_eq!(shares(&statements, 8).concat(), statements);
        let long = vec!["x".repeat(60_000), "y".repeat(60_000), "z".repeat(200_000), String::new()];
        let lengths: Vec<usize> = shares(&long, 8).iter().map(|share| share.len()).collect();
        assert_eq!(lengths, [1, 1, 1, 1], "what is too long by itself is sent all the same");
        assert_eq!(shares(&[], 8).len(), 1, "a transaction of nothing");
    }
}
