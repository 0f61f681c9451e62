//! Statements through the database's own client in the container, for servers that listen only on their own loopback.
//!
//! The client prints text and marks `NULL`; [`client_types`] adds the types. Arguments become hexadecimal literals,
//! because text of hexadecimal digits cannot end the literal that contains it.

use std::time::Duration;

use regex::Regex;

use super::{Query, client_types, mysql, postgres};
use crate::{LocateError, Scene, exec};
use arenad_engine::docker::EXEC_OUTPUT_MAX;
use arenad_engine::{Engine, EngineHandle};
use arenad_model::hex::hex;
use arenad_model::locator::{Rows, Value};
use arenad_model::site::{Database, DatabaseEngine};
use arenad_probes::account_words;

pub(super) async fn query(
    engine: &dyn Engine,
    scene: &Scene<'_>,
    database: &Database,
    program: &str,
    query: &Query<'_>,
) -> Result<Rows, LocateError> {
    let client =
        DatabaseClient { engine, container: scene.container(Some(database.service.as_str()))?.1, database, program };
    let mut rows = client.rows(query).await?;
    if rows.rows.iter().flatten().any(|cell| *cell != Value::Null) {
        // Statements that cannot be embedded in another query (`SHOW`, `EXPLAIN`) keep their cells as text.
        let types = client.types(query, rows.columns.len()).await.unwrap_or_default();
        client_types::give(database.engine, &mut rows, &types);
    }
    Ok(rows)
}

/// A database's client in a container.
struct DatabaseClient<'a> {
    engine: &'a dyn Engine,
    container: &'a EngineHandle,
    database: &'a Database,
    program: &'a str,
}

impl DatabaseClient<'_> {
    /// Returns the rows of a statement, with every cell as text.
    async fn rows(&self, query: &Query<'_>) -> Result<Rows, LocateError> {
        let rows = match self.database.engine {
            DatabaseEngine::Mysql => {
                let script = format!("{}; {}", mysql::prepare(query), mysql_text(query));
                Some(read_xml(&self.mysql(&["-X"], script, query.limit).await?))
            }
            DatabaseEngine::Postgres => self.postgres(query, postgres_text(query)).await?,
            DatabaseEngine::Sqlite => None,
        };
        rows.ok_or_else(|| LocateError::Failed(format!("what {} printed is not understood", self.program)))
    }

    /// Returns the types of a statement's columns, as the server names them.
    async fn types(&self, query: &Query<'_>, columns: usize) -> Result<Vec<String>, LocateError> {
        if self.database.engine == DatabaseEngine::Mysql {
            let script = format!("{}; SET SESSION sql_select_limit = 1; {}", mysql::prepare(query), mysql_text(query));
            let printed = self.mysql(&["-t", "--column-type-info"], script, query.limit).await?;
            return Ok(client_types::mysql_types(&printed, columns));
        }
        let rows = self.postgres(query, client_types::postgres_statement(&postgres_text(query), columns)).await?;
        let row = rows.unwrap_or_default().rows.pop().unwrap_or_default();
        Ok(row.iter().filter_map(Value::text).collect())
    }

    async fn mysql(&self, form: &[&str], script: String, limit: Duration) -> Result<String, LocateError> {
        // In binary mode the client has no commands of its own, such as `system`.
        let mut words = ["--binary-mode", "--default-character-set=utf8mb4"].map(str::to_owned).to_vec();
        words.extend(form.iter().map(|word| (*word).to_owned()));
        words.extend(["-e".to_owned(), script]);
        self.run(words, limit).await
    }

    async fn postgres(&self, query: &Query<'_>, statement: String) -> Result<Option<Rows>, LocateError> {
        // The separators of columns and rows must not occur in a site's texts.
        let mark = format!("{:032x}", rand::random::<u128>());
        let separators = [format!("null={mark}n"), "-F".into(), format!("{mark}c"), "-R".into(), format!("{mark}r")];
        let mut words =
            ["-X", "-q", "-A", "-v", "ON_ERROR_STOP=1", "-P", "footer=off", "-P"].map(str::to_owned).to_vec();
        words.extend(separators);
        // All parts run in one connection; a mark of its own ends the output of the first.
        for part in [postgres::prepare(query), format!("\\echo {mark}s"), statement] {
            words.extend(["-c".to_owned(), part]);
        }
        Ok(read_marked(&self.run(words, query.limit).await?, &mark))
    }

    async fn run(&self, words: Vec<String>, limit: Duration) -> Result<String, LocateError> {
        let account = account_words(self.database);
        let command: Vec<String> = [self.program.to_owned()].into_iter().chain(account).chain(words).collect();
        // The server ends the statement; the client gets slightly more time to report it.
        let patience = limit + Duration::from_millis(300);
        let output = self.engine.exec(self.container, &command, None, patience).await;
        let output = output.map_err(|error| exec::failed(&error, limit))?;
        if output.code != 0 {
            return Err(refused(output.stderr.trim(), self.program, limit));
        }
        if output.stdout.len() >= EXEC_OUTPUT_MAX {
            let limit = format!("{} KiB", EXEC_OUTPUT_MAX >> 10);
            return Err(LocateError::TooLarge { what: "the client printed all that is kept".to_owned(), limit });
        }
        Ok(output.stdout)
    }
}

fn mysql_text(query: &Query<'_>) -> String {
    query.text(|_, text| format!("_utf8mb4 X'{}'", hex(text.as_bytes())))
}

fn postgres_text(query: &Query<'_>) -> String {
    query.text(|_, text| format!("convert_from('\\x{}', 'UTF8')", hex(text.as_bytes())))
}

/// Parses the rows between marks; the first row holds the column names.
fn read_marked(printed: &str, mark: &str) -> Option<Rows> {
    let (column, row, null) = (format!("{mark}c"), format!("{mark}r"), format!("{mark}n"));
    let printed = printed.split_once(&format!("{mark}s\n"))?.1;
    let printed = printed.strip_suffix('\n').unwrap_or(printed);
    let mut lines = printed.split(row.as_str());
    let columns = lines.next()?.split(column.as_str()).map(str::to_owned).collect();
    let cell = |text: &str| if text == null { Value::Null } else { Value::Text(text.to_owned()) };
    let rows = lines.map(|line| line.split(column.as_str()).map(cell).collect()).collect();
    Some(Rows { columns, rows })
}

/// Parses the rows of MySQL's XML, whose texts contain no `<` of their own.
fn read_xml(printed: &str) -> Rows {
    let field =
        Regex::new(r#"<field name="([^"]*)"(?: xsi:nil="true" ?/>|>([^<]*)</field>)"#).expect("a constant pattern");
    let plain = |text: &str| htmlize::unescape(text).into_owned();
    let mut table = Rows::default();
    for row in printed.split("<row>").skip(1) {
        let cells: Vec<(String, Value)> = field
            .captures_iter(row)
            .map(|found| (plain(&found[1]), found.get(2).map_or(Value::Null, |text| Value::Text(plain(text.as_str())))))
            .collect();
        if table.columns.is_empty() {
            table.columns = cells.iter().map(|(name, _)| name.clone()).collect();
        }
        table.rows.push(cells.into_iter().map(|(_, value)| value).collect());
    }
    table
}

fn refused(said: &str, program: &str, limit: Duration) -> LocateError {
    let last = said.lines().find(|line| line.contains("ERROR") || line.contains("error")).unwrap_or(said);
    let has = |parts: &[&str]| parts.iter().any(|part| said.contains(part));
    if has(&["statement timeout", "ERROR 1969", "ERROR 3024", "ERROR 1317"]) {
        return LocateError::TimedOut { limit };
    }
    let message = format!("{program} says: {last}");
    if has(&["permission denied", "read-only transaction", "ERROR 1792", "ERROR 1142", "ERROR 1227", "ERROR 1044"]) {
        return LocateError::Refused(message);
    }
    if has(&["connection to server", "ERROR 2002", "ERROR 2003", "ERROR 1045", "ERROR 2013", "the database system is"])
    {
        return LocateError::Unavailable(message);
    }
    LocateError::Failed(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_clients_print_becomes_a_table() {
        let text = |text: &str| Value::Text(text.to_owned());
        let rows = read_marked("set_config|r|s\na|cb c|r1|cx\ny|r|n|c\n", "|").expect("a table");
        assert_eq!(rows.columns, ["a", "b c"]);
        assert_eq!(rows.rows, [vec![text("1"), text("x\ny")], vec![Value::Null, text("")]]);
        let xml = "<resultset>\n  <row>\n\t<field name=\"a\">1 &lt; 2</field>\n\t<field name=\"b\" xsi:nil=\"true\" />\n  </row>\n</resultset>";
        let rows = read_xml(xml);
        assert_eq!(
            (rows.columns, rows.rows),
            (vec!["a".to_owned(), "b".to_owned()], vec![vec![text("1 < 2"), Value::Null]])
        );
    }
}
