//! Databases on a server: one script finds out what is there, others have the server hash the rows.
//!
//! Each script is a transaction that sees one state and writes nothing. The mark is read before the first and after the
//! last: if it has not moved, all of them saw the same.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use super::content::{Content, Rows};
use super::lines::{Line, Lines};
use super::rules::Rules;
use super::{DigestError, Look, Subject, mysql, postgres};
use crate::domain::site::Database;
use crate::domain::store::{Store, StoreKind};
use crate::probes::{Session, SqlFailure};

/// How often a database is read anew when it changes while it is read. The first reading often changes it by itself:
/// PostgreSQL tidies up the pages that it reads.
const ATTEMPTS: usize = 3;

/// The longest script, in bytes: a client in a container gets it as an argument, and the kernel takes 128 KiB.
const SCRIPT_MAX: usize = 100_000;

/// What there is in a database, before its rows are looked at.
#[derive(Default)]
pub(super) struct Catalog {
    /// The marks before and after; a server without has none.
    pub(super) marks: Vec<Option<String>>,
    pub(super) tables: Vec<Table>,
    /// Numbers that the catalog itself has, by table.
    pub(super) counters: BTreeMap<String, String>,
    pub(super) sequences: Vec<Sequence>,
    /// Hashes of definitions, by kind and name. Of some kinds several have the same name.
    pub(super) objects: BTreeMap<String, BTreeSet<String>>,
}

/// A table.
pub(super) struct Table {
    pub(super) name: String,
    /// The name as statements write it.
    pub(super) identifier: String,
    pub(super) columns: Vec<Column>,
}

/// A column of a table.
pub(super) struct Column {
    pub(super) name: String,
    /// What a statement says to get its value in the form that is hashed.
    pub(super) expression: String,
}

/// A sequence.
pub(super) struct Sequence {
    pub(super) name: String,
    /// The name as statements write it.
    pub(super) identifier: String,
    /// The table to whose column it belongs.
    pub(super) owner: Option<String>,
}

/// The mark of the databases of a store.
pub(super) async fn mark(
    subject: &Subject<'_>,
    store: &Store,
    databases: &[String],
) -> Result<Option<String>, DigestError> {
    let mut marks = Vec::new();
    for key in databases {
        let mut reader = Reader::open(subject, store, key).await?;
        marks.push(reader.mark().await?);
        reader.end(subject.lines).await;
    }
    Ok(joined(marks))
}

/// What is in the databases of a store.
pub(super) async fn look(subject: &Subject<'_>, store: &Store, databases: &[String]) -> Result<Look, DigestError> {
    let mut readers = Vec::new();
    for key in databases {
        readers.push(Reader::open(subject, store, key).await?);
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
        reader.end(subject.lines).await;
    }
    Ok(look)
}

/// Reads all databases once, and says whether nothing was written to any of them meanwhile. The log that marks tell of is the
/// server's: what is written to one database moves the marks of the others.
async fn read(readers: &mut [Reader<'_>]) -> Result<(Look, bool), DigestError> {
    let mut content = Content::default();
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
    Ok((Look { content, mark: joined(after).filter(|_| is_settled) }, is_settled))
}

fn joined(marks: Vec<Option<String>>) -> Option<String> {
    let marks: Option<Vec<String>> = marks.into_iter().collect();
    Some(marks?.join("\n"))
}

fn declared<'a>(subject: &Subject<'a>, store: &Store, key: &str) -> Result<&'a Database, DigestError> {
    subject.site.databases.get(key).ok_or_else(|| DigestError::Sql {
        store: store.name.clone(),
        database: key.to_owned(),
        cause: SqlFailure::Server("the database is not declared".to_owned()),
    })
}

/// The servers whose data folders are stores.
#[derive(Clone, Copy)]
enum Server {
    Mysql,
    Postgres,
}

impl Server {
    fn of(store: &Store) -> Self {
        // Validation lets a store be read only through databases of its own kind.
        match store.kind {
            StoreKind::Mysql { .. } => Self::Mysql,
            _ => Self::Postgres,
        }
    }
}

/// What one database showed.
struct Read {
    content: Content,
    /// The mark before anything was read.
    before: Option<String>,
    /// The mark after everything was read.
    after: Option<String>,
}

struct Reader<'a> {
    store: &'a Store,
    key: &'a str,
    engine: Server,
    session: Session<'a>,
}

impl<'a> Reader<'a> {
    async fn open(subject: &Subject<'a>, store: &'a Store, key: &'a str) -> Result<Self, DigestError> {
        let database = declared(subject, store, key)?;
        let resumed = match subject.lines.take(store, key) {
            Some(Line::Database(connection)) => Session::resume(database, connection).await,
            _ => None,
        };
        let session = match resumed {
            Some(session) => session,
            None => {
                let opened = Session::open(subject.engine, database, subject.incarnation, store.timeout).await;
                opened.map_err(|cause| failed(store, key, cause))?
            }
        };
        Ok(Self { store, key, engine: Server::of(store), session })
    }

    /// Every answer has been read.
    async fn end(self, lines: &Lines) {
        if let Some(connection) = self.session.keep() {
            lines.put(self.store, self.key, Line::Database(connection)).await;
        }
    }

    async fn mark(&mut self) -> Result<Option<String>, DigestError> {
        let rows = self.run(self.script(&[self.mark_statement()])).await?;
        Ok(rows.last().and_then(mark_of))
    }

    async fn read(&mut self) -> Result<Read, DigestError> {
        let rules = Rules::of(self.store);
        let mut catalog = self.catalog().await?;
        // What is read for the first time may be tidied up by that; rows take longer than the catalog, so they wait for it.
        for _ in 1..ATTEMPTS {
            if catalog.marks.first() == catalog.marks.last() {
                break;
            }
            catalog = self.catalog().await?;
        }
        check(&rules, &catalog)?;
        let before = catalog.marks.first().cloned().flatten();
        let (rows, after) = self.rows(&rules, &catalog).await?;
        let mut content = content(&rules, catalog);
        content.tables.extend(rows.tables);
        content.counters.extend(rows.counters);
        Ok(Read { content, before, after })
    }

    async fn catalog(&mut self) -> Result<Catalog, DigestError> {
        let statements = match self.engine {
            Server::Postgres => [postgres::MARK, postgres::CATALOG, postgres::MARK],
            Server::Mysql => [mysql::MARK, mysql::CATALOG, mysql::MARK],
        };
        let mut catalog = Catalog::default();
        for row in self.run(self.script(&statements.map(str::to_owned))).await? {
            let is_understood = match row.as_array().map(Vec::as_slice) {
                Some([Json::String(tag), Json::String(mark)]) if tag == "mark" => {
                    catalog.marks.push((!mark.is_empty()).then(|| mark.clone()));
                    true
                }
                Some([Json::String(tag), Json::String(kind), Json::String(name), Json::String(hash)])
                    if tag == "object" =>
                {
                    catalog.objects.entry(format!("{kind} {name}")).or_default().insert(hash.clone());
                    true
                }
                Some(cells) => match self.engine {
                    Server::Postgres => postgres::add(&mut catalog, cells),
                    Server::Mysql => mysql::add(&mut catalog, cells),
                },
                None => false,
            };
            if !is_understood {
                return Err(self.not_understood(&row.to_string()));
            }
        }
        Ok(catalog)
    }

    /// The rows of all tables that count, the numbers of all sequences that count, and the mark after them.
    async fn rows(&mut self, rules: &Rules<'_>, catalog: &Catalog) -> Result<(Content, Option<String>), DigestError> {
        let tables = catalog.tables.iter().filter(|table| !rules.leaves_out_table(&table.name));
        let mut statements: Vec<String> = tables
            .map(|table| {
                let counts = |column: &&Column| !rules.leaves_out_column(&column.name, &table.name);
                let columns: Vec<&str> =
                    table.columns.iter().filter(counts).map(|column| column.expression.as_str()).collect();
                match self.engine {
                    Server::Postgres => postgres::rows(table, &columns),
                    Server::Mysql => mysql::rows(table, &columns),
                }
            })
            .collect();
        let sequences = catalog.sequences.iter().filter(|sequence| counts(rules, sequence));
        statements.extend(sequences.map(postgres::sequence));
        statements.push(self.mark_statement());
        let (mut content, mut mark) = (Content::default(), None);
        for script in self.scripts(&statements) {
            for row in self.run(script).await? {
                match row.as_array().map(Vec::as_slice) {
                    Some([Json::String(tag), ..]) if tag == "mark" => mark = mark_of(&row),
                    Some([Json::String(tag), Json::String(name), Json::String(number)]) if tag == "counter" => {
                        content.counters.insert(name.clone(), number.clone());
                    }
                    Some([Json::String(tag), Json::String(name), count, Json::String(hash)]) if tag == "rows" => {
                        let count = count.as_u64().ok_or_else(|| self.not_understood(&row.to_string()))?;
                        content.tables.insert(name.clone(), Rows { count, hash: hash.clone() });
                    }
                    _ => return Err(self.not_understood(&row.to_string())),
                }
            }
        }
        Ok((content, mark))
    }

    fn mark_statement(&self) -> String {
        match self.engine {
            Server::Postgres => postgres::MARK.to_owned(),
            Server::Mysql => mysql::MARK.to_owned(),
        }
    }

    /// Statements in as few scripts as their length allows, in order.
    fn scripts(&self, statements: &[String]) -> Vec<String> {
        let mut scripts = Vec::new();
        let (mut from, mut length) = (0, 0);
        for (index, statement) in statements.iter().enumerate() {
            if length + statement.len() > SCRIPT_MAX && index > from {
                scripts.push(self.script(&statements[from..index]));
                (from, length) = (index, 0);
            }
            length += statement.len();
        }
        scripts.push(self.script(&statements[from..]));
        scripts
    }

    /// A transaction of statements, each ended by a semicolon. What a client prints may be cut off, so the last row is one
    /// that is known.
    fn script(&self, statements: &[String]) -> String {
        let (begin, end) = match self.engine {
            Server::Postgres => (postgres::BEGIN, "select json_build_array('end');\ncommit;\n"),
            Server::Mysql => (mysql::BEGIN, "select json_array('end');\ncommit;\n"),
        };
        [begin, &statements.concat(), end].concat()
    }

    async fn run(&mut self, script: String) -> Result<Vec<Json>, DigestError> {
        let lines = self.session.column(&script).await.map_err(|cause| failed(self.store, self.key, cause))?;
        let rows = lines.iter().map(|line| serde_json::from_str(line).map_err(|_| self.not_understood(line)));
        let mut rows: Vec<Json> = rows.collect::<Result<_, _>>()?;
        match rows.pop() {
            Some(row) if row == serde_json::json!(["end"]) => Ok(rows),
            other => Err(self.not_understood(&other.unwrap_or_default().to_string())),
        }
    }

    fn not_understood(&self, answer: &str) -> DigestError {
        let answer = answer.chars().take(200).collect();
        DigestError::Answer { store: self.store.name.clone(), answer }
    }
}

fn failed(store: &Store, key: &str, cause: SqlFailure) -> DigestError {
    DigestError::Sql { store: store.name.clone(), database: key.to_owned(), cause }
}

fn mark_of(row: &Json) -> Option<String> {
    row.get(1)?.as_str().filter(|mark| !mark.is_empty()).map(str::to_owned)
}

fn counts(rules: &Rules<'_>, sequence: &Sequence) -> bool {
    let is_of_volatile = sequence.owner.as_ref().is_some_and(|owner| rules.leaves_out_table(owner));
    !is_of_volatile && !rules.leaves_out_sequence(&sequence.name)
}

/// What the catalog says that counts.
fn content(rules: &Rules<'_>, catalog: Catalog) -> Content {
    let one = |hashes: BTreeSet<String>| hashes.into_iter().collect::<Vec<_>>().join(" ");
    Content {
        counters: catalog.counters.into_iter().filter(|(table, _)| !rules.leaves_out_table(table)).collect(),
        objects: catalog.objects.into_iter().map(|(name, hashes)| (name, one(hashes))).collect(),
        ..Content::default()
    }
}

fn check(rules: &Rules<'_>, catalog: &Catalog) -> Result<(), DigestError> {
    let columns = catalog
        .tables
        .iter()
        .flat_map(|table| table.columns.iter().map(|column| (table.name.clone(), column.name.clone())));
    let tables = catalog.tables.iter().map(|table| table.name.clone());
    let sequences = catalog.sequences.iter().map(|sequence| sequence.name.clone());
    rules.check(&columns.collect(), &tables.collect(), &sequences.collect())
}
