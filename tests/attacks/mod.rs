//! Attacks by a compromised site, one after the other, on a daemon that runs another site as well. After each attack
//! the daemon has stayed within its memory limit and left no process, and the other site has answered as quickly as
//! before.

#![allow(clippy::unwrap_used)]

mod neighbour;

use std::fs::File;
use std::io::Write;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, mkdirat, openat};
use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};

use self::neighbour::Neighbour;
use crate::hostile_servers::{Hostile, ServerScript, mysql, postgres};
use crate::support::wait::PATIENCE;
use crate::support::world::free_port;
use crate::support::{World, until};

/// The maximum of the daemon's peak memory, in bytes.
const MEMORY_MAX: u64 = 300 << 20;

/// The time limit for the daemon's shutdown, also while an attack is in progress.
const END_MAX: Duration = Duration::from_secs(10);

/// How often an attack is repeated during which the other site was slow.
const ATTEMPTS: usize = 3;

/// The ports of the site's databases.
const POSTGRES: u16 = 5432;
const MYSQL: u16 = 3306;

/// Two sites of which one is the attacker, with databases and a store that an attacker can fill.
fn world(neighbours_port: u16) -> World {
    let world = World::single("attacks");
    world.edit("environment", "variable: SHOPPING }", "record: all }");
    let declared = "    databases:\n      pg: { engine: postgres, port: 5432, user: a, password: b, database: c }\n      \
                    my: { engine: mysql, port: 3306, user: a, password: b, database: c }\n      \
                    lite: { engine: sqlite, path: /srv/state/lite.db }\n    \
                    stores: { notes: { kind: directory, path: /srv/state, timeout: 3s } }\n    \
                    writers:\n      stop: [ { command: [/bin/true] } ]\n      start: [ { command: [/bin/true] } ]\n    baseline:\n";
    world.edit("environment", "    baseline:\n", declared);
    let append = |kind: &str, text: &str| {
        let file = world.file(kind);
        let before = std::fs::read_to_string(&file).unwrap();
        std::fs::write(file, before + text).unwrap();
    };
    append(
        "environment",
        &format!(
            "  other:\n    entry: {{ port: 80 }}\n    public: {{ port: {neighbours_port} }}\n    \
             ready: {{ probes: [ {{ http: {{ path: /cgi-bin/healthz, json: {{ /ok: true }} }} }} ] }}\n"
        ),
    );
    append(
        "compose",
        &format!(
            "  other:\n    image: arenad-toy/{}:1\n    build: {{ context: toy, target: toy }}\n    mem_limit: 48m\n    \
             pids_limit: 50\n    stop_grace_period: 5s\n",
            world.name
        ),
    );
    let www = world.root().join("compose/toy/root/srv/www");
    let page = |name: &str, text: String| std::fs::write(www.join(name), text).unwrap();
    page("page.html", "<p>a page".to_owned());
    page("bomb.html", format!("<!doctype html>{}{}", "<div>".repeat(12_000), "text ".repeat(20_000)));
    page("nested.json", "[".repeat(100_000) + &"]".repeat(100_000));
    page("list.json", format!("[{}1]", "1,".repeat(500_000)));
    world
}

/// The name of an attack and the function that performs it.
type NamedAttack<'a> = (String, Box<dyn Fn() + 'a>);

/// The site's container under the attacker's control.
struct Attacker {
    files: PathBuf,
    postgres: Arc<Mutex<ServerScript>>,
    mysql: Arc<Mutex<ServerScript>>,
}

impl Attacker {
    fn of(world: &World) -> Self {
        let container = world.site().unwrap()["containers"][0]["id"].as_str().unwrap().to_owned();
        let pid = world.engine.docker(&["inspect", "--format", "{{.State.Pid}}", &container]);
        let namespace = PathBuf::from(format!("/proc/{pid}/ns/net"));
        let (postgres, mysql) = (Arc::default(), Arc::default());
        Hostile::within(&namespace, POSTGRES, Arc::clone(&postgres));
        Hostile::within(&namespace, MYSQL, Arc::clone(&mysql));
        Self { files: format!("/proc/{pid}/root/srv/state").into(), postgres, mysql }
    }
}

#[test]
fn no_attack_takes_the_daemon_or_another_site() {
    // More connections than a process may have unless it asks for them. The other tests of this process may have more
    // as well; the programs that they start ask for it themselves.
    let most = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most }).unwrap();
    let port = free_port();
    let world = world(port);
    world.up();
    let attacker = Attacker::of(&world);
    let neighbour = Neighbour::visited(port);
    let before = neighbour.median_of(Duration::from_secs(2));
    let processes = || children(&world);
    // One worker of each kind is kept for the next request, so each locator runs once before processes are counted.
    for locator in ["sql(pg, timeout=1s): SELECT 1", "http: /page.html | css: p", "http: /list.json | jq: .[0]"] {
        world.run(&["locate", "toy", locator]);
    }
    let kept = until("workers for later", PATIENCE, || processes().len(), |count| *count >= 3);
    println!("{:<60} {:>9} {:>9} {:>10}", "attack", "took", "RSS peak", "neighbour");
    for (name, attack) in attacks(&world, &attacker) {
        for attempt in 1.. {
            neighbour.forget();
            let begun = Instant::now();
            attack();
            let (took, median) = (begun.elapsed(), neighbour.median());
            let peak = memory(&world);
            println!("{name:<60} {took:>9.1?} {:>5} MiB {median:>10.1?}", peak >> 20);
            assert!(peak < MEMORY_MAX, "{name}: the daemon had {} MiB", peak >> 20);
            assert_eq!(neighbour.failures(), 0, "{name}: the other site did not answer");
            // Latencies below a few milliseconds measure the scheduler, not the daemon.
            let usual = before.max(Duration::from_millis(20));
            if median <= 2 * usual {
                break;
            }
            // The whole host may have become slower.
            let after = neighbour.median_of(Duration::from_secs(2));
            if median <= 2 * usual.max(after) {
                break;
            }
            // Another test may have used the processors during the attack only, which does not happen each time.
            assert!(attempt < ATTEMPTS, "{name}: the other site took {median:?}, {before:?} before, {after:?} after");
        }
        until(&format!("{name}: its processes"), PATIENCE, processes, |now| now.len() <= kept);
        assert_eq!(neighbour.failures(), 0, "{name}: the other site did not answer");
        assert!(world.api("/v1/status").is_some(), "{name}: the daemon does not answer");
    }
    // During an attack the daemon also shuts down in time.
    huge(&attacker.files.join("endless"), 2 << 40);
    let looking = world.start(&["verify", "toy"]);
    std::thread::sleep(Duration::from_millis(500));
    let begun = Instant::now();
    world.signal_daemon(Signal::TERM);
    assert!(begun.elapsed() < END_MAX, "the daemon ended after {:?}", begun.elapsed());
    looking.ended();
    std::fs::remove_file(attacker.files.join("endless")).unwrap();
    world.up();
    assert_eq!(world.get("/page.html").unwrap().status, 200, "the attacker's site serves");
    world.reset();
    world.run(&["down", "--purge", "--yes"]).code(0);
    world.assert_down();
}

fn attacks<'a>(world: &'a World, attacker: &'a Attacker) -> Vec<NamedAttack<'a>> {
    let locate = move |locator: &str| drop(world.run(&["locate", "toy", locator]));
    let mut attacks: Vec<NamedAttack<'a>> = Vec::new();
    for (name, script) in postgres::attacks() {
        let ask = move || {
            *attacker.postgres.lock().unwrap() = script.clone();
            locate("sql(pg, timeout=1s): SELECT 1");
        };
        attacks.push((format!("PostgreSQL: {name}"), Box::new(ask)));
    }
    for (name, script) in mysql::attacks() {
        let ask = move || {
            *attacker.mysql.lock().unwrap() = script.clone();
            locate("sql(my, timeout=1s): SELECT 1");
        };
        attacks.push((format!("MySQL: {name}"), Box::new(ask)));
    }
    for (name, locator) in [
        ("HTML whose elements contain each other", "http(timeout=3s): /bomb.html | css(all): div"),
        ("the same, with a costly selector", "http(timeout=3s): /bomb.html | css(all): div div div"),
        ("JSON within JSON", "http(timeout=3s): /nested.json | jsonpath: $..a"),
        ("a JSONPath of several descents", "http(timeout=3s): /list.json | jsonpath(all): $..*..*..*"),
        ("a filter that never ends", "http(timeout=2s): /list.json | jq: def f: f; f"),
        (
            "a filter that takes all memory",
            "http(timeout=3s): /list.json | jq: [limit(1e12; repeat(\"aaaaaaaaaaaaaaaa\"))]",
        ),
    ] {
        attacks.push((name.to_owned(), Box::new(move || locate(locator))));
    }
    let deep = format!("http: /page.html | jsonpath: ${}", "[?@".repeat(20_000));
    attacks.push(("a JSONPath within itself".to_owned(), Box::new(move || locate(&deep))));

    let lite = attacker.files.join("lite.db");
    let path = lite.clone();
    attacks.push((
        "a SQLite file of holes".to_owned(),
        Box::new(move || {
            huge(&path, 3 << 30);
            locate("sql(lite, timeout=5s): SELECT count(*) FROM sqlite_master");
            std::fs::remove_file(&path).unwrap();
        }),
    ));
    attacks.push((
        "a SQLite value of 320 MB".to_owned(),
        Box::new(move || {
            // SQLite cannot create a database through the container's root.
            let made_here = world.root().join("blob.db");
            let made = Command::new("python3").args(["-c", BLOB]).arg(&made_here).status().unwrap();
            assert!(made.success());
            std::fs::copy(&made_here, &lite).unwrap();
            std::fs::remove_file(&made_here).unwrap();
            locate("sql(lite, timeout=10s): SELECT b FROM t");
            // The value is too large for an answer, but the file can be read.
            world.run(&["locate", "toy", "sql(lite, timeout=30s): SELECT count(*) FROM t"]).code(0);
            std::fs::remove_file(&lite).unwrap();
        }),
    ));
    attacks.push((
        "40,000 files below a path of three kilobytes".to_owned(),
        Box::new(move || {
            crowd(&attacker.files, 40_000);
            world.run(&["verify", "toy"]);
            let swept = Command::new("rm").arg("-rf").arg(attacker.files.join(SEGMENT)).status().unwrap();
            assert!(swept.success());
        }),
    ));
    attacks.push((
        "a file of two terabytes".to_owned(),
        Box::new(move || {
            huge(&attacker.files.join("endless"), 2 << 40);
            assert_ne!(world.run(&["verify", "toy"]).code, 0);
            std::fs::remove_file(attacker.files.join("endless")).unwrap();
        }),
    ));
    attacks.push((
        "1,100 idle connections".to_owned(),
        Box::new(move || {
            let idle: Vec<_> = (0..1100).map(|_| TcpStream::connect(("127.0.0.1", world.port)).unwrap()).collect();
            std::thread::sleep(Duration::from_secs(2));
            drop(idle);
        }),
    ));
    attacks.push((
        "350 bodies on their way".to_owned(),
        Box::new(move || {
            let body = vec![b'x'; 900 << 10];
            let half = |_| {
                let mut client = TcpStream::connect(("127.0.0.1", world.port)).unwrap();
                client.set_write_timeout(Some(Duration::from_millis(50))).unwrap();
                let head = "POST /cgi-bin/write HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nContent-Length: 1000000\r\n\r\n";
                // A site that refuses further bytes does not fail the test.
                let _ = client.write_all(head.as_bytes()).and_then(|()| client.write_all(&body));
                client
            };
            let clients: Vec<_> = (0..350).map(half).collect();
            std::thread::sleep(Duration::from_secs(1));
            drop(clients);
        }),
    ));
    attacks
}

/// A script that creates a database with one long value.
const BLOB: &str = "import sqlite3, sys\n\
    d = sqlite3.connect(sys.argv[1]); d.execute('create table t (b)')\n\
    d.execute('insert into t values (zeroblob(320000000))'); d.commit()";

/// One component of a long path.
const SEGMENT: &str = "a-very-long-name-of-a-folder-that-is-there-to-make-paths-long-a-very-long-name-of-a-folder-that-is-there-to-make-paths-long-a-very-long-name-of-a-folder-that-is-there-to-make-paths-long";

fn huge(path: &Path, bytes: u64) {
    File::create(path).and_then(|file| file.set_len(bytes)).unwrap();
}

/// Creates files below a path that is too long for one system call.
fn crowd(folder: &Path, files: u32) {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY;
    let mut at = rustix::fs::open(folder, flags, Mode::empty()).unwrap();
    for _ in 0..3000 / SEGMENT.len() {
        mkdirat(&at, SEGMENT, Mode::from_raw_mode(0o755)).unwrap();
        at = openat(&at, SEGMENT, flags, Mode::empty()).unwrap();
    }
    for number in 0..files {
        openat(&at, number.to_string(), OFlags::CREATE | OFlags::WRONLY, Mode::from_raw_mode(0o644)).unwrap();
    }
}

/// The daemon's peak memory so far, in bytes.
fn memory(world: &World) -> u64 {
    let pid = world.daemon().expect("the daemon runs").as_raw_nonzero().get();
    procfs::process::Process::new(pid).and_then(|daemon| daemon.status()).unwrap().vmhwm.unwrap() << 10
}

/// The daemon's child processes, by process id and command.
fn children(world: &World) -> Vec<(i32, String)> {
    let daemon = world.daemon().expect("the daemon runs").as_raw_nonzero().get();
    let all = procfs::process::all_processes().unwrap().flatten();
    let ours = all.filter_map(|process| process.stat().ok()).filter(|stat| stat.ppid == daemon && stat.state != 'Z');
    ours.map(|stat| (stat.pid, stat.comm)).collect()
}
