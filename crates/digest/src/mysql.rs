//! Statements for MariaDB from version 10.3 and MySQL from version 8, and the interpretation of their answers.

use serde_json::Value as Json;

use super::catalog::{Catalog, Column, Table};
use super::rows::{BEGIN_CHARS, BINARY_BYTES, ROW_BYTES, RowPage, VALUE_CHARS};

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

/// Yields `["key", table, column]` for the columns of primary keys.
pub(super) const KEYS: &str = include_str!("sql/mysql_keys.sql");

/// Yields `["database", name]` for each other database of the server.
pub(super) const OTHERS: &str = "select json_array('database', schema_name) from information_schema.schemata \
    where schema_name not in ('information_schema', 'mysql', 'performance_schema', 'sys', database()) order by schema_name;\n";

/// Adds a row of the catalog. Returns `false` if the row has an unknown form.
pub(super) fn add(catalog: &mut Catalog, cells: &[Json]) -> bool {
    match cells {
        [Json::String(tag), Json::String(table), Json::String(name), Json::String(kind)] if tag == "column" => {
            let column = Column { name: name.clone(), expression: expression(name, kind), shown: shown(name, kind) };
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

/// Returns an expression for a column's value as a text for users. Different values have different texts.
fn shown(name: &str, kind: &str) -> String {
    let name = quoted(name);
    let binary = ["binary", "varbinary", "bit"];
    if binary.contains(&kind) || kind.ends_with("blob") {
        return format!(
            "if(length({name}) <= {BINARY_BYTES}, concat('0x', hex({name})), \
             concat('0x', hex(left({name}, {BINARY_BYTES})), '... (', length({name}), ' bytes, MD5 ', md5({name}), ')'))"
        );
    }
    if kind.ends_with("char") || kind.ends_with("text") || kind == "json" {
        let text = format!("convert({name} using utf8mb4)");
        return format!(
            "if(char_length({name}) <= {VALUE_CHARS}, {text}, \
             concat(left({text}, {BEGIN_CHARS}), '... (', char_length({name}), ' characters, MD5 ', md5({name}), ')'))"
        );
    }
    match kind {
        "float" => format!("cast({name} + 0e0 as char)"),
        // Values of other types, such as shapes, have no text.
        kind if is_plain(kind) => format!("cast({name} as char)"),
        _ => format!("concat('MD5 ', md5({name}))"),
    }
}

fn is_plain(kind: &str) -> bool {
    let plain = ["enum", "set", "date", "time", "datetime", "timestamp", "year", "decimal", "double", "uuid", "inet6"];
    kind.ends_with("int") || plain.contains(&kind)
}

/// Returns a statement that yields rows as `["row", table, key, hash, values]`. The hashes are those that [`rows`] adds
/// up; key and values are JSON arrays, as texts.
pub(super) fn page(table: &Table, columns: &[&Column], key: &[&Column], page: RowPage) -> String {
    let (name, identifier) = (literal(&table.name), &table.identifier);
    let hashed: Vec<&str> = columns.iter().map(|column| column.expression.as_str()).collect();
    let hashed = if hashed.is_empty() { "''".to_owned() } else { hashed.join(", ") };
    let list = |columns: &[&Column]| columns.iter().map(|column| column.shown.as_str()).collect::<Vec<_>>().join(", ");
    let names = |columns: &[&Column]| columns.iter().map(|column| quoted(&column.name)).collect::<Vec<_>>().join(", ");
    let key_text = if key.is_empty() { "'[]'".to_owned() } else { format!("concat(json_array({}))", list(key)) };
    let values = format!("concat(json_array({}))", list(columns));
    let values = match page.with_values && !columns.is_empty() {
        true => format!("if(length({values}) <= {ROW_BYTES}, {values}, null)"),
        false => "null".to_owned(),
    };
    let order = if key.is_empty() { format!("md5(concat_ws(',', {hashed}))") } else { names(key) };
    let selected = if columns.is_empty() { "1".to_owned() } else { names(columns) };
    // The texts are computed outside of the inner query, because its columns would truncate them: the server computes
    // the width of a JSON text without the characters that escape others.
    format!(
        "select json_array('row', {name}, {key_text}, md5(concat_ws(',', {hashed})), {values}) \
         from (select {selected} from {identifier} order by {order} limit {rows} offset {offset}) r;\n",
        rows = page.rows,
        offset = page.offset
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

    #[test]
    fn a_page_of_rows_is_hashed_like_the_table_and_ordered_by_its_key() {
        let mut catalog = Catalog::default();
        for row in [["column", "o'a", "i`d", "int"], ["column", "o'a", "text", "varchar"]] {
            assert!(add(&mut catalog, &row.map(Json::from)));
        }
        let table = &catalog.tables[0];
        let columns: Vec<&Column> = table.columns.iter().collect();
        let page = |key: &[&Column], with_values| {
            page(table, &columns, key, RowPage { offset: 3000, rows: 1500, with_values })
        };
        let hashed = "md5(concat_ws(',', cast(quote(`i``d`) as binary), cast(quote(`text`) as binary)))";
        let keyed = page(&columns[..1], false);
        assert!(keyed.contains("json_array('row', 'o''a', concat(json_array(cast(`i``d` as char))), "), "{keyed}");
        assert!(
            keyed.contains(hashed) && rows(table, &[&columns[0].expression, &columns[1].expression]).contains(hashed)
        );
        assert!(keyed.contains("from `o'a` order by `i``d` limit 1500 offset 3000"), "{keyed}");
        assert!(!keyed.contains("char_length"), "no values are asked for: {keyed}");
        let bare = page(&[], true);
        assert!(bare.contains("'[]'") && bare.contains(&format!("order by {hashed} limit")), "{bare}");
    }
}
