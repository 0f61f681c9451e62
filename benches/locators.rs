//! The cost of locators: statements, requests and expressions on the mini sites, as the daemon measures them. The
//! benchmark also checks that two hundred consecutive expressions leave no processes and no memory behind.
//!
//! Run with `cargo bench --bench locators`. ARENAD_BENCH_ROUNDS sets the number of measurements of each kind (default
//! 100). The limits are those that arenad documents, as medians after warm-up: 10 ms for a statement, 2 ms more than
//! the site's own time for a request, 150 ms for an expression.

#[expect(dead_code, reason = "the tests use the rest")]
#[path = "../tests/support/arena.rs"]
mod arena;

use std::collections::{HashMap, HashSet};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use arena::Arena;
use serde_json::{Value, json};

/// Measurements that come first and do not count: they open connections, start the browser and fill the caches of
/// pages.
const WARM_UP: usize = 5;

/// The number of consecutive expressions after which leftovers are counted.
const IN_A_ROW: usize = 200;

/// Site, locator and limit of the median in milliseconds. The shop's first page has no limit: it loads seventeen other
/// resources, and a browser alone needs nearly as long as the limit for them.
const LOOKS: [(&str, &str, f64); 10] = [
    ("shopping", "sql: SELECT count(*) FROM order_order", 10.0),
    ("reddit", "sql: SELECT count(*) FROM pg_class", 10.0),
    ("turkle", "sql: SELECT count(*) FROM sqlite_master", 10.0),
    ("shopping", "http: /api/products/ | jsonpath: $[0].id", f64::INFINITY),
    // A worker process evaluates this locator, as it does statements.
    ("shopping", "http: /api/products/ | jq: .[0].id", f64::INFINITY),
    ("shopping", "http: /customer/account/login/ | css: title", f64::INFINITY),
    ("shopping", "js: document.title @ /customer/account/login/", 150.0),
    ("turkle", "js: document.title @ /", 150.0),
    ("wikipedia", "js: document.title @ /", 150.0),
    ("shopping", "js: document.title @ /", f64::INFINITY),
];

fn main() {
    let rounds: usize = std::env::var("ARENAD_BENCH_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(100);
    let arena = Arena::up(&["shopping", "reddit", "turkle", "wikipedia"]);
    println!("\nlocators, {rounds} looks each; ms\n");
    println!("{:10} {:48} {:>8} {:>8} {:>8}  limit of p50", "site", "locator", "p50", "p95", "worst");
    for (site, locator, limit) in LOOKS {
        let times = looks(&arena, site, locator, rounds);
        let verdict = if limit.is_infinite() {
            String::new()
        } else {
            format!("{limit:.0} {}", if percentile(&times, 50) <= limit { "kept" } else { "MISSED" })
        };
        print(site, locator, &times, &verdict);
    }
    overhead(&arena, rounds);
    in_a_row(&arena);
}

/// Measures a request by a locator and the same request through the gateway, in turn.
fn overhead(arena: &Arena, rounds: usize) {
    let (mut located, mut plain) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        located.push(look(arena, "shopping", "http: /healthz"));
        let begun = Instant::now();
        fetch(&arena.url("shopping"), "/healthz");
        plain.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    located.sort_unstable_by(f64::total_cmp);
    plain.sort_unstable_by(f64::total_cmp);
    let added = percentile(&located, 50) - percentile(&plain, 50);
    print("shopping", "http: /healthz", &located, "");
    print("shopping", "the same through the gateway, without a locator", &plain, "");
    println!("a locator adds {added:.2} ms to the median; limit 2 {}", if added <= 2.0 { "kept" } else { "MISSED" });
}

/// Compares processes and memory of the daemon and its browser before and after two hundred expressions.
fn in_a_row(arena: &Arena) {
    let row = |count: usize| {
        for _ in 0..count {
            look(arena, "shopping", "js: document.title @ /");
        }
    };
    // The memory that a browser keeps after its first pages does not count.
    row(IN_A_ROW / 4);
    let before = footprint(arena);
    row(IN_A_ROW);
    let after = footprint(arena);
    println!(
        "\n{IN_A_ROW} expressions in a row: {} processes became {}, {:.0} MB became {:.0} MB (daemon and browser)",
        before.0, after.0, before.1, after.1
    );
}

/// Returns the number of processes of the daemon and its browser, and their private memory in megabytes.
fn footprint(arena: &Arena) -> (usize, f64) {
    // The processes of the last page end shortly after its result arrives.
    std::thread::sleep(Duration::from_secs(3));
    let state = arena.state_dir().display().to_string();
    let processes: Vec<_> = procfs::process::all_processes().expect("processes").flatten().collect();
    let parents: HashMap<i32, i32> =
        processes.iter().filter_map(|process| Some((process.pid, process.stat().ok()?.ppid))).collect();
    let named = processes
        .iter()
        .filter(|process| process.cmdline().is_ok_and(|words| words.iter().any(|word| word.contains(&state))));
    let named: HashSet<i32> = named.map(|process| process.pid).collect();
    // Not every process of the browser has its folder's name on its command line, but each descends from one that has.
    let descends = |pid: i32| {
        std::iter::successors(Some(pid), |pid| parents.get(pid).copied().filter(|&parent| parent > 1))
            .any(|pid| named.contains(&pid))
    };
    let ours = processes.iter().filter(|process| descends(process.pid));
    let sizes: Vec<u64> = ours
        .filter_map(|process| {
            let memory = process.smaps_rollup().ok()?;
            let totals = memory.memory_map_rollup.0.first()?.extension.map.clone();
            Some(totals.get("Pss").copied().unwrap_or_default())
        })
        .collect();
    #[allow(clippy::cast_precision_loss, reason = "memory is short of 2^52 bytes")]
    let megabytes = sizes.iter().sum::<u64>() as f64 / 1e6;
    (sizes.len(), megabytes)
}

fn looks(arena: &Arena, site: &str, locator: &str, rounds: usize) -> Vec<f64> {
    for _ in 0..WARM_UP {
        look(arena, site, locator);
    }
    let mut times: Vec<f64> = (0..rounds).map(|_| look(arena, site, locator)).collect();
    times.sort_unstable_by(f64::total_cmp);
    times
}

/// Evaluates a locator through the API and returns the daemon's own time from request to value, in milliseconds.
fn look(arena: &Arena, site: &str, locator: &str) -> f64 {
    let mut stream = UnixStream::connect(arena.state_dir().join("arenad.sock")).expect("the daemon");
    let body = json!({ "locator": locator }).to_string();
    write!(
        stream,
        "POST /v1/environments/mini/sites/{site}/locate HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
    let located: Value = serde_json::from_str(body).expect("JSON");
    located["evidence"]["duration_ms"].as_f64().unwrap_or_else(|| panic!("{locator}: {located}"))
}

fn fetch(url: &str, path: &str) {
    let host = url.trim_start_matches("http://").split('/').next().unwrap_or_default();
    let mut stream = TcpStream::connect(host.replace("localhost", "127.0.0.1")).expect("the gateway");
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {host}\r\n\r\n").expect("a request");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    assert!(answer.starts_with(b"HTTP/1.") && answer.get(9..12) == Some(b"200"), "{path}");
}

fn print(site: &str, locator: &str, times: &[f64], verdict: &str) {
    let worst = times.last().copied().unwrap_or_default();
    println!(
        "{site:10} {locator:48} {:>8.2} {:>8.2} {worst:>8.2}  {verdict}",
        percentile(times, 50),
        percentile(times, 95)
    );
}

/// Returns a percentile of `times`, which must be sorted.
fn percentile(times: &[f64], percent: usize) -> f64 {
    times.get((times.len() * percent / 100).min(times.len().saturating_sub(1))).copied().unwrap_or_default()
}
