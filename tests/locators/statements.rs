//! Statements on MariaDB, PostgreSQL and SQLite.

use serde_json::json;

use super::{is_environment_fault, locate, locate_with, refused, rows, value};
use crate::arena::Arena;

pub fn values_are_typed(arena: &Arena) {
    assert_eq!(value(arena, "shopping", "sql(shop): SELECT count(*) FROM order_order"), json!(300));
    let order = "SELECT number, total_incl_tax, date_placed, guest_email = '', NULL FROM order_order WHERE id = 300";
    let located = locate(arena, "shopping", &format!("sql(shop): {order}"));
    let kinds: Vec<&str> = located["value"]["rows"][0]
        .as_array()
        .expect("a row")
        .iter()
        .filter_map(|cell| cell["type"].as_str())
        .collect();
    assert_eq!(kinds, ["text", "decimal", "timestamp", "integer", "null"], "{located}");
    assert_eq!(rows(&located["value"])[0][2], "2023-05-31T20:53:28Z");
    let evidence = &located["evidence"];
    assert_eq!(
        (&evidence["ran"], &evidence["site"], &evidence["notes"]["rows"]),
        (&json!(order), &json!("shopping"), &json!("1"))
    );
    assert!(
        evidence["duration_ms"].as_f64().is_some_and(|took| took > 0.0) && evidence["generation"].as_u64() >= Some(1)
    );

    let all = "sql(forum): select 1::int8, 1.10::numeric(9,2), 0.1::float8, true, 'x'::text, '{\"a\": 1}'::jsonb, '\\xff00'::bytea, \
               '2023-05-01 12:00+02'::timestamptz, date '2023-05-01', null::int, array[1, 2], 'infinity'::timestamp";
    let located = locate(arena, "reddit", all);
    let expected = json!([[
        1, "1.10", 0.1, true, "x", { "a": 1 }, "ff00", "2023-05-01T10:00:00Z", "2023-05-01", null, [1, 2], "infinity"
    ]]);
    assert_eq!(rows(&located["value"]), expected);
    assert_eq!(
        value(arena, "reddit", "sql(forum): select sum(x)::numeric from (values (0.1), (0.2)) t(x)"),
        json!("0.3")
    );

    assert_eq!(value(arena, "turkle", "sql: select username from auth_user where is_superuser"), json!("admin"));
    let mixed = locate(arena, "turkle", "sql: select 1, 1.5, 'x', x'ff', null");
    assert_eq!(rows(&mixed["value"]), json!([[1, 1.5, "x", "ff", null]]));
    assert_eq!(locate(arena, "turkle", "sql: select 1 where 0")["type"], "null");
    assert_eq!(locate(arena, "turkle", "sql(rows): select 1 where 0")["type"], "rows");
}

pub fn arguments_are_bound(arena: &Arena) {
    let hostile = "x' OR '1'='1";
    let options = ["-a", &format!("name={hostile}")];
    for (site, statement) in [
        ("shopping", "sql(shop): SELECT count(*) FROM auth_user WHERE username = {name}"),
        ("shopping", "sql(inside): SELECT count(*) FROM auth_user WHERE username = {name}"),
        ("reddit", "sql(forum): select count(*) from misago_users_user where username = {name}"),
        ("reddit", "sql(inside): select count(*) from misago_users_user where username = {name}"),
        ("turkle", "sql: select count(*) from auth_user where username = {name}"),
    ] {
        let none = locate_with(arena, site, statement, &options)["value"].clone();
        assert!(none == json!(0) || none == json!("0"), "{statement}: {none}");
        let echo = statement.split(':').next().expect("a kind").to_owned() + ": SELECT {name}";
        assert_eq!(locate_with(arena, site, &echo, &options)["value"], json!(hostile), "{echo}");
    }
    let twice = ["-a", "a=1", "-a", "b=2"];
    assert_eq!(
        locate_with(arena, "reddit", "sql(forum): select {b}::int * 10 + {a}::int + {b}::int", &twice)["value"],
        json!(23)
    );
}

pub fn clients_in_containers_are_asked_too(arena: &Arena) {
    for (site, statement) in [
        ("shopping", "sql(inside): SELECT 1 AS a, '<b>&\n\"' AS b, NULL AS c"),
        ("reddit", "sql(inside): select 1 as a, E'<b>&\\n\"' as b, null as c"),
    ] {
        let located = locate(arena, site, statement);
        assert_eq!(located["value"]["columns"], json!(["a", "b", "c"]), "{located}");
        assert_eq!(rows(&located["value"]), json!([[1, "<b>&\n\"", null]]));
    }
    for (site, statement, expected) in [
        ("shopping", "sql(inside): SELECT CAST(19.90 AS DECIMAL(8,2))", json!(["decimal", "19.90"])),
        (
            "shopping",
            "sql(inside): SELECT TIMESTAMP('2023-05-09 01:02:03')",
            json!(["timestamp", "2023-05-09T01:02:03Z"]),
        ),
        ("reddit", "sql(inside): select 19.90::numeric(8,2)", json!(["decimal", "19.90"])),
        (
            "reddit",
            "sql(inside): select timestamptz '2023-05-09 03:02:03+02'",
            json!(["timestamp", "2023-05-09T01:02:03Z"]),
        ),
        ("reddit", "sql(inside): select '\\x00ff'::bytea", json!(["bytes", "00ff"])),
        ("reddit", "sql(inside): select true", json!(["bool", true])),
        ("reddit", "sql(inside): select '{\"a\": 1}'::jsonb", json!(["json", { "a": 1 }])),
    ] {
        let located = locate(arena, site, statement);
        assert_eq!(json!([located["type"], located["value"]]), expected, "{statement}");
    }
    assert_eq!(locate(arena, "shopping", "sql(inside): SELECT 1 WHERE 1 = 0")["type"], "null");
    assert_eq!(locate(arena, "reddit", "sql(inside): select 1 where false")["type"], "null");
    // The account of an administrator of PostgreSQL is reduced to reading.
    assert_eq!(value(arena, "reddit", "sql(inside): select current_user::text"), json!("pg_read_all_data"));
}

pub fn bounds_hold(arena: &Arena) {
    let said = refused(arena, "shopping", "sql(shop): SELECT a.id FROM catalogue_product a, catalogue_product b");
    assert!(said.contains("10000 rows"), "{said}");
    let said = refused(arena, "reddit", "sql(forum): select repeat('x', 5000000)");
    assert!(said.contains("4 MiB"), "{said}");
    assert!(refused(arena, "shopping", "sql: SELECT 1").contains("does not say which database"));
    assert!(refused(arena, "shopping", "sql(nothing): SELECT 1").contains("has no database `nothing`"));
    assert!(refused(arena, "shopping", "sql(shop): SELECT nothing FROM nowhere").contains("nowhere"));
    assert!(refused(arena, "shopping", "sqll: SELECT 1").contains("column 1"));
}

pub fn a_killed_site_is_unavailable(arena: &Arena) {
    arena.kill("shopping");
    for locator in ["sql(shop, timeout=3s): SELECT 1", "sql(inside, timeout=3s): SELECT 1"] {
        let said = refused(arena, "shopping", locator);
        assert!(is_environment_fault(&said), "{said}");
    }
    arena.kill("turkle");
    let said = refused(arena, "turkle", "exec(timeout=3s): ls");
    assert!(is_environment_fault(&said), "{said}");
}
