//! Compares the gateway with nginx as a reverse proxy and with direct access.
//!
//! Needs `nginx`, `tinyproxy` and `wrk`. An nginx with one worker serves small files. wrk requests them directly, through a second
//! nginx and through the gateway, alternately, so that other load on the machine affects all three alike. nginx and the
//! gateway have the same number of workers, keep connections to the site open, write no log and set the same forwarding
//! headers. Then the episode proxy is measured beside nginx and tinyproxy, and at the end the gateway with recording
//! beside the gateway without it.
//!
//! Arguments: `--quick` for short runs. Exits with status 1 if a limit is not met.

mod proxied;
mod servers;
mod wrk;

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::ExitCode;
use std::time::Duration;

use arenad_gateway::{Gateway, GatewaySettings, HoldLimits, RecordingFilter, Target, WriteRules};
use servers::{free_address, nginx};
use wrk::{Way, in_turns, median};

/// The minimum ratio of the gateway's throughput to nginx's, and the maximum addition to the median latency in
/// microseconds.
const LEAST_RATIO: f64 = 0.8;
const MOST_ADDED: f64 = 500.0;

const CONNECTIONS: u32 = 64;
const SIZES: [(&str, usize); 3] = [("1k", 1024), ("16k", 16 * 1024), ("256k", 256 * 1024)];
const IDLE_CONNECTIONS: usize = 200;

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The extent of the measurements.
pub struct BenchPlan {
    /// The number of runs of each way.
    rounds: usize,
    /// The duration of a run.
    seconds: u32,
}

fn run() -> io::Result<bool> {
    let is_quick = std::env::args().any(|argument| argument == "--quick");
    let plan = if is_quick { BenchPlan { rounds: 3, seconds: 1 } } else { BenchPlan { rounds: 9, seconds: 2 } };
    let workers = std::thread::available_parallelism()?.get().min(4);
    let directory = tempfile::tempdir()?;
    // nginx's workers may run as another user.
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755))?;
    for (name, size) in SIZES {
        fs::write(directory.path().join(name), "x".repeat(size))?;
    }

    let site = free_address()?;
    let root = directory.path().display();
    let _site = nginx(
        directory.path(),
        "site",
        1,
        &format!("open_file_cache max=16;\nserver {{ listen {site} backlog=1024; root {root}; }}"),
        site,
    )?;
    let proxy = free_address()?;
    let _proxy = nginx(
        directory.path(),
        "proxy",
        workers,
        &format!(
            "upstream site {{ server {site}; keepalive 256; keepalive_requests 100000000; }}\n\
             server {{ listen {proxy} backlog=1024; location / {{ proxy_pass http://site; proxy_http_version 1.1;\n\
             proxy_set_header Connection \"\"; proxy_set_header Host $http_host;\n\
             proxy_set_header X-Forwarded-For $remote_addr; proxy_set_header X-Forwarded-Proto http;\n\
             proxy_set_header X-Forwarded-Host $http_host; proxy_set_header X-Forwarded-Port $server_port; }} }}"
        ),
        proxy,
    )?;
    let mut settings = GatewaySettings::default();
    settings.workers = workers;
    let before = memory()?;
    let gateway = Gateway::start(settings)?;
    let limits = HoldLimits { requests: 64, timeout: Duration::from_secs(10) };
    let route = gateway
        .open(SocketAddr::from(([127, 0, 0, 1], 0)), limits, WriteRules::default(), RecordingFilter::Nothing, "bench")
        .map_err(io::Error::other)?;
    route.serve(Target { address: site, instance: "bench-1".to_owned(), generation: 1 });
    let started = memory()?;

    let ways = [Way::to(site), Way::to(proxy), Way::to(route.local_addr())];
    println!("gateway: {workers} workers each, wrk -t1, medians of {} runs of {} s\n", plan.rounds, plan.seconds);
    println!("{:<22} {:>10} {:>10} {:>10} {:>16}", "", "direct", "nginx", "gateway", "gateway / nginx");
    let mut is_kept = true;
    for (name, _) in SIZES {
        let rounds = in_turns(&plan, &ways, CONNECTIONS, name)?;
        let [direct, nginx, gateway] = [0, 1, 2].map(|way| median(rounds.iter().map(|round| round[way].rate)));
        // Each gateway run is compared with the nginx runs of the same round, because other load on the machine changes
        // from round to round.
        let ratio = median(rounds.iter().map(|round| round[2].rate / round[1].rate));
        is_kept &= ratio >= LEAST_RATIO;
        println!(
            "{:<22} {direct:>10.0} {nginx:>10.0} {gateway:>10.0} {ratio:>15.2}x",
            format!("{name} requests/s, c{CONNECTIONS}")
        );
    }
    for (name, _) in SIZES {
        let rounds = in_turns(&plan, &ways, 1, name)?;
        let [direct, nginx, gateway] = [0, 1, 2].map(|way| median(rounds.iter().map(|round| round[way].median)));
        let added = median(rounds.iter().map(|round| round[2].median - round[0].median));
        is_kept &= added <= MOST_ADDED;
        let line = [direct, nginx, gateway].map(|median| format!("{median:.0} µs"));
        println!(
            "{:<22} {:>11} {:>11} {:>11} {added:>12.0} µs added",
            format!("{name} median, c1"),
            line[0],
            line[1],
            line[2],
        );
    }
    let loaded = memory()?;
    let clients: Vec<TcpStream> =
        (0..IDLE_CONNECTIONS).map(|_| TcpStream::connect(route.local_addr())).collect::<io::Result<_>>()?;
    let used = processor_ticks()?;
    std::thread::sleep(Duration::from_secs(5));
    let spent = processor_ticks()? - used;
    drop(clients);
    println!(
        "\nidle with {IDLE_CONNECTIONS} connections: {spent} ticks of 10 ms in 5 s; memory {} KiB at start, +{} KiB started, +{} KiB after load",
        before,
        started - before,
        loaded - before
    );
    is_kept &= proxied::compare(&plan, directory.path(), &gateway, &route, site, proxy)?;
    // This comparison comes last because the recorder keeps the bodies that pass: pages of text, more of them than its
    // limit allows.
    let recorded = gateway.open(
        SocketAddr::from(([127, 0, 0, 1], 0)),
        limits,
        WriteRules::default(),
        RecordingFilter::All,
        "recorded",
    );
    let recorded = recorded.map_err(io::Error::other)?;
    recorded.serve(Target { address: site, instance: "bench-2".to_owned(), generation: 1 });
    let ways = [Way::to(site), Way::to(route.local_addr()), Way::to(recorded.local_addr())];
    println!("\n{:<22} {:>10} {:>10} {:>10} {:>21}", "", "direct", "gateway", "recording", "recording / gateway");
    for (name, _) in SIZES {
        let rounds = in_turns(&plan, &ways, CONNECTIONS, name)?;
        let [direct, gateway, recording] = [0, 1, 2].map(|way| median(rounds.iter().map(|round| round[way].rate)));
        let ratio = median(rounds.iter().map(|round| round[2].rate / round[1].rate));
        let what = format!("{name} requests/s, c{CONNECTIONS}");
        println!("{what:<22} {direct:>10.0} {gateway:>10.0} {recording:>10.0} {ratio:>20.2}x");
    }
    println!("memory +{} KiB with a full recording", memory()?.saturating_sub(loaded));
    println!("\n>= {LEAST_RATIO}x nginx and <= {} µs added: {}", MOST_ADDED, if is_kept { "kept" } else { "NOT KEPT" });
    Ok(is_kept)
}

/// Resident memory of this process in KiB.
fn memory() -> io::Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).ok_or_else(|| io::Error::other("no VmRSS"))
}

/// Processor time of this process, user and system, in clock ticks.
fn processor_ticks() -> io::Result<u64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let fields = stat.rsplit(')').next().unwrap_or_default();
    Ok(fields.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum())
}
