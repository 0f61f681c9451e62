//! The guard of SQL locators with PostgreSQL and MariaDB. Accepted statements are sent to both, with accounts that have
//! all rights and in transactions that may write, so that only the guard protects the data. No statement may write,
//! lock, sleep or read a file.
//!
//! PostgreSQL's functions that do more than read raise an error instead (`servers/instrument.sql`); writes show in the
//! transaction's number. MariaDB counts its actions: commands, waits, files, locks.

use std::process::Command;
use std::time::{Duration, Instant};

use arenad_locators::sql::guard::{StatementPiece, guard};
use arenad_model::locator::Arguments;
use arenad_model::site::DatabaseEngine;
use futures_util::{Stream, TryStreamExt};
use sqlx::mysql::{MySqlConnectOptions, MySqlConnection};
use sqlx::postgres::{PgConnectOptions, PgConnection, PgSslMode};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Row, raw_sql};
use tokio::runtime::Runtime;

use crate::target::{Around, FuzzTarget, InputCheck};

pub const TARGET: FuzzTarget = FuzzTarget {
    words: &[
        "select ",
        "with x as (",
        "table t",
        "values (1)",
        "show ",
        "explain ",
        "explain analyze ",
        "explain (analyze) ",
        "explain format=json ",
        "describe t",
        "analyze ",
        "create table u as select 1",
        "create materialized view v as select 1",
        "create or replace table t2 select 1",
        "declare c cursor for ",
        "execute p",
        "replace t values (9, 'z')",
        "merge into t using t as u on true when matched then delete",
        "insert t values (9)",
        "delete from t",
        "update t set b = ''",
        "select * from t for update",
        "for no key update",
        "for share",
        "lock in share mode",
        "into @x",
        "into outfile '/tmp/x'",
        "procedure analyse()",
        " from t ",
        " from s ",
        " from pg_file_settings",
        " from pg_hba_file_rules",
        " from pg_ident_file_mappings",
        " from pg_largeobject",
        " from pg_ls_dir('.')",
        " from information_schema.tables",
        " tablesample system (1)",
        " union ",
        " returning *",
        "; ",
        "-- ",
        "--",
        "#",
        "/*",
        "*/",
        "/*!",
        "/*M!",
        "/*+",
        "'",
        "''",
        "\"",
        "`",
        "\\",
        "\\'",
        "$$",
        "$a$",
        "E'",
        "U&'",
        "N'",
        "_utf8'",
        "x'00'",
        "{sku}",
        "@a := 1",
        "@@version",
        "\n",
        "\r\n",
        "\t",
        "sleep(1)",
        "`sleep`(1)",
        "sleep (1)",
        "pg_sleep(1)",
        "pg_catalog.pg_sleep(1)",
        "\"pg_sleep\"(1)",
        "benchmark(9, 1)",
        "get_lock('a', 0)",
        "is_used_lock('a')",
        "release_lock('a')",
        "load_file('/etc/passwd')",
        "pg_read_file('/etc/passwd')",
        "pg_advisory_lock(1)",
        "nextval('s')",
        "nextval(s)",
        "next value for s",
        "setval(s, 9)",
        "setval('s', 9)",
        "lastval(s)",
        "last_insert_id(9)",
        "set_config('a.b', 'c', false)",
        "lo_create(0)",
        "currtid2('t', '(0,1)')",
        "brin_summarize_new_values('t')",
        "gin_clean_pending_list('t')",
        "query_to_xml('select nextval(''s'')', true, true, '')",
        "ts_stat('select nextval(''s'')')",
        "pg_nextoid('pg_class', 'oid', 'pg_class_oid_index')",
        "pg_show_all_file_settings()",
        "json_table('[]', '$' columns (a int path '$')) j",
        "::regclass",
        "(",
        ")",
        ",",
        ".",
        "0x1f",
        "1e5",
    ],
    around,
    ..FuzzTarget::new("servers", open)
};

/// The variable with the address of the servers.
const ADDRESS: &str = "ARENAD_FUZZ_SERVERS";

/// The image of the servers.
const IMAGE: &str = "arenad-test-servers";

/// The time limit for the servers to start.
const START: Duration = Duration::from_secs(60);

/// The time limit of a statement in milliseconds: its effects are tested, not its duration.
const STATEMENT_MS: u32 = 100;

/// The argument that statements bind.
const ARGUMENT: &str = "'; drop table t";

fn docker(args: &[&str]) -> String {
    let output = Command::new("docker").args(args).output().expect("docker runs");
    assert!(output.status.success(), "docker {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A container; it is removed when the value is dropped.
struct ServerContainer(String);

impl Drop for ServerContainer {
    fn drop(&mut self) {
        let _ = Command::new("docker").args(["rm", "--force", "--volumes", &self.0]).output();
    }
}

/// Builds the image if it does not exist, and starts both servers.
fn around() -> Around {
    let root = env!("CARGO_MANIFEST_DIR");
    let dotenv = std::fs::read_to_string(format!("{root}/compose/.env")).unwrap_or_default();
    let base = dotenv.lines().find_map(|line| line.strip_prefix("BASE_IMAGE=")).map(str::to_owned);
    let base = std::env::var("BASE_IMAGE").ok().or(base).unwrap_or_else(|| "debian:bookworm-slim".to_owned());
    let argument = format!("BASE_IMAGE={base}");
    docker(&["build", "--quiet", "--build-arg", &argument, "--tag", IMAGE, &format!("{root}/tests/fuzz/servers")]);
    let container = ServerContainer(docker(&["run", "--detach", "--cap-drop", "ALL", IMAGE]));
    let format = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}";
    let address = docker(&["inspect", "--format", format, &container.0]);
    Around { variables: vec![(ADDRESS, address)], kept: Some(Box::new(container)) }
}

fn open() -> InputCheck {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let host = std::env::var(ADDRESS).expect("the parent process has started the servers");
    let mut postgres = runtime.block_on(within(START, || Postgres::open(&host)));
    let mut mariadb = runtime.block_on(within(START, || MariaDb::open(&host)));
    let arguments = Arguments(vec![("sku".to_owned(), ARGUMENT.to_owned())]);
    Box::new(move |input| {
        let text = String::from_utf8_lossy(input);
        let passes = |dialect| guard(dialect, &text, &arguments).ok().map(|pieces| statement(dialect, &pieces));
        let on_postgres =
            passes(DatabaseEngine::Postgres).map(|statement| tried(&runtime, postgres.try_on(&statement), &statement));
        let on_mariadb =
            passes(DatabaseEngine::Mysql).map(|statement| tried(&runtime, mariadb.try_on(&statement), &statement));
        format!("{on_postgres:?} / {on_mariadb:?}")
    })
}

/// Returns a statement as the client in a container receives it, with its arguments as texts.
fn statement(dialect: DatabaseEngine, pieces: &[StatementPiece<'_>]) -> String {
    let quoted = match dialect {
        DatabaseEngine::Mysql => {
            format!("x'{}'", ARGUMENT.bytes().map(|byte| format!("{byte:02x}")).collect::<String>())
        }
        _ => format!("'{}'", ARGUMENT.replace('\'', "''")),
    };
    pieces.iter().map(|piece| if let StatementPiece::Text(text) = piece { *text } else { quoted.as_str() }).collect()
}

/// Returns the outcome of a statement in a word. Panics if the statement did more than read.
fn tried(
    runtime: &Runtime,
    trial: impl Future<Output = Result<ServerTrial, sqlx::Error>>,
    statement: &str,
) -> &'static str {
    let trial = runtime.block_on(trial).unwrap_or_else(|error| panic!("{statement:?}: {error}"));
    assert!(trial.harm.is_empty(), "{statement:?} has done more than read: {}", trial.harm);
    trial.came
}

/// Reads an answer to its end, because the rest would be taken for the answer to the next statement.
async fn read<R>(mut rows: impl Stream<Item = Result<R, sqlx::Error>> + Unpin) -> Result<(), sqlx::Error> {
    while rows.try_next().await?.is_some() {}
    Ok(())
}

struct ServerTrial {
    came: &'static str,
    harm: String,
}

async fn within<T, F: Future<Output = Result<T, sqlx::Error>>>(limit: Duration, open: impl Fn() -> F) -> T {
    let deadline = Instant::now() + limit;
    loop {
        match open().await {
            Ok(opened) => return opened,
            Err(error) => assert!(Instant::now() < deadline, "the server is not there: {error}"),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

struct Postgres {
    connection: PgConnection,
    before: String,
}

impl Postgres {
    /// Queries the state that a statement might change: the settings of its transaction, the transaction's number if it
    /// has written, and the content of everything else.
    const STATE: &str = "set local statement_timeout = 0; select concat_ws(' ', pg_current_xact_id_if_assigned() is not null, now() = current_setting('test.begun')::timestamptz, \
        (select count(*) from pg_class), (select string_agg(a || b, ',') from t), (select last_value || is_called::text from s), \
        (select count(*) from pg_locks where locktype = 'advisory' or mode not in ('AccessShareLock', 'ExclusiveLock')), \
        (select count(*) from pg_largeobject_metadata), (select count(*) from pg_replication_slots), (select count(*) from pg_settings where source = 'session'))";

    async fn open(host: &str) -> Result<Self, sqlx::Error> {
        let options = PgConnectOptions::new_without_pgpass()
            .host(host)
            .username("sql")
            .database("postgres")
            .ssl_mode(PgSslMode::Disable)
            .disable_statement_logging();
        let mut opened = Self { connection: options.connect().await?, before: String::new() };
        let limits = format!("set lock_timeout = {STATEMENT_MS}; set temp_file_limit = '16MB'");
        raw_sql(AssertSqlSafe(limits)).execute(&mut opened.connection).await?;
        opened.begin().await?;
        opened.before = opened.state().await?;
        Ok(opened)
    }

    async fn begin(&mut self) -> Result<(), sqlx::Error> {
        let begin = format!(
            "rollback; begin; select set_config_of_test('test.begun', now()::text); set local statement_timeout = {STATEMENT_MS}"
        );
        raw_sql(AssertSqlSafe(begin)).execute(&mut self.connection).await.map(drop)
    }

    async fn state(&mut self) -> Result<String, sqlx::Error> {
        raw_sql(Self::STATE).fetch_one(&mut self.connection).await?.try_get_unchecked(0)
    }

    async fn try_on(&mut self, statement: &str) -> Result<ServerTrial, sqlx::Error> {
        self.begin().await?;
        let ran = read(raw_sql(AssertSqlSafe(statement.to_owned())).fetch(&mut self.connection)).await;
        let (came, said) = match &ran {
            Ok(_) => ("runs", String::new()),
            Err(sqlx::Error::Database(error)) => {
                let code = error.code().unwrap_or_default();
                (if code == "57014" { "takes long" } else { "fails" }, error.message().to_owned())
            }
            Err(error) => panic!("{statement:?}: {error}"),
        };
        let mut harm = if said.starts_with("HARM ") { said } else { String::new() };
        if ran.is_err() {
            // The failed transaction can no longer be used; its lasting effects are looked for in the next one.
            self.begin().await?;
        }
        let after = self.state().await?;
        if after != self.before {
            harm += &format!("{} before, {after} now", self.before);
        }
        Ok(ServerTrial { came, harm })
    }
}

struct MariaDb {
    connection: MySqlConnection,
    /// Requests locks that the statement might hold.
    other: MySqlConnection,
    before: Vec<String>,
}

impl MariaDb {
    /// Queries the server's work so far other than reading, and its content. Only waits that a statement requests are
    /// counted, only files that a statement can name, and all commands except those that read.
    const STATE: &str = "set statement max_statement_time = 0 for select (select group_concat(a, b) from t), (select group_concat(next_not_cached_value) from s), \
        (select count(*) from information_schema.tables where table_schema = 'd'), \
        (select sum(count_star) from performance_schema.events_stages_summary_global_by_event_name \
         where event_name like '%/User %' or event_name like '%/Waiting %' or event_name like '%gtid%'), \
        (select sum(count_star) from performance_schema.file_summary_by_event_name \
         where event_name like '%/load%' or event_name like '%/select_to_file'), \
        (select count(*) from performance_schema.metadata_locks where object_type = 'USER LEVEL LOCK' \
         or lock_type not in ('SHARED_READ', 'SHARED_HIGH_PRIO', 'SHARED', 'INTENTION_EXCLUSIVE')), \
        (select group_concat(variable_name, '=', variable_value) from information_schema.session_status \
         where variable_name like 'Com\\_%' and variable_value > 0 and not variable_name like 'Com\\_show%' and variable_name not in \
         ('Com_select', 'Com_begin', 'Com_rollback', 'Com_admin_commands', 'Com_set_option', 'Com_multi'))";

    async fn open(host: &str) -> Result<Self, sqlx::Error> {
        let options =
            MySqlConnectOptions::new().host(host).username("everything").database("d").disable_statement_logging();
        let (mut connection, mut other) = (options.connect().await?, options.connect().await?);
        // The session is that of a locator, except that its transaction may write.
        let set = format!(
            "set session sql_mode = 'NO_ENGINE_SUBSTITUTION', lock_wait_timeout = 1, innodb_lock_wait_timeout = 1, \
             max_statement_time = {}",
            f64::from(STATEMENT_MS) / 1000.0
        );
        raw_sql(AssertSqlSafe(set)).execute(&mut connection).await?;
        raw_sql("set session innodb_lock_wait_timeout = 1").execute(&mut other).await?;
        let mut opened = Self { connection, other, before: Vec::new() };
        opened.before = opened.state().await?;
        Ok(opened)
    }

    async fn state(&mut self) -> Result<Vec<String>, sqlx::Error> {
        let row = raw_sql(Self::STATE).fetch_one(&mut self.connection).await?;
        let value = |index| row.try_get_unchecked::<Option<String>, _>(index).map(Option::unwrap_or_default);
        (0..row.len()).map(value).collect()
    }

    async fn try_on(&mut self, statement: &str) -> Result<ServerTrial, sqlx::Error> {
        raw_sql("begin").execute(&mut self.connection).await?;
        let ran = read(raw_sql(AssertSqlSafe(statement.to_owned())).fetch(&mut self.connection)).await;
        let came = match &ran {
            Ok(_) => "runs",
            Err(sqlx::Error::Database(error)) if error.message().contains("max_statement_time") => "takes long",
            Err(sqlx::Error::Database(_)) => "fails",
            Err(error) => panic!("{statement:?}: {error}"),
        };
        let mut harm = String::new();
        let after = self.state().await?;
        if after != self.before {
            harm = format!("{:?} before, {after:?} now", self.before);
        }
        // Rows that the statement has locked against other connections.
        raw_sql("begin").execute(&mut self.other).await?;
        if raw_sql("select a from t for update nowait").fetch_all(&mut self.other).await.is_err() {
            harm += "rows are locked";
        }
        raw_sql("rollback").execute(&mut self.other).await?;
        raw_sql("rollback").execute(&mut self.connection).await?;
        self.connection.ping().await?;
        Ok(ServerTrial { came, harm })
    }
}
