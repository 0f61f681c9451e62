//! Resets through arenad beside what people do today, `docker rm -f` and `docker run` until ready, on the same images, in
//! turn, in the same run; and what the daemon costs while nothing happens.
//!
//! Each round: the plain loop once; a reset that a standby is ready for; and at once another one, for which there is none.
//! `cargo bench --bench reset`, or `make bench`. ARENAD_BENCH_ROUNDS sets the rounds (default 10).

#[path = "../tests/mini/arena.rs"]
mod arena;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use arena::Arena;

/// A site that is written to, and how a client of today would see that it is ready: path and what the page must contain.
const SITES: [(&str, &str, &str); 6] = [
    ("shopping", "/healthz", "\"ok\": true"),
    ("shopping_admin", "/healthz", "\"ok\": true"),
    ("reddit", "/healthz", "\"ok\": true"),
    ("turkle", "/healthz", "\"ok\": true"),
    ("homepage", "/healthz", "\"ok\": true"),
    ("gitlab", "/healthz", "\"ok\": true"),
];

/// How long a standby may take to be made.
const STANDBY_PATIENCE: Duration = Duration::from_secs(120);

/// How often the plain loop looks; arenad's own interval is the definition's.
const LOOK: Duration = Duration::from_millis(10);

/// How long the idle daemon is watched.
const IDLE: Duration = Duration::from_secs(30);

fn main() {
    let rounds: usize = std::env::var("ARENAD_BENCH_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(10);
    let arena = Arena::up(&[]);
    println!(
        "\nreset of one site against `docker rm -f` + `docker run` + ready, {rounds} rounds in turn; ms, ratios of medians\n"
    );
    println!(
        "{:16} {:>12} {:>10} {:>7} {:>10} {:>10} {:>7}  stages of the latter",
        "site", "docker loop", "swap p50", "worst", "ratio", "otherwise", "ratio"
    );
    for (site, path, marker) in SITES {
        compare(&arena, site, path, marker, rounds);
    }
    idle(&arena);
}

/// A reset, as arenad tells of it: the way, how long it took, the stages.
fn reset(arena: &Arena, site: &str) -> (String, f64, Vec<serde_json::Value>) {
    let answer = arena.json(&["reset", site, "--json"]);
    let operation = &answer["operations"][0];
    let way = operation["reset"]["strategy"].as_str().expect("a way").to_owned();
    let stages = operation["reset"]["stages"].as_array().cloned().unwrap_or_default();
    (way, operation["duration_ms"].as_f64().expect("a duration"), stages)
}

fn site_status(arena: &Arena, site: &str) -> serde_json::Value {
    let status = arena.json(&["status", "--json"]);
    let sites = status["environments"][0]["sites"].as_array().cloned().unwrap_or_default();
    sites.into_iter().find(|found| found["name"] == site).expect("the site is up")
}

/// Waits until as many standbys are ready as the site wants.
fn await_standbys(arena: &Arena, site: &str) {
    let deadline = Instant::now() + STANDBY_PATIENCE;
    loop {
        let standbys = site_status(arena, site)["standbys"].clone();
        let members = standbys["members"].as_array().cloned().unwrap_or_default();
        let is_ready = |member: &&serde_json::Value| member["state"] == "running" || member["state"] == "frozen";
        let ready = members.iter().filter(is_ready).count();
        if ready as u64 >= standbys["wanted"].as_u64().unwrap_or_default() && ready == members.len() {
            return;
        }
        assert!(Instant::now() < deadline, "{site} has no standby: {standbys}");
        std::thread::sleep(LOOK);
    }
}

fn compare(arena: &Arena, site: &str, path: &str, marker: &str, rounds: usize) {
    let snapshot = site_status(arena, site)["snapshot"].as_str().expect("a snapshot").to_owned();
    let snapshots = arena.json(&["snapshot", "ls", "--json"]);
    let taken = snapshots["snapshots"].as_array().and_then(|all| all.iter().find(|s| s["id"] == snapshot.as_str()));
    let image = taken.and_then(|taken| taken["images"][site].as_str()).expect("an image").to_owned();
    let name = format!("arenad-bench-{}", std::process::id());
    let (mut theirs, mut swaps, mut others) = (Vec::new(), Vec::new(), Vec::new());
    let (mut stages, mut ways) = (Vec::new(), std::collections::BTreeSet::new());
    docker_cycle(&name, &image, path, marker);
    reset(arena, site);
    for _ in 0..rounds {
        let begun = Instant::now();
        docker_cycle(&name, &image, path, marker);
        theirs.push(begun.elapsed().as_secs_f64() * 1e3);
        await_standbys(arena, site);
        for _ in 0..2 {
            let (way, took, told) = reset(arena, site);
            match way.as_str() {
                "swap" => swaps.push(took),
                _ => {
                    others.push(took);
                    stages.push(told);
                    ways.insert(way);
                }
            }
        }
    }
    docker(&["rm", "-f", &name]);
    let worst = swaps.iter().copied().fold(0.0, f64::max);
    let (theirs, swap, other) = (median(theirs), median(swaps), median(others));
    let named: std::collections::BTreeSet<&str> =
        stages.iter().flatten().filter_map(|stage| stage["stage"].as_str()).collect();
    let told: Vec<String> = named
        .into_iter()
        .map(|wanted| {
            let of_stage = |round: &Vec<serde_json::Value>| {
                round.iter().find(|stage| stage["stage"] == wanted).and_then(|stage| stage["duration_ms"].as_f64())
            };
            (wanted, median(stages.iter().filter_map(of_stage).collect()))
        })
        .filter(|(_, took)| *took >= 1.0)
        .map(|(wanted, took)| format!("{wanted} {took:.0}"))
        .collect();
    println!(
        "{site:16} {theirs:>12.0} {swap:>10.1} {worst:>7.1} {:>9.0}x {other:>10.0} {:>6.1}x  {}: {}",
        theirs / swap.max(0.001),
        theirs / other.max(0.001),
        ways.into_iter().collect::<Vec<_>>().join(", "),
        told.join(", ")
    );
}

/// One reset as people do it today.
fn docker_cycle(name: &str, image: &str, path: &str, marker: &str) {
    docker(&["rm", "-f", name]);
    docker(&["run", "-d", "--name", name, "--cap-drop", "ALL", "--memory", "512m", "--pids-limit", "100", image]);
    let format = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}";
    let address = docker(&["inspect", "-f", format, name]);
    let socket: SocketAddr = format!("{}:80", address.trim()).parse().expect("an address");
    let deadline = Instant::now() + Duration::from_secs(120);
    while !answers(socket, path, marker) {
        assert!(Instant::now() < deadline, "{image} never became ready");
        std::thread::sleep(LOOK);
    }
}

fn docker(args: &[&str]) -> String {
    let output = Command::new("docker").args(args).output().expect("docker runs");
    let is_fine = output.status.success() || args.first() == Some(&"rm");
    assert!(is_fine, "docker {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn answers(socket: SocketAddr, path: &str, marker: &str) -> bool {
    let Ok(mut stream) = TcpStream::connect_timeout(&socket, Duration::from_secs(1)) else {
        return false;
    };
    let _ = stream.set_read_timeout(Some(Duration::from_secs(5)));
    let request = format!("GET {path} HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n");
    let mut answer = Vec::new();
    let exchanged = stream.write_all(request.as_bytes()).and_then(|()| stream.read_to_end(&mut answer).map(drop));
    let text = String::from_utf8_lossy(&answer);
    exchanged.is_ok() && text.starts_with("HTTP/1.1 200") && text.contains(marker)
}

/// Memory and processor time of the daemon while its sites are up and nobody asks for anything.
fn idle(arena: &Arena) {
    let status = arena.json(&["status", "--json"]);
    let pid = status["daemon"]["pid"].as_u64().expect("a pid");
    let ticks = || -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("the daemon runs");
        let after_name = stat.rsplit_once(')').map(|(_, rest)| rest.to_owned()).unwrap_or_default();
        let fields: Vec<&str> = after_name.split_whitespace().collect();
        let field = |index: usize| fields.get(index).and_then(|text| text.parse::<f64>().ok()).unwrap_or_default();
        field(11) + field(12)
    };
    let before = ticks();
    std::thread::sleep(IDLE);
    // The kernel counts in hundredths of a second.
    let cpu = (ticks() - before) / 100.0 / IDLE.as_secs_f64() * 100.0;
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the daemon runs");
    let rss = text
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|rest| rest.split_whitespace().next().and_then(|kib| kib.parse::<f64>().ok()));
    println!(
        "\nidle daemon, eight sites watched: {:.1} MB resident (promise: 40), {cpu:.2} % of one processor over {} s",
        rss.unwrap_or_default() * 1024.0 / 1e6,
        IDLE.as_secs()
    );
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}
