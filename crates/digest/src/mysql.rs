//! Statements for MariaDB from version 10.3 and MySQL from version 8, and the interpretation of their answers.

use serde_json::Value as Json;

use super::catalog::{Catalog, Column, Table};

/// Begins a read-only transaction on one consistent state, with settings that determine how values are printed.
pub(super) const BEGIN: &str = include_str!("sql/mysql_begin.sql");

/// Yields `["mark", …]`, with an empty text if the server has no mark.
pub(super) const MARK: &str = include_str!("sql/mysql_mark.sql");

/// Yields the columns and counters; columns are in the order of their tables.
pub(super) const CATALOG: &str = include_str!("sql/mysql_catalog.sql");

/// Yields the definitions. They are separate from the catalog because the server opens every table's definition again
/// for each of them.
pub(super) const OBJECTS: &str = include_str!("sql/mysql_objects.sql");

/// Yields the definitions that are not kept in files of their own.
pub(super) const OWN_OBJECTS: &str = include_str!("sql/mysql_own_objects.sql");

/// Yields `["database", name]` for each other database of the server.
pub(super) const OTHERS: &str = "select json_array('database', schema_name) from information_schema.schemata \
    where schema_name not in ('information_schema', 'mysql', 'performance_schema', 'sys', database()) order by schema_name;\n";

/// Adds a row of the catalog. Returns `false` if the row has an unknown form.
pub(super) fn add(catalog: &mut Catalog, cells: &[Json]) -> bool {
    match cells {
        [Json::String(tag), Json::String(table), Json::String(name), Json::String(kind)] if tag == "column" => {
            let column = Column { name: name.clone(), expression: expression(name, kind) };
            match catalog.tables.last_mut().filter(|last| last.name == *table) {
                Some(last) => last.columns.push(column),
                None => {
                    let table = Table { name: table.clone(), identifier: quoted(table), columns: vec![column] };
                    catalog.tables.push(table);
                }
            }
            true
        }
        [Json::String(tag), Json::String(table), next] if tag == "counter" => {
            catalog.counters.insert(table.clone(), next.to_string());
            true
        }
        _ => false,
    }
}

/// Returns an expression for a column's value as bytes that do not depend on character sets and are different for
/// `NULL` and every other value.
///
/// Long values are hashed individually: a row whose text exceeds the maximum packet size would become NULL as a whole.
fn expression(name: &str, kind: &str) -> String {
    let name = quoted(name);
    let short =
        ["char", "varchar", "enum", "set", "date", "time", "datetime", "timestamp", "year", "decimal", "double"];
    match kind {
        // MariaDB and MySQL print a float with fewer digits than its value has.
        "float" => format!("cast(quote({name} + 0e0) as binary)"),
        kind if kind.ends_with("int") || short.contains(&kind) => format!("cast(quote({name}) as binary)"),
        _ => format!("cast(coalesce(md5({name}), '-') as binary)"),
    }
}

/// Returns a statement that counts and hashes a table's rows. It adds up 128 bits for each row's text, so that the
/// order of rows does not matter and duplicate rows count.
pub(super) fn rows(table: &Table, columns: &[&str]) -> String {
    let (name, identifier) = (literal(&table.name), &table.identifier);
    let columns = if columns.is_empty() { "''".to_owned() } else { columns.join(", ") };
    let half = |from: u8| format!("coalesce(sum(cast(conv(substr(r.x, {from}, 16), 16, 10) as unsigned)), 0)");
    let (first, second) = (half(1), half(17));
    format!(
        "select json_array('rows', {name}, count(*), concat({first}, ' ', {second})) \
         from (select md5(concat_ws(',', {columns})) as x from {identifier}) r;\n"
    )
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_gather_under_their_tables() {
        let mut catalog = Catalog::default();
        for row in
            [["column", "a", "id", "bigint"], ["column", "a", "te`xt", "longtext"], ["column", "b", "f", "float"]]
        {
            assert!(add(&mut catalog, &row.map(Json::from)));
        }
        let shapes: Vec<(&str, usize)> =
            catalog.tables.iter().map(|table| (table.name.as_str(), table.columns.len())).collect();
        assert_eq!(shapes, [("a", 2), ("b", 1)]);
        assert_eq!(catalog.tables[0].columns[1].expression, "cast(coalesce(md5(`te``xt`), '-') as binary)");
        assert!(add(&mut catalog, &["counter".into(), "a".into(), 7.into()]));
        assert_eq!(catalog.counters["a"], "7");
        assert!(!add(&mut catalog, &["column".into()]));
    }
}
