//! A long run of parallel episodes on five sites, twenty requests each, with what an episode costs and what leaked.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::FIVE;
use crate::arena::Arena;
use crate::client::{EpisodeApi, EpisodeVisitor};
use crate::cost::Held;
use crate::figures::{busy_seconds, quantile};

/// The number of requests of an episode.
const REQUESTS: usize = 20;

/// Runs episodes and prints the table.
pub fn run(arena: &Arena, runtime: &Runtime, api: &EpisodeApi, parallel: usize, seconds: usize) {
    runtime.block_on(api.await_rest(&FIVE));
    println!("\nmemory of a further slot, as the kernel counts it for its containers");
    for (site, megabytes) in memory_of_slots(arena) {
        println!("{site:16} {megabytes:>7.0} MB");
    }
    let (before, disk) = (Held::by(arena), disk_used(arena));
    let (begun, busy) = (Instant::now(), busy_seconds());
    let limit = Duration::from_secs(seconds as u64);
    let number = Arc::new(AtomicUsize::new(0));
    let waits = runtime.block_on(async {
        let mut tasks = JoinSet::new();
        for _ in 0..parallel {
            let (api, number) = (api.clone(), Arc::clone(&number));
            tasks.spawn(async move {
                let mut waits = Vec::new();
                while begun.elapsed() < limit {
                    let grant = api.start(&FIVE, 600).await;
                    waits.push(grant.took);
                    EpisodeVisitor::of(&grant).visit(REQUESTS).await;
                    api.end(&grant.id).await;
                    number.fetch_add(1, Ordering::Relaxed);
                }
                waits
            });
        }
        tasks.join_all().await.concat()
    });
    let (took, used) = (begun.elapsed().as_secs_f64(), busy_seconds() - busy);
    runtime.block_on(api.await_rest(&FIVE));
    let episodes = number.load(Ordering::Relaxed);
    println!("\n{parallel} episodes at once on five sites, {REQUESTS} requests each with writes, for {took:.0} s");
    println!(
        "{episodes} episodes, {:.1} a minute; from the request to the grant p50 {:.0} ms, p99 {:.0} ms",
        episodes as f64 * 60.0 / took,
        quantile(&waits, 0.5),
        quantile(&waits, 0.99)
    );
    println!("processor seconds of the machine an episode, clients included: {:.2}", used / episodes as f64);
    println!("held before and after: {before} / {}", Held::by(arena));
    println!("disk of the stores before and after: {disk:.0} MB / {:.0} MB", disk_used(arena));
}

/// The memory of the containers of slot 2 of each site, in megabytes.
fn memory_of_slots(arena: &Arena) -> BTreeMap<&'static str, f64> {
    let of = |site: &'static str| {
        let rows = arena.json(&["ps", &format!("{site}:2"), "--json"]);
        let containers = rows.as_array().into_iter().flatten().filter_map(|row| row["container"].as_str());
        let bytes = containers.filter_map(resident).sum::<f64>();
        (site, bytes / 1e6)
    };
    FIVE.into_iter().map(of).collect()
}

/// The resident anonymous memory of a container in bytes, summed over its processes: pages of files are shared with
/// other slots.
fn resident(container: &str) -> Option<f64> {
    let pids = docker(&["top", container, "-eo", "pid"]);
    let anonymous = |pid: &str| {
        let text = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", pid.trim())).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("Pss_Anon:"))?;
        line.split_whitespace().next()?.parse::<f64>().ok().map(|kib| kib * 1024.0)
    };
    Some(pids.lines().skip(1).filter_map(anonymous).sum())
}

fn docker(args: &[&str]) -> String {
    let output = Command::new("docker").args(args).output().expect("docker runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The space that the file system of the stores uses, in megabytes.
fn disk_used(arena: &Arena) -> f64 {
    let output = Command::new("df").args(["--output=used", "-B1"]).arg(arena.state_dir().join("stores")).output();
    let text = String::from_utf8_lossy(&output.expect("df runs").stdout).into_owned();
    text.lines().last().and_then(|line| line.trim().parse::<f64>().ok()).unwrap_or(f64::NAN) / 1e6
}
