//! The simulation runs real environments, drivers, queues, pools, proofs, reconciliation, store and gateway decisions
//! on an in-memory engine in virtual time. Its schedules follow from seeds. See README.md.

mod act;
mod chaos;
mod client;
mod dial;
mod episodes;
mod laws;
mod model;
mod processor;
mod random;
mod run;
mod schedule;
mod setting;
mod shrink;
mod world;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arenad_seams::wall_clock::WallClock;
use arenad_store::DaemonStore;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection};

use self::episodes::EPISODES_ONE_IN;
use self::processor::stay_on;
use self::random::mix;
use self::run::run;
use self::setting::number_of;

/// The default number of schedules.
const SCHEDULES: u64 = 40;
/// The seed from which the seeds of the schedules are derived.
const BASE: u64 = 1;
/// The default number of steps in a schedule.
const STEPS: u64 = 200;

/// The message about a seed that does not determine the run.
const DIFFER: &str = "two runs of one seed differ";

/// A folder, in memory if possible, that is removed at the end.
struct SimulationFolder(PathBuf);

impl SimulationFolder {
    fn new() -> Self {
        let shared = Path::new("/dev/shm");
        let base = if shared.is_dir() { shared.to_owned() } else { std::env::temp_dir() };
        let folder = base.join(format!("arenad-simulation-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        Self(folder)
    }
}

impl Drop for SimulationFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The installation's id. It is constant, because the names of containers end in it and appear in traces.
const INSTALLATION: &str = "51a000000000";

/// Creates a database with the current schema, to be copied.
fn template(folder: &Path) -> PathBuf {
    let path = folder.join("template.db");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let store = DaemonStore::open(&path, WallClock::system()).await.expect("a database");
        store.close().await;
        let mut connection = SqliteConnectOptions::new().filename(&path).connect().await.expect("the database");
        let statement = "INSERT INTO installation (id, created_at) VALUES (?, '2033-05-18T03:33:20.000000000Z')";
        sqlx::query(statement).bind(INSTALLATION).execute(&mut connection).await.expect("an installation");
        connection.close().await.expect("the database closes");
    });
    path
}

/// The first schedule that breaks a law.
struct BrokenSchedule {
    seed: u64,
    sentence: String,
}

fn main() -> ExitCode {
    // Test runners pass `--list` to find the names of tests; this program has none.
    if std::env::args().any(|argument| argument == "--list") {
        return ExitCode::SUCCESS;
    }
    let place = SimulationFolder::new();
    let template = template(&place.0);
    let steps = usize::try_from(number_of("ARENAD_SIM_STEPS").unwrap_or(STEPS)).unwrap_or(usize::MAX);
    if let Some(seed) = number_of("ARENAD_SIM_SEED") {
        return one(seed, steps, &place.0, &template);
    }
    // The default seeds are fixed, so that a run of all tests has the same meaning everywhere; `random` explores new
    // ones.
    let base = match std::env::var("ARENAD_SIM_BASE").as_deref() {
        Ok("random") => {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            mix(now.as_nanos() as u64)
        }
        _ => number_of("ARENAD_SIM_BASE").unwrap_or(BASE),
    };
    let schedules = number_of("ARENAD_SIM_SCHEDULES").unwrap_or(SCHEDULES);
    let longest = number_of("ARENAD_SIM_SECONDS").map_or(Duration::MAX, Duration::from_secs);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = number_of("ARENAD_SIM_THREADS").map_or(processors, |threads| usize::try_from(threads).unwrap_or(1));
    println!("simulation: {schedules} schedules of {steps} steps, base seed {base:#x}, {threads} threads");
    let (next, is_over, found) = (AtomicU64::new(0), AtomicBool::new(false), Mutex::new(None));
    let traces = AtomicU64::new(0);
    let goes_on = std::env::var_os("ARENAD_SIM_GO_ON").is_some();
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (folder, template) = (place.0.join(format!("t{thread}")), &template);
            let (next, is_over, found, traces) = (&next, &is_over, &found, &traces);
            scope.spawn(move || {
                stay_on(thread);
                while !is_over.load(Ordering::Relaxed) && begun.elapsed() < longest {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= schedules {
                        return;
                    }
                    let seed = mix(mix(base).wrapping_add(number));
                    let (violation, trace) = checked(seed, number, steps, &folder, template);
                    traces.fetch_add(trace, Ordering::Relaxed);
                    if let Some(sentence) = violation {
                        if goes_on {
                            println!("simulation: seed {seed:#x} (number {number}): {sentence}");
                        } else {
                            is_over.store(true, Ordering::Relaxed);
                        }
                        found.lock().expect("no panic").get_or_insert(BrokenSchedule { seed, sentence });
                    }
                }
            });
        }
    });
    let took = begun.elapsed();
    let count = next.load(Ordering::Relaxed).min(schedules);
    let rate = (count * steps as u64) as f64 / took.as_secs_f64();
    let traces = traces.into_inner();
    println!("simulation: {count} schedules in {took:.1?}, {rate:.0} steps/s, traces {traces:#018x}");
    if !is_over.load(Ordering::Relaxed) && count < schedules {
        println!("simulation: {} schedules were left out, for the {longest:?} were over", schedules - count);
    }
    match found.into_inner().expect("no panic") {
        None => ExitCode::SUCCESS,
        Some(_) if goes_on => ExitCode::FAILURE,
        Some(found) => report(&found, steps, &place.0, &template),
    }
}

/// Runs a schedule, and repeats every n-th one. Returns the law that it breaks, and a number that is equal for all runs
/// with the same events.
fn checked(seed: u64, number: u64, steps: usize, folder: &Path, template: &Path) -> (Option<String>, u64) {
    let schedule = schedule::generate(seed, steps);
    let ended = run(seed, &schedule, folder, template, false);
    let every = number_of("ARENAD_SIM_TWICE").unwrap_or_default();
    if every > 0 && number.is_multiple_of(every) {
        let again = run(seed, &schedule, folder, template, false);
        if again.trace != ended.trace {
            return (Some(format!("{DIFFER}: {:x?} and {:x?}", ended.trace, again.trace)), 0);
        }
    }
    let (told, points) = ended.trace;
    (ended.violation.map(|(_, sentence)| sentence), mix(told ^ mix(points)))
}

fn report(found: &BrokenSchedule, steps: usize, folder: &Path, template: &Path) -> ExitCode {
    let BrokenSchedule { seed, sentence } = found;
    println!("\nsimulation: seed {seed:#x} breaks a law:\n  {sentence}");
    let episodes = *EPISODES_ONE_IN;
    let variables = format!("ARENAD_SIM_SEED={seed:#x} ARENAD_SIM_STEPS={steps} ARENAD_SIM_EPISODES={episodes}");
    println!("  {variables} cargo test --workspace --test simulation");
    if sentence.starts_with(DIFFER) {
        return ExitCode::FAILURE;
    }
    let begun = Instant::now();
    let schedule = schedule::generate(*seed, steps);
    let (short, sentence) = shrink::shrink(*seed, &schedule, sentence.clone(), &folder.join("shrink"), template);
    println!("the shortest schedule found in {:.1?}, of {} steps:\n  {sentence}", begun.elapsed(), short.len());
    for index in &short {
        println!("  {index:>3} {}", schedule[*index]);
    }
    let kept: Vec<String> = short.iter().map(usize::to_string).collect();
    let kept = kept.join(",");
    println!("  ARENAD_SIM_VERBOSE=1 {variables} ARENAD_SIM_KEEP={kept} cargo test --workspace --test simulation");
    ExitCode::FAILURE
}

/// Replays one seed. The schedule is shortened unless the output is verbose.
fn one(seed: u64, steps: usize, folder: &Path, template: &Path) -> ExitCode {
    let verbose = std::env::var_os("ARENAD_SIM_VERBOSE").is_some();
    if verbose && std::env::var_os("RUST_LOG").is_some() {
        tracing_subscriber::fmt()
            .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
            .without_time()
            .init();
    }
    let mut schedule = schedule::generate(seed, steps);
    if let Ok(kept) = std::env::var("ARENAD_SIM_KEEP") {
        let kept: Vec<usize> = kept.split(',').filter_map(|index| index.trim().parse().ok()).collect();
        schedule = kept.iter().filter_map(|index| schedule.get(*index).cloned()).collect();
    }
    let begun = Instant::now();
    let ended = run(seed, &schedule, &folder.join("one"), template, verbose);
    let took: Duration = begun.elapsed();
    println!("simulation: seed {seed:#x}, {} steps in {took:.1?}, trace {:x?}", schedule.len(), ended.trace);
    match ended.violation {
        None => ExitCode::SUCCESS,
        Some((step, sentence)) if verbose => {
            println!("step {step}: {sentence}");
            ExitCode::FAILURE
        }
        Some((_, sentence)) => report(&BrokenSchedule { seed, sentence }, steps, folder, template),
    }
}
