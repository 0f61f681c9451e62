//! The guard of SQL locators. For any statement, an accepted one is sent unchanged except for its placeholders, and it
//! changes nothing in SQLite, which serves as the reference.

use std::time::Duration;

use arenad_locators::sql::guard::{StatementPiece, guard};
use arenad_model::locator::Arguments;
use arenad_model::site::DatabaseEngine;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor, Row};
use tokio::runtime::Runtime;

use crate::target::{FuzzTarget, InputCheck};

pub const TARGET: FuzzTarget = FuzzTarget {
    words: &[
        "select ",
        "SELECT",
        "with x as (",
        "values (1)",
        "explain ",
        "explain query plan ",
        "table t",
        "show ",
        "insert into t ",
        "update t set a = 1",
        "delete from t",
        "replace into t values (9)",
        "drop table t",
        "create table u (a)",
        "attach 'x' as x",
        "pragma user_version = 7",
        "vacuum",
        "begin",
        "commit",
        "into ",
        " from t ",
        " union ",
        " returning *",
        "; ",
        ";",
        "--",
        "-- ",
        "#",
        "/*",
        "*/",
        "/*!",
        "/*+",
        "'",
        "''",
        "\"",
        "`",
        "[",
        "]",
        "\\",
        "\\'",
        "$$",
        "$a$",
        "E'",
        "e'",
        "U&'",
        "x'00'",
        "N'",
        "{sku}",
        "'{sku}'",
        "?",
        ":a",
        "@a",
        "$1",
        "::",
        "\n",
        "\r\n",
        "\r",
        "\t",
        "\0",
        "\u{1}",
        "\u{a0}",
        "\u{feff}",
        "\u{2028}",
        "sleep(2)",
        "pg_sleep(2)",
        "load_extension('x')",
        "randomblob(9)",
        "readfile('/etc/passwd')",
        "get_lock('a', 1)",
        "set_config('a', 'b', false)",
        "nextval('s')",
        "(",
        ")",
        ",",
        ".",
        "0x1f",
        "1e5",
        "1.5.2",
        "1a",
        "like",
        "glob",
        "match",
    ],
    ..FuzzTarget::new("sql", open)
};

/// The time limit of a statement: its writes are tested, not its duration.
const STATEMENT: Duration = Duration::from_millis(100);

fn open() -> InputCheck {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let mut database = runtime.block_on(database());
    let arguments = Arguments(vec![("sku".to_owned(), "'; drop table t".to_owned())]);
    Box::new(move |input| {
        let text = String::from_utf8_lossy(input);
        let mut answers = Vec::new();
        for dialect in [DatabaseEngine::Mysql, DatabaseEngine::Postgres, DatabaseEngine::Sqlite] {
            answers.push(match guard(dialect, &text, &arguments) {
                Ok(pieces) => {
                    check_pieces(&text, &pieces);
                    if dialect == DatabaseEngine::Sqlite {
                        changed_nothing(&runtime, &mut database, &pieces)
                    } else {
                        "passes"
                    }
                    .to_owned()
                }
                Err((column, reason)) => {
                    let length = text.chars().count();
                    assert!((1..=length + 1).contains(&column), "column {column} of {length}");
                    reason.to_string().split('`').step_by(2).collect()
                }
            });
        }
        answers.join(" / ")
    })
}

/// Checks that the pieces together are the statement up to its final semicolon.
fn check_pieces(text: &str, pieces: &[StatementPiece<'_>]) {
    let written = |piece: &StatementPiece<'_>| match piece {
        StatementPiece::Text(text) => (*text).to_owned(),
        StatementPiece::Argument(_) => "{sku}".to_owned(),
    };
    let sent: String = pieces.iter().map(written).collect();
    let rest = text.strip_prefix(sent.as_str()).unwrap_or_else(|| panic!("{sent:?} is sent for {text:?}"));
    assert!(rest.is_empty() || rest.starts_with(';'), "{rest:?} is not sent of {text:?}");
}

async fn database() -> SqliteConnection {
    // Unlike a locator's connection, this one may write, so that only the guard is tested.
    let mut database = SqliteConnectOptions::new().in_memory(true).connect().await.expect("a database");
    database.execute("create table t (a, b); insert into t values (1, 'x'), (2, 'y')").await.expect("a table");
    database
}

/// Queries the database's schema, its rows, and the counters of SQLite.
async fn state(database: &mut SqliteConnection) -> String {
    let query = "select total_changes() || (select group_concat(sql) from sqlite_master) || (select count(*) from t) \
                 || (select group_concat(name) from pragma_database_list) || (select user_version from pragma_user_version)";
    sqlx::query(query).fetch_one(database).await.expect("a state").get(0)
}

fn changed_nothing(runtime: &Runtime, database: &mut SqliteConnection, pieces: &[StatementPiece<'_>]) -> &'static str {
    let statement: String =
        pieces.iter().map(|piece| if let StatementPiece::Text(text) = piece { text } else { "?" }).collect();
    runtime.block_on(async {
        let before = state(database).await;
        let ran = async {
            let mut query = sqlx::query(AssertSqlSafe(statement.clone()));
            for _ in pieces.iter().filter(|piece| matches!(piece, StatementPiece::Argument(_))) {
                query = query.bind("'; drop table t");
            }
            query.fetch_optional(&mut *database).await.is_ok()
        };
        let ran = tokio::time::timeout(STATEMENT, ran).await;
        if ran.is_err() {
            // The old statement may still run on its connection; a new database replaces it.
            *database = self::database().await;
            return "takes long";
        }
        assert_eq!(before, state(database).await, "{statement:?} has changed something");
        assert!(database.ping().await.is_ok());
        if ran == Ok(true) { "runs" } else { "fails" }
    })
}
