//! Statements for PostgreSQL from version 12, and the interpretation of its answers.

use serde_json::Value as Json;

use super::catalog::{Catalog, Column, Sequence, Table};
use super::rows::{BEGIN_CHARS, ROW_BYTES, RowPage, VALUE_CHARS};

/// Begins a read-only transaction on one consistent state, with settings that determine how values are printed.
pub(super) const BEGIN: &str = include_str!("sql/postgres_begin.sql");

/// Yields `["mark", …]`.
pub(super) const MARK: &str = include_str!("sql/postgres_mark.sql");

/// Yields the tables, sequences and objects with their definitions.
pub(super) const CATALOG: &str = include_str!("sql/postgres_catalog.sql");

/// Yields `["key", table, column]` for the columns of primary keys.
pub(super) const KEYS: &str = include_str!("sql/postgres_keys.sql");

/// Yields `["database", name]` for each other database of the server.
pub(super) const OTHERS: &str = "select json_build_array('database', datname) from pg_database \
    where datallowconn and not datistemplate and datname <> current_database() order by datname;\n";

/// Adds a row of the catalog. Returns `false` if the row has an unknown form.
pub(super) fn add(catalog: &mut Catalog, cells: &[Json]) -> bool {
    match cells {
        [Json::String(tag), Json::String(name), Json::String(identifier), Json::Array(columns)] if tag == "table" => {
            let column = |cell: &Json| {
                let expression = format!("t.{}", cell.get(1)?.as_str()?);
                let shown = shown(&expression);
                Some(Column { name: cell.get(0)?.as_str()?.to_owned(), expression, shown })
            };
            let Some(columns) = columns.iter().map(column).collect() else { return false };
            catalog.tables.push(Table { name: name.clone(), identifier: identifier.clone(), columns });
            true
        }
        [Json::String(tag), Json::String(name), Json::String(identifier), owner] if tag == "sequence" => {
            let owner = owner.as_str().map(str::to_owned);
            catalog.sequences.push(Sequence { name: name.clone(), identifier: identifier.clone(), owner });
            true
        }
        _ => false,
    }
}

/// Returns a statement that counts and hashes a table's rows. It adds up 128 bits for each row's text, so that the
/// order of rows does not matter and duplicate rows count. `offset 0` prevents the planner from computing the text
/// twice.
pub(super) fn rows(table: &Table, columns: &[&str]) -> String {
    let Table { name, identifier, .. } = table;
    let (name, columns) = (literal(name), columns.join(", "));
    format!(
        "select json_build_array('rows', {name}, count(*), concat_ws(' ', sum(hashtextextended(r.x, 0)), sum(hashtextextended(r.x, 1)))) \
         from (select row({columns})::text collate \"C\" as x from only {identifier} t offset 0) r;\n"
    )
}

/// Returns an expression for a column's value as a text for users. Different values have different texts.
fn shown(column: &str) -> String {
    format!(
        "case when length({column}::text) > {VALUE_CHARS} then \
         concat(left({column}::text, {BEGIN_CHARS}), '... (', length({column}::text), ' characters, MD5 ', md5({column}::text), ')') \
         else {column}::text end"
    )
}

/// Returns a statement that yields rows as `["row", table, key, hash, values]`. The hashes are those that [`rows`] adds
/// up; key and values are JSON arrays, as texts.
pub(super) fn page(table: &Table, columns: &[&Column], key: &[&Column], page: RowPage) -> String {
    let Table { name, identifier, .. } = table;
    let name = literal(name);
    let expressions =
        |columns: &[&Column]| -> Vec<String> { columns.iter().map(|column| column.expression.clone()).collect() };
    let list = |columns: &[&Column]| {
        let shown: Vec<&str> = columns.iter().map(|column| column.shown.as_str()).collect();
        format!("to_json(array[{}]::text[])::text", shown.join(", "))
    };
    let values = if page.with_values { list(columns) } else { "null::text".to_owned() };
    let hashed = format!("row({})::text collate \"C\"", expressions(columns).join(", "));
    let order = if key.is_empty() { hashed.clone() } else { expressions(key).join(", ") };
    // The innermost query skips rows without computing their texts.
    format!(
        "select json_build_array('row', {name}, r.k, concat_ws(' ', hashtextextended(r.x, 0), hashtextextended(r.x, 1)), \
         case when octet_length(r.v) <= {ROW_BYTES} then r.v end) \
         from (select {hashed} as x, {key} as k, {values} as v \
         from (select t.* from only {identifier} t order by {order} limit {rows} offset {offset}) t offset 0) r;\n",
        key = list(key),
        rows = page.rows,
        offset = page.offset
    )
}

/// Returns a statement that yields a sequence's last number.
pub(super) fn sequence(sequence: &Sequence) -> String {
    let (name, identifier) = (literal(&sequence.name), &sequence.identifier);
    format!(
        "select json_build_array('counter', {name}, last_value || case when is_called then '' else ' (to come)' end) from {identifier};\n"
    )
}

fn literal(text: &str) -> String {
    // An escape string is read in the same way under all settings of the server.
    format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_hashed_by_the_columns_that_count() {
        let mut catalog = Catalog::default();
        let row = serde_json::json!(["table", "o'hare", "public.\"o'hare\"", [["Id", "\"Id\""], ["name", "name"]]]);
        assert!(add(&mut catalog, row.as_array().expect("a list")));
        let table = &catalog.tables[0];
        let columns: Vec<&str> = table.columns.iter().map(|column| column.expression.as_str()).collect();
        let statement = rows(table, &columns);
        assert!(statement.contains(r#"'rows', E'o\'hare', count(*)"#), "{statement}");
        assert!(statement.contains(r#"row(t."Id", t.name)::text"#), "{statement}");
        assert!(statement.contains(r#"from only public."o'hare" t"#), "{statement}");
    }

    #[test]
    fn what_is_no_row_of_the_catalog_is_told() {
        let row = serde_json::json!(["table", "a", "b", [["only one"]]]);
        assert!(!add(&mut Catalog::default(), row.as_array().expect("a list")));
        assert!(!add(&mut Catalog::default(), &[]));
    }
}
