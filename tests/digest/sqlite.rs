//! SQLite databases in every form that they can have on a disk.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use arenad_digest::Known;

use super::subject::{Stores, differences};

const STORE: &str = "{ notes: { kind: sqlite, path: /data/notes.db, volatile: [ { table: session, reason: r }, { column: note.seen, reason: r } ] } }";

const SCHEMA: &str = "create table note (id integer primary key autoincrement, text text, price real, picture blob, seen text);
    create table session (id integer primary key, key text);
    create table tag (name text primary key, note integer) without rowid;
    create index by_text on note (text);
    insert into note (text, price, picture, seen) values ('one', 1.5, x'00ff', 'never'), (null, 2, null, 'never'), ('2', null, '2', '');
    insert into session (key) values ('a');";

/// Runs statements with Python's SQLite, as sites do; `keep` leaves the files as they are while a connection is open.
pub fn run(path: &std::path::Path, statements: &str, keep: bool) {
    let script = "import os, sqlite3, sys\ndatabase = sqlite3.connect(sys.argv[1])\ndatabase.executescript(sys.argv[2])\ndatabase.commit()\n\
                  if sys.argv[3] == 'keep': os._exit(0)\ndatabase.close()";
    let end = if keep { "keep" } else { "close" };
    let output = Command::new("python3").args(["-c", script]).arg(path).args([statements, end]).output();
    let output = output.expect("python3 runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn made() -> (Stores, PathBuf) {
    let stores = Stores::declared(STORE);
    let path = stores.folder().join("notes.db");
    run(&path, SCHEMA, false);
    (stores, path)
}

#[tokio::test]
async fn rows_counters_and_definitions_are_named() {
    let (stores, path) = made();
    let before = stores.take().await.expect("a digest");
    run(
        &path,
        "insert into note (text) values ('four'); update tag set note = 1; drop index by_text; alter table tag add column more int;
         insert into tag values ('a', 1, 2)",
        false,
    );
    let now = stores.take().await.expect("a digest");
    assert_eq!(
        differences(&before, &now),
        [
            "notes: table note: 3 rows before, 4 rows now",
            "notes: table tag: 0 rows before, 1 row now",
            "notes: counter note: 3 before, 4 now",
            "notes: index by_text: defined before, gone now",
            "notes: table tag: as in the baseline before, otherwise now",
        ]
    );
}

#[tokio::test]
async fn what_does_not_count_and_how_rows_lie_do_not_show() {
    let (stores, path) = made();
    let before = stores.take().await.expect("a digest");
    run(&path, "insert into session (key) values ('b'); update note set seen = 'today'; vacuum", false);
    let now = stores.take().await.expect("a digest");
    assert_eq!(differences(&before, &now), Vec::<String>::new());
}

#[tokio::test]
async fn values_of_other_types_are_other_values() {
    let (stores, path) = made();
    let before = stores.take().await.expect("a digest");
    for change in ["price = '1.5'", "picture = x'00fe'", "text = ''", "price = 1.5000000000000002"] {
        run(&path, &format!("update note set {change} where id = 1"), false);
        let now = stores.take().await.expect("a digest");
        // Text that is a number becomes a number in a numeric column.
        let is_same = change == "price = '1.5'";
        assert_eq!(differences(&before, &now).is_empty(), is_same, "{change}");
        run(&path, "update note set text = 'one', price = 1.5, picture = x'00ff' where id = 1", false);
        assert_eq!(
            differences(&before, &stores.take().await.expect("a digest")),
            Vec::<String>::new(),
            "{change} undone"
        );
    }
}

#[tokio::test]
async fn what_is_still_in_the_log_counts_and_the_site_keeps_its_files() {
    let (stores, path) = made();
    run(&path, "pragma journal_mode = wal", false);
    let before = stores.take().await.expect("a digest");
    run(&path, "insert into note (text) values ('four')", true);
    let log = stores.folder().join("notes.db-wal");
    let length = fs::metadata(&log).expect("a log").len();
    assert!(length > 0, "the row is in the log");
    let now = stores.take().await.expect("a digest");
    let found = differences(&before, &now);
    assert_eq!(found, ["notes: table note: 3 rows before, 4 rows now", "notes: counter note: 3 before, 4 now"]);
    assert_eq!(fs::metadata(&log).expect("a log").len(), length, "the log is as it was");
}

#[tokio::test]
async fn files_that_were_written_anew_are_read_and_untouched_ones_are_not() {
    let (stores, path) = made();
    let taken = stores.take_settled().await;
    assert_eq!(stores.moved(&taken).await, Vec::<String>::new());
    let copy = fs::read(&path).expect("a file");
    fs::write(&path, copy).expect("a file");
    assert_eq!(stores.moved(&taken).await, ["notes"]);
    let again = stores.take_knowing(Known { last: Some(&taken), ..Known::default() }).await.expect("a digest");
    assert_eq!((again.costs[0].is_hashed, &again.digest), (true, &taken.digest));
}

#[tokio::test]
async fn what_is_no_database_or_leads_elsewhere_is_an_error() {
    let (stores, path) = made();
    fs::write(&path, "this is not a database, whatever the name of the file suggests").expect("a file");
    let error = stores.take().await.expect_err("no database").to_string();
    assert_eq!(error, "read the rows of the store notes");
    fs::remove_file(&path).expect("a file");
    std::os::unix::fs::symlink("/etc/passwd", &path).expect("a link");
    let error = stores.take().await.expect_err("a link").to_string();
    assert_eq!(error, "read notes.db of the store notes");
}

#[tokio::test]
async fn what_is_called_volatile_must_be_there() {
    let stores = Stores::declared(
        "{ notes: { kind: sqlite, path: /data/notes.db, volatile: [ { column: note.sen, reason: r } ] } }",
    );
    run(&stores.folder().join("notes.db"), SCHEMA, false);
    let error = stores.take().await.expect_err("misspelt").to_string();
    assert_eq!(
        error,
        "leave out the column sen of the table note of the store notes: there is none; correct `volatile` in the definition"
    );
}
