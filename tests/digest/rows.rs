//! Rows that are read with their keys add up to the digests of their tables, and comparisons name exactly the rows that
//! were written.

use std::collections::BTreeMap;

use arenad_changes::{ChangeKind, RowChanges, StateChanges, StatePoint, StoreTexts, compare};
use arenad_digest::{self as digest, Digest, Known, StoreRows, Subject, WantedRows};
use arenad_model::site::DatabaseAccess;
use arenad_model::store::{Store, Volatile, VolatilePart};

use super::instance::{Alone, TestInstance};
use super::subject::Stores;

/// A state with the rows of all tables.
struct WholeState {
    digest: Digest,
    rows: StoreRows,
}

impl WholeState {
    /// Reads a state. All rows must belong to its digest.
    async fn read(subject: &Subject<'_>) -> Self {
        let digest = digest::take(subject, Known::default()).await.expect("a digest").digest;
        let mut wanted = WantedRows { with_values: true, ..WantedRows::default() };
        for (store, content) in &digest.stores {
            content.tables.iter().for_each(|(table, rows)| wanted.add(store, table, rows.count));
        }
        let rows = digest::take_rows(subject, &wanted).await.expect("rows");
        for store in &subject.site.stores {
            for (table, taken) in &digest.stores[&store.name].tables {
                let found = &rows[&store.name][table];
                assert!(found.is_of(taken, &store.kind), "{}: {} rows, not {taken:?}", table, found.rows.len());
            }
        }
        Self { digest, rows }
    }

    fn changes_since(&self, before: &Self) -> StateChanges {
        let texts = StoreTexts::new();
        compare(
            StatePoint { digest: &before.digest, rows: &before.rows, texts: &texts },
            StatePoint { digest: &self.digest, rows: &self.rows, texts: &texts },
        )
    }
}

async fn read(instance: &TestInstance) -> WholeState {
    WholeState::read(&instance.subject()).await
}

/// Returns the rows that differ in words, by table: `added 3`, or `changed 1: name a -> b`.
fn words(changes: &StateChanges) -> BTreeMap<String, Vec<String>> {
    let tables = changes.stores.values().flat_map(|store| &store.tables);
    let all = tables.map(|table| (table.name.clone(), rows(table.rows.as_ref().expect("the rows are known"))));
    all.collect()
}

fn rows(changes: &RowChanges) -> Vec<String> {
    let value = |value: &Option<Option<String>>| match value {
        Some(Some(text)) => text.clone(),
        Some(None) => "NULL".to_owned(),
        None => "-".to_owned(),
    };
    let row = |row: &arenad_changes::RowChange| {
        let key: Vec<String> = row.key.iter().map(|part| part.clone().unwrap_or_default()).collect();
        let cells: Vec<String> = match row.kind {
            ChangeKind::Changed => row
                .cells
                .iter()
                .map(|cell| format!("{} {} -> {}", cell.column, value(&cell.before), value(&cell.now)))
                .collect(),
            _ => Vec::new(),
        };
        format!("{:?} {}: {}", row.kind, key.join("/"), cells.join(", "))
    };
    changes.listed.iter().map(row).collect()
}

fn expected(tables: &[(&str, &[&str])]) -> BTreeMap<String, Vec<String>> {
    tables.iter().map(|(name, rows)| ((*name).to_owned(), rows.iter().map(|&row| row.to_owned()).collect())).collect()
}

/// Keeps only the store `database`, and excludes parts of it.
fn database(stores: &mut Vec<Store>, volatile: Vec<VolatilePart>) {
    stores.retain(|store| store.name == "database");
    let part = |part| Volatile { part, reason: "a test's".to_owned() };
    stores[0].volatile = volatile.into_iter().map(part).collect();
}

#[tokio::test]
async fn the_rows_of_postgres_belong_to_its_digest_and_are_named_by_key() {
    let volatile = vec![VolatilePart::Column { table: "misago_users_user".into(), column: "last_login".into() }];
    let forum = Alone::start("reddit", |site| database(&mut site.stores, volatile)).await;
    let sql = |statement: &str| {
        let client = ["psql", "-h", "/run/forum", "-U", "forum", "-d", "forum", "-qAtc", statement];
        forum.instance.exec("reddit", &client)
    };
    sql(
        "create schema \"o'hare\" create table \"T x\" (\"B\" int, \"a 'b\" text, c text, primary key (\"a 'b\", \"B\"))",
    );
    sql("create table bare (n int, t text); insert into bare values (1, 'x'), (1, 'x'), (2, null)");
    sql("create table long (id int primary key, t text, b bytea, f float8, j jsonb)");
    sql("insert into long select n, repeat('é', n), '\\x00ff', 0.1 * n, '{\"a\": 1}' from generate_series(1, 4000) n");
    let before = read(&forum.instance).await;
    assert!(before.rows["database"].len() > 50 && before.rows["database"]["long"].rows.len() == 4000);

    sql("update misago_users_user set last_login = now()");
    sql("vacuum full misago_users_user");
    assert_eq!(read(&forum.instance).await.changes_since(&before), StateChanges::default());

    sql("update misago_threads_post set original = e'one\\t\"two\"' where id = 1");
    sql("insert into \"o'hare\".\"T x\" values (7, 'k', null), (7, 'l', '')");
    sql("insert into bare values (1, 'x'); delete from bare where n = 2");
    sql(
        "update long set t = t || '!' where id = 3999; update long set f = f * 2, b = null where id = 2; delete from long where id = 5",
    );
    let now = read(&forum.instance).await;
    let original = before.rows["database"]["misago_threads_post"].clone();
    let at = original.columns.iter().position(|name| name == "original").expect("a column");
    let first = original.rows.iter().find(|row| row.key == [Some("1".to_owned())]).expect("the first post");
    let first = first.values.as_ref().expect("values")[at].clone().expect("a text");
    let found = now.changes_since(&before);
    let mut words = words(&found);
    let long = words.remove("long").expect("the table differs");
    assert_eq!(
        words,
        expected(&[
            ("bare", &["Removed : ", "Added : "]),
            ("misago_threads_post", &[&format!("Changed 1: original {first} -> one\t\"two\"")]),
            ("o'hare.T x", &["Added k/7: ", "Added l/7: "]),
        ])
    );
    assert_eq!(long[0], "Changed 2: b \\x00ff -> NULL, f 0.2 -> 0.4");
    assert_eq!(long[1], "Removed 5: ");
    assert!(long[2].starts_with("Changed 3999: t éé") && long[2].contains("(3999 characters, MD5 "), "{}", long[2]);
    assert_eq!((long.len(), found.stores.len()), (3, 1));

    let mut through_client = forum;
    let declared = through_client.instance.site.databases.get_mut("forum").expect("declared");
    declared.access = DatabaseAccess::Client { program: "psql".to_owned() };
    through_client.instance.lines = digest::StoreConnections::kept();
    let other = read(&through_client.instance).await;
    assert_eq!(other.changes_since(&now), StateChanges::default(), "whichever way it is asked");
}

#[tokio::test]
async fn the_rows_of_mariadb_belong_to_its_digest_and_are_named_by_key() {
    let volatile = vec![VolatilePart::Table("django_session".into())];
    let shop = Alone::start("shopping", |site| database(&mut site.stores, volatile)).await;
    let sql = |statement: &str| shop.instance.exec("shopping", &["mariadb", "shop", "-e", statement]);
    sql(
        "create table kinds (a varchar(9), b int, f float, d double, t text, x blob, w datetime(6), g geometry, primary key (b, a))",
    );
    sql(
        "insert into kinds values ('\"\"\"\"\"\"\"\"\"', 1, 0.1, 0.1, 'a', 0x00, '2023-01-01', point(1, 2)), ('k', 2, 16777216, 1e300, '', '', null, null)",
    );
    sql("create table bare (n int, t text); insert into bare values (1, 'x'), (1, 'x'), (2, null)");
    sql(
        "create table many (id int primary key, t text); insert into many select seq, repeat('é', seq) from seq_1_to_4000",
    );
    let before = read(&shop.instance).await;
    assert!(before.rows["database"].len() > 50 && !before.rows["database"].contains_key("django_session"));

    sql("insert into django_session values ('a', 'b', now()); optimize table catalogue_product");
    assert_eq!(read(&shop.instance).await.changes_since(&before), StateChanges::default());

    sql(
        "update kinds set f = 16777218, x = 0x01 where b = 2; update kinds set t = 'A', w = '2023-01-01 00:00:00.000001' where b = 1",
    );
    sql("insert into bare values (1, 'x'); delete from bare where n = 2");
    sql(
        "update many set t = concat(t, '!') where id = 3999; delete from many where id = 5; insert into many values (5000, 'a\\n\"b\"')",
    );
    let now = read(&shop.instance).await;
    let mut words = words(&now.changes_since(&before));
    let many = words.remove("many").expect("the table differs");
    assert_eq!(
        words,
        expected(&[
            ("bare", &["Removed : ", "Added : "]),
            (
                "kinds",
                &[
                    "Changed 1/\"\"\"\"\"\"\"\"\": t a -> A, w 2023-01-01 00:00:00.000000 -> 2023-01-01 00:00:00.000001",
                    "Changed 2/k: f 16777216 -> 16777218, x 0x -> 0x01",
                ]
            ),
        ])
    );
    assert_eq!((many[0].as_str(), many[2].as_str(), many.len()), ("Removed 5: ", "Added 5000: ", 3));
    assert!(many[1].starts_with("Changed 3999: t éé") && many[1].contains("(3999 characters, MD5 "), "{}", many[1]);

    let mut through_client = shop;
    let declared = through_client.instance.site.databases.get_mut("shop-owned").expect("declared");
    declared.access = DatabaseAccess::Client { program: "mariadb".to_owned() };
    through_client.instance.lines = digest::StoreConnections::kept();
    let other = read(&through_client.instance).await;
    assert_eq!(other.changes_since(&now), StateChanges::default(), "whichever way it is asked");
}

#[tokio::test]
async fn the_rows_of_sqlite_belong_to_its_digest_and_are_named_by_key() {
    let stores = Stores::declared(
        "{ notes: { kind: sqlite, path: /data/notes.db, volatile: [ { table: session, reason: r }, { column: note.seen, reason: r } ] } }",
    );
    let path = stores.folder().join("notes.db");
    let run = |statements: &str| super::sqlite::run(&path, statements, false);
    run("create table note (id integer primary key autoincrement, text text, price real, picture blob, seen text);
        create table session (id integer primary key, key text);
        create table tag (name text, note integer, primary key (note, name)) without rowid;
        create table bare (n, t);
        create table odd (k text primary key, seen text);
        insert into note (text, price, picture, seen) values ('one', 1.5, x'00ff', 'never'), (null, 2, null, '');
        insert into tag values ('a', 1); insert into bare values (1, 'x'), (1, 'x'), (2, null);
        with recursive n(i) as (values(1) union all select i + 1 from n where i < 4000) insert into odd select 'k' || i, i from n;");
    let before = stores.with(async |subject| WholeState::read(&subject).await).await;
    run("update note set seen = 'now'; insert into session (key) values ('a')");
    let same = stores.with(async |subject| WholeState::read(&subject).await).await;
    assert_eq!(same.changes_since(&before), StateChanges::default());
    run("update note set price = 2.5, picture = x'01' where id = 2; insert into note (text) values ('two'); delete from tag;
        insert into bare values (1, 'x'); delete from bare where n = 2; update odd set seen = null where k = 'k3999'");
    let now = stores.with(async |subject| WholeState::read(&subject).await).await;
    let found = now.changes_since(&before);
    assert_eq!(
        words(&found),
        expected(&[
            ("bare", &["Removed : ", "Added : "]),
            ("note", &["Changed 2: price 2.0 -> 2.5, picture NULL -> 0x01", "Added 3: "]),
            ("odd", &["Changed k3999: seen 3999 -> NULL"]),
            ("tag", &["Removed 1/a: "]),
        ])
    );
    let sequences = &found.stores["notes"].sequences;
    assert_eq!((sequences.len(), sequences[0].now.as_deref()), (1, Some("3")));
}
