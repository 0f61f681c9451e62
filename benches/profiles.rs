//! Compares the program that `make up` builds quickly (`--profile quick`) with the one of `make release`.
//!
//! Both programs serve and reset the same site, alternately. The benchmark counts the processor time of the daemon
//! itself, because most of the elapsed time is spent in the site and in the engine.
//!
//! Needs `wrk` and `target/quick/arenad`, which `make build` creates. ARENAD_BENCH_RESETS: swaps for each program and
//! round (50). ARENAD_BENCH_ROUNDS: rounds (3).

#[path = "../tests/support/arena.rs"]
#[expect(dead_code, reason = "the tests use the rest")]
mod arena;
#[expect(dead_code, reason = "other benchmarks use the rest")]
#[path = "reset/figures.rs"]
mod figures;
#[path = "reset/resetter.rs"]
#[expect(dead_code, reason = "the benchmark of resets uses the rest")]
mod resetter;

use std::path::{Path, PathBuf};
use std::process::Command;

use arena::Arena;
use figures::{processor_time, quantile, setting};
use resetter::Resetter;

/// The site that is reset, and the site whose page is requested through the gateway.
const RESET: &str = "shopping";
const SERVED: &str = "homepage";
const PAGE: &str = "/healthz";

/// Duration of one measurement of the gateway, in seconds.
const SECONDS: u32 = 5;

/// The measurements of one program.
struct Profile {
    name: &'static str,
    program: PathBuf,
    arena: Arena,
    resetter: Resetter,
    /// Durations of swaps as the client sees them, in milliseconds.
    swaps: Vec<f64>,
    /// The daemon's processor time for a swap and its following recycling, in milliseconds, one value for each round.
    reset_cpu: Vec<f64>,
    /// Durations of full comparisons, in milliseconds.
    digests: Vec<f64>,
    /// The daemon's processor time for a request through the gateway, in microseconds, one value for each round.
    request_cpu: Vec<f64>,
}

impl Profile {
    fn up(name: &'static str, program: &Path) -> Self {
        let arena = Arena::up_by(program, &[RESET, SERVED]);
        let resetter = Resetter::of(&arena);
        resetter.reset(&[RESET]);
        resetter.await_standbys(&[RESET]);
        Self {
            name,
            program: program.to_owned(),
            arena,
            resetter,
            swaps: Vec::new(),
            reset_cpu: Vec::new(),
            digests: Vec::new(),
            request_cpu: Vec::new(),
        }
    }

    fn round(&mut self, resets: usize) {
        let before = self.cpu();
        for _ in 0..resets {
            self.resetter.await_standbys(&[RESET]);
            let (took, done) = self.resetter.reset(&[RESET]);
            if done[0].way == "swap" {
                self.swaps.push(took);
            }
        }
        self.resetter.await_standbys(&[RESET]);
        self.reset_cpu.push((self.cpu() - before) / resets as f64);
        for _ in 0..resets.div_ceil(5) {
            self.digests.push(self.resetter.verify(RESET));
        }
        let before = self.cpu();
        let requests = requests(&format!("{}{PAGE}", self.arena.url(SERVED).trim_end_matches('/')));
        self.request_cpu.push((self.cpu() - before) * 1e3 / requests);
    }

    /// Returns the processor time that the daemon has used, in milliseconds.
    fn cpu(&self) -> f64 {
        processor_time(u64::try_from(self.arena.daemon().as_raw_nonzero().get()).expect("a pid"))
    }
}

fn main() {
    let resets = setting("ARENAD_BENCH_RESETS", 50);
    let rounds = setting("ARENAD_BENCH_ROUNDS", 3);
    let quick = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/quick/arenad");
    assert!(quick.exists(), "{} does not exist; run `make build`", quick.display());
    let mut profiles = [Profile::up("quick", &quick), Profile::up("release", Path::new(env!("CARGO_BIN_EXE_arenad")))];
    for _ in 0..rounds {
        for profile in &mut profiles {
            profile.round(resets);
        }
    }
    println!(
        "\nthe program of `make up` against the one of `make release`; {rounds} rounds of {resets} resets of {RESET}\n"
    );
    println!(
        "{:8} {:>9} {:>9} {:>12} {:>14} {:>16}",
        "profile", "size", "swap p50", "digest p50", "CPU a reset", "CPU a request"
    );
    for profile in &profiles {
        let size = std::fs::metadata(&profile.program).expect("the program").len() as f64 / 1e6;
        println!(
            "{:8} {size:>6.0} MB {:>6.1} ms {:>9.1} ms {:>11.1} ms {:>13.0} µs",
            profile.name,
            median(&profile.swaps),
            median(&profile.digests),
            median(&profile.reset_cpu),
            median(&profile.request_cpu)
        );
    }
    let [quick, release] = &profiles;
    let ratio = |of: fn(&Profile) -> &Vec<f64>| median(of(quick)) / median(of(release));
    println!(
        "\nquick / release: swap {:.2}x, digest {:.2}x, CPU a reset {:.2}x, CPU a request {:.2}x",
        ratio(|it| &it.swaps),
        ratio(|it| &it.digests),
        ratio(|it| &it.reset_cpu),
        ratio(|it| &it.request_cpu)
    );
}

/// Requests a page for [`SECONDS`] over 16 connections; returns the number of responses.
fn requests(url: &str) -> f64 {
    let output = Command::new("wrk").args(["-t1", "-c16", &format!("-d{SECONDS}s"), url]).output().expect("wrk runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find(|line| line.contains("requests in")).unwrap_or_else(|| panic!("wrk: {text}"));
    line.split_whitespace().next().and_then(|number| number.parse().ok()).expect("a number of requests")
}

fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}
