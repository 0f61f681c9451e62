//! Hostile locators, and the proof that they have no effect.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use super::{refused, value};
use crate::arena::Arena;

const MARIADB: [&str; 18] = [
    "SELECT 1 INTO OUTFILE '/tmp/harm'",
    "SELECT 1 INTO DUMPFILE '/tmp/harm'",
    "SELECT/**/1/**/INTO/**/OUTFILE/**/'/tmp/harm'",
    "SELECT LOAD_FILE('/etc/passwd')",
    "SELECT load_file(0x2f6574632f706173737764)",
    "SELECT SLEEP(3600)",
    "SELECT `sleep`(3600)",
    "SELECT BENCHMARK(1000000000000, SHA2('a', 512))",
    "SELECT /*!50000 SLEEP(3600) */",
    "SELECT 1; DROP TABLE order_order",
    "SELECT 1; SET GLOBAL read_only = 1",
    "SET SESSION max_statement_time = 0",
    "SET STATEMENT max_statement_time = 0 FOR SELECT 1",
    "DELETE FROM order_order",
    "WITH x AS (SELECT 1) UPDATE order_order SET number = 'harm'",
    "LOAD DATA INFILE '/etc/passwd' INTO TABLE order_order",
    "SELECT * FROM order_order FOR UPDATE",
    "SELECT a.* FROM order_order a, order_order b, order_order c, order_order d, order_order e WHERE a.id * b.id * c.id * d.id * e.id < 0",
];

const POSTGRES: [&str; 20] = [
    "select pg_read_file('/etc/passwd')",
    "select pg_read_binary_file('/etc/passwd')",
    "select pg_ls_dir('/')",
    "select * from pg_hba_file_rules",
    "copy (select 1) to program 'touch /tmp/harm'",
    "copy misago_users_user from '/etc/passwd'",
    "select lo_import('/etc/passwd')",
    "select lo_from_bytea(0, 'harm')",
    "select dblink_connect('host=127.0.0.1')",
    "select pg_sleep(3600)",
    "select \"pg_sleep\"(3600)",
    "select u&\"pg\\005fsleep\"(3600)",
    "select 1; drop table misago_threads_post",
    "select nextval('misago_users_user_id_seq')",
    "select setval('misago_users_user_id_seq', 1)",
    "select set_config('transaction_read_only', 'off', false)",
    "do $$ begin loop begin perform pg_sleep(9); exception when query_canceled then null; end; end loop; end $$",
    "with gone as (delete from misago_threads_post returning 1) select * from gone",
    "select query_to_xml('select pg_sleep(3600)', true, true, '')",
    "select pg_terminate_backend(pid) from pg_stat_activity",
];

const SQLITE: [&str; 10] = [
    "ATTACH '/tmp/harm' AS harm",
    "SELECT load_extension('/tmp/harm')",
    "VACUUM INTO '/tmp/harm'",
    "PRAGMA writable_schema = ON",
    "SELECT 1; ATTACH '/tmp/harm' AS harm; CREATE TABLE harm.x (a)",
    "WITH x AS (SELECT 1) DELETE FROM auth_user",
    "SELECT writefile('/tmp/harm', 'x')",
    "SELECT zeroblob(2000000000)",
    "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x FROM r) SELECT count(*) FROM r",
    "WITH RECURSIVE r(x) AS (SELECT 'harm' UNION ALL SELECT x || x FROM r) SELECT max(length(x)) FROM r",
];

pub fn statements_do_no_harm(arena: &Arena) {
    let counts = || {
        [
            value(arena, "shopping", "sql(shop): SELECT count(*) FROM order_order WHERE number <> 'harm'"),
            value(arena, "reddit", "sql(forum): select count(*) from misago_threads_post"),
            value(arena, "reddit", "sql(forum): select last_value::text from misago_users_user_id_seq"),
            value(arena, "reddit", "sql(forum): select count(*) from pg_largeobject_metadata"),
            value(arena, "turkle", "sql: select count(*) from auth_user"),
        ]
    };
    let before = counts();
    for (site, databases, statements) in [
        ("shopping", ["shop", "inside"].as_slice(), MARIADB.as_slice()),
        ("reddit", &["forum", "inside"], &POSTGRES),
        ("turkle", &["turkle"], &SQLITE),
    ] {
        for database in databases {
            for statement in statements {
                let said = refused(arena, site, &format!("sql({database}, timeout=1s): {statement}"));
                assert!(!said.contains("root:x:0"), "{statement}: {said}");
            }
        }
        let left = arena.exec(site, &["sh", "-c", "ls /tmp/harm /data/harm 2>/dev/null || true"]);
        assert_eq!(left, "", "{site}");
    }
    assert_eq!(counts(), before);
    assert!(!std::path::Path::new("/tmp/harm").exists());
    // No statement continues to run after its locator has ended.
    let busy = "sql(inside): SELECT count(*) FROM information_schema.processlist WHERE info LIKE '%3600%' AND id <> connection_id()";
    assert_eq!(value(arena, "shopping", busy), json!(0));
    let busy = "sql(inside): select count(*) from pg_stat_activity where state = 'active' and pid <> pg_backend_pid() and query like '%3600%'";
    assert_eq!(value(arena, "reddit", busy), json!(0));
}

/// Starts a server on the host's loopback that no locator may reach.
async fn neighbour() -> (String, Arc<AtomicUsize>) {
    let visits = Arc::new(AtomicUsize::new(0));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let seen = visits.clone();
    tokio::spawn(async move {
        while let Ok((_stream, _)) = listener.accept().await {
            seen.fetch_add(1, Ordering::SeqCst);
        }
    });
    (address, visits)
}

pub async fn requests_and_expressions_do_no_harm(arena: &Arena) {
    let (neighbour, visits) = neighbour().await;
    let orders = || value(arena, "shopping", "sql: SELECT count(*) FROM order_order");
    let before = orders();
    for locator in [
        format!("http: GET http://{neighbour}/"),
        format!("http: GET //{neighbour}/"),
        "http: GET /\\127.0.0.1/".to_owned(),
        "http: GET @169.254.169.254/latest/meta-data/".to_owned(),
        format!("http(header='Host: {neighbour}'): /"),
        "http: DELETE /api/baskets/".to_owned(),
        "http: POST /api/login/".to_owned(),
        "http: /api/products/ | jq: def f: f; f".replace("http:", "http(timeout=2s):"),
        "http(timeout=2s): /api/products/ | jq: last(repeat(1))".to_owned(),
        "http(timeout=2s): /api/products/ | jq: [limit(1e12; repeat(\"aaaaaaaaaaaaaaaa\"))]".to_owned(),
    ] {
        refused(arena, "shopping", &locator);
    }
    let secret = value(arena, "shopping", "http: /api/products/ | jq: env | length");
    assert_eq!(secret, json!(0), "no variable of the daemon is known to a filter");
    for expression in [
        "(() => { while (true) {} })()".to_owned(),
        "new Promise(() => {})".to_owned(),
        "(() => { for (;;) alert(1) })()".to_owned(),
        "'x'.repeat(50_000_000)".to_owned(),
        "(() => { const all = []; for (;;) all.push(new Array(1e6).fill(Math.random())) })()".to_owned(),
        // This memory is outside the language's own heap.
        "(() => { const all = []; for (;;) all.push(new Uint8Array(1e8).fill(1)) })()".to_owned(),
        "null.x".to_owned(),
        "1; 2".to_owned(),
        "(".to_owned(),
    ] {
        let said = refused(arena, "shopping", &format!("js(timeout=4s): {expression} @ /customer/account/login/"));
        assert!(!said.contains("reach the site"), "{expression}: {said}");
    }
    for (expression, expected) in [
        (format!("fetch('http://{neighbour}/', {{ mode: 'no-cors' }}).then(a => a.type)"), json!("opaque")),
        (format!("fetch('http://{neighbour}/').then(() => 'there', () => 'away')"), json!("away")),
        ("fetch('http://169.254.169.254/latest/').then(() => 'there', () => 'away')".to_owned(), json!("away")),
        ("fetch('file:///etc/passwd').then(() => 'there', () => 'away')".to_owned(), json!("away")),
        (
            format!("new Promise(end => {{ const s = new WebSocket('ws://{neighbour}/'); s.onopen = () => end('there'); s.onerror = () => end('away') }})"),
            json!("away"),
        ),
        ("confirm('sure?')".to_owned(), json!(false)),
        ("(() => { const a = document.createElement('a'); a.href = '/robots.txt'; a.download = 'harm'; a.click(); return 'clicked' })()".to_owned(), json!("clicked")),
        ("window.open('/') ? 'opened' : 'kept'".to_owned(), json!("opened")),
    ] {
        let found = value(arena, "shopping", &format!("js: {expression} @ /customer/account/login/"));
        assert_eq!(found, expected, "{expression}");
    }
    assert_eq!(visits.load(Ordering::SeqCst), 0, "nothing came to the neighbour");
    assert_eq!(orders(), before);
}
