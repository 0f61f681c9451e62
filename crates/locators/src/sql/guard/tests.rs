//! Statements that pass, statements that are refused, and properties of both.

use super::DatabaseEngine::{Mysql, Postgres, Sqlite};
use super::servers::{calls, code};
use super::*;

fn arguments() -> Arguments {
    Arguments(vec![("sku".to_owned(), "x".to_owned())])
}

fn passes(dialect: DatabaseEngine, statement: &str) {
    let pieces = guard(dialect, statement, &arguments());
    assert!(pieces.is_ok(), "{dialect:?} {statement}: {pieces:?}");
}

fn refused(dialect: DatabaseEngine, statement: &str) -> String {
    guard(dialect, statement, &arguments())
        .map(|pieces| panic!("{dialect:?} {statement}: {pieces:?}"))
        .unwrap_or_else(|(_, reason)| reason.to_string())
}

#[test]
fn queries_pass() {
    for dialect in [Mysql, Postgres, Sqlite] {
        for statement in [
            "SELECT 1",
            " (select a from t) union (select 'into; outfile') ; -- the end",
            "with x as (select 1.5e3 as n, 0x1f) select replace(n, 'a', 'b'), \"x\" from x where d >= '2023-01-01 10:00:00'",
            "select /* a comment; of no harm */ sleep, lo_total, updated from t for_x",
            "values (1), (2)",
            "explain select 'it''s'",
        ] {
            passes(dialect, statement);
        }
    }
    passes(Postgres, "select a::text, b ->> 'x', c ? 'k', $q$ it's ; $q$, E'\\'; x' from t /* a /* b */ ; */");
    passes(Mysql, "select `a`, \"it\\\"s; x\", @x := 1, 2 - -1 from t # into");
    passes(Sqlite, "select [a;b], `c` from t");
    passes(Mysql, "show create table t");
    passes(Postgres, "select 'pg_file_settings', created, merged from t");
}

#[test]
fn places_become_arguments_outside_of_quotes_only() {
    let pieces = guard(Mysql, "select * from t where sku = {sku} limit 1;", &arguments()).expect("a query");
    assert_eq!(
        pieces,
        [
            StatementPiece::Text("select * from t where sku = "),
            StatementPiece::Argument(0),
            StatementPiece::Text(" limit 1")
        ]
    );
    for statement in ["select '{sku}'", "select 1 -- {sku}", "select $${sku}$$", "select \"{sku}\""] {
        assert!(refused(Postgres, statement).contains("inside of quotes"), "{statement}");
    }
    assert!(refused(Mysql, "select {other}").contains("no argument was given for `{other}`"));
    assert!(refused(Mysql, "select {fn sleep(5)}").contains("begins no argument"));
    assert!(refused(Mysql, "select ?").contains("parameters have names"));
    assert!(refused(Postgres, "select $1").contains("parameters have names"));
    assert!(refused(Sqlite, "select :a").contains("parameters have names"));
}

#[test]
fn what_writes_waits_or_reaches_out_is_refused() {
    for dialect in [Mysql, Postgres, Sqlite] {
        for statement in [
            "",
            "; select 1",
            "delete from t",
            "SET x = 1",
            "copy t to program 'id'",
            "do $$ begin end $$",
            "call p()",
            "attach '/etc/passwd' as x",
            "vacuum into '/tmp/x'",
            "pragma writable_schema = 1",
            "begin",
            "commit",
            "load data infile 'x' into table t",
            "select 1; drop table t",
            "select 1;;",
            "select 1 into outfile '/tmp/x'",
            "select 1 INTO/**/DUMPFILE '/tmp/x'",
            "select 1.into outfile '/tmp/x'",
            "select 1into outfile '/tmp/x'",
            "select 1e5into outfile '/tmp/x'",
            "select * from t for update",
            "select * from t for share",
            "select * from t lock in share mode",
            "with x as (delete from t returning *) select * from x",
            "select sleep (5)",
            "select SLEEP/* */(5)",
            "select load_file('/etc/passwd')",
            "select pg_sleep_for('1 h')",
            "select pg_catalog.pg_sleep(1)",
            "select pg_read_file('/etc/passwd')",
            "select lo_import('/etc/passwd')",
            "select dblink_connect('host=x')",
            "select nextval('s')",
            "select next value for s",
            "select query_to_xml('select 1', true, true, '')",
            "select set_config('a', 'b', true)",
            "select load_extension('x')",
            "select zeroblob(1000000000)",
            "select \\! id",
            "select 1 -- \\! id",
            "select 'open",
            "select 1 /* open",
        ] {
            refused(dialect, statement);
        }
    }
    refused(Mysql, "select /*!50000 sleep(5) */");
    refused(Mysql, "select /*M!100000 1 into outfile '/x' */");
    refused(Mysql, "select /*+ MAX_EXECUTION_TIME(0) */ 1");
    refused(Mysql, "select `sleep`(5)");
    refused(Mysql, "select 'a\\' into outfile ' from t into outfile 'x'");
    refused(Postgres, "select \"pg_sleep\" (5)");
    refused(Postgres, "explain analyze create table u as select 1");
    refused(Postgres, "explain (analyze) create materialized view v as select 1");
    refused(Postgres, "select * from pg_file_settings");
    refused(Postgres, "select * from pg_catalog.\"pg_hba_file_rules\"");
    refused(Postgres, "table pg_ident_file_mappings");
    refused(Postgres, "select brin_summarize_new_values('t')");
    refused(Postgres, "select gin_clean_pending_list('t')");
    refused(Postgres, "select u&\"pg\\005fsleep\"(5)");
    refused(Postgres, "select E'\\'' ; drop table t --'");
    refused(Sqlite, "select 'a\\'; attach 'x' as y --'");
}

#[test]
fn a_refusal_has_its_column() {
    assert_eq!(guard(Mysql, "select é, sleep(1)", &arguments()).map_err(|(column, _)| column), Err(11));
    assert_eq!(guard(Mysql, "drop table t", &arguments()).map_err(|(column, _)| column), Err(1));
}

#[test]
fn what_servers_read_in_different_ways_is_refused() {
    for dialect in [Mysql, Postgres, Sqlite] {
        for statement in [
            "select 1 --\x01'\n + sleep(2) -- '",
            "select 1 --\r, pg_sleep(2)",
            "select 1 -- a\r\r\n, 2",
            "select 'a'\n'b'",
            "select 'a' -- b\n 'c'",
            "select 'a' /* b */ 'c'",
            "select 1\u{b}",
            "select 1\u{c}",
            "select 1\u{a0}",
            "select 1 \u{3000}",
            "select \u{feff}load_extension('x')",
            "select '\u{feff}'",
            "select 'a\0b'",
            "select 1 /* \0 */",
            "select \u{85}1",
            "select 1 /*! , sleep(1) */",
            "select 1 /*+ x */",
            "with x as (select 1) update (t) set a = 1",
            "select 1 into ('/tmp/x')",
        ] {
            refused(dialect, statement);
        }
        passes(dialect, "select 'a\tb\n',\r\n 1 -- \r\n, 2");
        passes(dialect, "select größe, 'größe\u{a0}–' from t");
    }
    refused(Postgres, "SELECT E'a'\n'\\' || ' , pg_sleep(2)::text --'");
    refused(Postgres, "select $$a$$ 'b'");
    refused(Postgres, "select 1 ` pg_sleep(2) `");
    refused(Postgres, "select e'{sku}'");
    passes(Postgres, "select date '2020-01-01', x'1f', E'a\\'b', insert_at, $a$ ' $a$");
    for statement in ["select 1 --1", "select 1 --x\n", "select 2--1", "select 1 --'", "select \"a\" 'b'"] {
        refused(Mysql, statement);
    }
    passes(Mysql, "select 1 --\n, _utf8mb4'x', n'y', insert('a', 1, 1, 'b') -- x");
    passes(Mysql, "select 1 --");
    refused(Sqlite, "select 1 /* /* */");
}

/// Fragments that servers may interpret differently.
const FRAGMENTS: [&str; 44] = [
    "'", "''", "\"", "`", "[", "]", "\\", "\\'", "\\\\", "e'", "E'", "U&'", "n'", "x'", "$$", "$a$", "$", "--", "-- ",
    "--\x01", "-", "#", "/*", "*/", "/*!", "/*M!", "/*+", "\n", "\r", "\r\n", "\t", " ", "\u{a0}", "\u{b}", "\u{feff}",
    "a", "é", "1", "1e5", "0x", ",", ";", "{sku}", "(",
];

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(20_000))]

    #[test]
    fn what_passes_sleeps_to_no_server(
        dialect in proptest::sample::select(vec![Mysql, Postgres, Sqlite]),
        fragments in proptest::collection::vec(0..FRAGMENTS.len() + 6, 0..14),
    ) {
        let name = if dialect == Postgres { "pg_sleep" } else { "sleep" };
        let call = format!("{name}(2)");
        let parts = fragments.iter().map(|index| FRAGMENTS.get(*index).copied().unwrap_or(&call));
        let statement = format!("select 1 {}", parts.collect::<String>());
        if guard(dialect, &statement, &arguments()).is_ok() {
            proptest::prop_assert!(!calls(&code(dialect, &statement), name), "{dialect:?} {statement:?}");
        }
    }

    #[test]
    fn pieces_are_the_statement(
        dialect in proptest::sample::select(vec![Mysql, Postgres, Sqlite]),
        statement in "(select|SELECT 1|with|)[ -~\n\u{e9}']{0,40}(\\{sku\\})?[ -~\n]{0,10}",
    ) {
        if let Ok(pieces) = guard(dialect, &statement, &arguments()) {
            let joined: String = pieces.iter().map(|piece| match piece {
                StatementPiece::Text(text) => text,
                StatementPiece::Argument(_) => "{sku}",
            }).collect();
            proptest::prop_assert!(statement.starts_with(&joined), "{joined:?} of {statement:?}");
            let rest = statement.strip_prefix(&joined).unwrap_or_default();
            proptest::prop_assert!(rest.is_empty() || rest.starts_with(';'), "{rest:?}");
        }
    }

    #[test]
    fn what_is_in_texts_is_no_code(
        dialect in proptest::sample::select(vec![Mysql, Postgres, Sqlite]),
        text in "[a-z(), \"`$#*/;-]{0,30}",
        comment in "[a-z(), '\"$#-]{0,30}",
    ) {
        let text = format!("{text}sleep(1), pg_sleep(1)");
        let statement = format!("select '{text}', 1 /* {comment} sleep(1) */ -- {text}\n, 2");
        proptest::prop_assert!(guard(dialect, &statement, &arguments()).is_ok(), "{dialect:?} {statement:?}");
    }

    #[test]
    fn what_is_code_is_judged(
        dialect in proptest::sample::select(vec![Mysql, Postgres, Sqlite]),
        before in proptest::collection::vec(0..7_usize, 0..6),
        after in proptest::collection::vec(0..7_usize, 0..6),
        space in "[ \t\n]{0,2}(/\\*[a-z]{0,3}\\*/)?",
    ) {
        let whole = ["'a''b'", "\"n\"", "1.5e3", "/* ' */", "-- '\n", "(a)", "x"];
        let list = |indices: &[usize]| indices.iter().map(|index| whole[*index]).collect::<Vec<_>>().join(" , ");
        let call = if dialect == Postgres { "pg_sleep" } else { "sleep" };
        let statement = format!("select {} , {call}{space}(2) , {}", list(&before), list(&after));
        proptest::prop_assert!(guard(dialect, &statement, &arguments()).is_err(), "{dialect:?} {statement:?}");
    }
}
