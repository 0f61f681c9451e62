//! Fuzzing: every parser of bytes from untrusted sources runs on mutated inputs, in processes that may crash. See
//! README.md.

#[path = "../support/hostile/mod.rs"]
#[allow(dead_code, reason = "made for tests that ask such servers")]
mod hostile;
mod mutate;
#[path = "../simulation/random.rs"]
mod random;
#[path = "../simulation/setting.rs"]
mod setting;
mod shrink;
mod supervise;
mod tape;
mod target;
mod targets;
mod work;

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use self::random::mix;
use self::setting::number_of;
use self::supervise::{FuzzFailure, supervise};
use self::target::FuzzTarget;
use self::targets::TARGETS;

/// The default duration of a whole run.
const TOTAL: Duration = Duration::from_secs(60);
/// The seed that determines the inputs of a default run.
const SEED: u64 = 1;

/// The default is the same inputs each time, so that a run of all tests is reproducible; `random` selects new ones.
fn seed() -> u64 {
    match std::env::var("ARENAD_FUZZ_SEED").as_deref() {
        Ok("random") => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            mix(now.as_nanos() as u64)
        }
        _ => number_of("ARENAD_FUZZ_SEED").unwrap_or(SEED),
    }
}

fn wanted() -> Vec<&'static FuzzTarget> {
    let Ok(name) = std::env::var("ARENAD_FUZZ_TARGET") else { return TARGETS.iter().collect() };
    let found: Vec<&FuzzTarget> = TARGETS.iter().filter(|target| target.name == name).collect();
    let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    assert!(!found.is_empty(), "ARENAD_FUZZ_TARGET is one of {}, not {name:?}", names.join(", "));
    found
}

fn main() -> ExitCode {
    // Test runners list the names of tests; there are none here.
    if std::env::args().any(|argument| argument == "--list") {
        return ExitCode::SUCCESS;
    }
    let targets = wanted();
    // An input that a developer names needs the target's resources; within a run, these exist already.
    if std::env::var_os(work::INPUT).is_some() && std::env::var_os(target::FOLDER).is_none() {
        let [target] = targets[..] else { panic!("ARENAD_FUZZ_TARGET says which target is meant") };
        return supervise::replayed(target);
    }
    if let Some(code) = work::asked_for(&targets) {
        return code;
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(targets.len());
    let share = TOTAL * u32::try_from(threads).unwrap_or(1) / u32::try_from(targets.len()).unwrap_or(1);
    let each = number_of("ARENAD_FUZZ_SECONDS").map_or(share, Duration::from_secs);
    let seed = seed();
    println!("fuzz: {} targets, {each:.1?} each, seed {seed:#x}, {threads} at a time", targets.len());
    let begun = Instant::now();
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::<Box<FuzzFailure>>::new()));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(target) = targets.get(next.fetch_add(1, Ordering::Relaxed)) {
                    match supervise(target, seed, each) {
                        Ok(summary) => println!("fuzz: {:<18} {summary}", target.name),
                        Err(failure) => failures.lock().expect("no panic").push(failure),
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().expect("no panic");
    for failure in &failures {
        println!("\n{failure}");
    }
    println!("fuzz: {} targets in {:.1?}, {} failed", targets.len(), begun.elapsed(), failures.len());
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
