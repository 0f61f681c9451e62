//! The process that examines inputs. It may panic, overflow its stack, run out of memory or never end: each input is
//! written to a file before it is examined.

use std::collections::HashSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::mutate::mutated;
use crate::random::{Random, mix};
use crate::setting::number_of;
use crate::target::{FuzzTarget, InputCheck};

/// The variable with the path of the file that contains the current input.
pub const CURRENT: &str = "ARENAD_FUZZ_CURRENT";
/// The variable with the path of a single input to examine.
pub const INPUT: &str = "ARENAD_FUZZ_INPUT";

/// A panicking thread never releases this lock, so its input stays the current one while the panic is reported.
static PANICKED: Mutex<()> = Mutex::new(());

/// The maximum number of inputs that are kept because of a new answer.
const KEPT_MAX: usize = 2000;

/// Examines a single input or works as the examining process, if a variable requests it.
pub fn asked_for(targets: &[&FuzzTarget]) -> Option<ExitCode> {
    let only = || match targets {
        [only] => *only,
        _ => panic!("ARENAD_FUZZ_TARGET says which target is meant"),
    };
    if let Some(path) = std::env::var_os(INPUT) {
        replay(only(), Path::new(&path));
        return Some(ExitCode::SUCCESS);
    }
    let current = std::env::var_os(CURRENT)?;
    work(only(), &PathBuf::from(current));
    Some(ExitCode::SUCCESS)
}

/// Opens a target with its memory limit. A panic of any thread ends the process.
fn open(target: &FuzzTarget) -> InputCheck {
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let _held = PANICKED.lock();
        told(panic);
        std::process::exit(101);
    }));
    // Targets may start confined processes, which run the `arenad` program and not this one.
    arenad_confined::set_program(env!("CARGO_BIN_EXE_arenad").into());
    let check = (target.open)();
    let limit = Rlimit { current: Some(target.memory), maximum: getrlimit(Resource::Data).maximum };
    setrlimit(Resource::Data, limit).expect("a limit of memory");
    check
}

fn replay(target: &FuzzTarget, path: &Path) {
    let input = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut check = open(target);
    let begun = Instant::now();
    let answer = check(&input);
    let took = begun.elapsed();
    println!("fuzz: {}, {} bytes in {took:.1?}: {answer}", target.name, input.len());
    assert!(took < target.slowest, "it took {took:?}");
}

fn work(target: &FuzzTarget, current: &Path) {
    let seconds = number_of("ARENAD_FUZZ_SECONDS").unwrap_or_default();
    let until = Instant::now() + Duration::from_millis(seconds);
    let mut worker = FuzzWorker {
        target,
        check: open(target),
        current: File::create(current).expect("a file for the current input"),
        answers: HashSet::new(),
        pool: Vec::new(),
        cases: 0,
    };
    for input in target.corpus() {
        worker.look(&input);
        // Initial inputs are mutated whatever their answers are.
        if !worker.pool.contains(&input) {
            worker.pool.push(input);
        }
    }
    let seed = mix(number_of("ARENAD_FUZZ_SEED").unwrap_or_default());
    let begun = (Instant::now(), worker.cases);
    while Instant::now() < until {
        let mut random = Random::new(mix(seed.wrapping_add(worker.cases)));
        let input = mutated(target, &worker.pool, &mut random);
        worker.look(&input);
    }
    let rate = (worker.cases - begun.1) as f64 / begun.0.elapsed().as_secs_f64();
    println!("{} inputs, {rate:.0}/s, {} answers", worker.cases, worker.answers.len());
}

struct FuzzWorker<'a> {
    target: &'a FuzzTarget,
    check: InputCheck,
    current: File,
    answers: HashSet<String>,
    pool: Vec<Vec<u8>>,
    cases: u64,
}

impl FuzzWorker<'_> {
    fn look(&mut self, input: &[u8]) {
        drop(PANICKED.lock());
        self.current.set_len(input.len() as u64).and_then(|()| self.current.write_all_at(input, 0)).expect("written");
        let begun = Instant::now();
        let answer = (self.check)(input);
        let took = begun.elapsed();
        assert!(took < self.target.slowest, "it took {took:?}");
        self.cases += 1;
        if self.answers.insert(kind(&answer))
            && self.pool.len() < KEPT_MAX
            && !self.pool.iter().any(|known| known == input)
        {
            self.pool.push(input.to_vec());
        }
    }
}

/// Removes the numbers from an answer, except for those of three digits, which are statuses.
fn kind(answer: &str) -> String {
    let words = answer.split_inclusive(|c: char| !c.is_ascii_digit());
    let counts = |word: &&str| {
        let digits = word.bytes().take_while(u8::is_ascii_digit).count();
        digits == 0 || digits == 3
    };
    words.filter(counts).flat_map(str::chars).take(200).collect()
}
