//! Hostile database servers: their data can end only a confined process.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use arenad_model::ids::ServiceName;

use super::subject::Stores;
use crate::alone::is_alone;
use crate::hostile_servers::{Hostile, Move, ServerAttack, mysql, postgres};
use arenad_engine::docker::DockerEngine;
use arenad_launch::Incarnation;
use arenad_model::site::{Database, DatabaseAccess, DatabaseEngine, Secret};
use arenad_probes::SqlSession;
use sqlx::{ConnectOptions, Executor};

/// The limit on the growth of this process's memory, in bytes, whatever a server sends.
const GROWTH_MAX: u64 = 512 << 20;

/// The time limit that the client of a server sets.
const LIMIT: Duration = Duration::from_secs(3);

/// The time limit for any one operation.
const PATIENCE: Duration = Duration::from_secs(60);

fn memory() -> u64 {
    let status = procfs::process::Process::myself().and_then(|this| this.status()).expect("a status");
    status.vmhwm.expect("a peak") * 1024
}

/// The confined processes of this process that connect to servers or read files. Idle ones have received nothing.
fn workers() -> Vec<procfs::process::Status> {
    let ours = i32::try_from(std::process::id()).expect("a pid");
    let all = procfs::process::all_processes().expect("processes").flatten();
    let is_ours = |process: &procfs::process::Process| {
        let commands = ["confined-sql", "confined-rows"];
        process.stat().is_ok_and(|stat| stat.ppid == ours)
            && process.cmdline().is_ok_and(|words| words.iter().any(|word| commands.contains(&word.as_str())))
    };
    all.filter(is_ours).filter_map(|process| process.status().ok()).collect()
}

/// The declared database of a server, and its address.
fn database(engine: DatabaseEngine, server: &Hostile) -> (Database, Incarnation) {
    let service = ServiceName::parse("web").expect("valid");
    let database = Database {
        engine,
        service: service.clone(),
        port: server.address.port(),
        user: "reader".to_owned(),
        password: Secret::new("password"),
        database: "shop".to_owned(),
        access: DatabaseAccess::Tcp,
    };
    let incarnation = Incarnation {
        generation: 1,
        made: 1,
        containers: BTreeMap::new(),
        addresses: BTreeMap::from([(service, Ipv4Addr::LOCALHOST.into())]),
        started_at: 0,
        pristine: None,
    };
    (database, incarnation)
}

async fn try_on(engine: DatabaseEngine, (name, script): ServerAttack) {
    let (database, incarnation) = database(engine, &Hostile::start(script));
    let docker = DockerEngine::new("unix:///nowhere");
    let before = memory();
    let asked = async {
        let mut session = SqlSession::open(&docker, &database, &incarnation, LIMIT).await?;
        session.column("select 1").await
    };
    // The client has its own limit, which is the timeout of the probe or of the store.
    match tokio::time::timeout(LIMIT, asked).await {
        Ok(answer) => println!("{engine:?}, {name}: {}", answer.expect_err(name)),
        Err(_) => println!("{engine:?}, {name}: given up"),
    }
    let growth = memory().saturating_sub(before);
    assert!(growth < GROWTH_MAX, "{name}: it took {} MiB here", growth >> 20);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_servers_end_a_confined_process_at_most() {
    if !is_alone(hostile_servers_end_a_confined_process_at_most) {
        return;
    }
    arenad_confined::set_program(env!("CARGO_BIN_EXE_arenad").into());
    // Type information is sent only for prepared statements, which locators use (`tests/hostile/databases.rs`).
    for attack in postgres::attacks().into_iter().filter(|(name, _)| !name.contains("domains")) {
        try_on(DatabaseEngine::Postgres, attack).await;
    }
    for attack in mysql::attacks() {
        try_on(DatabaseEngine::Mysql, attack).await;
    }
    let deadline = Instant::now() + PATIENCE;
    while workers().iter().any(|status| status.seccomp == Some(2)) {
        assert!(Instant::now() < deadline, "{} confined processes are left", workers().len());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_listens_to_a_server_has_given_everything_up() {
    if !is_alone(whoever_listens_to_a_server_has_given_everything_up) {
        return;
    }
    arenad_confined::set_program(env!("CARGO_BIN_EXE_arenad").into());
    let (database, incarnation) = database(DatabaseEngine::Postgres, &Hostile::start(vec![Move::Silence]));
    let asked = tokio::spawn(async move {
        let docker = DockerEngine::new("unix:///nowhere");
        SqlSession::open(&docker, &database, &incarnation, PATIENCE).await.map(drop)
    });
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        if let Some((status, _)) = locked_workers().into_iter().find(|(_, root)| root == Path::new("/")) {
            break status;
        }
        assert!(Instant::now() < deadline, "no process has locked itself in");
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    assert_eq!([status.ruid, status.euid, status.suid, status.fuid], [WORKER_USER; 4]);
    assert_eq!([status.rgid, status.egid, status.sgid, status.fgid], [WORKER_USER; 4]);
    assert_eq!(status.groups, Vec::<u32>::new());
    assert_eq!(status.nonewprivs, Some(1));
    assert_eq!((status.capeff, status.capprm, status.capinh), (0, 0, 0));
    asked.abort();
}

/// The user of confined processes, as `confined/child.rs` has it.
const WORKER_USER: u32 = 1_893_000_002;

/// The confined processes of this process that may use only the system calls that they need, each with the root of its
/// file system.
fn locked_workers() -> Vec<(procfs::process::Status, PathBuf)> {
    let locked = workers().into_iter().filter(|status| status.seccomp == Some(2));
    let rooted = locked.filter_map(|status| {
        let root = std::fs::read_link(format!("/proc/{}/root", status.pid)).ok()?;
        Some((status, root))
    });
    rooted.collect()
}

/// Checks that a digest is abandoned, although its file takes hours to read, once its future is dropped.
fn given_up(stores: &'static str, name: &'static str) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let stores = Stores::declared(stores);
        let file = std::fs::File::create(stores.folder().join(name)).expect("a file");
        file.set_len(8 << 40).expect("a hole of eight terabytes");
        tokio::time::timeout(Duration::from_millis(300), stores.take()).await.expect_err("it takes hours");
    });
    let begun = Instant::now();
    runtime.shutdown_timeout(PATIENCE);
    assert!(begun.elapsed() < PATIENCE, "a process still reads {name}");
}

#[test]
fn files_without_end_are_given_up_with_whoever_asked() {
    given_up("{ files: { kind: directory, path: /data } }", "huge");
    given_up("{ notes: { kind: sqlite, path: /data/notes.db } }", "notes.db");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_reads_a_file_sees_nothing_else() {
    if !is_alone(whoever_reads_a_file_sees_nothing_else) {
        return;
    }
    let stores = Stores::declared("{ notes: { kind: sqlite, path: /data/notes.db } }");
    let path = stores.folder().join("notes.db");
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&path).create_if_missing(true);
    let mut connection = options.connect().await.expect("a database");
    // The table has enough rows for the reading to be observed.
    let rows = "with recursive n (i) as (select 1 union all select i + 1 from n where i < 300000) \
                insert into notes select i, hex(randomblob(20)) from n";
    for statement in ["pragma journal_mode = wal", "create table notes (id integer primary key, text)", rows] {
        connection.execute(statement).await.expect("it works");
    }
    let taken = tokio::spawn(async move {
        // The rows are also in the write-ahead log as long as a connection is open.
        let taken = stores.take().await;
        drop((connection, stores));
        taken
    });
    let deadline = Instant::now() + PATIENCE;
    let (status, root) = loop {
        if let Some(found) = locked_workers().into_iter().find(|(_, root)| root != Path::new("/")) {
            break found;
        }
        assert!(Instant::now() < deadline && !taken.is_finished(), "no process was seen reading the file");
        tokio::time::sleep(Duration::from_millis(1)).await;
    };
    assert_eq!([status.ruid, status.euid, status.suid, status.fuid], [WORKER_USER; 4]);
    assert_eq!(status.capeff, 0);
    assert!(root.starts_with(std::env::temp_dir()), "it sees {}", root.display());
    let taken = taken.await.expect("it ends").expect("a digest");
    assert_eq!(taken.digest.stores["notes"].tables["notes"].count, 300_000);
    assert!(!root.exists(), "its copy is left");
}

/// A user id that owns no file here.
const NOBODY: &str = "65534";

#[test]
fn without_root_whoever_reads_a_file_sees_nothing_else_either() {
    let as_nobody = || {
        let mut command = std::process::Command::new("setpriv");
        command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]);
        command
    };
    let namespaces = as_nobody().args(["unshare", "--user", "--map-root-user", "chroot", "/", "true"]).output();
    if !namespaces.expect("setpriv runs").status.success() {
        println!("users of this host may make no namespaces, so there is nothing to see");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (_line, theirs) = std::os::unix::net::UnixStream::pair().expect("a line");
    let mut reader = as_nobody()
        .args([env!("CARGO_BIN_EXE_arenad"), arenad_digest::sqlite_worker::COMMAND])
        .stdin(std::fs::File::open(folder.path()).expect("a folder"))
        .stdout(std::os::fd::OwnedFd::from(theirs))
        .spawn()
        .expect("it starts");
    let pid = i32::try_from(reader.id()).expect("a pid");
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        assert!(Instant::now() < deadline && reader.try_wait().expect("a child").is_none(), "it sees all files");
        let root = std::fs::read_link(format!("/proc/{pid}/root")).unwrap_or_default();
        let status = procfs::process::Process::new(pid).and_then(|process| process.status());
        match status {
            Ok(status) if root == folder.path() && status.nonewprivs == Some(1) => break status,
            _ => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    assert_eq!((status.capeff, status.capprm, status.capinh), (0, 0, 0));
    reader.kill().and_then(|()| reader.wait()).expect("it ends");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_are_no_databases_are_errors() {
    let stores = Stores::declared("{ notes: { kind: sqlite, path: /data/notes.db } }");
    let mut noise = b"SQLite format 3\0".to_vec();
    noise.extend((0..1 << 16).map(|byte: u32| (byte.wrapping_mul(2_654_435_761) >> 24) as u8));
    std::fs::write(stores.folder().join("notes.db"), noise).expect("a file");
    let error = stores.take().await.expect_err("no database");
    let said = arenad_model::error::describe(&error);
    assert!(said.contains("SQLite says: "), "{said}");
}
