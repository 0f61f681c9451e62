//! Judges given results of four benchmarks, with arenad and with the Python of each benchmark in the same run. arenad
//! runs once on one thread and once on one thread per processor.
//!
//! Run with `cargo bench --bench evaluators`, or `cargo bench --bench evaluators -- webcanvas` for one of them.
//! ARENAD_BENCHMARK_DATA names the folder with the benchmarks' data. ARENAD_WAV_PYTHON names a Python installation that
//! has webarena-verified 1.2.3, and ARENAD_EVALUATORS_PYTHON one that has the packages of `requirements.txt`; without
//! them, only arenad is measured. ARENAD_BENCH_ROUNDS sets the number of rounds (default 3); each side is represented by
//! its fastest round. Reading the files is part of the time of either side.

mod inputs;
mod mind2web;
mod turkingbench;
mod verified;
mod webcanvas;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// The settings of a run.
struct Settings {
    data: Option<PathBuf>,
    rounds: usize,
    /// Names of the benchmarks to measure; empty for all.
    only: Vec<String>,
    python: Option<PathBuf>,
}

impl Settings {
    fn read() -> Self {
        let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
        Self {
            data: variable("ARENAD_BENCHMARK_DATA"),
            rounds: std::env::var("ARENAD_BENCH_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(3),
            // cargo passes `--bench` as well.
            only: std::env::args().skip(1).filter(|name| !name.starts_with('-')).collect(),
            python: variable("ARENAD_EVALUATORS_PYTHON"),
        }
    }

    fn asks_for(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }
}

fn main() {
    let settings = Settings::read();
    if settings.asks_for("webarena-verified") {
        verified::run(&settings);
    }
    if !["webcanvas", "turkingbench", "mind2web"].iter().any(|name| settings.asks_for(name)) {
        return;
    }
    println!("\nWebCanvas, TurkingBench, Mind2Web: generated results, fastest of {} rounds\n", settings.rounds);
    println!(
        "{:<34} {:>8} {:>11} {:>11} {:>11} {:>8} {:>8}  same scores",
        "", "MB", "one thread", "all threads", "Python", "ratio", "ratio"
    );
    if settings.asks_for("webcanvas") {
        webcanvas::run(&settings);
    }
    if settings.asks_for("turkingbench") {
        turkingbench::run(&settings);
    }
    if settings.asks_for("mind2web") {
        mind2web::run(&settings);
    }
    if settings.python.is_none() {
        println!(
            "\nARENAD_EVALUATORS_PYTHON names no Python with the packages of requirements.txt: arenad was measured alone"
        );
    }
}

/// Scores by their names.
type Scores = BTreeMap<String, Value>;

/// The fastest rounds of arenad on one thread and on one thread per processor, and the scores.
struct Measured {
    seconds: [f64; 2],
    scores: Scores,
}

fn measure(rounds: usize, judge: impl Fn(usize) -> Scores) -> Measured {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let (mut best, mut scores) = ([Duration::MAX; 2], Scores::new());
    for _ in 0..rounds {
        for (threads, best) in [1, processors].into_iter().zip(&mut best) {
            let begun = Instant::now();
            scores = judge(threads);
            *best = (*best).min(begun.elapsed());
        }
    }
    Measured { seconds: best.map(|best| best.as_secs_f64()), scores }
}

/// Works on items with some threads, each of which takes the next item.
fn spread<T: Sync, R: Send>(items: &[T], threads: usize, work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else { return done };
            done.push((at, work(item)));
        }
    };
    let mut done: Vec<(usize, R)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("the results of a thread")).collect()
    });
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Asks a Python program, which reads a request from its standard input and writes an answer to its standard output.
fn ask_python(python: &Path, arguments: &[&OsStr], asked: &Value, stderr: Stdio) -> Value {
    let mut child = Command::new(python)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(stderr)
        .spawn()
        .unwrap_or_else(|error| panic!("{}: {error}", python.display()));
    let mut input = child.stdin.take().expect("its input");
    let text = asked.to_string();
    // A separate thread writes the input, so that reading and writing cannot block each other.
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = child.wait_with_output().expect("its output");
    writer.join().expect("the writer").expect("all written");
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{} has the packages of the benchmark: {error}", python.display()))
}

/// Judges the same files in Python and prints a line of the table.
fn compare(settings: &Settings, name: &str, bytes: u64, ours: &Measured, rounds: usize, mut asked: Value) {
    asked["rounds"] = json!(rounds);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/evaluators/others.py");
    let theirs =
        settings.python.as_ref().map(|python| ask_python(python, &[script.as_os_str()], &asked, Stdio::inherit()));
    #[expect(clippy::cast_precision_loss, reason = "files have fewer than 2^52 bytes")]
    let megabytes = bytes as f64 / 1e6;
    let [one, all] = ours.seconds.map(|seconds| format!("{seconds:.3} s"));
    let Some(theirs) = theirs else {
        println!("{name:<34} {megabytes:>8.1} {one:>11} {all:>11} {:>11} {:>8} {:>8}  -", "-", "", "");
        return;
    };
    let seconds = theirs["seconds"].as_f64().expect("seconds");
    let [of_one, of_all] = ours.seconds.map(|ours| format!("{:.1}x", seconds / ours));
    let other = theirs["scores"].as_object().expect("scores");
    let differing: Vec<&String> = ours
        .scores
        .iter()
        .filter(|(name, score)| !other.get(*name).is_some_and(|other| is_equal(score, other)))
        .map(|(name, _)| name)
        .collect();
    let same = format!("{} of {}", ours.scores.len() - differing.len(), ours.scores.len().max(other.len()));
    let seconds = format!("{seconds:.3} s");
    println!("{name:<34} {megabytes:>8.1} {one:>11} {all:>11} {seconds:>11} {of_one:>8} {of_all:>8}  {same}");
    const SHOWN_MAX: usize = 10;
    for name in differing.into_iter().take(SHOWN_MAX) {
        println!("    {name}: arenad {}, Python {}", ours.scores[name], other.get(name).unwrap_or(&Value::Null));
    }
    for name in other.keys().filter(|name| !ours.scores.contains_key(*name)).take(SHOWN_MAX) {
        println!("    {name}: only in Python");
    }
}

/// Numbers are equal within 1e-9.
fn is_equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            let number = |number: &serde_json::Number| number.as_f64().unwrap_or(f64::NAN);
            (number(one) - number(other)).abs() <= 1e-9
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_equal(one, other))
        }
        _ => one == other,
    }
}

/// A number as JSON; NaN is null.
fn number(value: f64) -> Value {
    if value.is_nan() { Value::Null } else { json!(value) }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn write(path: &Path, content: &str) {
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    std::fs::write(path, content).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

fn size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |data| data.len())
}
