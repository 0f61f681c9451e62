//! Servers of databases that mean harm: what they send ends a confined process at most.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use arenad::domain::ids::ServiceName;

use crate::subject::Stores;
use arenad::domain::site::{Database, DatabaseAccess, DatabaseEngine, Secret};
use arenad::engine::docker::DockerEngine;
use arenad::launch::Incarnation;
use arenad::probes::Session;
use sqlx::{ConnectOptions, Executor};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// What this process may take of memory for all that is sent to it, in bytes.
const GROWTH_MAX: u64 = 512 << 20;

/// How long an attack may go on.
const PATIENCE: Duration = Duration::from_secs(60);

/// Signs anybody in at PostgreSQL.
const SIGNED_IN: &[u8] = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";

/// A greeting of MySQL's that asks for a native password.
fn greeting() -> Vec<u8> {
    let mut body = vec![10];
    body.extend(b"8.0.0\0");
    body.extend([1, 0, 0, 0]);
    body.extend(b"12345678\0");
    // Protocol 4.1, plugins, secure connection, transactions, and the rest of the greeting.
    body.extend([0x08, 0xa2, 33, 2, 0, 0x08, 0x00, 21]);
    body.extend([0; 10]);
    body.extend(b"123456789012\0mysql_native_password\0");
    packet(0, &body)
}

fn packet(number: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).expect("short").to_le_bytes();
    [&length[..3], &[number], body].concat()
}

/// What a hostile server does with its one client.
#[derive(Clone, Copy, Debug)]
enum Attack {
    /// An authentication request of four bytes, which is too short for its kind.
    ShortRequest,
    /// Rows without end.
    Rows,
    /// A message of two gigabytes.
    LongMessage,
    /// Packets that belong together without end.
    JoinedPackets,
    /// Something else than the protocol.
    Noise,
    /// It says nothing.
    Silence,
    /// It hangs up.
    Nothing,
}

async fn attack(mut client: TcpStream, attack: Attack) -> std::io::Result<()> {
    let mut heard = [0; 4096];
    let much = vec![b'x'; 1 << 20];
    match attack {
        Attack::ShortRequest => {
            let _ = client.read(&mut heard).await?;
            client.write_all(b"R\0\0\0\0").await?;
        }
        Attack::Rows | Attack::LongMessage => {
            let _ = client.read(&mut heard).await?;
            client.write_all(SIGNED_IN).await?;
            let _ = client.read(&mut heard).await?;
            // One column of texts.
            client.write_all(b"T\0\0\0\x1a\0\x01c\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0").await?;
            if matches!(attack, Attack::LongMessage) {
                client.write_all(b"D\x7f\xff\xff\xff\0\x01\x7f\xff\xff\xf5").await?;
                loop {
                    client.write_all(&much).await?;
                }
            }
            let rows = b"D\0\0\0\x0b\0\x01\0\0\0\x01x".repeat(10_000);
            loop {
                client.write_all(&rows).await?;
            }
        }
        Attack::JoinedPackets => {
            client.write_all(&greeting()).await?;
            let _ = client.read(&mut heard).await?;
            let body = vec![b'x'; 0x00ff_ffff];
            for number in 2_u8.. {
                client.write_all(&packet(number, &body)).await?;
            }
        }
        Attack::Noise => loop {
            client.write_all(&much).await?;
        },
        Attack::Silence => {}
        Attack::Nothing => return Ok(()),
    }
    // Whoever is still there waits for more.
    let _ = client.read_to_end(&mut Vec::new()).await;
    Ok(())
}

fn memory() -> u64 {
    let status = procfs::process::Process::myself().and_then(|this| this.status()).expect("a status");
    status.vmhwm.expect("a peak") * 1024
}

/// The confined processes of this one.
fn workers() -> Vec<procfs::process::Status> {
    let ours = i32::try_from(std::process::id()).expect("a pid");
    let all = procfs::process::all_processes().expect("processes").flatten();
    let is_ours = |status: &procfs::process::Status| status.ppid == ours && status.name.contains("arenad");
    all.filter_map(|process| process.status().ok()).filter(is_ours).collect()
}

/// A server that attacks, and where it is.
async fn serve(engine: DatabaseEngine, attacked: Attack) -> (JoinHandle<()>, Database, Incarnation) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let hostile = tokio::spawn(async move {
        loop {
            let (client, _) = listener.accept().await.expect("a client");
            // It ends when its client does.
            let _ = attack(client, attacked).await;
        }
    });
    let service = ServiceName::parse("web").expect("valid");
    let database = Database {
        engine,
        service: service.clone(),
        port,
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
    (hostile, database, incarnation)
}

async fn try_on(engine: DatabaseEngine, attacked: Attack) {
    let (hostile, database, incarnation) = serve(engine, attacked).await;
    let docker = DockerEngine::new("unix:///nowhere");
    let before = memory();
    let asked = async {
        let mut session = Session::open(&docker, &database, &incarnation, PATIENCE).await?;
        session.column("select 1").await
    };
    let answer = tokio::time::timeout(PATIENCE, asked).await.unwrap_or_else(|_| panic!("{attacked:?} goes on"));
    let error = answer.expect_err("no answer").to_string();
    println!("{engine:?} {attacked:?}: {error}");
    let growth = memory().saturating_sub(before);
    assert!(growth < GROWTH_MAX, "{attacked:?} took {} MiB here", growth >> 20);
    hostile.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_servers_end_a_confined_process_at_most() {
    arenad::confined::set_program(env!("CARGO_BIN_EXE_arenad").into());
    for attacked in [Attack::ShortRequest, Attack::Rows, Attack::LongMessage, Attack::Noise, Attack::Nothing] {
        try_on(DatabaseEngine::Postgres, attacked).await;
    }
    for attacked in [Attack::JoinedPackets, Attack::Noise, Attack::Silence, Attack::Nothing] {
        try_on(DatabaseEngine::Mysql, attacked).await;
    }
    let deadline = Instant::now() + PATIENCE;
    while !workers().is_empty() {
        assert!(Instant::now() < deadline, "{} confined processes are left", workers().len());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_listens_to_a_server_has_given_everything_up() {
    arenad::confined::set_program(env!("CARGO_BIN_EXE_arenad").into());
    let (hostile, database, incarnation) = serve(DatabaseEngine::Postgres, Attack::Silence).await;
    let asked = tokio::spawn(async move {
        let docker = DockerEngine::new("unix:///nowhere");
        Session::open(&docker, &database, &incarnation, PATIENCE).await.map(drop)
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
    hostile.abort();
}

/// The user of confined processes, as `confined/child.rs` has it.
const WORKER_USER: u32 = 1_893_000_002;

/// The confined processes of this one that take no other system calls any more than those they need, with what each has for the
/// root of the file system.
fn locked_workers() -> Vec<(procfs::process::Status, PathBuf)> {
    let locked = workers().into_iter().filter(|status| status.seccomp == Some(2));
    let rooted = locked.filter_map(|status| {
        let root = std::fs::read_link(format!("/proc/{}/root", status.pid)).ok()?;
        Some((status, root))
    });
    rooted.collect()
}

/// A file that takes hours to read, for a digest that nobody waits for.
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
    assert!(begun.elapsed() < PATIENCE, "somebody goes on reading {name}");
}

#[test]
fn files_without_end_are_given_up_with_whoever_asked() {
    given_up("{ files: { kind: directory, path: /data } }", "huge");
    given_up("{ notes: { kind: sqlite, path: /data/notes.db } }", "notes.db");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_reads_a_file_sees_nothing_else() {
    let stores = Stores::declared("{ notes: { kind: sqlite, path: /data/notes.db } }");
    let path = stores.folder().join("notes.db");
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&path).create_if_missing(true);
    let mut connection = options.connect().await.expect("a database");
    // Enough rows to be seen at work.
    let rows = "with recursive n (i) as (select 1 union all select i + 1 from n where i < 300000) \
                insert into notes select i, hex(randomblob(20)) from n";
    for statement in ["pragma journal_mode = wal", "create table notes (id integer primary key, text)", rows] {
        connection.execute(statement).await.expect("it works");
    }
    let taken = tokio::spawn(async move {
        // In the file's log as well, as long as somebody has it open.
        let taken = stores.take().await;
        drop((connection, stores));
        taken
    });
    let deadline = Instant::now() + PATIENCE;
    let (status, root) = loop {
        if let Some(found) = locked_workers().into_iter().find(|(_, root)| root != Path::new("/")) {
            break found;
        }
        assert!(Instant::now() < deadline && !taken.is_finished(), "nobody was seen to read the file");
        tokio::time::sleep(Duration::from_millis(1)).await;
    };
    assert_eq!([status.ruid, status.euid, status.suid, status.fuid], [WORKER_USER; 4]);
    assert_eq!(status.capeff, 0);
    assert!(root.starts_with(std::env::temp_dir()), "it sees {}", root.display());
    let taken = taken.await.expect("it ends").expect("a digest");
    assert_eq!(taken.digest.stores["notes"].tables["notes"].count, 300_000);
    assert!(!root.exists(), "its copy is left");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_are_no_databases_are_errors() {
    let stores = Stores::declared("{ notes: { kind: sqlite, path: /data/notes.db } }");
    let mut noise = b"SQLite format 3\0".to_vec();
    noise.extend((0..1 << 16).map(|byte: u32| (byte.wrapping_mul(2_654_435_761) >> 24) as u8));
    std::fs::write(stores.folder().join("notes.db"), noise).expect("a file");
    let error = stores.take().await.expect_err("no database");
    let said = arenad::probes::describe(&error);
    assert!(said.contains("SQLite says: "), "{said}");
}
