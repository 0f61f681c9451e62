//! Runs of wrk, the load generator.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

use crate::BenchPlan;

/// A way to the site.
pub struct Way {
    /// The address that wrk connects to.
    pub address: SocketAddr,
    /// A script of wrk that changes its requests.
    pub script: Option<PathBuf>,
    /// Whether the server closes the connection after each answer, which wrk counts as an error of reading.
    pub closes: bool,
}

impl Way {
    /// A way whose requests are unchanged.
    pub fn to(address: SocketAddr) -> Self {
        Self { address, script: None, closes: false }
    }
}

/// The result of one run.
#[derive(Clone, Copy)]
pub struct BenchRun {
    /// Requests per second.
    pub rate: f64,
    /// The median latency in microseconds.
    pub median: f64,
}

/// Measures the ways alternately; a round consists of one run of each.
pub fn in_turns<const N: usize>(
    plan: &BenchPlan,
    ways: &[Way; N],
    connections: u32,
    file: &str,
) -> io::Result<Vec<[BenchRun; N]>> {
    let mut rounds = Vec::new();
    for _ in 0..plan.rounds {
        let mut round = [BenchRun { rate: f64::NAN, median: f64::NAN }; N];
        for (run, way) in round.iter_mut().zip(ways) {
            *run = wrk(way, connections, plan.seconds, file)?;
        }
        rounds.push(round);
    }
    Ok(rounds)
}

/// Returns the median; NaN if there are no values.
pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn wrk(way: &Way, connections: u32, seconds: u32, file: &str) -> io::Result<BenchRun> {
    let address = way.address;
    let mut command = Command::new("wrk");
    if let Some(script) = &way.script {
        command.arg("-s").arg(script);
    }
    let output = command
        .args(["-t1", "--latency", &format!("-c{connections}"), &format!("-d{seconds}s")])
        .arg(format!("http://{address}/{file}"))
        .output()
        .map_err(|error| io::Error::other(format!("start wrk: {error}")))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let has_socket_errors =
        text.lines().any(|line| line.contains("Socket errors") && !(way.closes && has_only_read_errors(line)));
    if text.contains("Non-2xx") || has_socket_errors {
        return Err(io::Error::other(format!("wrk met errors at {address}:\n{text}")));
    }
    let word_after = |label: &str| {
        let line = text.lines().find(|line| line.trim_start().starts_with(label));
        line.and_then(|line| line.split_whitespace().last()).map(str::to_owned)
    };
    let rate = word_after("Requests/sec:").and_then(|word| word.parse().ok());
    let median = word_after("50%").and_then(|word| microseconds(&word));
    match (rate, median) {
        (Some(rate), Some(median)) => Ok(BenchRun { rate, median }),
        _ => Err(io::Error::other(format!("wrk said something else:\n{text}"))),
    }
}

/// Returns whether a line `Socket errors: connect 0, read 7, write 0, timeout 0` counts nothing but errors of reading.
fn has_only_read_errors(line: &str) -> bool {
    ["connect 0,", "write 0,", "timeout 0"].iter().all(|none| line.contains(none))
}

/// Reads wrk's `21.00us`, `1.02ms`, `1.20s` as microseconds.
fn microseconds(word: &str) -> Option<f64> {
    let (number, unit) = word.split_at(word.find(|letter: char| letter.is_ascii_alphabetic())?);
    let scale = match unit {
        "us" => 1.0,
        "ms" => 1e3,
        "s" => 1e6,
        _ => return None,
    };
    number.parse::<f64>().ok().map(|number| number * scale)
}
