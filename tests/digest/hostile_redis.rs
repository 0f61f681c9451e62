//! Hostile key-value servers: their data can end only a confined process, and one process asks an honest server on one
//! connection.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use arenad_digest::{self as digest, Known, StoreConnections};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::subject::{Stores, differences};
use crate::alone::is_alone;

/// The limit on the growth of this process's memory, in bytes, whatever a server sends.
const GROWTH_MAX: u64 = 512 << 20;

/// How long an attack may go on.
const PATIENCE: Duration = Duration::from_secs(90);

/// The user of confined processes, as `confined/child.rs` has it.
const WORKER_USER: u32 = 1_893_000_002;

/// The answer of a hostile server.
#[derive(Clone, Copy, Debug)]
enum RedisAttack {
    /// A first line without end.
    EndlessLine,
    /// A text of two gigabytes.
    LongText,
    /// A text of the greatest length that fits into a number.
    LongestText,
    /// An array of two thousand million elements.
    LongArray,
    /// Arrays within arrays without end.
    NestedArrays,
    /// A page with as many keys as fit.
    ManyKeys,
    /// Endless pages with ever new keys, each with large values.
    EndlessScan,
    /// Endless pages without keys.
    EmptyPages,
    /// A text that is shorter than announced, on a connection that stays open.
    HalfText,
    /// Bytes that are not the protocol.
    Noise,
    /// The server sends nothing and keeps the connection open.
    Silence,
    /// The server closes the connection.
    Nothing,
}

/// Reads a command, which the client ends with a word; `None` if the client has gone.
async fn command(client: &mut BufReader<TcpStream>) -> Option<Vec<String>> {
    let mut line = String::new();
    client.read_line(&mut line).await.ok().filter(|read| *read > 0)?;
    let count: usize = line.strip_prefix('*')?.trim_end().parse().ok()?;
    let mut words = Vec::new();
    for _ in 0..count {
        let mut length = String::new();
        client.read_line(&mut length).await.ok()?;
        let mut word = vec![0; length.strip_prefix('$')?.trim_end().parse::<usize>().ok()? + 2];
        client.read_exact(&mut word).await.ok()?;
        word.truncate(word.len() - 2);
        words.push(String::from_utf8(word).ok()?);
    }
    Some(words)
}

/// A line of a page with the key of this number.
fn key(number: usize) -> String {
    // In hexadecimal, the code of a digit ends with the digit.
    let name: String = format!("{number:07}").chars().flat_map(|digit| ['3', digit]).collect();
    name + " string a -1\n"
}

fn text(said: &str) -> Vec<u8> {
    format!("${}\r\n{said}\r\n", said.len()).into_bytes()
}

async fn attack(client: TcpStream, attack: RedisAttack) -> Option<()> {
    let mut client = BufReader::new(client);
    let endless = |piece: &[u8]| Some(piece.repeat((1 << 20) / piece.len()));
    let (mut number, long) = (0, "a".repeat(100_000));
    while let Some(words) = command(&mut client).await {
        number += 1;
        let keyspace = words[0] == "INFO";
        let (once, forever) = match attack {
            RedisAttack::EndlessLine => (Vec::new(), endless(b"x")),
            RedisAttack::LongText => (b"$2147483647\r\n".to_vec(), endless(b"x")),
            RedisAttack::LongestText => (b"$18446744073709551615\r\n".to_vec(), endless(b"x")),
            RedisAttack::LongArray => (b"*2147483647\r\n".to_vec(), endless(b"$1\r\nx\r\n")),
            RedisAttack::NestedArrays => (Vec::new(), endless(b"*1\r\n")),
            RedisAttack::Noise => (Vec::new(), endless(&[0, 255, b'$', b'\n', 7, b'*', b'\r', b'-'])),
            _ if keyspace => (text("# Keyspace\r\ndb3:keys=1\r\n"), None),
            RedisAttack::ManyKeys => (text(&format!("ok mark 0\n{}", "61 a\n".repeat(3_300_000))), None),
            RedisAttack::EndlessScan => {
                let keys: String = (0..100).map(|of_page| key(number * 100 + of_page).replace('a', &long)).collect();
                (text(&format!("ok mark {number}\n{keys}")), None)
            }
            RedisAttack::EmptyPages => (text(&format!("ok {number} {number}")), None),
            RedisAttack::HalfText => (b"$100\r\nhalf".to_vec(), None),
            RedisAttack::Silence => (Vec::new(), None),
            RedisAttack::Nothing => return None,
        };
        client.write_all(&once).await.ok()?;
        while let Some(piece) = &forever {
            client.write_all(piece).await.ok()?;
        }
    }
    None
}

/// Starts a server that runs `serve` for every client. Returns its task, its address, and the number of its clients.
async fn server<F>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> (JoinHandle<()>, SocketAddr, Arc<AtomicUsize>)
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let clients = Arc::new(AtomicUsize::new(0));
    let counted = clients.clone();
    let serving = tokio::spawn(async move {
        loop {
            let (client, _) = listener.accept().await.expect("a client");
            counted.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(serve(client));
        }
    });
    (serving, address, clients)
}

fn declared(address: SocketAddr, timeout: &str) -> Stores {
    let port = address.port();
    Stores::declared(&format!("{{ queue: {{ kind: redis, path: /data, port: {port}, timeout: {timeout} }} }}"))
}

fn memory() -> u64 {
    let status = procfs::process::Process::myself().and_then(|this| this.status()).expect("a status");
    status.vmhwm.expect("a peak") * 1024
}

/// The confined processes of this process that connect to key-value servers.
fn workers() -> Vec<procfs::process::Process> {
    let ours = i32::try_from(std::process::id()).expect("a pid");
    let all = procfs::process::all_processes().expect("processes").flatten();
    let is_ours = |process: &procfs::process::Process| {
        process.stat().is_ok_and(|stat| stat.ppid == ours)
            && process.cmdline().is_ok_and(|words| words.iter().any(|word| word == "confined-keys"))
    };
    all.filter(is_ours).collect()
}

/// The limits of a process on mapped memory and on the size of files, in bytes.
fn limits(process: &procfs::process::Process) -> (procfs::process::LimitValue, procfs::process::LimitValue) {
    let limits = process.limits().expect("limits");
    (limits.max_address_space.hard_limit, limits.max_file_size.hard_limit)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_key_value_servers_end_a_confined_process_at_most() {
    if !is_alone(hostile_key_value_servers_end_a_confined_process_at_most) {
        return;
    }
    let before = memory();
    for (attacked, expected) in [
        (RedisAttack::EndlessLine, "expected a text"),
        (RedisAttack::LongText, "expected a text"),
        (RedisAttack::LongestText, "expected a text"),
        (RedisAttack::LongArray, "expected a text"),
        (RedisAttack::NestedArrays, "expected a text"),
        (RedisAttack::ManyKeys, "more than 100000 keys"),
        (RedisAttack::EndlessScan, "more than 192 MiB"),
        (RedisAttack::EmptyPages, "no end within 2s"),
        (RedisAttack::HalfText, "no end within 2s"),
        (RedisAttack::Noise, "expected a text"),
        (RedisAttack::Silence, "no end within 2s"),
        (RedisAttack::Nothing, "it hung up"),
    ] {
        let (serving, address, _) = server(move |client| async move {
            attack(client, attacked).await;
        })
        .await;
        let stores = declared(address, if expected.ends_with("2s") { "2s" } else { "60s" });
        let taken = tokio::time::timeout(PATIENCE, stores.take()).await;
        let error = taken.unwrap_or_else(|_| panic!("{attacked:?} goes on")).expect_err("no digest").to_string();
        println!("{attacked:?}: {error}");
        assert!(error.contains(expected), "{attacked:?}: {error}");
        let growth = memory().saturating_sub(before);
        assert!(growth < GROWTH_MAX, "{attacked:?} took {} MiB here", growth >> 20);
        serving.abort();
    }
    let deadline = Instant::now() + PATIENCE;
    while !workers().is_empty() {
        assert!(Instant::now() < deadline, "{} confined processes are left", workers().len());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_listens_to_a_key_value_server_has_given_everything_up() {
    if !is_alone(whoever_listens_to_a_key_value_server_has_given_everything_up) {
        return;
    }
    let (serving, address, _) = server(|client| async move {
        attack(client, RedisAttack::Silence).await;
    })
    .await;
    let stores = declared(address, "60s");
    let asked = tokio::spawn(async move { stores.take().await.map(drop) });
    let deadline = Instant::now() + PATIENCE;
    let (status, limits) = loop {
        let locked = workers().into_iter().find_map(|worker| {
            let status = worker.status().ok().filter(|status| status.seccomp == Some(2))?;
            Some((status, limits(&worker)))
        });
        if let Some(found) = locked {
            break found;
        }
        assert!(Instant::now() < deadline, "no process has locked itself in");
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    assert_eq!([status.ruid, status.euid, status.suid, status.fuid], [WORKER_USER; 4]);
    assert_eq!([status.rgid, status.egid, status.sgid, status.fgid], [WORKER_USER; 4]);
    assert_eq!(status.groups, Vec::<u32>::new());
    assert_eq!(status.nonewprivs, Some(1));
    assert_eq!((status.capeff, status.capprm, status.capinh), (0, 0, 0));
    assert_eq!(format!("{limits:?}"), format!("(Value({}), Value(0))", 768 << 20));
    // Kills the process as if the server's data had. It is not restarted.
    let pid = rustix::process::Pid::from_raw(status.pid).expect("a pid");
    rustix::process::kill_process(pid, rustix::process::Signal::ABORT).expect("it is ours");
    let error = asked.await.expect("no panic").expect_err("no digest").to_string();
    assert!(error.contains("the confined process ended (signal: 6 (SIGABRT)"), "{error}");
    serving.abort();
}

/// Serves as an honest server that stores the values it is sent.
async fn honest(client: TcpStream, keys: usize) -> Option<()> {
    let mut client = BufReader::new(client);
    while let Some(words) = command(&mut client).await {
        let said = match (words[0].as_str(), words.last()?.as_str()) {
            ("INFO", _) => "# Keyspace\r\ndb3:keys=1\r\n".to_owned(),
            (_, "mark") => "ok mark 0".to_owned(),
            (_, cursor) => {
                let from: usize = cursor.parse().ok()?;
                let to = (from + 1000).min(keys);
                let next = if to == keys { 0 } else { to };
                let lines: String = (from..to).map(key).collect();
                format!("ok mark {next}\n{lines}")
            }
        };
        client.write_all(&text(&said)).await.ok()?;
    }
    None
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kept_lines_take_one_process_and_one_connection() {
    if !is_alone(kept_lines_take_one_process_and_one_connection) {
        return;
    }
    let (serving, address, clients) = server(|client| async move {
        honest(client, 4500).await;
    })
    .await;
    let stores = declared(address, "20s");
    let lines = StoreConnections::kept();
    let first = stores.on(&lines, async |subject| digest::take(&subject, Known::default()).await).await;
    let first = first.expect("a digest");
    assert_eq!(first.digest.stores["queue"].keys.len(), 9000, "in two databases, in five pages each");
    let of_this = |pid: &i32| std::path::Path::new(&format!("/proc/{pid}")).exists();
    let pids: Vec<i32> = workers().iter().map(|worker| worker.pid).collect();
    for _ in 0..10 {
        let begun = Instant::now();
        let moved = stores.on(&lines, async |subject| digest::moved(&subject, &first).await).await;
        assert_eq!(moved.expect("a mark"), Vec::<String>::new());
        println!("a mark on a kept line: {:?}", begun.elapsed());
    }
    let second = stores.on(&lines, async |subject| digest::take(&subject, Known::default()).await).await;
    assert_eq!(differences(&first, &second.expect("a digest")), Vec::<String>::new());
    assert_eq!(clients.load(Ordering::Relaxed), 1, "one connection carries everything");
    assert!(pids.iter().any(of_this), "the process of the first look is still there");
    lines.close().await;
    serving.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_that_died_is_replaced() {
    let (serving, address, clients) = server(|client| async move {
        // Each connection serves one comparison only.
        let _ = tokio::time::timeout(Duration::from_millis(300), honest(client, 10)).await;
    })
    .await;
    let stores = declared(address, "20s");
    let lines = StoreConnections::kept();
    for looks in 1..=2 {
        let taken = stores.on(&lines, async |subject| digest::take(&subject, Known::default()).await).await;
        assert_eq!(taken.expect("a digest").digest.stores["queue"].keys.len(), 20);
        assert_eq!(clients.load(Ordering::Relaxed), looks);
        tokio::time::sleep(Duration::from_millis(400)).await;
    }
    serving.abort();
}
