//! The resources that the daemon holds, and its cost while idle.

use std::fmt;
use std::process::Command;
use std::time::Duration;

use crate::arena::Arena;
use crate::figures::processor_time;

/// How long the idle daemon is watched.
const IDLE: Duration = Duration::from_secs(30);

/// Resources whose number must not grow with the number of resets.
pub struct Held {
    containers: usize,
    networks: usize,
    mounts: usize,
    files: usize,
    inodes: u64,
    memory: f64,
}

impl Held {
    /// Counts the resources of a daemon and of its engine.
    pub fn by(arena: &Arena) -> Self {
        let pid = daemon(arena);
        let lines = |args: &[&str]| {
            let output = Command::new("docker").args(args).output().expect("docker runs");
            String::from_utf8_lossy(&output.stdout).lines().count()
        };
        let mounts = std::fs::read_to_string(format!("/proc/{pid}/mounts")).expect("the daemon runs");
        let stores = arena.state_dir().join("stores");
        let output = Command::new("df").arg("--output=iused").arg(stores).output().expect("df runs");
        let inodes = String::from_utf8_lossy(&output.stdout);
        Self {
            containers: lines(&["ps", "-aq"]),
            networks: lines(&["network", "ls", "-q"]),
            mounts: mounts.lines().count(),
            files: std::fs::read_dir(format!("/proc/{pid}/fd")).expect("the daemon runs").count(),
            inodes: inodes.lines().last().and_then(|line| line.trim().parse().ok()).unwrap_or_default(),
            memory: resident(pid),
        }
    }
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { containers, networks, mounts, files, inodes, memory } = self;
        write!(
            f,
            "{containers} containers, {networks} networks, {mounts} mounts, {files} open files, {inodes} inodes, {memory:.1} MB"
        )
    }
}

/// Reports memory and processor time of the daemon while its sites are up and no client sends a request.
pub fn idle(arena: &Arena) {
    let pid = daemon(arena);
    let before = processor_time(pid);
    std::thread::sleep(IDLE);
    let cpu = (processor_time(pid) - before) / IDLE.as_millis() as f64 * 100.0;
    println!(
        "\nidle daemon, eight sites watched: {:.1} MB resident (promise: 40), {cpu:.2} % of one processor over {} s",
        resident(pid),
        IDLE.as_secs()
    );
}

fn daemon(arena: &Arena) -> u64 {
    arena.json(&["status", "--json"])["daemon"]["pid"].as_u64().expect("a pid")
}

/// The resident memory of a process, in megabytes.
fn resident(pid: u64) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the daemon runs");
    let kib = text
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|rest| rest.split_whitespace().next().and_then(|kib| kib.parse::<f64>().ok()));
    kib.unwrap_or_default() * 1024.0 / 1e6
}
