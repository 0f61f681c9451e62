//! A long run of parallel episodes on five sites, twenty requests each, with what an episode costs and what leaked.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::{Arc, Mutex};
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
    println!(
        "\n{parallel} episodes at once on five sites, {REQUESTS} requests each with writes, for {seconds} s\n\n{ROW_HEAD}"
    );
    let limit = Duration::from_secs(seconds as u64);
    let all = runtime.block_on(async {
        let (grants, begun) = (Arc::new(Mutex::new(Vec::new())), Instant::now());
        let mut clients = JoinSet::new();
        for _ in 0..parallel {
            clients.spawn(client(api.clone(), Arc::clone(&grants), begun + limit));
        }
        let mut all = Measured::default();
        for number in 1..=SECTIONS {
            let (from, busy) = (Instant::now(), busy_seconds());
            tokio::time::sleep_until((begun + limit * number / SECTIONS).into()).await;
            let waits = std::mem::take(&mut *grants.lock().expect("no panic"));
            let section = Measured { waits, took: from.elapsed(), busy: busy_seconds() - busy };
            println!("{:>5.0} s {}", begun.elapsed().as_secs_f64(), section.row());
            all.add(section);
        }
        while let Some(ended) = clients.join_next().await {
            ended.expect("a client fails");
        }
        api.await_rest(&FIVE).await;
        all
    });
    println!("  whole {}", all.row());
    println!("held before and after: {before} / {}", Held::by(arena));
    println!("disk of the stores before and after: {disk:.0} MB / {:.0} MB", disk_used(arena));
}

/// The number of sections of the run that are reported alone.
const SECTIONS: u32 = 6;
const ROW_HEAD: &str = "         episodes  a minute  grant p50 (ms)  p99 (ms)  processor s an episode";

/// The episodes of a section of the run.
#[derive(Default)]
struct Measured {
    /// The time from each request to its grant, in milliseconds.
    waits: Vec<f64>,
    took: Duration,
    /// The processor time of the whole machine in seconds, clients included.
    busy: f64,
}

impl Measured {
    fn add(&mut self, other: Self) {
        self.waits.extend(other.waits);
        self.took += other.took;
        self.busy += other.busy;
    }

    fn row(&self) -> String {
        let episodes = self.waits.len() as f64;
        let (p50, p99) = match self.waits.is_empty() {
            true => (f64::NAN, f64::NAN),
            false => (quantile(&self.waits, 0.5), quantile(&self.waits, 0.99)),
        };
        let a_minute = episodes * 60.0 / self.took.as_secs_f64();
        format!("{episodes:>9} {a_minute:>9.1} {p50:>15.0} {p99:>9.0} {:>23.2}", self.busy / episodes)
    }
}

/// Uses one episode after the other until a time.
async fn client(api: EpisodeApi, grants: Arc<Mutex<Vec<f64>>>, until: Instant) {
    while Instant::now() < until {
        let grant = api.start(&FIVE, 600).await;
        grants.lock().expect("no panic").push(grant.took);
        EpisodeVisitor::of(&grant).visit(REQUESTS).await;
        api.end(&grant.id).await;
    }
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
pub fn disk_used(arena: &Arena) -> f64 {
    let output = Command::new("df").args(["--output=used", "-B1"]).arg(arena.state_dir().join("stores")).output();
    let text = String::from_utf8_lossy(&output.expect("df runs").stdout).into_owned();
    text.lines().last().and_then(|line| line.trim().parse::<f64>().ok()).unwrap_or(f64::NAN) / 1e6
}
